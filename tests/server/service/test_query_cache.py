"""These tests check what is kept of query texts, and what a new query is checked against."""

import pytest

import epsparql
from pipeline.registrations.query_cache import check_registration, drop_shape, get_shape

RULE = "CONSTRUCT { ?s <x:p> 2 } INTO STREAM <x:b> FROM STREAM <x:a> WHERE { { ?s <x:q> 1 } OPTIONAL { ?s <x:p> ?v } }"
BACK = "CONSTRUCT { ?s <x:p> ?v } INTO STREAM <x:a> FROM STREAM <x:b> WHERE { ?s <x:p> ?v }"


def select(number: int) -> str:
    return f"SELECT * FROM STREAM <x:{number}> WHERE {{ ?s ?p ?o }}"


def test_shapes_of_thousands_of_queries_are_kept_until_they_are_forgotten() -> None:
    first = [get_shape(select(number)) for number in range(1500)]
    assert all(get_shape(select(number)) is found for number, found in enumerate(first))
    drop_shape(select(0))
    assert get_shape(select(0)) is not first[0]


def test_a_text_that_this_version_does_not_take_reads_and_writes_nothing() -> None:
    shape = get_shape("CONSTRUCT { ?s ?p } INTO STREAM <x:b> WHERE { ?s ?p }")
    assert (shape.touched, shape.into) == ((), None)


def test_a_rule_is_checked_beside_rules_alone_and_a_select_beside_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [select(number) for number in range(10)]
    for text in (*others, BACK):
        get_shape(text)
    parsed: list[str] = []
    parse = epsparql.parse

    def noted(text: str) -> epsparql.ParsedQuery:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(epsparql, "parse", noted)
    beside = {f"query{k}": text for k, text in enumerate((*others, BACK))}
    check_registration(select(11), beside)
    assert parsed == [select(11)]
    with pytest.raises(epsparql.QueryError, match="read its own negation"):
        check_registration(RULE, beside)
    assert parsed == [select(11), RULE, BACK]
