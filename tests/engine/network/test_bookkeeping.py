"""Queries come and go, the background changes, and networks are restored: after each step the books agree, and each
query is as one alone.
"""

from dataclasses import replace
from random import Random

import pytest

from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import ADD, DROP, Drop, Entry, Events, Facts, Register, Tick
from epsparql.solutions.policies import CHRONOLOGICAL, RECENT, UNRESTRICTED
from tests.engine.network.books import check_books
from tests.support.feeds import EXAMPLE, PREFIXES, SECOND, parse_feed
from tests.support.run_both import block

QUERIES = [
    ("SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} }", UNRESTRICTED),
    ("SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} FILTER(?x < ?y) }", UNRESTRICTED),
    ("SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z} WITHIN 9 }", UNRESTRICTED),
    ("SELECT * WHERE { {?t :A ?a} SEQ {?t :B ?b} SEQ {?t :D ?d} WITHIN 9 }", UNRESTRICTED),
    ("SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} WITHIN 4 }", RECENT),
    ("SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} WITHIN 4 }", CHRONOLOGICAL),
    ("SELECT * WHERE { ?s :A ?x . ?s :K ?k }", UNRESTRICTED),
    ("SELECT * WHERE { ?s :K ?k . ?s :L ?l . ?s :B ?y }", UNRESTRICTED),
    ("SELECT * WHERE { { {?s :A ?x} SEQ {?s :B ?y} } MINUS { ?s :K ?x } }", UNRESTRICTED),
    ("SELECT * WHERE { {?s :A ?x} OPTIONAL { ?s :K ?k . ?s :C ?z } }", UNRESTRICTED),
    ("SELECT * WHERE { ?s :A ?x FILTER(?x > 5 || EXISTS { ?s :K ?k }) }", UNRESTRICTED),
    ("SELECT * WHERE { {?s :A ?x} WITHOUT {?s :B ?y} FOR 'PT3S'^^xsd:duration }", UNRESTRICTED),
    ("SELECT ?s (COUNT(*) AS ?n) WHERE { ?s :A ?x } GROUP BY ?s WINDOW [RANGE 'PT6S' STEP 'PT3S']", UNRESTRICTED),
    ("SELECT ?s (SUM(?x) AS ?n) WHERE { ?s :A ?x } GROUP BY ?s WINDOW [RUN WHILE (?x != PREV(?x))]", UNRESTRICTED),
    ("SELECT * WHERE { ?s :A ?x } ORDER BY ?x LIMIT 2", UNRESTRICTED),
    ("SELECT * WHERE { ?s :A ?x } ONCE PER ?s WITHIN 3", UNRESTRICTED),
    ("SELECT * WHERE { ?s :A ?x } ONCE PER (?s ?x) UNTIL { { ?s :B ?y } MINUS { ?s :C ?y } }", UNRESTRICTED),
    ("SELECT DISTINCT ?s WHERE { { ?s :A ?x FILTER(REGEX(STR(?x), '1')) } UNION { ?s :K ?x } }", UNRESTRICTED),
    ("SELECT * WHERE { ?s ?p ?x . ?s :B ?y }", UNRESTRICTED),
    ("SELECT * WHERE { VALUES ?x { 1 2 } GRAPH ?g { ?s :A ?x } }", UNRESTRICTED),
    ("SELECT * FROM STREAM <default> FROM STREAM <e> WHERE { {?s :E ?x} AND {?s :B ?y} WITHIN 5 }", UNRESTRICTED),
    ("CONSTRUCT { ?s :E ?y } INTO STREAM <e> WHERE { {?s :A ?x} SEQ {?s :B ?y} WITHIN 3 }", UNRESTRICTED),
    ("SELECT * WHERE { ?s :K+ ?t . ?s :A ?x }", UNRESTRICTED),
]
Solutions = list[tuple[str, str]]
"""Each with its query's name, in any order."""


class Steps:
    """Tells one engine what to do.

    If it `checks`, queries share, terms are collected at each step, and the books are looked at.
    """

    def __init__(self, *, checks: bool) -> None:
        self.engine, self.checks = Engine(), checks
        self.engine.registry.shares = checks

    def put(self, entry: Entry, feed: str = "") -> Solutions:
        if self.checks:
            self.engine.registry.terms.spare = 0
        outcome = self.engine.feed(block([(replace(entry, offset=self.engine.position), tuple(parse_feed(feed)))]))
        assert not [change for change in outcome.changes if change.state == "failed"]
        if self.checks:
            check_books(self.engine)
        return sorted((row["query"], f"{row['start']} {row['end']} {row['values']}") for row in outcome.solutions.to_pylist())

    def restore(self) -> None:
        self.engine = Engine.restore(self.engine.snapshot())
        check_books(self.engine)


def fact(random: Random) -> Facts:
    name, subject, change = random.choice("KKLA"), random.randrange(3), random.choice((ADD, ADD, DROP))
    text = "" if change == DROP else f"<{EXAMPLE}s{subject}> <{EXAMPLE}{name}> <{EXAMPLE}s{(subject + 1) % 3}> .\n"
    return Facts(0, EXAMPLE + f"g{subject}", text, change)


def events(random: Random, at: int) -> tuple[Events, str]:
    names = random.choices("ABCD", k=random.randint(1, 6))
    feed = " ".join(f"{random.choice(('', '', 'g/'))}{name}(s{random.randrange(3)},{random.randrange(30)})@{at}" for name in names)
    return Events(0, "default", len(names), at * SECOND), feed


@pytest.mark.parametrize("seed", range(3))
def test_the_books_agree_and_each_query_is_as_one_alone(seed: int) -> None:
    """Some queries have an engine of their own as well, which has no shares, is never restored, and begins with all
    that came before.
    """
    random, now, whole = Random(seed), 1, Steps(checks=True)
    alone, there, past = dict[str, Steps](), dict[str, int](), list[tuple[Entry, str]]()
    for step in range(45):
        act = "come" if step < 8 else random.choices(("come", "go", "restore", "fact", "events"), (2, 2, 1, 2, 4))[0]
        match act:
            case "come":
                text, policy = random.choice(QUERIES)
                register = Register(0, f"q{step}", PREFIXES + text, policy, max_derivations=1000)
                there[register.name] = whole.engine.position
                whole.put(register)
                if "<e>" not in text and len(alone) < 2:
                    own = alone[register.name] = Steps(checks=False)
                    for entry, feed in past:
                        own.put(entry, feed)
                    own.put(register)
            case "go" if there:
                name = random.choice(sorted(there))
                alone.pop(name, None)
                whole.put(Drop(0, there.pop(name), ""))
            case "restore":
                whole.restore()
            case "fact" | "events":
                now += random.choice((0, 1, 1, 2))
                past.append((fact(random), "") if act == "fact" else events(random, now))
                found = whole.put(*past[-1])
                for name, own in alone.items():
                    assert [row for row in found if row[0] == name] == own.put(*past[-1]), (name, past[-1])
            case _:
                pass


# ---------------------------------------------------------------- by hand
WAITING = [
    pytest.param("SELECT * WHERE { {?s :A ?x} MINUS {?s :B ?y} }", UNRESTRICTED, "A@5", id="for what is absent"),
    pytest.param("SELECT * WHERE { {?s :A ?x} SEQ {?s :B ?y} }", RECENT, "A@5 A(2)@5", id="for the others of its instant"),
    pytest.param("SELECT * WHERE { {?s :A ?x} MEETS {?s :B ?y} }", CHRONOLOGICAL, "A@1-5 A(2)@2-5 B@5 B(2)@5", id="for a choice"),
]


@pytest.mark.parametrize(("text", "policy", "feed"), WAITING)
def test_a_query_goes_while_solutions_wait_for_the_close_of_the_instant(text: str, policy: str, feed: str) -> None:
    steps = Steps(checks=True)
    for name in "ab":
        steps.put(Register(0, name, PREFIXES + text, policy))
    steps.put(Events(0, "default", len(feed.split()), 5 * SECOND), feed)
    assert steps.engine.registry.members[0].network.net.at[c.WAITING] > 0
    steps.put(Drop(0, 0, ""))
    found = [name for at in (6, 7) for name, _ in steps.put(Events(0, "default", 1, at * SECOND), f"B(9)@{at}")]
    assert set(found) == {"b"}


def test_a_query_goes_in_an_instant_whose_solutions_others_remember() -> None:
    steps, events = Steps(checks=True), Events(0, "default", 1, 5 * SECOND)
    for name in "ab":
        steps.put(Register(0, name, f"{PREFIXES} SELECT * WHERE {{ {{ ?s :A ?x }} UNION {{ ?s :B ?x }} }}"))
    assert [name for name, _ in steps.put(events, "A@5")] == ["a", "b"]
    steps.put(Drop(0, 0, ""))
    assert steps.put(events, "B@5") == []
    steps.put(Register(0, "c", f"{PREFIXES} SELECT * WHERE {{ {{ ?s :A ?x }} UNION {{ ?s :B ?x }} }}"))
    assert [name for name, _ in steps.put(events, "A@5")] == ["c"], "in the rows of the one that went"


def test_who_comes_where_another_was_asks_its_own_questions() -> None:
    steps, events = Steps(checks=False), Events(0, "default", 1, 5 * SECOND)  # answers are remembered until terms are collected
    asked = PREFIXES + "SELECT * WHERE {{ ?s :A ?x FILTER(REGEX(STR(?x), '{}')) }}"
    steps.put(Register(0, "stays", f"{PREFIXES} SELECT * WHERE {{ ?s :Z ?x }}"))
    steps.put(Register(0, "a", asked.format(1)))
    assert [name for name, _ in steps.put(events, "A(1)@5")] == ["a"]
    steps.put(Drop(0, 1, ""))
    steps.put(Register(0, "b", asked.format(2)))
    assert steps.put(events, "A(1)@5") == []
    assert [name for name, _ in steps.put(events, "A(2)@5")] == ["b"]


def test_a_query_of_an_instant_is_listed_until_it_goes() -> None:
    steps = Steps(checks=True)
    steps.put(Register(0, "a", "#!etalis unrestricted\nd <- 7 seq a."))
    steps.put(Register(0, "b", f"{PREFIXES} SELECT * WHERE {{ ?s :A ?x }}"))
    (network,) = [member.network for member in steps.engine.registry.members]
    assert [(planned.source.name, planned.instants) for planned in network.slots.with_instants.values()] == [("a", (7 * SECOND,))]
    steps.put(Drop(0, 0, ""))
    assert network.slots.with_instants == {}


@pytest.mark.parametrize("opened", [False, True])
def test_restored_queries_take_in_what_they_were_yet_to_take_in(opened: bool) -> None:
    steps = Steps(checks=True)
    for name, pattern in {"a": "?s :K ?k", "b": "?s :A ?x"}.items():
        steps.put(Register(0, name, f"{PREFIXES} SELECT * WHERE {{ {pattern} }}"))
    if opened:
        steps.put(Events(0, "default", 1, 1 * SECOND), "A@1")
    steps.put(Facts(0, "", f"<{EXAMPLE}s> <{EXAMPLE}K> <{EXAMPLE}k> .\n"))
    steps.put(Tick(0, "default", 2 * SECOND))
    steps.restore()
    assert [name for name, _ in steps.put(Events(0, "default", 1, 3 * SECOND), "Z@3")] == (["a"] if opened else [])
    steps.restore()
    assert [name for name, _ in steps.put(Events(0, "default", 1, 4 * SECOND), "A@4")] == ["b"]
