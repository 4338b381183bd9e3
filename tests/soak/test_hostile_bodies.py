"""An adversary writes bodies that expand, with each keyword in every legal spelling, and this process and those that
it starts stay small.

A case is a shape, such as vocabularies upon vocabularies, in a random size and spelling. It may be taken or refused;
memory and time count.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from pipeline.formats.background import read_graphs
from pipeline.formats.body_parser import LD_JSON, NDJSON, NDJSON_LD, RDF_XML, TRIG, TURTLE, FormatError, parse_body
from tests.soak import budget_s, first_seed, is_short

OWN_MB, CHILD_MB, CPU_S = 300, 260, 20.0
"""What bodies of half a megabyte may take at most: in this process beyond its start, in a process that parses, and of
processor time.

Linux counts the memory of this process for a child, too, until the child has loaded its own program.
"""
USUAL, FACTOR = 500_000, 64
"""Escapes make a body up to six times as long. A process that parses may take `FACTOR` bytes more for each byte beyond
the usual (`epsparql.isolation.isolated_parser`).
"""
SHORT = 30
Body = tuple[str, str]
XMLNS = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'


class Speller:
    """Writes words and tokens in one of their legal spellings."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.often = chance.choice([0.0, 0.2, 1.0])

    def json(self, text: str) -> str:
        """Return a string of JSON, some of whose first characters are escaped."""
        made = "".join(self._escape(char) if char in '"\\' or self.chance.random() < self.often else char for char in text[:24])
        return f'"{made}{text[24:]}"'

    def _escape(self, char: str) -> str:
        return f"\\u{ord(char):04{self.chance.choice('xX')}}"

    def object(self, members: list[tuple[str, str]]) -> str:
        """Return an object of members whose values are JSON already, some of them twice."""
        if members and self.chance.random() < 0.1:
            members = [*members, self.chance.choice(members)]
        if self.chance.random() < 0.5:
            self.chance.shuffle(members)
        blank = self.chance.choice(["", " ", "\n\t"])
        return "{" + ",".join(f"{blank}{self.json(key)}{blank}:{value}" for key, value in members) + "}"

    def word(self, word: str) -> str:
        return "".join(self.chance.choice((char.upper(), char.lower())) for char in word)

    def gap(self) -> str:
        return self.chance.choice([" ", "\n", "\t", " # prefix base @context\n", "\r\n"])

    def iri(self, text: str) -> str:
        made = "".join(f"\\U{ord(char):08x}" if char.isalpha() and self.chance.random() < self.often else char for char in text[:24])
        return f"<{made}{text[24:]}>"

    def declare(self, name: str, iri: str) -> str:
        """Return a prefix, or a base where the name is empty, in one of the two notations."""
        kind = "prefix" if name else "base"
        parts = [f"@{kind}" if (old := self.chance.random() < 0.5) else self.word(kind), *([name] if name else []), self.iri(iri)]
        return self.gap().join(parts) + (" ." if old else "") + "\n"


# ---------------------------------------------------------------- JSON-LD
def linked(spell: Speller, chance: Random, size: int) -> str:
    """Return a document whose contexts stretch names."""
    long = "http://e/" + "x" * chance.choice([20, size // 8, size // 2]) + "/"
    keys = max((size - len(long)) // 12, 10)
    alias = chance.random() < 0.3
    contexts = chance.choice([_one_vocabulary, _stacked, _scoped, _chain, _literals])(spell, chance, long, size)
    many = [(f"k{k}", chance.choice(["1", '"a"', "{}"])) for k in range(keys)]
    values = chance.choice([f"[{','.join(map(str, range(keys)))}]", "[" + ",".join(['{"k":1}'] * keys) + "]", '"a"'])
    nested = "1"
    for _ in range(chance.choice([1, 20])):
        nested = spell.object([("x", nested), ("k1", values if nested == "1" else "2")])
    node = [
        ("@id", spell.json(chance.choice(["s", long]))),
        ("@type", json.dumps(["X", "Y"])),
        ("x", nested),
        *chance.choice([many, [("p", values)]]),
    ]
    if alias:
        contexts.append(spell.object([("id", spell.json("@id")), ("ctx", spell.json("@context"))]))
    whole = [
        ("@context", "[" + ",".join(contexts) + "]"),
        *chance.choice([node, [("@graph", "[" + spell.object(node) + "]")], [("@reverse", spell.object([("p", '[{"@id":"http://e/o"}]')])), *node]]),
    ]
    return spell.object(whole)


def _one_vocabulary(spell: Speller, chance: Random, long: str, _size: int) -> list[str]:
    return [spell.object([(chance.choice(["@vocab", "@base"]), spell.json(long))])]


def _stacked(spell: Speller, chance: Random, _long: str, size: int) -> list[str]:
    piece = chance.choice([20, 150, 190, 2_000])
    return [spell.object([("@vocab", spell.json("http://e/"))])] + [
        spell.object([(chance.choice(["@vocab", "@base"]), spell.json("v" * piece + "/"))]) for _ in range(size // 2 // piece)
    ]


def _scoped(spell: Speller, chance: Random, long: str, size: int) -> list[str]:
    inner = spell.object(
        [
            ("@vocab", spell.json(chance.choice([long, "v" * (size // 4) + "/"]))),
            *((f"k{k}", spell.json(f"http://e/m{k}")) for k in range(chance.choice([1, size // 100]))),
        ]
    )
    terms = [(name, spell.object([("@id", spell.json("http://e/" + name)), ("@context", inner)])) for name in ("X", "x")]
    return [spell.object([("@vocab", spell.json("http://e/")), *terms])]


def _chain(spell: Speller, _chance: Random, _long: str, size: int) -> list[str]:
    return [
        spell.object(
            [("k0", spell.json("http://e/")), ("@vocab", spell.json(f"k{size // 900 - 1}:"))]
            + [(f"k{k}", spell.json(f"k{k - 1}:{'x' * 400}/")) for k in range(1, size // 900)]
        )
    ]


def _literals(spell: Speller, chance: Random, long: str, size: int) -> list[str]:
    kind = chance.choice(
        [("@type", spell.json(long)), ("@language", spell.json("en" + "-abcdefgh" * (size // 40))), ("@container", spell.json("@index"))]
    )
    return [spell.object([("@vocab", spell.json("http://e/")), ("p", spell.object([("@id", spell.json("http://e/p")), kind]))])]


# ---------------------------------------------------------------- the family of Turtle, and XML
def turtle(spell: Speller, chance: Random, size: int) -> str:
    """Return a text whose prefixes, bases and brackets stretch names."""
    long = "http://e/" + "x" * chance.choice([20, size // 8, size // 2]) + "/"
    count = max((size - len(long)) // 16, 10)
    head = spell.declare("", long) + spell.declare("p:", chance.choice([long, "a/"])) + spell.declare(":", "http://e/")
    shape = chance.choice(["names", "same", "bases", "prefixes", "brackets", "lists", "datatypes", "annotations"])
    match shape:
        case "names":
            return head + "".join(f"p:a{k} p:b <c{k}> .\n" for k in range(count))
        case "same":
            return head + "p:a p:a p:a .\n" * count
        case "bases":
            return head + "".join(spell.declare("", "yyyyyyyy/") + spell.declare(f"p{k}:", "a") for k in range(count // 4))
        case "prefixes":
            return head + "".join(spell.declare(f"p{k}:", f"a{k}") for k in range(count // 2))
        case "brackets":
            return head + ":a p:a " + "[ p:b " * count
        case "lists":
            return head + ":a p:a " + "( p:b " * count
        case "datatypes":
            return head + ":a :b " + ",".join(f'"{k}"^^p:d' for k in range(count)) + " ."
    return head + ":a :b :c {| p:b p:c |} .\n" * (count // 2)


def xml(spell: Speller, chance: Random, size: int) -> str:
    """Return a document whose entities, bases and namespaces stretch names."""
    long = "http://e/" + "x" * chance.choice([20, size // 8, size // 2])
    count = (size - len(long)) // 40
    quote = chance.choice("'\"")
    head = f"<?xml version='1.0'?><!DOCTYPE r [<!ENTITY e {quote}{long}{quote}>]>"
    base = chance.choice([f"xml:base = {quote}{long}/{quote}", "xml:base='&e;'", "xml:base='&#x61;'"])
    root = f"{head}<rdf:RDF {XMLNS} xmlns:a={quote}{long}{quote} {base}>"
    match chance.choice(["namespace", "about", "entity", "open", "bases"]):
        case "namespace":
            return root + "<rdf:Description>" + "".join(f"<a:p{k}/>" for k in range(count)) + "</rdf:Description></rdf:RDF>"
        case "about":
            return root + "".join(f"<rdf:Description rdf:about='s{k}' rdf:value='1'/>" for k in range(count)) + "</rdf:RDF>"
        case "entity":
            return root + "<rdf:Description rdf:value='&e;'/>" * count + "</rdf:RDF>"
        case "open":
            return root + "<rdf:Description><a:p>" * 250
    return root + f"<rdf:Description xml:base='{'y' * (size // 500)}/'><a:p>" * 250


def bodies(chance: Random) -> Iterator[Body]:
    """Yield one body after the other."""
    while True:
        spell, size = Speller(chance), chance.choice([2_000, 8_000, 60_000, 240_000, 500_000])
        yield LD_JSON, linked(spell, chance, size)
        kind = chance.choice([TURTLE, TRIG, f"{TURTLE}; version=1.2-messages", NDJSON])
        text = turtle(spell, chance, size)
        yield kind, f"{{{spell.json('triples')}:{json.dumps(text)}}}" if kind == NDJSON else text
        yield RDF_XML, xml(spell, chance, size)
        lines = [linked(spell, chance, size // 4).replace("\n", " ") for _ in range(3)]
        yield (
            NDJSON_LD,
            "\n".join([spell.object([("@context", spell.object([("@vocab", spell.json("http://e/" + "x" * (size // 8)))]))]), *lines]).replace(
                "\n\t", " "
            ),
        )


def read(media_type: str, body: bytes) -> None:
    readers: list[Callable[[], object]] = [lambda: parse_body(body, media_type, default=None, arrived=7)]
    if media_type in (LD_JSON, TURTLE, TRIG, RDF_XML):
        readers.append(lambda: read_graphs(body, media_type, "http://e/g"))
    for reader in readers:
        with suppress(FormatError):
            reader()


def attack() -> None:
    """Read bodies for as long as this run allows, and print the first fault."""
    read(TURTLE, b"<a:a> <a:b> 1 .")
    before, seed, until = _peak_mb(resource.RUSAGE_SELF), first_seed(), time.monotonic() + min(budget_s(), 3_600.0)
    most = CHILD_MB  # a peak lasts, and so does what it may be
    for number, (media_type, text) in enumerate(bodies(Random(seed))):
        if time.monotonic() > until or (is_short() and number >= SHORT):
            break
        began = _cpu_s()
        read(media_type, text.encode())
        found = _peak_mb(resource.RUSAGE_SELF) - before, _peak_mb(resource.RUSAGE_CHILDREN), _cpu_s() - began
        most = max(most, CHILD_MB + (max(len(text) - USUAL, 0) * FACTOR >> 20))
        if found[0] > OWN_MB or found[1] > max(most, before + found[0]) or found[2] > CPU_S:
            Path("hostile-body").write_text(text)
            raise SystemExit(f"seed {seed}, case {number}, {media_type}, {len(text)} bytes: own MB, a child's MB, CPU seconds {found}: {text[:300]}")
    print(number, "bodies", _peak_mb(resource.RUSAGE_SELF) - before, _peak_mb(resource.RUSAGE_CHILDREN))


def _peak_mb(who: int) -> int:
    return resource.getrusage(who).ru_maxrss >> 10


def _cpu_s() -> float:
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


@pytest.mark.slow
def test_bodies_that_expand_in_any_spelling_take_little(tmp_path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); from tests.soak.test_hostile_bodies import attack; attack()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
