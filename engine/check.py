"""What is said of a query before it is registered: faults that only planning finds, and doubts."""

import re
from collections.abc import Sequence

from engine.entries import Register
from engine.kernel import columns as c
from engine.network import Network, Triple
from engine.plan import Refusal
from engine.run import Engine
from engine.strata import Cycle
from epsparql import algebra as a
from epsparql.errors import CyclicNegation, Span, Unsupported, Warning_

STORING = frozenset({c.JOIN, c.OPTIONAL, c.OPTIONALSEQ, c.EQUALSOPTIONAL, c.MINUS, c.EXISTS, c.NOTEXISTS, c.WITHOUT})


def check(query: a.Query, text: str, others: Sequence[a.Query] = (), facts: Sequence[Triple] = ()) -> tuple[Warning_, ...]:
    """The doubts about a query that may run beside `others` over `facts`. Raises Unsupported, CyclicNegation with the place in `text`."""
    engine = Engine()
    engine.facts = dict.fromkeys(facts)
    try:
        for k, other in enumerate(others):
            engine.admit(Register(k, f"query {k}", ""), other)
        network = engine.admit(Register(len(others), "query", text), query)
    except Refusal as refusal:
        raise Unsupported(f"{refusal} is not evaluated by this version", place_of(refusal.word, text), text) from refusal
    except Cycle:
        message = "this rule would feed itself through a negative part (OPTIONAL, MINUS, NOT EXISTS, WITHOUT) with no strict step in time on the way"
        raise CyclicNegation(message, place_of("CONSTRUCT", text), text, "SEQ, OPTIONALSEQ or WITHOUT ... FOR somewhere on the cycle") from None
    return doubts(network, len(others))


def place_of(word: str, text: str) -> Span:
    """The first place of a word; the start if the text does not have it."""
    found = re.search(re.escape(word), text, re.IGNORECASE)
    return Span(*found.span()) if found else Span(0, min(1, len(text)))


def doubts(network: Network, registered: int) -> tuple[Warning_, ...]:
    planned = network.planned[registered]
    nodes = network.net.nodes[planned.at.node : planned.after.node].tolist()
    found = []
    unbounded = [node for node in nodes if is_unbounded(node)]
    if unbounded:
        names = ", ".join(sorted({OPERATORS[node[c.KIND]] if node[c.KIND] != c.JOIN else RELATIONS[node[c.RELATION]] for node in unbounded}))
        found.append(
            Warning_("unbounded-state", f"goals of {names} are kept for ever: bound their duration with WITHIN or FILTER(getDURATION() < ...)")
        )
    if any(node[c.KIND] == c.JOIN and not node[c.KEY_N] and not node[c.REST_N] and node[c.SPAN] == c.FOREVER for node in nodes):
        found.append(Warning_("cross-join", "two parts share no variable and no window bounds them: every pair of their solutions is one"))
    return tuple(found)


def is_unbounded(node: list[int]) -> bool:
    """Whether goals of a node are kept for ever."""
    return node[c.KIND] in STORING and c.FOREVER in (node[c.LIFE_LEFT], node[c.LIFE_RIGHT], node[c.LIFE_BLOCKER]) and not only_timeless(node)


def only_timeless(node: list[int]) -> bool:
    """SEQ ... WITHOUT keeps no timed goal on its right side, whatever its life."""
    return node[c.KIND] == c.WITHOUT and c.FOREVER not in (node[c.LIFE_LEFT], node[c.LIFE_BLOCKER])


OPERATORS = {
    c.JOIN: "join",
    c.OUT: "out",
    c.PASS: "filter",
    c.EXTEND: "BIND",
    c.OPTIONAL: "OPTIONAL",
    c.OPTIONALSEQ: "OPTIONALSEQ",
    c.EQUALSOPTIONAL: "EQUALSOPTIONAL",
    c.MINUS: "MINUS",
    c.EXISTS: "EXISTS",
    c.NOTEXISTS: "NOT EXISTS",
    c.WITHOUT: "SEQ ... WITHOUT",
    c.WITHOUTFOR: "WITHOUT ... FOR",
}
RELATIONS = {
    c.ANY: "AND",
    c.SEQ: "SEQ",
    c.EQUALS: "EQUALS",
    c.MEETS: "MEETS",
    c.DURING: "DURING",
    c.STARTS: "STARTS",
    c.FINISHES: "FINISHES",
    c.OVERLAPS: "OVERLAPS",
    c.PAR: "PAR",
}
