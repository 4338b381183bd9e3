"""The pages' queries are registered, and those with a timeline below them are run: what is drawn is what comes out."""

import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox
import pytest

from pipeline.formats.batches.timestamps import instant, iso
from pipeline.registrations.query_cache import check_registration
from pipeline.replay.input_files import NamedFile, QueryFile
from pipeline.replay.replay import Replay, run
from tests.support.plain_json import term_json

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PREFIXES = {"": "http://example.org/", "xsd": "http://www.w3.org/2001/XMLSchema#", "rdfs": "http://www.w3.org/2000/01/rdf-schema#"}
"""What the pages leave out."""
FENCE = re.compile(r"^```(sparql|timeline)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"o|\[-*\]")
SECOND_0 = instant("2026-01-01T00:00:00Z")


@dataclass(frozen=True, slots=True)
class Example:
    """A query of a page, and the timeline that follows it, if one does."""

    place: str
    text: str
    timeline: str | None

    @property
    def query(self) -> str:
        left_out = (f"PREFIX {name}: <{iri}>" for name, iri in PREFIXES.items() if not re.search(rf"PREFIX\s+{name}:", self.text))
        return "\n".join([*left_out, self.text])


def examples() -> Iterator[Example]:
    for page in PAGES:
        blocks = list(FENCE.finditer(page.read_text(encoding="utf-8")))
        for k, block in enumerate(blocks):
            if block[1] == "sparql":
                timeline = blocks[k + 1][2] if k + 1 < len(blocks) and blocks[k + 1][1] == "timeline" else None
                yield Example(f"{page.name}:{block.string.count(chr(10), 0, block.start()) + 1}", block[2], timeline)


def fenced(page: str, language: str) -> list[str]:
    """The blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


EXAMPLES = list(examples())
RUN = [example for example in EXAMPLES if example.timeline is not None]


@dataclass(frozen=True, slots=True)
class DocsLine:
    """A line of a timeline: what it tells, and the seconds from and to which that holds; none: always."""

    label: str
    times: tuple[tuple[int, int], ...]


def drawn(timeline: str) -> Iterator[DocsLine]:
    for line in timeline.splitlines()[1:]:  # the first one counts the seconds
        label, bar, marks = line.partition(" | ")
        assert bar, line
        if marks == "always":
            yield DocsLine(label.strip(), ())
        else:
            assert not MARK.sub("", marks).strip(), line
            yield DocsLine(label.strip(), tuple((found.start(), found.end() - 1) for found in MARK.finditer(marks)))


def quad(text: str, graph: str | None) -> ox.Quad:
    """A triple as the pages write it, in a graph."""
    head = "".join(f"@prefix {name}: <{iri}> ." for name, iri in PREFIXES.items())
    body = f"{text} ." if graph is None else f"{graph} {{ {text} }}"
    found: ox.Quad
    (found,) = ox.parse(head + body, ox.RdfFormat.TRIG)
    return found


def term(text: str) -> object:
    return json.loads(term_json(str(quad(f"[] :p {text}", None).object)))


@dataclass(frozen=True, slots=True)
class Files:
    """The files of an example in a directory of its own."""

    directory: Path

    def query(self, text: str) -> QueryFile:
        return QueryFile(self.directory / "q.rq", text)

    def add(self, line: DocsLine) -> None:
        """A triple of the stream or of the background, at the end of its file."""
        triple, _, stream = line.label.partition(" on ")
        triple, _, graph = triple.partition(" in ")
        found = quad(triple, graph or None)
        if not line.times:
            self._append("background.nq", f"{found} .\n")
        event = {"s": str(found.subject), "p": str(found.predicate), "o": str(found.object)}
        named = {} if isinstance(found.graph_name, ox.DefaultGraph) else {"g": str(found.graph_name)}
        for start, end in line.times:
            self._append(f"{stream.strip('<>') or 'default'}.ndjson", json.dumps(event | named | {"start": moment(start), "end": moment(end)}) + "\n")

    def _append(self, name: str, text: str) -> None:
        with (self.directory / name).open("a", encoding="utf-8") as file:
            file.write(text)

    def replay(self, query: QueryFile) -> Replay:
        streams = [NamedFile(path.stem, path) for path in sorted(self.directory.glob("*.ndjson"))]
        return Replay([query], streams, [NamedFile("", path) for path in self.directory.glob("background.nq")])


def moment(second: int) -> str:
    return iso(SECOND_0 + second * 1_000_000)


def expected(line: DocsLine) -> str:
    """A solution of a page as `told` gives it."""
    label = line.label.removeprefix("=>").strip()
    (start, end), *more = line.times
    assert not more, line
    told: dict[str, object] = {"start": moment(start), "end": moment(end)}
    if label in ("true", "false"):
        told["boolean"] = label == "true"
    elif label.startswith("?"):
        pairs = (part.partition("=") for part in label.split())
        told["binding"] = {name[1:]: term(value) for name, _, value in pairs}
    else:
        found = quad(label, None)
        told["triples"] = f"{found.subject} {found.predicate} {found.object} ."
    return json.dumps(told, sort_keys=True)


def told(line: str) -> str:
    """A solution as replay gave it, without what the pages do not draw."""
    found = json.loads(line)
    return json.dumps({name: value for name, value in found.items() if name not in ("id", "query")}, sort_keys=True)


def test_the_pages_have_examples() -> None:
    assert len(RUN) > 50
    assert {page.name for page in PAGES} >= {"README.md", "language.md"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.place)
def test_every_query_can_be_registered(example: Example) -> None:
    check_registration(example.query)


@pytest.mark.parametrize("example", RUN, ids=lambda example: example.place)
def test_every_timeline_is_what_comes_out(example: Example, tmp_path: Path) -> None:
    assert example.timeline is not None
    lines, files, out = list(drawn(example.timeline)), Files(tmp_path), io.StringIO()
    for line in lines:
        if not line.label.startswith("=>"):
            files.add(line)
    run(files.replay(files.query(example.query)), "ndjson", out, lambda: SECOND_0, lambda _: None, lambda _: None)
    assert Counter(map(told, out.getvalue().splitlines())) == Counter(expected(line) for line in lines if line.label.startswith("=>"))
