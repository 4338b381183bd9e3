"""Queries come and go, the background changes, and networks are restored: after each step the books agree, and each query is as one alone."""

from dataclasses import replace
from random import Random

import pytest

from engine.engine import Engine
from engine.messages import ADD, CHRONOLOGICAL, DROP, RECENT, UNRESTRICTED, Drop, Entry, Events, Facts, Register
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
    """Tells one engine what to do. If it `checks`, queries share, terms are collected at each step, and the books are looked at."""

    def __init__(self, *, checks: bool) -> None:
        self.engine, self.checks = Engine(), checks
        self.engine.shares = checks

    def put(self, entry: Entry, feed: str = "") -> Solutions:
        if self.checks:
            self.engine.terms.spare = 0
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
    """Some queries have an engine of their own as well, which has no shares, is never restored, and begins with all that came before."""
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
