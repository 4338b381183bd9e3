"""Streams of ETALIS's events: compiled code gives the rows that the exact path gives, or leaves a body to it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epsparql.etalis.parser.program import MAX_ARGUMENTS
from pipeline.errors import FormatError
from pipeline.formats import etalis
from pipeline.formats.batches import fast_path
from pipeline.formats.etalis import parse_etalis_stream
from tests.etalis.texts.test_plain_clauses import OTHERS, PLAIN
from tests.soak import examples


def read_exactly(body: bytes, arrived: int | None) -> object:
    return _told(etalis._parse_exactly, body, arrived)


def _told(read: object, body: bytes, arrived: int | None) -> object:
    """Return the rows of a body, or what is wrong with it."""
    try:
        return read(body, arrived).to_pylist()  # type: ignore[operator]  # one of two functions
    except FormatError as fault:
        return f"{fault.code} {fault.line}:{fault.column} {fault.message}"


FAST = [
    "event(a).",
    "event(a, 5). event(b(1), 5).\n",
    "event( a(1,x , -2.5), [ 1 , 2.25 ] ) .",
    'event(a("s t é", \'Q q\', ""), 1).\r\nevent(a(7, 7.0, 1e2, -0, 0.50), 0.000001).',
    "event(mod(mod, is), 253402300799).",
    "event(a(1)). event(b). event(a(1), 9). event(c).",
    "event(a(1), 2). event(b, 2). event(a(1), 2). event(a(1), 3).",
    f"event(a({','.join(['12'] * MAX_ARGUMENTS)}), 1).",
    f"event(a({','.join(str(10**k) for k in range(MAX_ARGUMENTS))}), 1).",
]
SLOW = [
    "",
    "% c\nevent(a).",
    "event(a(f(1)), 1).",
    "event(a, datime(2026,1,1,0,0,0)).",
    "event(a, 1). sleep(2).",
    f"event(a({','.join(['1'] * (MAX_ARGUMENTS + 1))}), 1).",
]


@pytest.mark.parametrize("arrived", [None, 1_000_000])
@pytest.mark.parametrize("text", [*FAST, *SLOW, *PLAIN, *OTHERS, *(f"event(z, 1).\n{text}" for text in OTHERS)])
def test_both_ways_give_the_same_rows(text: str, arrived: int | None) -> None:
    assert _told(parse_etalis_stream, text.encode(), arrived) == read_exactly(text.encode(), arrived)


@pytest.mark.parametrize("text", FAST)
def test_the_usual_clauses_are_read_by_compiled_code(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read_exactly(text.encode(), None)
    monkeypatch.setattr(etalis, "_parse_exactly", None)
    assert parse_etalis_stream(text.encode(), None).to_pylist() == expected


@pytest.mark.parametrize("body", [b'event(a("\xff"), 1).', b"event(a\xff, 1).", "\ufeffevent(a).".encode()])
def test_bodies_of_other_bytes_are_told_as_before(body: bytes) -> None:
    assert _told(parse_etalis_stream, body, None) == read_exactly(body, None)


def test_names_need_no_openssl(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [read_exactly(text.encode(), None) for text in FAST]
    monkeypatch.setattr(fast_path, "find_openssl", tuple)
    assert [parse_etalis_stream(text.encode(), None).to_pylist() for text in FAST] == expected


TOKENS = [
    "event",
    "(",
    ")",
    ",",
    ".",
    "[",
    "]",
    "a",
    "not",
    "b(1)",
    "'q'",
    '"s"',
    "'",
    '"',
    "1",
    "-2",
    "0.5",
    "007",
    "X",
    "%",
    "\n",
    " ",
    "é",
    ":",
    "_",
    "e5",
]
ARGUMENT = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(-1000, 1000, places=3).map(str),
    st.from_regex(r"[a-z][A-Za-z0-9_]{0,5}", fullmatch=True),
    st.text(st.characters(exclude_characters="\"'\\\n", codec="utf-8"), max_size=5).flatmap(lambda text: st.sampled_from([f"'{text}'", f'"{text}"'])),
)
TIME = st.one_of(st.integers(0, 10**6).map(str), st.decimals(0, 10, places=6).map(str))
WHEN = st.one_of(st.just(""), TIME.map(", {}".format), st.tuples(TIME, TIME).map(lambda each: f", [{each[0]},{each[1]}]"))
NAMES = st.sampled_from(["a", "b", "aB_1", "not", "prolog", "event"])
CLAUSE = st.tuples(NAMES, st.lists(ARGUMENT, max_size=4), WHEN).map(
    lambda each: f"event({each[0]}{'(' + ','.join(each[1]) + ')' if each[1] else ''}{each[2]})."
)


@settings(max_examples=examples(300), deadline=None)
@given(
    st.one_of(
        st.lists(CLAUSE, max_size=6).map("\n".join), st.lists(st.sampled_from(TOKENS), max_size=12).map(lambda each: f"event({''.join(each)}).")
    ),
    st.booleans(),
)
def test_any_clauses(text: str, is_file: bool) -> None:
    arrived = None if is_file else 5_000_000
    assert _told(parse_etalis_stream, text.encode(), arrived) == read_exactly(text.encode(), arrived)
