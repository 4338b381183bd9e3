"""Instances that are found by what a text has are those that each instance's own text finds, whatever the strings are."""

import json
import time
from collections.abc import Mapping

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import epsparql
from engine.engine import Engine
from engine.messages import OCCURRENCES, Block, ChangeInstances, Events, Register
from engine.regex.matching import find_match
from engine.regex.required_literal import find_required_literal
from engine.validation.validate import check
from epsparql.regex.syntax import PatternFault
from epsparql.terms import XSD, Iri, Literal, Term
from tests.engine.instances.test_instances import E, InstanceChange, Sent, Step, Terms, found_apart, found_shared, logs
from tests.engine.runtime.test_partitioning import shared_out, whole
from tests.reference.evaluator import Occurrence
from tests.soak import examples
from tests.support.run_both import block, blocks

CONDITIONS = [
    "CONTAINS(?text, ?word)", "STRSTARTS(?text, ?word)", "STRENDS(?text, ?word)", "CONTAINS(LCASE(?text), LCASE(?word))", "CONTAINS(UCASE(?text), ?word)",
    "CONTAINS(?text, STRAFTER(?word, \"a\"))", "REGEX(?text, CONCAT(?word, \"\"))", "REGEX(?text, CONCAT(?word, \"\"), \"i\")", "REGEX(?text, CONCAT(\"^\", ?word))",
    "LANGMATCHES(LANG(?text), ?word)", "CONTAINS(?text, ?word) && STRSTARTS(?text, ?other)", "CONTAINS(?text, ?word) && ?v > ?limit",
    "REGEX(?text, CONCAT(?other, \"\")) && CONTAINS(?text, ?word)", "CONTAINS(STR(?room), ?word)", "!CONTAINS(?text, ?word)", "CONTAINS(CONCAT(?text, STR(?v)), ?word)",
]  # fmt: skip
PATTERNS = [
    "?room :text ?text . ?room :p ?v", "?s :text ?text . ?room :p ?v", "{ ?room :text ?text } SEQ { ?room :p ?v }", "?room :text ?text . ?s :p ?v",
    "{ ?room :text ?text . ?s :p ?v } UNION { ?room :text ?text . ?room :p ?v }", "{ ?x :text ?word } UNION { ?room :text ?text } . ?room :p ?v",
]  # fmt: skip
texts = st.tuples(st.sampled_from(PATTERNS), st.sampled_from(CONDITIONS), st.sampled_from(["", "", "FILTER (STRLEN(?text) > 1)"])).map(
    lambda parts: (
        f"PREFIX : <{E}> SELECT * FROM STREAM <s> FROM STREAM <t> PARAMETERS (?word ?other ?room ?limit) WHERE {{ {parts[0]} FILTER ({parts[1]}) {parts[2]} }}"
    )
)
characters = st.sampled_from(
    ["a", "a", "b", "b", "A", "B", "n", "u", "0", "\\", '"', "\n", "\x01", "\u0130", "\u00df", "\u03a3", "\U0001d11e", ".", "*"]
)
strings = st.one_of(st.text(characters, max_size=6), st.lists(st.sampled_from(["ab", "aba", "ba", "B", ""]), max_size=3).map("".join))
languages = st.sampled_from([None, None, None, "en", "en-gb", "fr"])
literals: st.SearchStrategy[Term] = st.one_of(
    st.builds(lambda text, tag: Literal(text) if tag is None else Literal.from_tag(text, tag), strings, languages),
    st.builds(lambda text, tag: Literal(text) if tag is None else Literal.from_tag(text, tag), strings, languages),
    st.builds(lambda text, tag: Literal(text) if tag is None else Literal.from_tag(text, tag), strings, languages),
    st.sampled_from(
        [Literal("1", XSD + "integer"), Iri(E + "a"), Literal("*"), Literal("en"), Literal("a", E + "a"), Literal.from_tag("ab", "en--ltr")]
    ),
)
rooms: st.SearchStrategy[Term] = st.sampled_from([Iri(E + name) for name in ("a0", "b1")])
numbers: st.SearchStrategy[Term] = st.integers(0, 3).map(lambda n: Literal(str(n), XSD + "integer"))
given_terms: st.SearchStrategy[Terms] = st.fixed_dictionaries({"word": literals, "other": literals, "room": rooms, "limit": numbers})
changes = st.dictionaries(st.sampled_from("abcdef"), st.one_of(st.none(), given_terms, given_terms), min_size=1).map(InstanceChange)


@st.composite
def occurrences(draw: st.DrawFn, at: int) -> Occurrence:
    name, objects = draw(st.sampled_from([("text", literals), ("p", numbers)]))
    return Occurrence((draw(rooms), Iri(E + name), draw(objects)), at * 1_000_000, at * 1_000_000, None)


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    found: list[Step] = [InstanceChange({name: draw(given_terms) for name in "abcd"})]
    for k in range(draw(st.integers(3, 10))):
        if draw(st.integers(0, 3)) == 0:
            found.append(draw(changes))
        else:
            found.append(Sent(draw(st.sampled_from("sst")), tuple(draw(st.lists(occurrences(k // 2), min_size=1, max_size=5)))))
    return found


cuts = st.frozensets(st.integers(0, 30), max_size=6)
restores = st.frozensets(st.integers(0, 6), max_size=3)


def is_refused(text: str) -> bool:
    try:
        check(epsparql.parse(text))
    except epsparql.QueryError:
        return True
    return False


@settings(max_examples=examples(1000), deadline=None)
@given(texts, steps(), cuts, restores)
def test_texts_find_what_each_instance_finds(text: str, taken: list[Step], cuts: frozenset[int], restores: frozenset[int]) -> None:
    if not is_refused(text):
        shared, apart = logs(text, taken, 0)
        found, order = found_shared(shared, cuts, restores)
        assert found == found_apart(apart)
        assert order == sorted(order)


@settings(max_examples=examples(400), deadline=None)
@given(texts, steps(), cuts, restores, st.integers(2, 4))
def test_partitions_find_what_one_engine_finds(text: str, taken: list[Step], cuts: frozenset[int], restores: frozenset[int], partitions: int) -> None:
    if not is_refused(text):
        cut = blocks(logs(text, taken, 0)[0], cuts)
        assert shared_out(cut, partitions, restores)[:2] == whole(cut)


# ---------------------------------------------------------------- many values
@pytest.mark.parametrize(
    ("pattern", "flags", "expected"),
    [
        ("alarm", "", "alarm"), ("^al(arm)$", "", "alarm"), ("a.larm|b", "", ""), ("ab*cd+ef", "", "ef"), ("[a]b[c-d]ef", "", "ab"), ("(ab|cd)xyz", "", "xyz"),
        ("(abc)+d", "", "abc"), ("(abc){0,2}d", "", "d"), ("a.b", "q", "a.b"), ("a b", "x", "ab"), ("ab1", "i", "1"), ("", "", ""), ("\\.\\\\", "", ".\\"),
    ],
)  # fmt: skip
def test_required_literals(pattern: str, flags: str, expected: str) -> None:
    assert find_required_literal(pattern, flags) == expected


@settings(max_examples=examples(1000), deadline=None)
@given(
    st.text(st.sampled_from("ab|().*+?[]^1"), max_size=8), st.sampled_from(["", "i", "s", "m", "x"]), st.text(st.sampled_from("abAB1"), max_size=6)
)
def test_each_match_has_the_required_literal(pattern: str, flags: str, text: str) -> None:
    try:
        literal = find_required_literal(pattern, flags)
        assert literal in text or not find_match(text, pattern, flags)
    except PatternFault:
        return


def feed(engine: Engine, *texts: str) -> list[tuple[str, str]]:
    """Return the text and the instance of each solution."""
    at = engine.position * 1_000_000
    sent = tuple(Occurrence((Iri(E + "m"), Iri(E + "text"), Literal(text)), at, at, None) for text in texts)
    outcome = engine.feed(block([(Events(engine.position, "s", len(sent), at), sent)]))
    assert not outcome.changes
    return sorted((json.loads(text), json.loads(instance)) for instance, text in outcome.solutions.column("values").to_pylist())


NO_ROWS = pa.RecordBatch.from_pylist([], OCCURRENCES)


def start(condition: str) -> Engine:
    """Return an engine that frees terms after each feed, so that their numbers are given to others."""
    engine = Engine()
    engine.registry.terms.spare = 0
    text = f"PREFIX : <{E}> SELECT ?text FROM STREAM <s> PARAMETERS (?word) WHERE {{ ?m :text ?text FILTER ({condition}) }}"
    assert not engine.feed(Block((Register(0, "q", text),), NO_ROWS)).changes
    return engine


def change(engine: Engine, words: Mapping[str, str | None]) -> None:
    changes = {name: None if word is None else [str(Literal(word))] for name, word in words.items()}
    engine.feed(Block((ChangeInstances(engine.position, 0, "q", json.dumps(changes)),), NO_ROWS))


def test_many_words_are_found_in_their_texts_alone() -> None:
    """Words share beginnings, come at once and one by one, go, and come again."""
    engine, words = start("CONTAINS(?text, ?word)"), {f"i{k}": f"word {k:b}." for k in range(1200)}
    change(engine, dict(list(words.items())[:1000]))
    for name in list(words)[1000:]:
        change(engine, {name: words[name]})
    change(engine, {f"i{k}": None for k in range(0, 1200, 2)})
    change(engine, {"i8": words["i8"]})
    texts = [f"a word {k:b}. and word {k + 1:b}." for k in range(0, 1200, 7)]
    here = {name: word for name, word in words.items() if int(name[1:]) % 2 or name == "i8"}
    assert feed(engine, *texts) == sorted((text, name) for text in texts for name, word in here.items() if word in text)


def test_long_words_that_begin_alike_cost_no_step_for_each_byte() -> None:
    """A walk by single bytes takes five CPU seconds here, for each place of the text."""
    engine = start("CONTAINS(?text, ?word)")
    change(engine, {f"i{k}": "a" * 4000 + "bc"[k] for k in range(2)} | {"short": "a" * 2000})
    began = time.process_time()
    assert [name for _, name in feed(engine, "a" * 200_000, "a" * 5000 + "c")] == ["short", "i1", "short"]
    assert time.process_time() - began < 2


def test_many_instances_have_one_word() -> None:
    """One step joins 128 instances, and the next goes on behind them."""
    engine = start("CONTAINS(LCASE(?text), LCASE(?word))")
    words = {f"i{k}": ("Ab", "aB", "cd")[k % 3] for k in range(600)}
    change(engine, words)
    assert feed(engine, "xAB", "cdx") == sorted(
        (text, name) for name, word in words.items() for text in ("xAB", "cdx") if word.lower() in text.lower()
    )


def test_words_out_of_use_are_forgotten() -> None:
    engine = start("STRENDS(?text, ?word)")
    sizes = []
    for k in range(12):
        change(engine, {f"i{n}": f"{k} {n}" for n in range(500)})
        sizes.append(engine.registry.instances[0].nbytes)
    assert max(sizes[6:]) <= max(sizes[:6])
    assert feed(engine, "text 10 7", "text 11 7") == [("text 11 7", "i7")]
