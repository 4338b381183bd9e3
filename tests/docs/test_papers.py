"""docs/papers.md: every query on the page, over the feed beside it, through the engine and the reference evaluator."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyoxigraph
import pytest

from epsparql.terms import XSD, Iri, Literal, Term, Variable
from pipeline.query_tests.timelines import declare_prefixes
from tests.reference.evaluator import Occurrence, Triple
from tests.support import feeds
from tests.support.ntriples import parse_statement
from tests.support.run_both import Results, run_engine, run_oracle

PAGE = (Path(__file__).parents[2] / "docs" / "papers.md").read_text()
DAY = 86_400
Run = Callable[..., Results]


def section(title: str) -> str:
    """The page from the heading that starts with `title` to the next of its kind."""
    [found] = re.findall(rf"^## {re.escape(title)}.*?(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def query(title: str, heading: str) -> str:
    [found] = re.findall(rf"^### {re.escape(heading)}\n```sparql\n(.*?)```", section(title), re.DOTALL | re.MULTILINE)
    return declare_prefixes(str(found))


def feed(title: str) -> list[Occurrence]:
    """The feed of a section; its times are days."""
    [text] = re.findall(r"^feed +(.*?)\n\n", section(title), re.DOTALL | re.MULTILINE)
    seconds = feeds.parse_feed(str(text))
    return [Occurrence(o.triple, o.start * DAY, o.end * DAY) for o in seconds]


def shown(term: Term) -> str:
    match term:
        case Iri(value):
            return value.removeprefix(feeds.EXAMPLE)
        case Literal(lexical, datatype) if datatype in (XSD + "decimal", XSD + "integer", XSD + "int"):
            return f"{float(lexical):g}"
    return str(term)


def days(start: int, end: int) -> str:
    return "-".join(f"{instant / feeds.SECOND / DAY:g}" for instant in (start, end))


def selected(rows: Iterable[tuple[frozenset[tuple[Variable, Term]], tuple[int, int]]]) -> Counter[str]:
    """Solutions as `a=1 b=2 @1-4`."""
    return Counter(" ".join([*sorted(f"{v.name}={shown(term)}" for v, term in bindings), f"@{days(*times)}"]) for bindings, times in rows)


def constructed(rows: Iterable[tuple[frozenset[tuple[Term, Term, Term]], tuple[int, int]]]) -> Counter[str]:
    """A rule's solutions as `p=o q=o @1-4`, without the subjects, which may be blank."""
    return Counter(" ".join([*sorted(f"{shown(p)}={shown(o)}" for _, p, o in triples), f"@{days(*times)}"]) for triples, times in rows)


def background(title: str) -> list[Triple]:
    """The background of a section."""
    texts = re.findall(r"^```turtle\n(.*?)```", section(title), re.DOTALL | re.MULTILINE)
    return [parse_statement(f"{quad} .") for text in texts for quad in pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.TURTLE)]


def found(run: Run, queries: dict[str, str], name: str, stream: list[Occurrence], known: Sequence[Triple] = ()) -> Counter[str]:
    rows = run(queries, {"default": stream}, known)[name]
    if isinstance(rows, set):
        return constructed(rows)
    return selected(rows.elements() if isinstance(rows, Counter) else rows)


SOLUTIONS = [
    ("(1)", "As printed", ["company=ACME @1-4"]),
    ("(1)", "What the prose says", ["company=ACME @1-3", "company=ACME @1-4"]),
    ("(2)", "As printed", ["company=ACME ratingagency=Moody @1-3", "company=Bolt @2-4"]),
    ("(2)", "What the prose says", ["company=ACME ratingagency=Moody @1-3", "company=Bolt ratingagency=Fitch @2-4"]),
    ("(3)", "As printed", ["company=Acme @1-2"]),
    ("(3)", "With the misprints mended", ["company=Bolt @1-2"]),
    ("(3)", "What the prose says", ["company=Bolt @1-2", "company=Easy @1-2"]),
    ("(4)", "As printed", ["downratedby=Moody @1-2", "downratedby=Moody @1-3"]),
    ("(4)", "What the prose says", ["downratedby=Moody @1-2"]),
    ("(5)", "As printed", ["hasCount=2 hasSum=30 @1-2", "hasCount=3 hasSum=60 @1-3"]),
    ("(5)", "What the prose says", ["count=1 sum=10 @1-1", "count=2 sum=30 @1-2", "count=3 sum=60 @1-3", "count=2 sum=70 @3-12"]),
    ("(6)", "What the prose says", ["average=8 @0.5-0.5", "average=9 @0.5-1", "average=12.6667 @0.5-5", "average=20 @1-10.9"]),
    ("Slow traffic", "As printed", []),
    ("Slow traffic", "With the misprints mended", ["road=e6 speed=70 @0-0.01", "road=e20 speed=40 @0.1-0.13"]),
]  # fmt: skip


@pytest.mark.parametrize("run", [run_engine, run_oracle])
@pytest.mark.parametrize(("title", "heading", "solutions"), SOLUTIONS)
def test_query(run: Run, title: str, heading: str, solutions: list[str]) -> None:
    assert found(run, {"query": query(title, heading)}, "query", feed(title), background(title)) == Counter(solutions)


@pytest.mark.parametrize("run", [run_engine, run_oracle])
@pytest.mark.parametrize(("heading", "average"), [("As printed", ""), ("With the misprints mended", "average=20 ")])
def test_the_average_reads_what_the_counts_write(run: Run, heading: str, average: str) -> None:
    queries = {"counts": query("(5)", "As printed"), "average": query("(6)", heading)}
    assert found(run, queries, "counts", feed("(6)")) == Counter(["hasCount=2 hasSum=30 @1-5", "hasCount=3 hasSum=60 @1-10.9"])
    assert found(run, queries, "average", feed("(6)")) == Counter([f"{average}@0.5-10.9"])


def test_every_query_of_the_page_is_run() -> None:
    headings = re.findall(r"^### (.*)\n```sparql", PAGE, re.MULTILINE)
    assert sorted(headings) == sorted([heading for _, heading, _ in SOLUTIONS] + ["As printed", "With the misprints mended"])
