"""Arrow bodies: columns in, occurrences out; what is refused, and how its place is told."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.messages import END_OF_TIME, INSTANT, OCCURRENCES
from pipeline.errors import FormatError
from pipeline.formats.batches.ntriples import MAX_TERM
from pipeline.formats.batches.timestamps import instant, iso
from pipeline.formats.body_parser import ARROW, NDJSON, Interval, parse_body, parse_frame
from tests.support.logs import stream_of

T1, T2 = instant("2026-01-01T00:00:01Z"), instant("2026-01-01T00:00:02Z")
Columns = dict[str, pa.Array]


def columns(**more: pa.Array) -> Columns:
    return {"s": pa.array(["<x:a>", "<x:b>"]), "p": pa.array(["<x:p>", "<x:p>"]), "o": pa.array(['"1"', "<x:c>"])} | more


def times(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int64()).cast(INSTANT)


def rows(body: bytes, default: Interval | None = None) -> list[tuple[object, ...]]:
    batch = parse_body(body, ARROW, default=default, arrived=7)
    batch.validate(full=True)
    assert batch.schema.equals(OCCURRENCES)
    spans = (batch.column(name).cast(pa.int64()).to_pylist() for name in ("start", "end"))
    return list(zip(*(batch.column(name).to_pylist() for name in "spog"), *spans, strict=True))


TIMED = [("<x:a>", "<x:p>", '"1"', None, T1, T1), ("<x:b>", "<x:p>", "<x:c>", None, T1, T2)]
KINDS = [
    pytest.param(lambda a: a, id="utf8"),
    pytest.param(lambda a: a.cast(pa.large_utf8()), id="large_utf8"),
    pytest.param(lambda a: a.cast(pa.string_view()), id="string_view"),
    pytest.param(lambda a: a.dictionary_encode(), id="dictionary"),
    pytest.param(lambda a: a.dictionary_encode().cast(pa.dictionary(pa.uint8(), pa.large_utf8())), id="dictionary of uint8"),
    pytest.param(lambda a: pa.DictionaryArray.from_arrays(pa.array([1, 2]), pa.concat_arrays([pa.array(["no term"]), a])), id="a dictionary with more in it"),
    pytest.param(lambda a: pa.concat_arrays([pa.array(["<x:q>"]), a]).slice(1), id="a slice"),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_texts(kind) -> None:  # type: ignore[no-untyped-def]
    found = {name: kind(column) for name, column in columns().items()}
    assert rows(stream_of(found | {"start": times(T1, T1), "end": times(T1, T2)})) == TIMED


def test_times_and_graphs_may_be_left_out() -> None:
    assert {row[4:] for row in rows(stream_of(columns()))} == {(7, 7)}
    assert {row[4:] for row in rows(stream_of(columns()), Interval(T1, T2))} == {(T1, T2)}
    assert [row[3] for row in rows(stream_of(columns(g=pa.array([None, "<x:g>"]))))] == [None, "<x:g>"]


def test_several_batches_each_with_a_dictionary() -> None:
    sink = pa.BufferOutputStream()
    batches = [
        pa.record_batch({name: column.dictionary_encode() for name, column in columns(o=pa.array(objects)).items()})
        for objects in (['"1"', '"2"'], ['"2"', '"3"'])
    ]
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    assert [row[2] for row in rows(sink.getvalue().to_pybytes())] == ['"1"', '"2"', '"2"', '"3"']


def test_no_rows() -> None:
    assert rows(stream_of({name: column.slice(0, 0) for name, column in columns().items()})) == []
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, pa.record_batch(columns()).schema).close()
    assert rows(sink.getvalue().to_pybytes()) == []


def test_terms_become_canonical() -> None:
    found = rows(stream_of(columns(o=pa.array(['"\\u00e9"@EN', '"é"@en']))))
    assert [row[2] for row in found] == ['"é"@en', '"é"@en']
    (a, b) = (row[2] for row in rows(stream_of(columns(o=pa.array(["_:n", "_:o"])))))
    assert str(a).startswith("_:m")
    assert str(a)[:-1] == str(b)[:-1]


REFUSED = [
    pytest.param({"o": pa.array(['"1"', "e:o"])}, "term", "row 2: o: .* no term", id="no term"),
    pytest.param({"o": pa.array(['"1"', ""])}, "term", "row 2: o: ", id="an empty term"),
    pytest.param({"o": pa.array(['"1"', '"1'])}, "term", "row 2: o: ", id="an unfinished string"),
    pytest.param({"o": pa.array(["<x:a> <x:b>", "<x:c>"])}, "term", "row 1: o: .* no term", id="two terms"),
    pytest.param({"o": pa.array(["<x:c>", '"' + "a" * MAX_TERM + '"'])}, "term", "row 2: o: .* the limit", id="a term too long"),
    pytest.param({"s": pa.array(["<x:a>", '"a"'])}, "term", "row 2: s: a literal cannot be the subject", id="a literal as subject"),
    pytest.param({"p": pa.array(["_:p", "<x:p>"])}, "term", "row 1: p: a blank node cannot be the predicate", id="a blank node as predicate"),
    pytest.param({"s": pa.array(["<x:a>", None])}, "term", "row 2: s is null", id="no subject"),
    pytest.param({"start": times(T1, T2), "end": times(T1, T1)}, "interval", "row 2: start is after end", id="start after end"),
    pytest.param({"start": times(T1, None), "end": times(T1, T1)}, "time", "row 2: start is null", id="a null time"),
    pytest.param({"start": times(0, 0), "end": times(0, END_OF_TIME)}, "time", "row 2: end is beyond", id="beyond time"),
    pytest.param({"start": times(T1, T1)}, "field", "'end' is missing", id="start alone"),
    pytest.param({"start": pa.array([1, 2]), "end": pa.array([1, 2])}, "field", "'start' is of int64", id="numbers as times"),
    pytest.param({"s": pa.array([1, 2])}, "field", "'s' is of int64", id="numbers as terms"),
    pytest.param({"q": pa.array([1, 2])}, "field", "unknown column 'q'", id="an unknown column"),
    pytest.param({"o": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(['"1"', None]))}, "term", "a null in it", id="a null in a dictionary"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "code", "message"), REFUSED)
def test_a_fault_of_arrow_names_row_and_column(more: Columns, code: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        rows(stream_of(columns(**more)))
    assert caught.value.code == code


def test_what_is_no_stream_is_refused() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array(["<x:a>"])] * 4, names=["s", "p", "o", "o"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, twice.schema) as writer:
        writer.write_batch(twice)
    for body, message in (
        (sink.getvalue().to_pybytes(), "twice"), (b"", "no stream"), (b"x" * 100, "no stream"), (stream_of({"s": pa.array(["<x:a>"])}), "'p' is missing"),
    ):  # fmt: skip
        with pytest.raises(FormatError, match=message):
            rows(body)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("encode", [True, False])
def test_compressed_batches_are_refused_unopened(codec: str, encode: bool) -> None:
    options = pa.ipc.IpcWriteOptions(compression=codec)
    found = {name: column.dictionary_encode() if encode else column for name, column in columns().items()}
    with pytest.raises(FormatError, match="compressed"):
        rows(stream_of(found, options))


SOUND = stream_of({name: column.dictionary_encode() for name, column in columns(start=times(T1, T1), end=times(T1, T2)).items() if name in "spo"})


@given(st.integers(0, len(SOUND) - 1), st.integers(0, 255))
def test_no_changed_byte_does_more_than_change_rows_or_be_refused(at: int, byte: int) -> None:
    body = SOUND[:at] + bytes([byte]) + SOUND[at + 1 :]
    try:
        found = rows(body)
    except FormatError:
        return
    assert len(found) <= len(SOUND)


def test_arrow_and_ndjson_bring_the_same_rows() -> None:
    objects = [f'"{value!r}"^^<http://www.w3.org/2001/XMLSchema#double>' for value in np.random.default_rng(1).random(200).tolist()]
    starts = list(range(T1, T1 + 200))
    lines = [
        f'{{"s":"<x:{k % 7}>","p":"<x:p>","o":{o},"at":"{iso(at)}"}}'
        for k, (o, at) in enumerate(zip((f'"{x.replace(chr(34), chr(92) + chr(34))}"' for x in objects), starts, strict=True))
    ]
    body = stream_of(
        {
            "s": pa.array([f"<x:{k % 7}>" for k in range(200)]),
            "p": pa.array(["<x:p>"] * 200),
            "o": pa.array(objects),
            "start": times(*starts),
            "end": times(*starts),
        }
    )
    assert (
        parse_body(body, ARROW, default=None, arrived=0).to_pylist()
        == parse_body("\n".join(lines).encode(), NDJSON, default=None, arrived=0).to_pylist()
    )


def test_a_binary_frame_is_arrow() -> None:
    batch, name, _ = parse_frame(stream_of(columns()), arrived=5, binary=True)
    assert (batch.num_rows, name) == (2, None)
