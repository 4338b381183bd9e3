"""ontologies/README.md: the papers' examples over ontologies/, through `epsparql replay`, with the solutions that stand there."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox
import pytest

from server.cli.commands import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ontologies" / "README.md").read_text(encoding="utf-8")
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


@dataclass(frozen=True, slots=True)
class KnowledgeExample:
    title: str
    namespace: str
    background: tuple[str, ...]
    queries: dict[str, str]
    feed: tuple[str, ...]
    solutions: tuple[str, ...]


def examples() -> Iterator[KnowledgeExample]:
    for section in re.findall(r"^## .*?(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE):
        if "\n**background** " not in section:
            continue
        title = section.partition("\n")[0].removeprefix("## ")
        queries = dict(re.findall(r"^\*\*(\w+)\*\*\n```sparql\n(.*?)^```$", section, re.DOTALL | re.MULTILINE))
        [background] = re.findall(r"^\*\*background\*\* (.*)$", section, re.MULTILINE)
        [feed], [solutions] = (re.findall(rf"^```{name}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE) for name in ("feed", "solutions"))
        namespace = re.findall(r"PREFIX : <(.*?)>", section)[0]
        yield KnowledgeExample(
            title, namespace, tuple(re.findall(r"`(.*?)`", background)), queries, tuple(feed.splitlines()), tuple(solutions.splitlines())
        )


EXAMPLES = list(examples())


def event(line: str, namespace: str) -> str:
    at, s, p, o = line.split()
    literal = {"true": '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'}.get(o, f'"{o}"^^<http://www.w3.org/2001/XMLSchema#integer>')
    value = literal if o == "true" or o.isdigit() else f"<{namespace}{o}>"
    predicate = TYPE if p == "a" else f"<{namespace}{p}>"
    return json.dumps({"s": f"<{namespace}{s}>", "p": predicate, "o": value, "at": f"2026-01-01T{at}:00Z"}) + "\n"


def told(line: str, namespace: str) -> str:
    """A solution as the page writes it."""
    found = json.loads(line)
    if "binding" in found:
        what = " ".join(f"{name}={term['value'].removeprefix(namespace)}" for name, term in found["binding"].items())
    else:
        [triple] = ox.parse(found["triples"].encode(), ox.RdfFormat.N_TRIPLES)
        what = " ".join(str(getattr(term, "value", "")).removeprefix(namespace) for term in (triple.subject, triple.predicate, triple.object))
    return f"{found['query']} {found['start'][11:16]} .. {found['end'][11:16]} {what}"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_the_solutions_are_those_of_the_page(example: KnowledgeExample, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.ndjson").write_text("".join(event(line, example.namespace) for line in example.feed))
    arguments = ["replay", "--stream", str(tmp_path / "s.ndjson"), "--background", *(str(ROOT / "ontologies" / name) for name in example.background)]
    for name, query in example.queries.items():
        (tmp_path / f"{name}.rq").write_text(query)
        arguments += ["--query", str(tmp_path / f"{name}.rq")]
    assert main(arguments) == 0
    found = Counter(told(line, example.namespace) for line in capsys.readouterr().out.splitlines())
    assert found == Counter(" ".join(line.split()) for line in example.solutions)


def test_the_page_has_the_examples_that_it_promises() -> None:
    assert {name for example in EXAMPLES for name in example.queries} == {"fire", "enhanced", "slow", "carried", "JetStreamWarning"}


def test_sosa_relates_both_ways_under_owl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`weather.ttl` says which sensors a station hosts; asked is by which station a sensor is hosted."""
    query = "PREFIX : <http://example.org/weather#> PREFIX sosa: <http://www.w3.org/ns/sosa/> SELECT ?at { ?s :reads ?v . ?s sosa:isHostedBy ?at }"
    (tmp_path / "q.rq").write_text(query)
    (tmp_path / "s.ndjson").write_text(event("12:00 t1 reads 46", "http://example.org/weather#"))
    files = [str(ROOT / "ontologies" / name) for name in ("sosa.ttl", "weather.ttl")]
    for regime, expected in (("rdfs", []), ("owl-rl", ["q 12:00 .. 12:00 at=station1"])):
        assert (
            main(
                ["replay", "--query", str(tmp_path / "q.rq"), "--stream", str(tmp_path / "s.ndjson"), "--entailment", regime, "--background", *files]
            )
            == 0
        )
        assert [told(line, "http://example.org/weather#") for line in capsys.readouterr().out.splitlines()] == expected


def test_every_file_is_named_with_its_source() -> None:
    readme = (ROOT / "ontologies" / "README.md").read_text(encoding="utf-8")
    assert {path.name for path in (ROOT / "ontologies").glob("*.ttl")} == set(re.findall(r"^\| `(.*?\.ttl)`", readme, re.MULTILINE))
