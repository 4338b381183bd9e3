"""Finds and reads tests of queries.

A folder with queries (`*.rq`) is one test for each `*.timeline` in it, and one more if it has `expected.ndjson`. Its
events are in `stream.*`, its background in `background.*`, in any format that `replay` reads. `test.toml` may name
other files, and has the options of `replay`. In a Markdown page, each `sparql` block that a `timeline` block follows
is a test.
"""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from epsparql.deferred_methods import dataclass
from epsparql.events.on_error import DEAD_LETTERS, ON_ERROR, OTHER_NAMES, REFUSE, read_on_error
from epsparql.solutions.policies import PolicyFault
from pipeline.query_tests.solutions import Solution, parse_solution
from pipeline.query_tests.timelines import Timeline, declare_prefixes, parse_timeline, update_timeline
from pipeline.replay.query_files import NamedFile, QueryFile, SourceFault, named_file, read_query
from pipeline.replay.replay import Replay, policies_of

OPTIONS = ("streams", "background", "mapping", "entailment", "policy", "default_graph", "on_error", "dead_letters")
EXPECTED, CONFIG = "expected.ndjson", "test.toml"
_FENCE = re.compile(r"^```(sparql|timeline)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Case:
    """Describes a test: what is replayed, and what is expected of it.

    `read` returns both, given a directory for files that a timeline stands for, or raises SourceFault. `update`
    writes the solutions that were found in place of those expected.
    """

    name: str
    path: Path
    read: Callable[[Path], tuple[Replay, list[Solution]]]
    update: Callable[[list[Solution]], None]


def find_cases(paths: list[Path]) -> list[Case]:
    """Return the tests below the paths, in order of their names. Raises: SourceFault."""
    found: list[Case] = []
    for path in paths:
        if path.is_dir():
            folders = sorted(Path(folder) for folder, _, files in os.walk(path) if any(file.endswith(".rq") for file in files))
            found += [case for folder in folders for case in _of_folder(folder)]
        elif path.suffix == ".md":
            found += _of_page(path)
        else:
            raise SourceFault(path, "this is no folder of tests and no Markdown page" if path.exists() else "there is no such folder or page")
    return found


# ---------------------------------------------------------------- folders
def _of_folder(folder: Path) -> Iterator[Case]:
    for path in sorted(folder.glob("*.timeline")):
        yield Case(str(path.with_suffix("")), path, _Drawn(folder, path).read, _Drawn(folder, path).update)
    if (folder / EXPECTED).exists() or not list(folder.glob("*.timeline")):
        yield Case(str(folder), folder / EXPECTED, _Listed(folder).read, _Listed(folder).update)


@dataclass(frozen=True, slots=True)
class _Listed:
    """Reads a test whose solutions are in expected.ndjson."""

    folder: Path

    def read(self, _: Path) -> tuple[Replay, list[Solution]]:
        path = self.folder / EXPECTED
        if not path.exists():
            raise SourceFault(path, "the file is missing", expected="a *.timeline beside the query, or this file; `epsparql test --update` writes it")
        replay = _replay_of(self.folder, _queries_in(self.folder))
        return replay, [_expected_line(path, number, line) for number, line in enumerate(path.read_text().splitlines(), 1) if line.strip()]

    def update(self, found: list[Solution]) -> None:
        (self.folder / EXPECTED).write_text("".join(solution.line() + "\n" for solution in found), encoding="utf-8")


def _expected_line(path: Path, number: int, line: str) -> Solution:
    try:
        return parse_solution(json.loads(line))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        expected = 'a line as `epsparql replay` prints it, such as {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:05Z", "binding": {}}'
        raise SourceFault(path, f"this is no solution: {error!r}", number, 1, expected) from None


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Reads a test whose events and solutions are in a timeline."""

    folder: Path
    path: Path

    def read(self, directory: Path) -> tuple[Replay, list[Solution]]:
        queries = _queries_in(self.folder)
        texts = "\n".join(query.text for query in queries)
        drawn = parse_timeline(self.path.read_text(encoding="utf-8"), self.path, texts)
        queries = [QueryFile(query.path, declare_prefixes(query.text)) for query in queries]
        return _with_drawing(_replay_of(self.folder, queries), drawn, directory), list(drawn.expected)

    def update(self, found: list[Solution]) -> None:
        texts = "\n".join(query.text for query in _queries_in(self.folder))
        self.path.write_text(update_timeline(self.path.read_text(encoding="utf-8"), self.path, texts, found), encoding="utf-8")


def _queries_in(folder: Path) -> list[QueryFile]:
    return [read_query(path) for path in sorted(folder.glob("*.rq"))]


def _replay_of(folder: Path, queries: list[QueryFile]) -> Replay:
    path = folder / CONFIG
    options = _options(path) if path.exists() else {}
    streams = [_inside(folder, each) for each in options["streams"]] if "streams" in options else _files_named(folder, "stream")
    background = [_inside(folder, each) for each in options["background"]] if "background" in options else _files_named(folder, "background")
    try:
        policies = policies_of(options.get("policy", []), queries)
    except PolicyFault as fault:
        raise SourceFault(path, f"policy: {fault}") from None
    return Replay(
        queries,
        streams,
        background,
        default_graph=options.get("default_graph", "all"),
        policies=policies,
        entailment=options.get("entailment", "rdfs"),
        mappings=[_inside(folder, each) for each in options.get("mapping", [])],
        on_error=read_on_error(options.get("on_error", REFUSE)) or REFUSE,
        dead_letters=folder / options.get("dead_letters", DEAD_LETTERS),
    )


def _options(path: Path) -> dict[str, Any]:
    try:
        options = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceFault(path, str(error)) from None
    for name, value in options.items():
        if name not in OPTIONS:
            raise SourceFault(path, f"{name!r} is no option of a test", expected=f"one of {', '.join(OPTIONS)}")
        wants_list = name in ("streams", "background", "mapping", "policy")
        if wants_list != isinstance(value, list) or not all(isinstance(each, str) for each in (value if wants_list else [value])):
            raise SourceFault(path, f"{name} is {value!r}", expected=f'{name} = {"[" if wants_list else ""}"..."{"]" if wants_list else ""}')
    for name, choices in (("entailment", ("rdfs", "owl-rl")), ("default_graph", ("all", "unnamed")), ("on_error", (*ON_ERROR, *OTHER_NAMES))):
        if options.get(name, choices[0]) not in choices:
            raise SourceFault(path, f"{name} is {options[name]!r}", expected=" or ".join(choices))
    return options


def _inside(folder: Path, argument: str) -> NamedFile:
    """Return `[NAME=]FILE`, where the file is named from the folder."""
    name, _, file = argument.rpartition("=")
    if (folder / argument).exists():
        name, file = "", argument
    return NamedFile(name.removeprefix("<").removesuffix(">"), folder / file)


def _files_named(folder: Path, stem: str) -> list[NamedFile]:
    return [NamedFile("", path) for path in sorted(folder.glob(f"{stem}.*"))]


def _with_drawing(replay: Replay, drawn: Timeline, directory: Path) -> Replay:
    """Return the replay with the events and the background of a timeline, which are written into the directory."""
    streams, background = list(replay.streams), list(replay.background)
    for number, (name, text) in enumerate(drawn.streams.items()):
        path = directory / f"{number}.ndjson"
        path.write_text(text, encoding="utf-8")
        streams.append(NamedFile("" if name == "default" else name, path))
    if drawn.background:
        path = directory / "background.nq"
        path.write_text(drawn.background, encoding="utf-8")
        background.append(named_file(str(path)))
    return replace(replay, streams=streams, background=background)


# ---------------------------------------------------------------- pages
@dataclass(frozen=True, slots=True)
class Example:
    """Represents a query of a page, the line before it, and the timeline that follows it, if one does, with the line
    before that.
    """

    line: int
    query: str
    timeline: str | None
    timeline_line: int


def examples_in(page: str) -> Iterator[Example]:
    """Yield the queries of a Markdown page."""
    blocks = list(_FENCE.finditer(page))
    for block, after in zip_longest(blocks, blocks[1:]):
        if block[1] == "sparql":
            drawn = after if after is not None and after[1] == "timeline" else None
            yield Example(_lines_before(block), block[2], drawn[2] if drawn else None, _lines_before(drawn) if drawn else 0)


def _lines_before(block: re.Match[str]) -> int:
    return block.string.count("\n", 0, block.start()) + 1


def _of_page(page: Path) -> Iterator[Case]:
    for example in examples_in(page.read_text(encoding="utf-8")):
        if example.timeline is not None:
            yield Case(f"{page}:{example.line}", page, _Shown(page, example).read, _Shown(page, example).update)


@dataclass(frozen=True, slots=True)
class _Shown:
    """Reads an example of a page, with faults at their lines in the page."""

    page: Path
    example: Example

    def read(self, directory: Path) -> tuple[Replay, list[Solution]]:
        assert self.example.timeline is not None
        drawn = parse_timeline(self.example.timeline, self.page, self.example.query, self.example.timeline_line)
        query = QueryFile(self.page, declare_prefixes(self.example.query))
        return _with_drawing(Replay([query], [], []), drawn, directory), list(drawn.expected)

    def update(self, found: list[Solution]) -> None:
        """Draw the solutions anew in the block of this query. Other blocks of the page may have been drawn anew before."""
        text, old = self.page.read_text(encoding="utf-8"), f"```timeline\n{self.example.timeline}```"
        begin = text.index(old, text.index(self.example.query))
        drawn = update_timeline(self.example.timeline or "", self.page, self.example.query, found)
        self.page.write_text(f"{text[:begin]}```timeline\n{drawn}```{text[begin + len(old) :]}", encoding="utf-8")
