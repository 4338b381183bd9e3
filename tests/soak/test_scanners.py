"""An adversary writes bodies that are nearly right, and the compiled scanners find in them what the exact path finds,
or leave them to it.

A body has odd terms, dates and ids, and bytes that are changed, left out or doubled. The same bodies also go through
the build of the compiled code that stops at an access beyond an array, where one is built
(`EPSPARQL_BUILDS=checked`).
"""

import importlib.util
import json
import os
import subprocess
import sys
import time
from codecs import BOM_UTF8
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyoxigraph as ox
import pytest

from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval
from pipeline.formats.body_parser import N_QUADS, N_TRIPLES, NDJSON, parse_body, read_statements
from pipeline.formats.ndjson import read_lines
from tests.soak import budget_s, first_seed, is_short

SHORT = 2_000
"""CI tries so many bodies of each format."""
DEFAULT = Interval(5, 7)
XSD = "http://www.w3.org/2001/XMLSchema#"
IRIS = [
    "<http://e/a>", "<urn:g:1>", "<urn:g:2>", "<x:p>", "<http://e:80/x#y>", "<http://e/?q=%41>", "<http://e/\\u0061>", "<http://e/é>", "<a>", "<http://e", "<>",
    "<http://e:123456/>", "<http://[::1]/>", "<http://e/ >", "<http://e/a#b#c>", "<<( <x:a> <x:b> <x:c> )>>", "<<( <x:a> <x:b> )>>", "<<(", "_:a", "_:b.c", "_:-",
]  # fmt: skip
TEXTS = [
    "", "a", "é😀", "a b", "long " * 30, '\\"', "\\\\", "\\u00e9", "\\U0001F600", "\\n", "\\q", "\\u12", "\x7f", "\x01", "\ufffe", "\uffff", "\ud7ff\ue000", "\U0010ffff", "\x80", "\u07ff\u0800",
]  # fmt: skip
SUFFIXES = ["", "@en", f"^^<{XSD}double>", f"^^<{XSD}string>", "@EN-us", "@en--ltr", "^^<x:t>", f"^^<{XSD}>", "^^", "@", f"^^<{XSD}stringy>"]
TIMES = [
    "2026-01-01T00:00:01Z", "2026-01-01T00:00:01", "2026-01-01T01:00:01.5+01:00", "2024-02-29T23:59:59.999999Z", "2026-02-29T00:00:00Z", "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59-14:00", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00.1234567Z", "-0001-01-01T00:00:00Z", "12026-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01",
]  # fmt: skip
TIMING = [
    "<http://www.w3.org/ns/prov#generatedAtTime>", "<http://streamreasoning.org/timeVocab#startsAtTime>", "<http://streamreasoning.org/timeVocab#endsAtTime>",
]  # fmt: skip
VALUES: list[object] = [
    21.5, -7, True, 1e300, "xsd:int", "a", "rdf:type", "21.5", "x:y", "2026-01-01T00:00:00Z", {"type": "uri", "value": "http://e/a"}, {"type": "bnode", "value": "b"},
    {"value": "1", "datatype": XSD + "int"}, {"value": "é", "xml:lang": "en"}, {"type": "literal", "value": 'a"b'}, {"value": "a"}, {"type": "uri", "value": "x:a"}, {}, [],
    {"type": "triple", "value": {"subject": {"type": "uri", "value": "x:s"}, "predicate": {"type": "uri", "value": "x:p"}, "object": {"value": "o"}}},
]  # fmt: skip
BYTES = [0, 9, 10, 13, 32, 34, 35, 46, 58, 60, 62, 64, 92, 94, 95, 123, 125, 127, 0x80, 0xBF, 0xC0, 0xC3, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF]
Read = Callable[[], pa.RecordBatch]


class Adversary:
    """Writes bodies."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def choose(self, items: list[str], usual: int) -> str:
        """Choose one of the first, usual ones more often than one of all."""
        return self.chance.choice(items[:usual] if self.chance.random() < 0.8 else items)

    def literal(self) -> str:
        return f'"{self.choose(TEXTS, 5)}"{self.choose(SUFFIXES, 3)}'

    def statement(self) -> str:
        if self.chance.random() < 0.3:
            time = f'"{self.choose(TIMES, 4)}"^^<{XSD}{self.chance.choice(["dateTime", "dateTime", "dateTimeStamp", "date"])}>'
            return f"{self.chance.choice(IRIS[1:3])} {self.chance.choice(TIMING)} {time} ."
        target = self.literal() if self.chance.random() < 0.5 else self.choose(IRIS, 5)
        graph = self.chance.choice(["", " <urn:g:1>", " <urn:g:2>", " _:g"])
        end = self.chance.choice([" .", " .", ".", "  . # c", " .\r"])
        return f"{self.choose(IRIS, 5)} {self.choose(IRIS, 5)} {target}{graph}{end}"

    def event(self) -> str:
        members: dict[str, object] = {"s": self.choose(IRIS, 5), "p": self.choose(IRIS, 5), "o": self.literal()}
        if self.chance.random() < 0.3:
            members["o"] = self.choose(IRIS, 5)
        elif self.chance.random() < 0.4:
            members["o"] = self.chance.choice(VALUES)
        if self.chance.random() < 0.2:
            members[self.chance.choice("spg")] = self.chance.choice(VALUES)
        if self.chance.random() < 0.2:
            members |= {"start": self.choose(TIMES, 4), "end": self.choose(TIMES, 4)}
        elif self.chance.random() < 0.9:
            members["at"] = self.choose(TIMES, 4)
        if self.chance.random() < 0.3:
            members["g"] = self.chance.choice([None, "<urn:g:1>", "_:g"])
        if self.chance.random() < 0.05:
            members["id"] = self.chance.choice(TEXTS)
        return json.dumps(members, ensure_ascii=self.chance.random() < 0.5, separators=self.chance.choice([(",", ":"), (" , ", " : ")]))

    def body(self, line: Callable[[], str]) -> bytearray:
        """Write some lines, then change, leave out or double a few bytes."""
        lines = [line() for _ in range(self.chance.randint(1, 5))]
        body = bytearray(self.chance.choice(["\n", "\n", "\r\n", "\n\n \n"]).join(lines).encode("utf-8", "surrogatepass"))
        for _ in range(self.chance.choice([0, 0, 0, 1, 2, 3])):
            at, change = self.chance.randrange(len(body) + 1), self.chance.random()
            if change < 0.5:
                body[at : at + 1] = bytes([self.chance.choice(BYTES)])
            elif change < 0.7:
                del body[at : at + self.chance.randint(1, 9)]
            elif change < 0.8:
                del body[at:]
            else:
                body[at:at] = body[at : at + self.chance.randint(1, 20)]
        return body


def read_or_refuse(read: Read) -> object:
    """Return the rows of a body, or why it is refused and where."""
    try:
        batch = read()
    except FormatError as fault:
        return fault.code, fault.message, fault.line, fault.column, fault.expected
    batch.validate(full=True)
    for name in ("start", "end"):  # as numbers, since Python's years end at 9999
        at = batch.schema.get_field_index(name)
        batch = batch.set_column(at, name, batch.column(at).cast(pa.int64()))
    return batch.to_pylist()


def hold_to_exact_path(adversary: Adversary) -> None:
    """Compare both ways of reading one body of each format."""
    body, graphs = bytes(adversary.body(adversary.statement)), adversary.chance.random() < 0.8
    media_type, notation = (N_QUADS, ox.RdfFormat.N_QUADS) if graphs else (N_TRIPLES, ox.RdfFormat.N_TRIPLES)
    found = read_or_refuse(lambda: parse_body(body, media_type, default=DEFAULT, arrived=0))
    assert found == read_or_refuse(lambda: read_statements(body.removeprefix(BOM_UTF8), notation, DEFAULT)), (media_type, body)
    body = bytes(adversary.body(adversary.event))
    found = read_or_refuse(lambda: parse_body(body, NDJSON, default=DEFAULT, arrived=0))
    assert found == read_or_refuse(lambda: read_lines(body.removeprefix(BOM_UTF8), DEFAULT)[0]), (NDJSON, body)


def attack() -> None:
    """Compare bodies for as long as this run allows."""
    seed, until = first_seed(), time.monotonic() + budget_s()
    adversary, count = Adversary(seed), 0
    while time.monotonic() < until and not (is_short() and count >= SHORT):
        try:
            hold_to_exact_path(adversary)
        except AssertionError as fault:
            raise AssertionError(f"seed {seed}, body {count}: {fault}") from fault
        count += 1


@pytest.mark.slow
def test_scanners_find_what_the_exact_path_finds() -> None:
    attack()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("engine.native._checked") is None, reason="the build with sanitizers is made by EPSPARQL_BUILDS=checked")
def test_scanners_stay_within_their_arrays() -> None:
    sanitizer = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
    changed = {"EPSPARQL_NATIVE": "checked", "LD_PRELOAD": sanitizer, "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); from tests.soak.test_scanners import attack; attack()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | changed, check=False)
    assert done.returncode == 0, done.stderr[-5_000:]
