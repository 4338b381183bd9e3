"""These tests check that texts which were parsed once mean the same when they are looked up, and that nothing but
their meaning is read.
"""

import os
import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from epsparql.errors import QueryError
from epsparql.translate import parsed_texts, translator
from epsparql.translate.parsed_texts import ParsedTexts, looking_up
from epsparql.translate.translator import ParsedQuery, parse
from epsparql.trees import walk_nodes

TEXTS = [
    "SELECT ?v WHERE { <x:1> <x:value> ?v }",
    "CONSTRUCT { ?s <x:p> 2 } INTO STREAM <x:b> FROM STREAM <x:a> WHERE { { ?s <x:q> 1 } OPTIONAL { ?s <x:p> ?v FILTER(?v > '20') } }",
    "SELECT ?s (COUNT(*) AS ?n) WHERE { ?s <x:p> 'ü'@de } GROUP BY ?s WINDOW [SESSION 'PT1S'^^<http://www.w3.org/2001/XMLSchema#duration> CLOSED]",
    "SELECT * WHERE { " + "{" * 90 + " ?s ?p ?o " + "}" * 90 + " }",
]


@pytest.fixture(autouse=True)
def _nothing_recent() -> Iterator[None]:
    parse.cache_clear()
    yield
    parse.cache_clear()


def keep(directory: Path) -> dict[str, ParsedQuery]:
    """Keep all texts, and return what they mean."""
    found = {text: parse(text) for text in TEXTS}
    with closing(ParsedTexts(directory)) as texts:
        for text, meaning in found.items():
            texts.keep_meaning(text, meaning)
    parse.cache_clear()
    return found


def never(text: str) -> ParsedQuery:
    raise AssertionError(f"{text} is parsed")


def spans(parsed: ParsedQuery) -> list[object]:
    return [parsed.places.find_span(node) for node in walk_nodes(parsed.query)]


def test_what_is_looked_up_is_what_was_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = keep(tmp_path)
    assert any(meaning.warnings for meaning in kept.values())
    with closing(ParsedTexts(tmp_path)) as texts, looking_up(texts), monkeypatch.context() as patch:
        patch.setattr(translator, "_parse", never)
        for text, meaning in kept.items():
            assert parse(text) == meaning
            assert spans(parse(text)) == spans(meaning)


def test_what_is_not_kept_is_parsed(tmp_path: Path) -> None:
    keep(tmp_path)
    with closing(ParsedTexts(tmp_path)) as texts, looking_up(texts):
        assert "SELECT * WHERE { ?s <x:other> ?o }" not in texts
        assert len(list(walk_nodes(parse("SELECT * WHERE { ?s <x:other> ?o }").query))) > 1
        with pytest.raises(QueryError):
            parse("SELECT")


def test_another_version_of_the_language_keeps_nothing_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path)
    before = (tmp_path / "parsed-texts").read_bytes()
    monkeypatch.setattr(parsed_texts, "_language", lambda: b"another version.")
    with closing(ParsedTexts(tmp_path)) as texts:
        assert not any(text in texts for text in TEXTS)
        texts.keep_meaning(TEXTS[0], parse(TEXTS[0]))
    with closing(ParsedTexts(tmp_path)) as texts:
        assert [text in texts for text in TEXTS] == [True, False, False, False]
    assert len((tmp_path / "parsed-texts").read_bytes()) < len(before)


def test_another_version_of_pyparsing_parses_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path)
    parsed_texts._language.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.version", lambda package: "3.2.99")
        with closing(ParsedTexts(tmp_path)) as texts:
            assert not any(text in texts for text in TEXTS)
    parsed_texts._language.cache_clear()
    with closing(ParsedTexts(tmp_path)) as texts:
        assert all(text in texts for text in TEXTS)


def test_records_from_a_damaged_one_on_are_written_anew(tmp_path: Path) -> None:
    kept, path = keep(tmp_path), tmp_path / "parsed-texts"
    whole = path.read_bytes()
    at = whole.index(b"COUNT") if b"COUNT" in whole else 3 * len(whole) // 4
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with closing(ParsedTexts(tmp_path)) as texts:
        lacking = [text for text in TEXTS if text not in texts]
        assert 0 < len(lacking) < len(TEXTS)
        for text in lacking:
            texts.keep_meaning(text, kept[text])
    with closing(ParsedTexts(tmp_path)) as texts:
        assert [texts.find_meaning(text) for text in TEXTS] == list(kept.values())
    os.truncate(path, path.stat().st_size - 1)
    with closing(ParsedTexts(tmp_path)) as texts:
        assert sum(text in texts for text in TEXTS) == len(TEXTS) - 1


class Intruder:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("exit 1",)


def test_nothing_but_parts_of_queries_is_made(tmp_path: Path) -> None:
    with closing(ParsedTexts(tmp_path)) as texts:
        texts.keep_meaning(TEXTS[0], Intruder())
        assert texts.find_meaning(TEXTS[0]) is None
        with looking_up(texts):
            assert parse(TEXTS[0]).text == TEXTS[0]
    with pytest.raises(pickle.UnpicklingError, match="no part of a query"):
        parsed_texts.MeaningReader.load_bytes(pickle.dumps(Intruder()))


def test_texts_of_queries_that_are_gone_are_dropped_in_time(tmp_path: Path) -> None:
    with closing(ParsedTexts(tmp_path)) as texts:
        for number in range(300):
            texts.keep_meaning(f"text {number}", parse(TEXTS[0]))
        size = (tmp_path / "parsed-texts").stat().st_size
        texts.drop_others([f"text {number}" for number in range(250)])
        assert "text 299" in texts
        texts.drop_others(["text 7"])
        assert "text 299" not in texts
        assert texts.find_meaning("text 7") == parse(TEXTS[0])
    assert (tmp_path / "parsed-texts").stat().st_size < size / 100
    with closing(ParsedTexts(tmp_path)) as texts:
        assert texts.find_meaning("text 7") == parse(TEXTS[0])
