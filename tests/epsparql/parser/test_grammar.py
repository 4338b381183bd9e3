"""These tests check that the grammar reads as the W3C's does, and that prediction and pyparsing's settings change
nothing of it.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyparsing
import pytest
from pyparsing import ParseException, ParserElement

from epsparql import QueryError
from epsparql.parser import grammar, terminals
from epsparql.parser.ast_queries import Document
from epsparql.parser.elements import QueryText, Terminal
from epsparql.recursion import deep_stack
from tests.epsparql.golden import blocks
from tests.epsparql.test_limits import CORPUS

UPDATE = {3, *range(29, 52)}
"""These rules of SPARQL 1.1 are SPARQL Update's, which is refused at its keyword."""
TRIED = ("3.2.0", "3.3.3")
"""The grammar was tried with these versions of pyparsing, from the lower bound in pyproject.toml to the newest."""
TYPICAL = "PREFIX : <http://e/> SELECT ?s (COUNT(*) AS ?n) { { ?s :p ?o ; :q 5 . } SEQ { ?s :r :t FILTER(?o > 3 && BOUND(?s)) } } GROUP BY ?s LIMIT 3"


def parse_once(text: str, *, predicts: bool) -> Document | str:
    try:
        with deep_stack():
            found: Document = grammar.query_unit.parse_string(QueryText.from_text(text, explains=not predicts))[0]
    except ParseException:
        return "refused"
    except QueryError as fault:
        return str(fault)
    return found


def explain(text: str) -> str:
    """Return the fault, or the tree."""
    try:
        with deep_stack():
            return repr(grammar.parse_document(text))
    except QueryError as fault:
        return str(fault)


def test_each_rule_of_the_recommendation_is_named() -> None:
    sources = "".join(Path(str(module.__file__)).read_text() for module in (grammar, terminals))
    numbers: set[int] = set()
    for comment in re.findall(r"#.*", sources):
        for first, last in re.findall(r"\[(\d+)\](?:-\[(\d+)\])?", comment):
            numbers.update(range(int(first), int(last or first) + 1))
    assert set(range(1, 139)) - numbers <= UPDATE


def test_prediction_changes_no_tree_and_no_refusal() -> None:
    for text in CORPUS[::6]:
        assert parse_once(text, predicts=True) == parse_once(text, predicts=False), text


def list_terminals() -> list[Terminal]:
    return [element for element in grammar.query_unit.visit_all() if isinstance(element, Terminal)]  # type: ignore[no-untyped-call]  # pyparsing has no type for it


def test_a_terminal_begins_as_it_says() -> None:
    """Prediction passes over a terminal where its `first` does not match."""
    shortened = [(each, re.compile(each.first)) for each in list_terminals() if each.first != each.pattern]
    assert len(shortened) > 5
    others = ["<=x>", "<>", "é:ü.1", "a.b-c:d", "?·", "$0", "_:0.a", "+.5e3", "\u017f:", "x\u0300:y", "true:x", "PREFIX\u203f:", "\u017ftr (", "STR("]
    for text in (*CORPUS[::9], *others):
        source = QueryText.from_text(text, explains=False)
        for each, first in shortened:
            for at in range(len(text)):
                if each.find(source, at):
                    assert first.match(source, at), (each, text[at : at + 30])


@contextmanager
def failures_of_terminals() -> Iterator[Callable[[], int]]:
    failed: list[str] = []

    def count_failure(find: Callable[[QueryText, int], object], source: QueryText, at: int) -> object:
        found = find(source, at)
        if not found:
            failed.append(source)
        return found

    with pytest.MonkeyPatch.context() as patch:
        for each in list_terminals():
            patch.setattr(each, "find", partial(count_failure, each.find))
        yield lambda: len(failed)


def test_pyparsing_calls_what_predicts() -> None:
    """`parseImpl` is the part of pyparsing that its documentation does not promise (`epsparql/parser/prediction.py`)."""
    assert pyparsing.__version__ >= min(TRIED)
    with failures_of_terminals() as count:
        parse_once(TYPICAL, predicts=True)
        predicted = count()
        parse_once(TYPICAL, predicts=False)
        plain = count() - predicted
    assert plain > 10 * predicted, f"pyparsing {pyparsing.__version__}: {plain} terminals failed without prediction"
    assert predicted < 15, f"pyparsing {pyparsing.__version__}: {predicted} terminals failed; tried with {TRIED}"


def test_settings_of_other_users_of_pyparsing_change_nothing() -> None:
    """matplotlib turns memoization on for the whole process, and rdflib sets the blanks that pyparsing passes over."""
    texts = [block.query for block in blocks("errors.txt")[::4]]
    before = [explain(text) for text in texts]
    blanks = ParserElement.DEFAULT_WHITE_CHARS
    ParserElement.set_default_whitespace_chars(" \nx")
    ParserElement.enable_packrat()
    try:
        assert [explain(text) for text in texts] == before
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(explain, texts)) == before
    finally:
        ParserElement.disable_memoization()
        ParserElement.set_default_whitespace_chars(blanks)


def test_classes_of_characters_are_those_that_they_list() -> None:
    """They are written as classes of all other characters."""
    every = "".join(map(chr, range(0x110000)))
    names = (
        terminals._BASE,
        terminals._CHARS_U + "0-9",
        terminals._IN_VARNAME,
        terminals._CHARS,
        terminals._CHARS_U + ":0-9",
        terminals._CHARS + ":",
    )
    for characters in names:
        listed = "\\" * characters.startswith("-") + characters
        assert re.findall(terminals._class(characters), every) == re.findall(f"[{listed}]", every)
