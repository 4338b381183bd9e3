"""Hypothesis strategies: random queries as text, streams and facts over a vocabulary small enough for everything to
meet everything.

Strategies are kept (`cache`). Hypothesis looks into each one that is new, and that takes longer than to draw from it.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import count

from hypothesis import strategies as st

from epsparql.terms import RDF, XSD, Iri, Literal, TripleTerm
from tests.reference.evaluator import Fact, Occurrence, Settings, Triple
from tests.support.feeds import EXAMPLE, SECOND, Body
from tests.support.feeds import term as parse_shorthand

PROLOGUE = f"PREFIX : <{EXAMPLE}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
OTHER = "urn:other"
"""The second stream."""

CHAIN_OPERATORS = ("SEQ", "EQUALS", "UNION", "AND", "OPTIONALSEQ", "EQUALSOPTIONAL", "MEETS", "DURING", "STARTS", "FINISHES", "OVERLAPS", "PAR")
OPERATORS = (
    *(f"G {operator} G" for operator in CHAIN_OPERATORS),
    "G SEQ G SEQ G", "G SEQ G UNION G", "G EQUALS G OPTIONALSEQ G", "G OPTIONALSEQ G EQUALSOPTIONAL G", "G G", "G OPTIONAL G", "G MINUS G", "G MINUS { :a :q ?z }",
    "G FILTER(C)", "G OPTIONAL { G FILTER(C) }", "{ G FILTER(C) } OPTIONALSEQ G", "G FILTER EXISTS G", "G FILTER NOT EXISTS G",
    "{ G EQUALSOPTIONAL { G SEQ G } } WITHIN D", "{ G SEQ G WITHIN D } EQUALSOPTIONAL { G SEQ G }", "G DURING { G SEQ G WITHIN D }", "G OVERLAPS { G SEQ G WITHIN D }",
    "{ G WITHIN D } PAR { G SEQ G WITHIN D }", "G MEETS { { G WITHIN D } EQUALS { G WITHIN D } }",
    "G WITHIN D", "G SEQ G WITHIN D", "G SEQ G WITHOUT G", "G SEQ G WITHIN D WITHOUT G", "G SEQ { G AND { G SEQ G } } WITHIN D", "G SEQ G WITHOUT G SEQ G", "G AND G WITHOUT G", "G AND G WITHIN D WITHOUT { G SEQ G }", "{ G SEQ G } AND { V } WITHOUT G", "G WITHOUT G FOR T",
)  # fmt: skip
"""Group graph patterns: G is a group, C a condition, D a duration, T a timer's duration."""
WITHIN_EXPRESSIONS = ("G FILTER(EXISTS G || C)", "G OPTIONAL { G FILTER(NOT EXISTS G && C) }", "{ G FILTER(EXISTS G || C) } OPTIONALSEQ G")
PATHS = (
    "{ P }",
    "G { P }",
    "G SEQ { P }",
    "{ P } SEQ G",
    "G OPTIONAL { P }",
    "G MINUS { P }",
    "G FILTER EXISTS { P }",
    "{ P } EQUALS { P }",
    "{ P } WITHOUT G FOR T",
)
"""P is a property path between two nodes."""
TABLES = (
    "V",
    "G V",
    "{ V } SEQ G",
    "G OPTIONAL { V }",
    "G MINUS { V }",
    "{ V } OPTIONAL G",
    "{ V } UNION G",
    "G FILTER EXISTS { V }",
    "{ V } WITHOUT G FOR T",
)
"""V is a VALUES."""
GRAPHS = (
    "GRAPH N G", "GRAPH N { G SEQ G }", "GRAPH N { G OPTIONAL G }", "GRAPH N { G MINUS G }", "GRAPH N { P }", "GRAPH N { V }", "GRAPH N { }", "GRAPH N G GRAPH N G",
    "G GRAPH N G", "{ GRAPH N G } SEQ G", "G OPTIONAL { GRAPH N G }", "G FILTER EXISTS { GRAPH N G }", "GRAPH N { G FILTER NOT EXISTS G }",
)  # fmt: skip
"""N is a graph's name or a variable for it."""
SELECTS = (
    "{ S }",
    "G { S }",
    "{ S } SEQ G",
    "G SEQ { S }",
    "G OPTIONAL { S }",
    "G MINUS { S }",
    "{ S } UNION G",
    "{ S } { S }",
    "GRAPH N { S }",
    "{ S } WITHIN D",
)
"""S is a sub-SELECT."""
SHAPES = (*OPERATORS, *WITHIN_EXPRESSIONS, *PATHS, *TABLES, *GRAPHS, *SELECTS)
BINDINGS = ("G BIND(X AS ?x@)", "G BIND(EXISTS G AS ?x@)", "G BIND(IF(NOT EXISTS G, X, X) AS ?x@)")
"""X is an expression; `?x@` becomes a variable that no inner group has."""
VARIABLES = ("?s", "?t", "?v", "?w", "?u")
SECONDS = st.integers(0, 5)


# ---------------------------------------------------------------- expressions
NUMERALS = (
    *(("integer", lexical) for lexical in ("0", "3", "-1", "x", "9007199254740993", "1" + "0" * 200, "-1" + "0" * 320)),
    *(("byte", "12"), ("byte", "127"), ("byte", "300"), ("byte", "-129"), ("unsignedInt", "-1"), ("unsignedLong", "18446744073709551615")),
    *(("positiveInteger", "0"), ("negativeInteger", "0"), ("nonPositiveInteger", "-0"), ("nonNegativeInteger", "5")),
    *(("decimal", lexical) for lexical in ("0.0", "0.1", "1.5", "-2.5", "1" * 40 + ".5")),
    *(
        ("double", lexical)
        for lexical in ("0", "-0", "0.1", "1.5e0", "1e308", "-1e308", "1e-320", "1e999", "INF", "-INF", "NaN", "9007199254740992", "x")
    ),
    *(("float", lexical) for lexical in ("0", "-0", "0.1", "1.5", "2.0", "3e38", "1e-45", "16777217", "INF", "-INF", "NaN", "1.0.0")),
)
"""Numbers of every type, and what is none though it says so: (datatype, lexical form)."""


@cache
def numerals() -> st.SearchStrategy[str]:
    return st.sampled_from(NUMERALS).map('"{0[1]}"^^xsd:{0[0]}'.format)


@cache
def _durations() -> st.SearchStrategy[str]:
    return SECONDS.map(lambda seconds: f'"PT{seconds}S"^^xsd:duration')


@cache
def _instants() -> st.SearchStrategy[str]:
    return SECONDS.map(lambda seconds: f'"1970-01-01T00:00:0{seconds}Z"^^xsd:dateTime')


@cache
def _operands() -> st.SearchStrategy[str]:
    plain = st.sampled_from((*VARIABLES, "?v", "?v", "?w", "0", "1", "2", "0.5", "1.5e0"))
    leaves = st.one_of(plain, plain, plain, numerals())
    arithmetic = st.tuples(leaves, st.sampled_from("+-*/"), leaves).map(lambda parts: f"({' '.join(parts)})")
    chosen = st.tuples(st.sampled_from(VARIABLES), leaves, leaves).map(lambda parts: f"IF(BOUND({parts[0]}), {parts[1]}, {parts[2]})")
    return st.one_of(leaves, leaves, arithmetic, chosen)


@cache
@st.composite
def calculations(draw: st.DrawFn) -> str:
    """A comparison of sums and products of two numbers of a stream and of others."""
    leaves = st.one_of(st.sampled_from(("?v", "?w")), st.sampled_from(("?v", "?w")), numerals())
    operands = st.recursive(
        leaves, lambda inner: st.tuples(inner, st.sampled_from("+-**/"), inner).map(lambda parts: f"({' '.join(parts)})"), max_leaves=4
    )
    return f"{draw(operands)} {draw(_COMPARED)} {draw(operands)}"


_COMPARED = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))


@cache
def _tests() -> st.SearchStrategy[str]:
    values = st.tuples(_operands(), _COMPARED, _operands())
    lengths = st.tuples(st.just("getDURATION()"), _COMPARED, _durations())
    times = st.tuples(st.sampled_from(("getSTARTTIME()", "getENDTIME()")), _COMPARED, _instants())
    gaps = st.tuples(st.just("(getENDTIME() - getSTARTTIME())"), _COMPARED, _durations())
    shifted = st.tuples(st.just("getSTARTTIME()"), st.sampled_from("+-"), _durations(), _COMPARED, _instants())
    return st.one_of(values, values, lengths, times, gaps, shifted).map(" ".join) | st.sampled_from(VARIABLES).map("BOUND({})".format)


@cache
def conditions() -> st.SearchStrategy[str]:
    return st.recursive(
        _tests(),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(("&&", "||")), inner).map(lambda parts: f"({' '.join(parts)})"),
            inner.map("!({})".format),
        ),
        max_leaves=3,
    )


@cache
def computed() -> st.SearchStrategy[str]:
    """Expressions whose value is worth binding."""
    return st.one_of(_operands(), _operands(), _tests(), st.sampled_from(("getDURATION()", "getSTARTTIME()", "getENDTIME()")))


# ---------------------------------------------------------------- patterns
@cache
def _triples(anonymous: bool) -> st.SearchStrategy[str]:
    """Few constants and few shared objects, else nothing ever matches; `_:@` becomes a blank node of its own."""
    blank = ["_:@"] if anonymous else []
    subjects = ("?s", "?s", "?s", "?s", "?t", "?t", ":a", *blank)
    objects = ("?v", "?v", "?v", "?w", "?w", "?u", "?s", "?t", "1", *blank)
    predicates = (":p", ":p", ":q", ":q", ":r", ":k", "?p")
    return st.tuples(st.sampled_from(subjects), st.sampled_from(predicates), st.sampled_from(objects)).map(" ".join)


@cache
def basic(anonymous: bool = True) -> st.SearchStrategy[str]:
    one = _triples(anonymous)
    return st.one_of(one, one, st.tuples(one, one).map(" . ".join)).map("{{ {} }}".format)


@cache
def shared() -> st.SearchStrategy[str]:
    """Groups that agree on the subject and often match."""
    objects = st.sampled_from(("?v", "?w", "?u", "?t"))
    return st.tuples(st.sampled_from((":p", ":p", ":q", ":r", "?p")), objects).map(lambda parts: f"{{ ?s {' '.join(parts)} }}")


@cache
def about_triples() -> st.SearchStrategy[str]:
    """Triples whose object is a triple term with variables, in a group; reifiers and annotations among them."""
    inner = st.tuples(
        st.sampled_from(("?s", "?s", "?t", ":a", "_:@")), st.sampled_from((":p", ":q", "?p")), st.sampled_from(("?v", "?v", "?w", "?s", "1"))
    )
    terms = st.recursive(
        inner.map(lambda parts: f"<<( {' '.join(parts)} )>>"),
        lambda deeper: st.tuples(st.sampled_from(("?t", ":a")), deeper).map("<<( {0[0]} :p {0[1]} )>>".format),
        max_leaves=2,
    )
    said = st.tuples(st.sampled_from(("?s", "?t", "?u", ":a")), st.sampled_from((":p", ":r", "?p")), terms).map(" ".join)
    reified = inner.map(lambda parts: f"<< {' '.join(parts)} ~ ?u >>")
    annotated = st.sampled_from(("?s :p ?v {| :r ?w |}", "?s :q ?w ~ ?u", ":a ?p ?v ~ ?t {| :q ?w |}"))
    taken = said.map("{} FILTER(isTRIPLE(<<( ?s :p ?v )>>) || OBJECT(?v) = 1)".format)
    made = st.just("?s :p ?v BIND(TRIPLE(?s, :p, ?v) AS ?x@)")
    return st.one_of(said, said, reified, annotated, taken, made, st.tuples(said, reified).map(" . ".join)).map("{{ {} }}".format)


@cache
def triple_queries() -> st.SearchStrategy[str]:
    """Shapes over groups with triple terms and over others."""
    groups = st.one_of(about_triples(), about_triples(), shared())
    shapes = (
        *OPERATORS,
        *WITHIN_EXPRESSIONS,
        "G MINUS { ?s ?p <<( ?t :p ?v )>> }",
        "GRAPH N G",
        "{ SELECT ?v WHERE G } G",
        "{ ?s :p* <<( ?t ?p ?v )>> }",
    )
    return st.sampled_from(shapes).flatmap(lambda shape: shaped(shape, groups)).map(lambda body: PROLOGUE + _numbered(f"SELECT * WHERE {body}"))


@cache
def triple_rules() -> st.SearchStrategy[str]:
    """Rules that write reifiers and triple terms into another stream."""
    templates = st.sampled_from(("?s :r <<( ?s :p ?v )>>", "?s :p ?v {| :q ?w |}", "<< ?t :q _:x >> :r _:x", ":a :p <<( ?s :p <<( ?t :q ?v )>> )>>"))
    bodies = st.one_of(about_triples(), st.tuples(about_triples(), shared()).map("{{ {0[0]} SEQ {0[1]} }}".format))
    return st.tuples(templates, bodies).map(lambda parts: PROLOGUE + _numbered(f"CONSTRUCT {{ {parts[0]} }} INTO STREAM <{OTHER}> WHERE {parts[1]}"))


@cache
def paths() -> st.SearchStrategy[str]:
    """A path of a few steps between two nodes."""
    steps = st.recursive(
        st.sampled_from((":p", ":p", ":q", ":k", "!:p", "!(:p|^:q)", "!^:p")),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+*?")).map(lambda parts: f"({parts[0]}){parts[1]}"),
            st.tuples(inner, st.sampled_from("/|"), inner).map(lambda parts: f"({''.join(parts)})"),
            inner.map("^({})".format),
        ),
        max_leaves=3,
    )
    closed = st.tuples(steps, st.sampled_from("+*?")).map(lambda parts: f"({parts[0]}){parts[1]}")
    ends = st.sampled_from(("?s", "?s", "?s", "?t", ":a")), st.sampled_from(("?v", "?v", "?t", "?s", ":a", ":b", "1"))
    return st.tuples(ends[0], steps | closed, ends[1]).map(" ".join)


@cache
def tables() -> st.SearchStrategy[str]:
    """VALUES of one column or two."""
    cells = {"?v": ("1", "2", "1.0", "UNDEF"), "?s": (":a", ":b", ":a", "UNDEF"), "?w": ("1", "2")}
    one = st.sampled_from(tuple(cells)).flatmap(
        lambda name: st.lists(st.sampled_from(cells[name]), min_size=1, max_size=3).map(lambda rows: f"VALUES {name} {{ {' '.join(rows)} }}")
    )
    row = st.tuples(st.sampled_from(cells["?s"]), st.sampled_from(cells["?v"])).map("({0[0]} {0[1]})".format)
    two = st.lists(row, max_size=3).map(lambda rows: f"VALUES (?s ?v) {{ {' '.join(rows)} }}")
    return st.one_of(one, one, two)


@cache
def shaped(shape: str, groups: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """The shape with its letters filled in, as a group."""
    timers = st.integers(1, 4).map(lambda seconds: f'"PT{seconds}S"^^xsd:duration')
    names = st.sampled_from(("?g", "?g", "?g", ":g", ":h"))
    fillings = {"G": groups, "C": conditions(), "D": _durations(), "T": timers, "X": computed(), "P": paths(), "V": tables(), "N": names}
    if "S" in shape:
        fillings["S"] = sub_selects(groups)
    parts = re.split(r"\b([GCDTXPVNS])\b", shape)
    return st.tuples(*(fillings.get(part, st.just(part)) for part in parts)).map(lambda drawn: f"{{ {''.join(drawn)} }}")


# ---------------------------------------------------------------- SELECT: groups, windows, modifiers
AGGREGATES = (
    "COUNT(*)", "COUNT(*)", "COUNT(DISTINCT *)", "COUNT(?v)", "COUNT(DISTINCT ?v)", "SUM(?v)", "SUM(?v + 1)", "SUM(DISTINCT ?v)", "AVG(?v)", "MIN(?v)", "MAX(?v)", "MAX(?w)",
    "SAMPLE(?v)", "FIRST(?v)", "LAST(?w)", "LAST(?v + 1)", "FIRST(getENDTIME())", "GROUP_CONCAT(?v)", "GROUP_CONCAT(DISTINCT ?v; SEPARATOR=',')", "SUM(IF(BOUND(?w), 1, 0.5))",
)  # fmt: skip
WINDOWS = (
    '[RANGE "PT1S"]',
    '[RANGE "PT3S"]',
    "[ROWS 1]",
    "[ROWS 2]",
    '[RANGE "PT2S" STEP "PT2S"]',
    '[RANGE "PT4S" STEP "PT3S"]',
    '[RANGE "PT1S" STEP "PT2S"]',
)


LINKS = (
    "?v > PREV(?v)", "?v >= PREV(?v)", "?v != PREV(?v)", "?v <= FIRST(?v)", "SUM(?v) <= 4", "COUNT(*) <= 2", "COUNT(?w) < 2 || ?v < 2", "MAX(?v) - MIN(?v) <= 1",
    "AVG(?v) < 2", "LAST(?v) = 2", "COALESCE(PREV(?w), 1) = 1", "getSTARTTIME() > PREV(getSTARTTIME())", "getDURATION() <= PREV(getDURATION())",
)  # fmt: skip


@cache
@st.composite
def run_windows(draw: st.DrawFn, groups: st.SearchStrategy[str]) -> str:
    """Runs and sessions, with gaps that many neighbours have exactly, and parts that often let elements link, so that
    the others decide.
    """
    length = st.sampled_from(("PT1S", "PT2S", "PT2S", "PT3S"))
    report = draw(st.sampled_from(("", " EACH", " CLOSED", " CLOSED")))
    if draw(st.integers(0, 5)) == 0:
        return f"[SESSION {draw(length)}{report}]"
    parts = {
        "WHILE": st.sampled_from(LINKS).map("({})".format),
        "GAP": length,
        "UNTIL": st.one_of(st.sampled_from(("{ ?s :q ?x }", "{ ?s :q ?x }", "{ ?s :q 2 }", "{ ?t :q ?x }", "{ ?s :k ?x }")), groups),
        "WITHIN": st.one_of(length, st.sampled_from(("0", "4", "5"))),
    }
    chosen = draw(st.lists(st.sampled_from(("WHILE", "GAP", "UNTIL", "UNTIL", "WITHIN", "WITHIN")), min_size=1, max_size=3, unique=True))
    return f"[RUN {' '.join(f'{name} {draw(parts[name])}' for name in chosen)}{report}]"


@cache
@st.composite
def aggregations(draw: st.DrawFn, groups: st.SearchStrategy[str]) -> str:
    """A SELECT of groups, from SELECT to LIMIT."""
    body = draw(groups)
    new = 1 + max(map(int, re.findall(r"\?[nmk](\d)", body)), default=0)  # names that no inner SELECT has
    keys = draw(st.sampled_from((None, None, ("?s", "?s"), ("?s", "?s"), ("?v", "?v"), ("?s ?v", "?s ?v"), (f"?k{new}", f"(?v > 1 AS ?k{new})"))))
    first, second = draw(st.sampled_from(AGGREGATES)), draw(st.sampled_from((*AGGREGATES, "(COUNT(*) + 1)")))
    made = draw(st.sampled_from((f"({first} AS ?n{new})", f"({first} AS ?n{new}) ({second} AS ?m{new})")))
    head, grouping = (made, "") if keys is None else (f"{keys[0]} {made}", f" GROUP BY {keys[1]}")
    having = draw(st.sampled_from(("", "", "", f" HAVING ({second} > 1)", " HAVING (getDURATION() < 'PT2S'^^xsd:duration)")))
    window = draw(st.one_of(st.just(""), st.sampled_from(WINDOWS).map(" WINDOW {}".format), run_windows(shared()).map(" WINDOW {}".format)))
    order = draw(
        st.sampled_from(("", "", f" ORDER BY DESC({first})", f" ORDER BY {second} LIMIT 1", " LIMIT 2", f" ORDER BY DESC({second}) LIMIT 1 OFFSET 1"))
    )
    return f"SELECT {head} WHERE {body}{grouping}{having}{window}{order}"


@cache
def modifiers() -> st.SearchStrategy[str]:
    comparators = st.sampled_from(("?v", "DESC(?v)", "?s", "DESC(?w)", "(?v + 1)", "DESC(getSTARTTIME())", "(!BOUND(?w))"))
    order = st.lists(comparators, min_size=1, max_size=2).map(lambda keys: f" ORDER BY {' '.join(keys)}")
    slices = st.sampled_from(("", " LIMIT 1", " LIMIT 2", " LIMIT 3 OFFSET 1", " OFFSET 1", " LIMIT 0", " LIMIT 5"))
    return st.one_of(st.just(""), order, slices, st.tuples(order, slices).map("".join))


@cache
@st.composite
def sub_selects(draw: st.DrawFn, groups: st.SearchStrategy[str]) -> str:
    if draw(st.booleans()):
        return draw(aggregations(groups))
    head = draw(st.lists(st.sampled_from(VARIABLES), min_size=1, max_size=2, unique=True).map(" ".join) | st.just("*"))
    operator = draw(st.sampled_from(("", "", "", "MINUS", "OPTIONAL", "FILTER NOT EXISTS")))  # what they share need not be projected
    body = f"{{ {draw(groups)} {operator} {draw(groups)} }}" if operator else draw(groups)
    return f"SELECT {draw(st.sampled_from(('', '', 'DISTINCT ')))}{head} WHERE {body}{draw(modifiers())}"


@cache
def nested(*, anonymous: bool = True, arithmetic: bool = True, leaves: int = 4) -> st.SearchStrategy[str]:
    """Shapes in shapes, half of them of the operators."""
    shapes = (*OPERATORS, *OPERATORS, *SHAPES, *BINDINGS) if arithmetic else (*OPERATORS, *WITHIN_EXPRESSIONS, *PATHS, *GRAPHS)
    leaf = basic(anonymous) | shared()
    return st.recursive(leaf, lambda inner: st.sampled_from(shapes).flatmap(lambda shape: shaped(shape, inner)), max_leaves=leaves)


def _numbered(text: str) -> str:
    """Every `@` of a blank node or computed variable becomes a number of its own."""
    numbers = count()
    first, *others = text.replace("_:@", "_:b@").split("@")
    return first + "".join(f"{next(numbers)}{other}" for other in others)


# ---------------------------------------------------------------- queries
@cache
def _streams() -> st.SearchStrategy[str]:
    datasets = (*[""] * 9, "FROM :g ", "FROM NAMED :g FROM :h ", "FROM NAMED :g FROM NAMED :h ")
    streams = ("", "", "", f"FROM STREAM <{OTHER}> ", f"FROM STREAM <default> FROM STREAM <{OTHER}> ")
    return st.tuples(st.sampled_from(streams), st.sampled_from(datasets)).map("".join)


@cache
def of_shape(shape: str) -> st.SearchStrategy[str]:
    """Queries for everything that one shape of groups finds."""
    return shaped(shape, shared()).map(lambda body: PROLOGUE + _numbered(f"SELECT * WHERE {body}"))


@cache
def groupings() -> st.SearchStrategy[str]:
    """Aggregates and windows over groups that often match."""
    bodies = st.one_of(
        shared(),
        st.sampled_from(("G OPTIONAL G", "G UNION G", "G SEQ G", "G G", "V", "GRAPH N G", "G WITHOUT G FOR T")).flatmap(
            lambda s: shaped(s, shared())
        ),
    )
    return aggregations(bodies).map(lambda text: PROLOGUE + _numbered(text))


@cache
@st.composite
def run_queries(draw: st.DrawFn) -> str:
    """Runs and sessions by themselves, and as operands of a chain."""
    first, second = draw(st.sampled_from(AGGREGATES)), draw(st.sampled_from(AGGREGATES))
    keys = draw(st.sampled_from(("", "?s", "?s", "?v")))
    having = draw(st.sampled_from(("", "", f" HAVING ({second} > 1)")))
    body = draw(
        st.one_of(
            st.sampled_from(("{ ?s :p ?v }", "{ ?s :p ?v }", "{ ?s :p ?v OPTIONAL { ?s :r ?w } }")),
            st.just("{ ?s :p ?v }"),
            shared(),
            st.sampled_from(("G SEQ G", "G OPTIONAL G", "G UNION G", "V", "GRAPH N G", "G WITHOUT G FOR T")).flatmap(lambda s: shaped(s, shared())),
        )
    )
    select = f"SELECT {keys} ({first} AS ?n9) WHERE {body}{f' GROUP BY {keys}' if keys else ''}{having} WINDOW {draw(run_windows(shared()))}"
    chain = draw(
        st.sampled_from(
            (
                "{}",
                "{}",
                "{}",
                "SELECT * WHERE {{ {{ {} }} SEQ {} }}",
                "SELECT * WHERE {{ {} MEETS {{ {} }} }}",
                "SELECT * WHERE {{ GRAPH ?g9 {{ {} }} }}",
            )
        )
    )
    operands = (draw(shared()), select) if "MEETS" in chain else (select, draw(shared()))
    return PROLOGUE + _numbered(chain.format(*operands))


@cache
@st.composite
def orderings(draw: st.DrawFn) -> str:
    """ORDER BY, LIMIT and OFFSET over groups that often match."""
    body = draw(
        st.one_of(shared(), st.sampled_from(("G OPTIONAL G", "G UNION G", "G SEQ G", "V", "G BIND(X AS ?x@)")).flatmap(lambda s: shaped(s, shared())))
    )
    head = draw(st.sampled_from(("*", "*", "?v", "?s ?v", "DISTINCT ?s", "DISTINCT ?s ?v", "?s (?v + 1 AS ?y@)")))
    return PROLOGUE + _numbered(f"SELECT {head} WHERE {body}{draw(modifiers())}")


@cache
def once_clauses() -> st.SearchStrategy[str]:
    keys = st.sampled_from(("?s", "?s", "?v", "?w", "(?s ?v)", "(?s ?w)"))
    until = st.one_of(st.sampled_from(("{ ?s :q ?x }", "{ ?v :q ?x }", "{ ?t :q ?v }", "{ ?t :k ?x }")), shared())
    ended = st.one_of(st.integers(1, 4).map("WITHIN {}".format), until.map("UNTIL {}".format))
    return st.tuples(keys, ended).map(lambda parts: f"ONCE PER {parts[0]} {parts[1]}")


@cache
def once_bodies() -> st.SearchStrategy[str]:
    """Groups whose solutions of one instant are all emitted at one entry, if it comes as one."""
    shapes = ("G SEQ G", "G OPTIONAL G", "V", "G MINUS G", "G WITHIN T", "G WITHOUT G FOR T")
    return st.one_of(st.just("{ ?s :p ?v }"), shared(), st.sampled_from(shapes).flatmap(lambda shape: shaped(shape, shared())))


@cache
def within(graph: str, groups: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """SELECTs of any kind, over what lies in one graph."""
    shapes = st.sampled_from((*SHAPES, *BINDINGS)).flatmap(lambda shape: shaped(shape, groups))
    plain = shapes.map("SELECT * WHERE {}".format)
    ordered = st.tuples(plain, modifiers()).map("".join)
    dataset = f" FROM {graph} FROM NAMED {graph} WHERE "
    found = st.one_of(plain, plain, ordered, aggregations(groups), aggregations(shapes))
    return found.map(lambda text: PROLOGUE + _numbered(text.replace(" WHERE ", dataset, 1)))


@cache
@st.composite
def forms(draw: st.DrawFn) -> str:
    """ASK and DESCRIBE."""
    body = draw(st.one_of(shared(), nested(leaves=2)))
    head = draw(st.sampled_from(("ASK", "ASK", "DESCRIBE ?s ?v", "DESCRIBE :a ?t", "DESCRIBE *")))
    return PROLOGUE + _numbered(f"{head} {draw(_streams())}WHERE {body}{draw(st.sampled_from(('', '', '', ' OFFSET 1', ' ORDER BY ?v LIMIT 1')))}")


@cache
@st.composite
def window_queries(draw: st.DrawFn) -> str:
    """RSP-QL."""
    sizes = st.tuples(st.integers(1, 4), st.integers(1, 3)).map("[RANGE PT{0[0]}S STEP PT{0[1]}S]".format)
    shapes = st.sampled_from(("G", "G G", "G OPTIONAL G", "G MINUS G", "G FILTER(C)", "P", "G FILTER NOT EXISTS G", "G V"))
    one, other = (draw(shapes.flatmap(lambda shape: shaped(shape, shared()))) for _ in range(2))
    windows = f"FROM NAMED WINDOW :w ON <default> {draw(sizes)} "
    body = draw(
        st.sampled_from(
            (
                f"WINDOW :w {one}",
                f"WINDOW :w {one} {other}",
                f"WINDOW :w {one} WINDOW :x {other}",
                f"WINDOW :w {one} OPTIONAL {{ WINDOW :x {other} }}",
            )
        )
    )
    if ":x" in body:
        windows += f"FROM NAMED WINDOW :x ON <{draw(st.sampled_from(('default', OTHER)))}> {draw(sizes)} "
    head = draw(st.sampled_from(("*", "?s ?v", "DISTINCT ?s", "(COUNT(*) AS ?n)", "(SUM(?v) AS ?n)")))
    report = draw(st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM")))
    return PROLOGUE + _numbered(f"REGISTER {report} <urn:out> AS SELECT {head} {windows}WHERE {{ {body} }}")


@cache
@st.composite
def selects(draw: st.DrawFn) -> str:
    body = draw(nested())
    distinct = draw(st.sampled_from(("", "", "DISTINCT ")))
    head = draw(
        st.one_of(
            st.just("*"),
            st.just("*"),
            st.lists(st.sampled_from(VARIABLES), min_size=1, max_size=3, unique=True).map(" ".join),
            st.tuples(st.sampled_from(VARIABLES), computed()).map(lambda parts: f"{parts[0]} ({parts[1]} AS ?y)"),
        )
    )
    return PROLOGUE + _numbered(f"SELECT {distinct}{head} {draw(_streams())}WHERE {body}{draw(st.just('') | modifiers())}")


@cache
def queries() -> st.SearchStrategy[str]:
    """Any: shapes that often match, shapes in shapes, groups, ordered ones, ASK and DESCRIBE."""
    shapes = st.sampled_from((*SHAPES, *BINDINGS)).flatmap(of_shape)
    return st.one_of(shapes, shapes, selects(), groupings(), orderings(), forms())


@cache
@st.composite
def rules(draw: st.DrawFn) -> str:
    """Rules whose terms come from the data alone, so that the fixpoint is finite."""
    counted = aggregations(shared()).map(lambda text: f"{{ {{ {text} }} {{ ?s ?p ?v }} }}")
    body = draw(st.one_of(*[nested(anonymous=False, arithmetic=False, leaves=2)] * 4, counted, sub_selects(shared()).map("{{ {} }}".format)))
    negative = re.search("SELECT|WITHOUT|OPTIONAL|MINUS|EXISTS", body)  # then a rule that reads what it writes is mostly refused
    used = st.sampled_from([*sorted(set(re.findall(r"\?[stuvw]\b", body))) * 3, "?unbound"])
    predicates = [":p", ":p", ":r", ":d", ":k", *(["?p"] if "?p" in body else [])]
    parts = st.tuples(used | st.just(":a"), st.sampled_from(predicates), used | st.just("1")).map(" ".join)
    template = draw(st.lists(parts, min_size=1, max_size=2, unique=True))
    into = draw(st.sampled_from(("", f"INTO STREAM <{OTHER}> ", f"INTO STREAM <{OTHER}> ") if negative else ("", "", f"INTO STREAM <{OTHER}> ")))
    return PROLOGUE + f"CONSTRUCT {{ {' . '.join(template)} }} {into}{draw(_streams())}WHERE {body}"


# ---------------------------------------------------------------- streams and facts
TERMS = tuple(map(parse_shorthand, ("a", "a", "b")))
OBJECTS = tuple(map(parse_shorthand, ("1", "1", "2", "a", "b", "1.0")))
GRAPH_NAMES = (*[None] * 6, *map(parse_shorthand, ("g", "g", "h")))
PREDICATES = tuple(map(parse_shorthand, ("p", "p", "q", "q", "r")))
MAX_DELAY = 3 * SECOND


@cache
def triples() -> st.SearchStrategy[Triple]:
    return st.tuples(st.sampled_from(TERMS), st.sampled_from(PREDICATES), st.sampled_from(OBJECTS))


@cache
def occurrences() -> st.SearchStrategy[Occurrence]:
    """Ends meet often; half of the occurrences are points."""
    return st.builds(
        lambda triple, end, length, graph: Occurrence(triple, (end - length) * SECOND, end * SECOND, graph),
        triples(),
        st.integers(0, 5),
        st.sampled_from((0, 0, 0, 0, 1, 2, 4)),
        st.sampled_from(GRAPH_NAMES),
    )


@cache
def numeric_feeds() -> st.SearchStrategy[list[Occurrence]]:
    """Numbers of every type, as objects of `:p` and then of `:q`."""
    literals = st.lists(st.sampled_from(NUMERALS).map(lambda pair: Literal(pair[1], XSD + pair[0])), min_size=1, max_size=4, unique=True)
    first = literals.map(lambda found: [Occurrence((TERMS[0], PREDICATES[0], each), 0, 0) for each in found])
    later = literals.map(lambda found: [Occurrence((TERMS[0], PREDICATES[2], each), SECOND, SECOND) for each in found])
    return st.tuples(first, later).map(lambda parts: [*parts[0], *parts[1]])


@cache
def triple_feeds() -> st.SearchStrategy[list[Occurrence]]:
    """Occurrences of which most are about triples."""
    inner = st.recursive(triples(), lambda deeper: st.tuples(st.sampled_from(TERMS), st.just(PREDICATES[0]), deeper.map(_triple_term)), max_leaves=2)
    about = st.tuples(st.sampled_from(TERMS), st.sampled_from((*PREDICATES, Iri(RDF + "reifies"), Iri(RDF + "reifies"))), inner.map(_triple_term))
    one = st.tuples(st.one_of(about, about, triples()), st.integers(0, 4), st.sampled_from(GRAPH_NAMES))
    return st.lists(one.map(lambda parts: Occurrence(parts[0], parts[1] * SECOND, parts[1] * SECOND, parts[2])), min_size=5, max_size=12, unique=True)


def _triple_term(triple: Triple) -> TripleTerm:
    subject, predicate, object_ = triple
    assert isinstance(subject, Iri)
    assert isinstance(predicate, Iri)
    return TripleTerm(subject, predicate, object_)


@cache
def feeds(most: int = 16) -> st.SearchStrategy[list[Occurrence]]:
    """Rarely few: most queries find nothing in those."""
    full = st.lists(occurrences(), min_size=most // 2, max_size=most, unique=True)
    return st.one_of(full, full, full, st.lists(occurrences(), max_size=2))


@cache
def run_feeds() -> st.SearchStrategy[list[Occurrence]]:
    """Elements `:p` of two subjects that come in runs, and fewer `:q` between them; some have the same end, and some
    a length.
    """
    numbers = tuple(map(parse_shorthand, ("1", "2", "2", "3", "1.5")))
    one = st.builds(
        lambda subject, predicate, value, end, length: Occurrence((subject, predicate, value), (end - length) * SECOND, end * SECOND),
        st.sampled_from(TERMS),
        st.sampled_from((PREDICATES[0], PREDICATES[0], PREDICATES[0], PREDICATES[2], PREDICATES[2])),
        st.sampled_from(numbers),
        st.integers(0, 12),
        st.sampled_from((0, 0, 0, 0, 0, 1, 3)),
    )
    return st.lists(one, min_size=8, max_size=18, unique=True)


@cache
def facts() -> st.SearchStrategy[list[Fact]]:
    known = st.tuples(st.sampled_from(TERMS), st.just(parse_shorthand("k")), st.sampled_from(OBJECTS))
    return st.lists(st.builds(Fact, st.one_of(known, known, triples()), st.sampled_from(GRAPH_NAMES)), max_size=3, unique=True)


@cache
def settings() -> st.SearchStrategy[Settings]:
    return st.builds(Settings, default_graph=st.sampled_from(("all", "all", "all", "unnamed")))


@dataclass(frozen=True, slots=True)
class Arrival:
    """How streams arrive: bodies within MAX_DELAY of their order, where the log is cut, and where the engine is
    restored.
    """

    bodies: tuple[Body, ...]
    cuts: frozenset[int]
    restores: frozenset[int]


@st.composite
def arrivals(draw: st.DrawFn, streams: dict[str, list[Occurrence]]) -> Arrival:
    """An occurrence that comes within MAX_DELAY of its end cannot be late; some are sent twice, which changes nothing."""
    sent = [(name, occurrence) for name, stream in streams.items() for occurrence in stream]
    sent += draw(st.lists(st.sampled_from(sent), max_size=2)) if sent else []
    order = sorted((occurrence.end + draw(st.integers(0, MAX_DELAY)), number) for number, (_, occurrence) in enumerate(sent))
    bodies: list[Body] = []
    for _, number in order:
        name, occurrence = sent[number]
        if bodies and bodies[-1].stream == name and draw(st.booleans()):
            bodies[-1] = Body(name, (*bodies[-1].occurrences, occurrence))
        else:
            bodies.append(Body(name, (occurrence,)))
    positions = st.frozensets(st.integers(1, len(bodies) + 4), max_size=4)
    return Arrival(tuple(bodies), draw(positions), draw(positions))
