"""Plain clauses of a stream are read without the grammar: what they say, and what is wrong with a text, is the same."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsparql.etalis import streams
from epsparql.etalis.parser.syntax import EleRefused
from epsparql.etalis.streams import SentEvent, read_stream

PLAIN = [
    "event(a).",
    "event(a, 5).",
    "event( a , 5.25 ).",
    "event(aB_1(1, x, -2.5, 007, -0, 1e2), [1, 2]).",
    'event(a("s t", \'Q q\', ""), [ 1 , 1 ] ) .',
    "event(a('urn:50%', 'http://e/[x]', 'kitchen'), 1).",
    "event(a(1), datime(2026,1,1,0,0,0)).",
    "event(a(1), [datime(2026,1,1,0,0,0,5), datime(2026,1,1,0,0,1)]).",
    "event(a(1), '2026-01-01T00:00:00Z').",
    "event(a(1), ['2026-01-01T00:00:00.5', '2026-01-01T00:00:01-01:00']).",
    "% a comment\nevent(a). /* and\n another */ event(b).% the last",
    "event(a(mod, is, seq, dynamic)). event(seq(1)). event(where). event(datime(1)).",
    "sleep(2). event(a). sleep(0.5). event(b).",
    "sleep(0). event(a).",
    "",
    " % nothing\n",
]
OTHERS = [
    "event(a(), 5).",
    "event(a(f(x), [1, 2]), 1).",
    "event('a b'(1), 1).",
    "event(not(a), 1).",
    "event(a('it''s', \"a\\\"b\", 'a\\'b'), 1).",
    "event(a(1 + 2), 1).",
    "event(a(X), 1).",
    "event(a(1 /* 2 */, 3), 1).",
    "event(a(/* b */ 1), 1).",
    "event(a(1, % 7\n 2 /* c */), 1).",
    "event(a, 2 sec).",
    "event(a(2 sec), 1). sleep(2 min). event(b).",
    "event(a, [2, 1]).",
    "event(a, 1.0000001).",
    "event(a, datime(2026,13,1,0,0,0)).",
    "event(a, datime(2026,1,1)).",
    "event(a, '2026-01-01T00:00:00.1234567').",
    "event(a, 'yesterday').",
    "event(ns:a, 1).",
    "event(a(ns:b), 1).",
    "event(A, 1).",
    "event(a, 1). halt. event(b).",
    "event(a, 1). event(b, 2",
    "event(a, 1) event(b, 2).",
    "event(a (1), 1).",
    "event(a).event(b).",
    "event(a, 1, 2).",
    "fact(a).",
    "event(a) <- b.",
    f"event(a({','.join(['1'] * 300)}), 1).",
    "/* open",
]


def read(text: str, arrived: int | None, *, plain: bool) -> list[SentEvent] | str:
    try:
        return list(read_stream(text, arrived, plain=plain))
    except EleRefused as fault:
        return f"{fault.line}:{fault.column} {fault.message} {fault.expected}"


@pytest.mark.parametrize("arrived", [None, 1_000_000])
@pytest.mark.parametrize("text", [*PLAIN, *OTHERS, *(f"event(z, 1).\n{text}" for text in OTHERS)])
def test_both_ways_say_the_same(text: str, arrived: int | None) -> None:
    assert read(text, arrived, plain=True) == read(text, arrived, plain=False)


@pytest.mark.parametrize("text", PLAIN)
def test_plain_clauses_need_no_grammar(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_parse_clauses", None)
    list(read_stream(text))


@given(
    st.lists(
        st.sampled_from(
            [
                "event",
                "sleep",
                "(",
                ")",
                ",",
                ".",
                "[",
                "]",
                "a",
                "b(1)",
                "'q'",
                '"s"',
                "1",
                "-2",
                "0.5",
                "X",
                "%",
                "datime(2026,1,1,0,0,0)",
                "/*",
                "*/",
                "seq",
                "+",
            ]
        ),
        max_size=14,
    )
)
def test_any_tokens(tokens: list[str]) -> None:
    for text in ("".join(tokens), " ".join(tokens), f"event({''.join(tokens)})."):
        assert read(text, None, plain=True) == read(text, None, plain=False)


@given(
    st.lists(st.sampled_from(["", " ", "\n", "/* 1 */", "% x\n", "/* ), 2). */"]), min_size=11, max_size=11),
    st.sampled_from(["1", "a", "'q'", '"s"']),
)
def test_blanks_and_comments_stand_anywhere(blanks: list[str], argument: str) -> None:
    tokens = ("event(", "a(", argument, ",", "2", ")", ",", "1", ")", ".", "\n")
    text = "".join(f"{token}{blank}" for token, blank in zip(tokens, ["", *blanks], strict=False))
    assert read(text, None, plain=True) == read(text, None, plain=False)


def test_a_clause_takes_microseconds() -> None:
    text = "".join(f"event(a({k % 1000}), {k}).\n" for k in range(20_000))
    least = 1e9
    for _ in range(3):
        began = time.process_time()
        assert sum(1 for _ in read_stream(text)) == 20_000
        least = min(least, time.process_time() - began)
    assert least < 1, "by the grammar it takes ten seconds or more"
