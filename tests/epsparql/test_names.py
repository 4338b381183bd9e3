"""References against a base: the examples of RFC 3986, section 5.4."""

import pytest

from epsparql import QueryError, parse
from epsparql.algebra import Bgp
from epsparql.iris import resolve

RFC_3986 = [
    ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"), ("//g", "http://g"),
    ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"),
    ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"),
    ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"),
    ("../../", "http://a/"), ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"),
    ("g.", "http://a/b/c/g."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("g/./h", "http://a/b/c/g/h"),
    ("g/../h", "http://a/b/c/h"), ("g?y/../x", "http://a/b/c/g?y/../x"), ("http:g", "http:g"),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "resolved"), RFC_3986)
def test_resolve(reference: str, resolved: str) -> None:
    assert resolve(reference, "http://a/b/c/d;p?q") == resolved


def test_resolve_without_base_or_path() -> None:
    assert resolve("../g", None) == "../g"
    assert resolve("g", "http://a") == "http://a/g"
    assert resolve("g", "urn:x") == "urn:g"


def test_prologue() -> None:
    """A BASE counts from where it stands, and a later PREFIX replaces an earlier one."""
    pattern = parse(
        "PREFIX : <a#> BASE <http://e/x> BASE <y/> PREFIX q: <p/> PREFIX q: <r/> SELECT * { <s> q:t <#o> ; :u <http://f/> }"
    ).query.pattern
    assert isinstance(pattern, Bgp)
    assert [str(term) for triple in pattern.triples for term in (triple.subject, triple.predicate, triple.object)] == [
        "<http://e/y/s>", "<http://e/y/r/t>", "<http://e/y/#o>", "<http://e/y/s>", "<a#u>", "<http://f/>",
    ]  # fmt: skip


def test_an_unknown_prefix_among_many() -> None:
    """The message stays short."""
    prologue = "".join(f"PREFIX p{i}: <a> " for i in range(900))
    with pytest.raises(QueryError) as caught:
        parse(prologue + "SELECT * { ?s quite:other ?o }")
    listed = ", ".join(f"p{i}:" for i in range(10))
    assert caught.value.expected == f"a declared prefix ({listed} and 890 more)"


def test_an_unknown_prefix_of_thousands_of_letters() -> None:
    with pytest.raises(QueryError) as caught:
        parse(f"PREFIX {'a' * 9_000}: <a> SELECT * {{ ?s {'ab' * 4_500}:p ?o }}")
    assert len(caught.value.message) < 100
    assert len(caught.value.expected) < 100


@pytest.mark.parametrize(("prologue", "name"), [("PREFIX p: <http://e/{}>", "p:{}"), ("BASE <http://e/{}/>", "<{}>")])
def test_names_that_take_much_written_out_are_refused_with_their_place(prologue: str, name: str) -> None:
    query = prologue.format("x" * 9_000) + " SELECT * {{ ?s ?p {} }}"
    assert parse(query.format(name.format(1)))
    with pytest.raises(QueryError, match="written out, the names up to here take more than 8,388,608 characters") as caught:
        parse(query.format(", ".join(name.format(k) for k in range(1_000))))
    assert caught.value.column > 9_000
