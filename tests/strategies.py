"""Hypothesis strategies: random queries as text, streams and facts over a vocabulary small enough for everything to meet everything."""

import re
from dataclasses import dataclass
from itertools import count

from hypothesis import strategies as st

from tests.feeds import EXAMPLE, SECOND, Body
from tests.feeds import term as parse_shorthand
from tests.oracle import Occurrence, Triple

PROLOGUE = f"PREFIX : <{EXAMPLE}> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
OTHER = "urn:other"
"""The second stream."""

CHAIN_OPERATORS = ("SEQ", "EQUALS", "UNION", "AND", "OPTIONALSEQ", "EQUALSOPTIONAL", "MEETS", "DURING", "STARTS", "FINISHES", "OVERLAPS", "PAR")
SHAPES = (
    *(f"G {operator} G" for operator in CHAIN_OPERATORS),
    "G SEQ G SEQ G", "G SEQ G UNION G", "G EQUALS G OPTIONALSEQ G", "G OPTIONALSEQ G EQUALSOPTIONAL G", "G G", "G OPTIONAL G", "G MINUS G", "G MINUS { :a :q ?z }",
    "G FILTER(C)", "G OPTIONAL { G FILTER(C) }", "{ G FILTER(C) } OPTIONALSEQ G", "G FILTER EXISTS G", "G FILTER NOT EXISTS G",
    "G FILTER(EXISTS G || C)", "G WITHIN D", "G SEQ G WITHIN D", "G SEQ G WITHOUT G", "G SEQ G WITHIN D WITHOUT G", "G SEQ G WITHOUT G SEQ G",
    "G WITHOUT G FOR T",
)  # fmt: skip
"""Group graph patterns: G is a group, C a condition, D a duration, T a timer's duration."""
BINDINGS = ("G BIND(X AS ?x@)", "G BIND(EXISTS G AS ?x@)")
"""X is an expression; `?x@` becomes a variable that no inner group has."""
VARIABLES = ("?s", "?t", "?v", "?w", "?u")
SECONDS = st.integers(0, 5)


# ---------------------------------------------------------------- expressions
def _durations() -> st.SearchStrategy[str]:
    return SECONDS.map(lambda seconds: f'"PT{seconds}S"^^xsd:duration')


def _instants() -> st.SearchStrategy[str]:
    return SECONDS.map(lambda seconds: f'"1970-01-01T00:00:0{seconds}Z"^^xsd:dateTime')


def _operands() -> st.SearchStrategy[str]:
    leaves = st.sampled_from((*VARIABLES, "?v", "?v", "?w", "0", "1", "2", "0.5", "1.5e0"))
    arithmetic = st.tuples(leaves, st.sampled_from("+-*/"), leaves).map(lambda parts: f"({' '.join(parts)})")
    chosen = st.tuples(st.sampled_from(VARIABLES), leaves, leaves).map(lambda parts: f"IF(BOUND({parts[0]}), {parts[1]}, {parts[2]})")
    return st.one_of(leaves, leaves, arithmetic, chosen)


_COMPARED = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))


def _tests() -> st.SearchStrategy[str]:
    values = st.tuples(_operands(), _COMPARED, _operands())
    lengths = st.tuples(st.just("getDURATION()"), _COMPARED, _durations())
    times = st.tuples(st.sampled_from(("getSTARTTIME()", "getENDTIME()")), _COMPARED, _instants())
    gaps = st.tuples(st.just("(getENDTIME() - getSTARTTIME())"), _COMPARED, _durations())
    shifted = st.tuples(st.just("getSTARTTIME()"), st.sampled_from("+-"), _durations(), _COMPARED, _instants())
    return st.one_of(values, values, lengths, times, gaps, shifted).map(" ".join) | st.sampled_from(VARIABLES).map("BOUND({})".format)


def conditions() -> st.SearchStrategy[str]:
    return st.recursive(
        _tests(),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(("&&", "||")), inner).map(lambda parts: f"({' '.join(parts)})"),
            inner.map("!({})".format),
        ),
        max_leaves=3,
    )


def computed() -> st.SearchStrategy[str]:
    """Expressions whose value is worth binding."""
    return st.one_of(_operands(), _operands(), _tests(), st.sampled_from(("getDURATION()", "getSTARTTIME()", "getENDTIME()")))


# ---------------------------------------------------------------- patterns
def _triples(anonymous: bool) -> st.SearchStrategy[str]:
    """Few constants and few shared objects, else nothing ever matches; `_:@` becomes a blank node of its own."""
    blank = ["_:@"] if anonymous else []
    subjects = ("?s", "?s", "?s", "?s", "?t", "?t", ":a", *blank)
    objects = ("?v", "?v", "?v", "?w", "?w", "?u", "?s", "?t", "1", *blank)
    predicates = (":p", ":p", ":q", ":q", ":r", ":k", "?p")
    return st.tuples(st.sampled_from(subjects), st.sampled_from(predicates), st.sampled_from(objects)).map(" ".join)


def basic(anonymous: bool = True) -> st.SearchStrategy[str]:
    one = _triples(anonymous)
    return st.one_of(one, one, st.tuples(one, one).map(" . ".join)).map("{{ {} }}".format)


def shared() -> st.SearchStrategy[str]:
    """Groups that agree on the subject and often match."""
    objects = st.sampled_from(("?v", "?w", "?u", "?t"))
    return st.tuples(st.sampled_from((":p", ":p", ":q", ":r", "?p")), objects).map(lambda parts: f"{{ ?s {' '.join(parts)} }}")


def shaped(shape: str, groups: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """The shape with its letters filled in, as a group."""
    timers = st.integers(1, 4).map(lambda seconds: f'"PT{seconds}S"^^xsd:duration')
    fillings = {"G": groups, "C": conditions(), "D": _durations(), "T": timers, "X": computed()}
    parts = re.split(r"\b([GCDTX])\b", shape)
    return st.tuples(*(fillings.get(part, st.just(part)) for part in parts)).map(lambda drawn: f"{{ {''.join(drawn)} }}")


def nested(*, anonymous: bool = True, arithmetic: bool = True, leaves: int = 4) -> st.SearchStrategy[str]:
    """Shapes in shapes."""
    shapes = (*SHAPES, *BINDINGS) if arithmetic else SHAPES
    return st.recursive(basic(anonymous), lambda inner: st.sampled_from(shapes).flatmap(lambda shape: shaped(shape, inner)), max_leaves=leaves)


def _numbered(text: str) -> str:
    """Every `@` of a blank node or computed variable becomes a number of its own."""
    numbers = count()
    first, *others = text.replace("_:@", "_:b@").split("@")
    return first + "".join(f"{next(numbers)}{other}" for other in others)


# ---------------------------------------------------------------- queries
def _streams() -> st.SearchStrategy[str]:
    return st.sampled_from(("", "", "", f"FROM STREAM <{OTHER}> ", f"FROM STREAM <default> FROM STREAM <{OTHER}> "))


def of_shape(shape: str) -> st.SearchStrategy[str]:
    """Queries for everything that one shape of groups finds."""
    return shaped(shape, shared()).map(lambda body: PROLOGUE + _numbered(f"SELECT * WHERE {body}"))


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
    return PROLOGUE + _numbered(f"SELECT {distinct}{head} {draw(_streams())}WHERE {body}")


def queries() -> st.SearchStrategy[str]:
    """Any of the two: shapes that often match, and shapes in shapes."""
    return st.one_of(st.sampled_from((*SHAPES, *BINDINGS)).flatmap(of_shape), selects())


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Rules whose terms come from the data alone, so that the fixpoint is finite."""
    body = draw(nested(anonymous=False, arithmetic=False, leaves=2))
    used = st.sampled_from([*sorted(set(re.findall(r"\?[stuvw]\b", body))) * 3, "?unbound"])
    predicates = [":p", ":p", ":r", ":d", ":k", *(["?p"] if "?p" in body else [])]
    parts = st.tuples(used | st.just(":a"), st.sampled_from(predicates), used | st.just("1")).map(" ".join)
    template = draw(st.lists(parts, min_size=1, max_size=2, unique=True))
    into = draw(st.sampled_from(("", "", f"INTO STREAM <{OTHER}> ")))
    return PROLOGUE + f"CONSTRUCT {{ {' . '.join(template)} }} {into}{draw(_streams())}WHERE {body}"


# ---------------------------------------------------------------- streams and facts
TERMS = tuple(map(parse_shorthand, ("a", "a", "b")))
OBJECTS = tuple(map(parse_shorthand, ("1", "1", "2", "a", "1.0")))
PREDICATES = tuple(map(parse_shorthand, ("p", "p", "q", "q", "r")))
MAX_DELAY = 3 * SECOND


def triples() -> st.SearchStrategy[Triple]:
    return st.tuples(st.sampled_from(TERMS), st.sampled_from(PREDICATES), st.sampled_from(OBJECTS))


def occurrences() -> st.SearchStrategy[Occurrence]:
    """Ends meet often; half of the occurrences are points."""
    return st.builds(
        lambda triple, end, length: Occurrence(triple, (end - length) * SECOND, end * SECOND),
        triples(),
        st.integers(0, 5),
        st.sampled_from((0, 0, 0, 0, 1, 2, 4)),
    )


def feeds(most: int = 16) -> st.SearchStrategy[list[Occurrence]]:
    """Rarely few: most queries find nothing in those."""
    full = st.lists(occurrences(), min_size=most // 2, max_size=most, unique=True)
    return st.one_of(full, full, full, st.lists(occurrences(), max_size=2))


def facts() -> st.SearchStrategy[list[Triple]]:
    known = st.tuples(st.sampled_from(TERMS), st.just(parse_shorthand("k")), st.sampled_from(OBJECTS))
    return st.lists(st.one_of(known, known, triples()), max_size=3, unique=True)


@dataclass(frozen=True, slots=True)
class Arrival:
    """How streams arrive: bodies within MAX_DELAY of their order, where the log is cut, and where the engine is restored."""

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
