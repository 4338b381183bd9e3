"""Queries that were paused, promoted or read the past share a network with the others again, and find what they would
have found.
"""

from dataclasses import dataclass, field
from random import Random

import pytest

from engine.engine import Engine
from engine.messages import ADD, DROP, CatchUp, Entry, Events, Facts, Pause, Promote, Register, Resume, SetStream, Tick
from engine.query_lifecycle import network_union
from epsparql.solutions.policies import CHRONOLOGICAL, RECENT, UNRESTRICTED
from epsparql.terms import Iri, Literal
from tests.engine.network.books import check_books
from tests.engine.runtime.test_catch_up import BOTH, COUNT, MIXED, NEVER, OPTIONAL, OVER, PATH, RULE, SEQ, STEPS, TIMER, CatchUpLog
from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support.run_both import block

TEXTS = [
    *((text, UNRESTRICTED) for text in (SEQ, SEQ.replace("?b", "?c"), NEVER, OPTIONAL, COUNT, STEPS, TIMER, PATH, MIXED, OVER, BOTH)),
    (SEQ, RECENT),
    (SEQ, CHRONOLOGICAL),
    ("SELECT ?g ?a WHERE { GRAPH ?g { ?x <http://e/p> ?a } }", UNRESTRICTED),
    ("SELECT ?a WHERE { ?x <http://e/p> ?a } ONCE PER ?a WITHIN 0.000004", UNRESTRICTED),
    ("SELECT ?a WHERE { ?x <http://e/p> ?a } ONCE PER ?a UNTIL { ?y <http://e/q> ?a }", UNRESTRICTED),
    ("SELECT ?x (SUM(?a) AS ?n) WHERE { ?x <http://e/p> ?a } GROUP BY ?x WINDOW [RUN WHILE (?a != PREV(?a))]", UNRESTRICTED),
    ("SELECT ?a ?b WHERE { ?x <http://e/p> ?a . ?x <http://e/q> ?b } ORDER BY ?a ?b", UNRESTRICTED),
]
Row = tuple[object, object, tuple[str | None, ...]]


@dataclass(slots=True)
class Lives:
    """A log of queries that are paused, promoted to their own text, and registered to read the past, at random."""

    random: Random
    log: CatchUpLog = field(default_factory=CatchUpLog)
    now: int = 10
    delay: int = 0
    texts: dict[int, tuple[str, str]] = field(default_factory=dict)  # with its policy, by registration
    behind: dict[int, int] = field(default_factory=dict)  # by registration, or by promotion: what it is to read next

    def register(self) -> None:
        text = self.random.choice(TEXTS)
        offset = len(self.log.parts)
        self.texts[self.log.add(Register(0, f"q{offset}", *text))] = text

    def bring(self) -> None:
        """Some occurrences of one instant, most of them new."""
        self.now += self.random.choice((0, 0, 1, 1, 2, 5))
        found = []
        for _ in range(self.random.choice((1, 1, 2, 4))):
            x, y = (Iri(f"http://e/{self.random.choice('ab')}") for _ in range(2))
            predicate, graph = self.random.choice("pqn"), self.random.choice((None, None, Iri("http://e/g")))
            end = self.now - self.random.randrange(self.delay + 1)
            thing = y if predicate == "n" else Literal(str(self.random.randrange(3)))
            name = "next" if predicate == "n" else predicate
            found.append(Occurrence((x, Iri(f"http://e/{name}"), thing), end - self.random.randrange(3), end, graph))
        self.log.add(Events(0, "default", len(found), self.now - self.delay), *found)

    def pause(self) -> None:
        if running := [each for each in self.texts if each not in self.behind]:
            registered = self.random.choice(running)
            self.behind[registered] = self.log.add(Pause(0, registered, f"q{registered}"))
            self.log.add(Resume(0, registered, f"q{registered}"))

    def promote(self) -> None:
        if running := [each for each in self.texts if each not in self.behind]:
            registered = self.random.choice(running)
            text, policy = self.texts[registered]
            offset = self.log.add(Promote(0, registered, f"q{registered}", text, policy, reads_from=registered + 1))
            self.behind |= {offset: 0, registered: -1}

    def read_on(self) -> None:
        if waiting := [each for each, at in self.behind.items() if at >= 0]:
            lead = self.random.choice(waiting)
            begin, offset = self.behind[lead], len(self.log.parts)
            upto = offset if self.random.random() < 0.6 else self.random.randint(begin, offset)
            self.log.add(CatchUp(0, lead, upto))
            self.behind[lead] = upto
            if upto == offset:
                del self.behind[lead]
                entry, _ = self.log.parts[lead]
                if isinstance(entry, Promote):
                    del self.behind[entry.registered]

    def learn(self) -> None:
        change, subject = self.random.choice((ADD, DROP)), self.random.choice("ab")
        text = "" if change == DROP else f'<http://e/{subject}> <http://e/kind> "k" .\n'
        self.log.add(Facts(0, f"http://e/{subject}", text, change))

    def write(self, steps: int) -> None:
        self.log.add(Register(0, "rule", RULE))
        for _ in range(3):
            self.register()
        actions = [self.bring] * 12 + [self.pause, self.promote, self.read_on, self.read_on, self.read_on, self.learn, self.register]
        for _ in range(steps):
            self.random.choice(actions)()
        while self.behind:
            self.read_on()
        self.now += 50
        self.log.add(Tick(0, "default", self.now))
        self.log.add(SetStream(0, "urn:none"))
        self.now += 1
        self.bring()
        self.register()
        self.now += 100
        self.log.add(Tick(0, "default", self.now))


def run(log: CatchUpLog, random: Random | None = None) -> tuple[Engine, dict[str, list[Row]]]:
    """Return the engine at the end, and the solutions of each query in order.

    At random, the engine is saved and restored between blocks.
    """
    engine, found, at = Engine(past=log.read), dict[str, list[Row]](), 0
    while at < len(log.parts):
        n = len(log.parts) if random is None else random.randrange(1, 6)
        if random is not None and random.random() < 0.2:
            engine = Engine.restore(engine.snapshot())
            engine.look_back_by(log.read)
        outcome = engine.feed(block(log.parts[at : at + n]))
        assert not [change for change in outcome.changes if change.state == "failed"], outcome.changes
        for row in outcome.solutions.to_pylist():
            found.setdefault(row["query"], []).append((row["start"], row["end"], tuple(row["values"])))
        check_books(engine)
        at += n
    return engine, found


def never_paused(log: CatchUpLog) -> CatchUpLog:
    def plain(entry: Entry) -> Entry:
        return SetStream(entry.offset, "urn:none") if isinstance(entry, Pause | Resume | Promote | CatchUp) else entry

    return CatchUpLog([(plain(entry), occurrences) for entry, occurrences in log.parts])


def list_networks(engine: Engine) -> list[list[int]]:
    return sorted(sorted(member.network.planned) for member in engine.registry.members)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(50)))
def test_what_was_behind_shares_a_network_again_and_finds_what_it_would_have_found(seed: int) -> None:
    random = Random(seed)
    lives = Lives(random, delay=random.choice((0, 2)))
    lives.write(60)
    plain, expected = run(never_paused(lives.log))
    assert sum(map(len, expected.values())) > 10, "a test that finds nothing shows nothing"
    assert len(plain.registry.members) <= 2, "one reads what the rule writes"
    for engine, found in (run(lives.log), run(lives.log, random)):
        assert found == expected
        assert list_networks(engine) == list_networks(plain)


def test_what_is_promoted_again_and_again_leaves_nothing_behind() -> None:
    log, random, kept = CatchUpLog(), Random(1), list[tuple[int, int]]()
    engine, texts = Engine(past=log.read), (SEQ, COUNT, OPTIONAL, TIMER)
    registered = [log.add(Register(0, f"q{k}", text)) for k, text in enumerate(texts)]
    for turn in range(5):
        for k, place in enumerate(registered):
            log.feed(random, 10 + 20 * turn + 5 * k, 15 + 20 * turn + 5 * k)
            promotion = log.add(Promote(0, place, f"q{k}", texts[(turn + k) % 4], reads_from=place))
            log.add(CatchUp(0, promotion, len(log.parts)))
        engine.feed(block(log.parts[engine.position :]))
        kept.append((engine.own.networks, engine.own.reserved_bytes))
    assert [networks for networks, _ in kept] == [1] * 5
    assert kept[4][1] <= 1.02 * kept[1][1]


@pytest.mark.parametrize("bound", ["MOST_ROWS", "MOST_COMPARED"])
def test_networks_that_keep_much_stay_as_they_are(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moving much would take long, and the other queries would wait.

    So would comparing what waits for time. A later entry tries again.
    """
    log, random = CatchUpLog(), Random(2)
    paused = log.add(Register(0, "q", NEVER))
    log.feed(random, 10, 40, delay=9)
    log.add(Pause(0, paused, "q"))
    log.add(Register(0, "other", COUNT))
    log.add(Register(0, "third", TIMER))
    log.feed(random, 40, 42, delay=9)
    log.add(Resume(0, paused, "q"))
    log.add(CatchUp(0, paused, len(log.parts)))
    engine = Engine(past=log.read)
    monkeypatch.setattr(network_union, bound, 1)
    engine.feed(block(log.parts))
    assert engine.own.networks == 2
    monkeypatch.undo()
    log.add(Register(0, "new", COUNT))
    engine.feed(block(log.parts[engine.position :]))
    assert engine.own.networks == 1
