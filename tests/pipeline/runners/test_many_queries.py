"""These tests compare what is worked out for one of many queries with what is worked out for all of them at once."""

import random
from pathlib import Path

import pyarrow as pa

from engine.dictionary.batch_layout import FIRST_CONSTANT
from engine.dictionary.term_dictionary import FormTables
from engine.engine import Engine
from engine.messages import OCCURRENCES, Block, Drop, Events, Register
from engine.runtime.result_assembly import make_outlets
from pipeline.partition_count import name_of
from pipeline.runners.engine_report import EngineReport, Reporter, read_report
from tests.support.feeds import PREFIXES

_TEXTS = (
    "SELECT ?v ?s { ?s :p%d ?v }",
    "CONSTRUCT { ?s :q ?v } INTO STREAM <derived%d> { ?s :p1 ?v }",
    "ASK { ?s :p%d ?v }",
    "DESCRIBE ?s { ?s :p%d ?v }",
    "SELECT ?s (COUNT(*) AS ?n) { { ?s :p%d ?v } SEQ { ?s :p1 ?w } } GROUP BY ?s",
    "SELECT * { ?s :p%d ?v . ?s :p1 ?u }",
)
_QUERIES = 40


def test_outlets_and_reports_that_follow_changes_are_those_made_anew(tmp_path: Path) -> None:
    chance, engine, reporter = random.Random(3), Engine(), _reporter(tmp_path / "kept")
    for number in range(_QUERIES):
        name = f"{chance.choice(['é', 'b', '', 'ab'])}{chance.randrange(10**6)}-{number}"
        registration = Register(engine.position, name, PREFIXES + chance.choice(_TEXTS) % chance.randrange(6))
        assert not engine.feed(Block((registration,), _rows(chance, 0, 0))).changes
        if chance.random() < 0.6:
            engine.feed(_events(chance, engine.position))
        if chance.random() < 0.2:
            dropped = chance.choice(list(engine.registry.registered.values()))
            engine.feed(Block((Drop(engine.position, dropped.offset, dropped.name),), _rows(chance, 0, 0)))
        _compare_outlets(engine)
        assert _told(reporter, engine, tmp_path / "kept") == _told(_reporter(tmp_path / str(number)), engine, tmp_path / str(number))
    assert len(engine.registry.registered) > _QUERIES // 2


def _reporter(directory: Path) -> Reporter:
    return Reporter(directory, name_of(0, 1), iter(range(10**6)).__next__)


def _told(reporter: Reporter, engine: Engine, directory: Path) -> EngineReport:
    for _ in range(30):  # a report is not due before 20 times as long as the last one took: a tick of its clock
        reporter.tell(engine)
    report = read_report(directory)
    assert report is not None
    assert report.position == engine.position
    assert report.queries.keys() == engine.registry.registered.keys()
    return report


def _compare_outlets(engine: Engine) -> None:
    for listener in engine.registry.layout.order:
        anew = make_outlets(listener.member.network.planned.values())
        assert _shown(anew.forms) == _shown(listener.outlets.forms)
        assert (anew.described, anew.rules) == (listener.outlets.described, listener.outlets.rules)
        assert sorted(anew.silent) == sorted(listener.outlets.silent)


def _shown(forms: FormTables) -> list[list[int | str | bytes]]:
    """Return the tables' rows.

    In place of constants, which are in the order in which their queries came, they have the texts of these.
    """
    places, queries, wanted, names, *_ = forms.arrays
    cells: list[int | str] = [cell if cell > FIRST_CONSTANT else forms.constants[FIRST_CONSTANT - cell] for cell in wanted.tolist()]
    return [places.tolist(), *queries.tolist(), cells, [names.tobytes()]]


def _events(chance: random.Random, offset: int) -> Block:
    n = 5
    return Block((Events(offset, "default", n, 1000 * offset + n - 1),), _rows(chance, n, 1000 * offset))


def _rows(chance: random.Random, n: int, at: int) -> pa.RecordBatch:
    base = PREFIXES.partition("<")[2].partition(">")[0]
    rows = [
        {"s": f"<{base}{chance.randrange(4)}>", "p": f"<{base}p{chance.randrange(6)}>", "o": f'"{k}"', "start": at + k, "end": at + k, "late": False}
        for k in range(n)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=OCCURRENCES)
