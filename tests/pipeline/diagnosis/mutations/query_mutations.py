"""Defines mistakes in queries.

Each function returns a set-up with one mistake and the words that name its cause, or None where it does not apply.
"""

import re
from dataclasses import replace

from tests.pipeline.diagnosis.mutations.setups import EX, Setup

Words = tuple[str, ...]
Mutated = tuple[Setup, Words] | None
_SEQ = re.compile(r"(\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\}) SEQ (\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\})")
_FILTERED = re.compile(r"(?<=[ (])\?(\w) (>=?|<=?) (\d+)")


def list_predicates(setup: Setup) -> list[str]:
    """Return the local names of the query's predicates that events have."""
    names = dict.fromkeys(re.findall(r"[?;] ?(?:\w+ )?:([a-z]\w+)", setup.query))
    return [name for name in names if any(f"{EX}{name}>" in body for _, body in setup.bodies) or f'":{name}"' in setup.mapping]


def _mutate_query(setup: Setup, text: str, *words: str) -> Mutated:
    return (replace(setup, query=text), words) if text != setup.query else None


def _rename(setup: Setup, name: str, other: str, *words: str) -> Mutated:
    return _mutate_query(setup, re.sub(rf":{name}\b", f":{other}", setup.query), *words)


def misspell_first_predicate(setup: Setup) -> Mutated:
    name = list_predicates(setup)[0] if list_predicates(setup) else ""
    return _rename(setup, name, name[:2] + name[3:], "predicate", "never seen", f"the nearest is <{EX}{name}>") if name else None


def misspell_last_predicate(setup: Setup) -> Mutated:
    names = list_predicates(setup)
    if len(names) < 2:
        return None
    name = names[-1]
    return _rename(setup, name, name[:3] + name[4] + name[3] + name[5:], "predicate", "never seen", f"the nearest is <{EX}{name}>")


def capitalise_predicate(setup: Setup) -> Mutated:
    names = list_predicates(setup)
    return _rename(setup, names[0], names[0].capitalize(), "upper and lower case", f"<{EX}{names[0]}>") if names else None


def misspell_class(setup: Setup) -> Mutated:
    return _rename(setup, "Vehicle", "Vehicel", "class", "never seen", f"<{EX}Vehicle>")


def write_class_in_lower_case(setup: Setup) -> Mutated:
    return _rename(setup, "Vehicle", "vehicle", "class", "upper and lower case")


def write_other_namespace(setup: Setup) -> Mutated:
    return _mutate_query(setup, setup.query.replace(f"<{EX}>", "<http://example.com/>"), "never seen", "namespace", EX)


def write_hash_namespace(setup: Setup) -> Mutated:
    return _mutate_query(setup, setup.query.replace(f"<{EX}>", "<http://example.org#>"), "never seen", "namespace", EX)


def write_https(setup: Setup) -> Mutated:
    return _mutate_query(setup, setup.query.replace(f"<{EX}>", "<https://example.org/>"), "scheme", "https")


def misspell_stream(setup: Setup) -> Mutated:
    stream = setup.bodies[-1][0]
    return _mutate_query(setup, setup.query.replace(f"STREAM <{stream}>", f"STREAM <{stream[:-1]}>"), f"<{stream[:-1]}>", stream)


def read_the_default_stream(setup: Setup) -> Mutated:
    stream = setup.bodies[0][0]
    return _mutate_query(setup, re.sub(r"FROM STREAM <\w+> ", "", setup.query), "<default>", stream)


def write_smaller_window(setup: Setup) -> Mutated:
    return _mutate_query(setup, re.sub(r"WITHIN PT\d+[MH]", "WITHIN PT5S", setup.query), "WITHIN is 5 s", "the closest solution lasts")


def write_window_in_seconds(setup: Setup) -> Mutated:
    return _mutate_query(setup, re.sub(r"WITHIN PT(\d+)[MH]", r"WITHIN PT\1S", setup.query), "WITHIN is", "the closest solution lasts")


def swap_operands(setup: Setup) -> Mutated:
    return _mutate_query(setup, _SEQ.sub(r"\2 SEQ \1", setup.query), "always before", "swap the operands")


def write_equals(setup: Setup) -> Mutated:
    if "WITHOUT" in setup.query:
        return None  # it follows SEQ and AND alone
    return _mutate_query(setup, setup.query.replace("} SEQ {", "} EQUALS {"), "EQUALS never holds", "differ by")


def write_during(setup: Setup) -> Mutated:
    if "WITHOUT" in setup.query:
        return None  # it follows SEQ and AND alone
    return _mutate_query(setup, setup.query.replace("} SEQ {", "} DURING {"), "DURING never holds")


def use_one_variable_for_two_values(setup: Setup) -> Mutated:
    match = re.search(r":heartRate \?h|:stockPrice \?x|:pumpState \?state|:windSpeed \?w", setup.query)
    other = re.search(r":(?:bloodPressure|tradedVolume|rotorSpeed) \?(\w)", setup.query)
    if match is None or other is None:
        return None
    text = re.sub(rf"\?{other[1]}\b", "?" + match[0].rpartition("?")[2], setup.query)
    return _mutate_query(setup, text, f"?{match[0].rpartition('?')[2]} never has one value on both sides")


def turn_filter(setup: Setup) -> Mutated:
    turn = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
    return _mutate_query(setup, re.sub(r"\?t (>=?|<=?) \d+", lambda m: f"?t {turn[m[1]]} 9", setup.query), "is false", "the closest value of ?t was")


def raise_limit(setup: Setup) -> Mutated:
    return _mutate_query(
        setup,
        _FILTERED.sub(r"?\1 \2 \g<3>00000" if "?b <" not in setup.query else r"?\1 \2 0", setup.query, count=1),
        "is false",
        "the closest value of",
    )


def compare_with_text(setup: Setup) -> Mutated:
    match = _FILTERED.search(setup.query)
    return (
        _mutate_query(setup, _FILTERED.sub(r'?\1 \2 "\3"', setup.query, count=1), f"?{match[1]} was compared with a text", "was a number")
        if match
        else None
    )


def negate_limit(setup: Setup) -> Mutated:
    return _mutate_query(setup, _FILTERED.sub(r"?\1 < -\3", setup.query, count=1), "is false", "the closest value of")


def filter_other_variable(setup: Setup) -> Mutated:
    match = _FILTERED.search(setup.query)
    return _mutate_query(setup, _FILTERED.sub(r"?value \2 \3", setup.query, count=1), "?value", "unbound") if match else None


def write_text_in_upper_case(setup: Setup) -> Mutated:
    return _mutate_query(setup, re.sub(r'"(running|stopped)"', lambda m: m[0].upper(), setup.query), "upper and lower case")


def tag_text(setup: Setup) -> Mutated:
    return _mutate_query(setup, re.sub(r'"(running|stopped)"', r'"\1"@en', setup.query), "language")


def write_name_for_text(setup: Setup) -> Mutated:
    return _mutate_query(setup, re.sub(r'"(running|stopped)"', r":\1", setup.query), "an IRI", "a text")


def misspell_graph(setup: Setup) -> Mutated:
    return _rename(setup, "north", "nord", "graph", "never seen", f"<{EX}north>")


def leave_graph_out(setup: Setup) -> Mutated:
    name = list_predicates(setup)[0] if list_predicates(setup) else ""
    if "GRAPH" in setup.query or ";" in setup.query or not name:
        return None
    return _mutate_query(setup, re.sub(rf"(\?\w :{name} \?\w+)", r"GRAPH ?g { \1 }", setup.query, count=1), "no named graph", "GRAPH")


def forbid_too_much(setup: Setup) -> Mutated:
    if not any("pinged" in body for _, body in setup.bodies):
        return None
    text = re.sub(r"WITHOUT \{[^{}]*\} ", "", setup.query).replace("WITHIN", "WITHOUT { ?any :pinged ?thing } WITHIN")
    return _mutate_query(setup, text, "is blocked by", ":pinged")


def require_absence(setup: Setup) -> Mutated:
    name = list_predicates(setup)[0] if list_predicates(setup) else ""
    return _mutate_query(
        setup, re.sub(r" \}$", f" FILTER NOT EXISTS {{ ?any :{name} ?thing }} }}", setup.query), "NOT EXISTS", f":{name}", "is false"
    )


def name_a_subject(setup: Setup) -> Mutated:
    variable = re.search(r"\?(\w) :", setup.query)
    text = setup.query
    if variable is None or "SEQ" in text or f"SELECT ?{variable[1]} (" in text:
        return None
    body = text[text.index("{") :]
    return _mutate_query(setup, text[: text.index("{")] + re.sub(rf"\?{variable[1]}\b", ":m9", body), "subject", f"<{EX}m9>", "never seen")


def skip_all(setup: Setup) -> Mutated:
    return _mutate_query(setup, setup.query + " OFFSET 100", "OFFSET 100 leaves none")


def count_more(setup: Setup) -> Mutated:
    return _mutate_query(setup, setup.query.replace("COUNT(*) > 2", "COUNT(*) > 20"), "the closest value of COUNT(*) was 3")


MUTATIONS = tuple(function for name, function in list(globals().items()) if callable(function) and getattr(function, "__module__", "") == __name__
                  and not name.startswith("_") and name != "list_predicates")  # fmt: skip
