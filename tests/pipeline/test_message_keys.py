"""Bodies of streams with a message key: what is refused, what is remembered, and which slice has which message."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from engine.messages import DropStream, MessageKey, SetStream
from engine.partitioning import events_of, partition_of, source_of
from pipeline import message_keys
from pipeline.errors import MessageKeyRefused
from pipeline.formats.batches.batch_builder import batch_of
from pipeline.log import LogReader, LogWriter, codec
from tests.support.logs import Clock

BY, RESULT = "http://e/by", "http://e/result"
KEYS = {"s": MessageKey(BY, (RESULT,))}


def body(*triples: tuple[str, str, str]) -> pa.RecordBatch:
    s, p, o = ([part if part[0] in '"_' else f"<http://e/{part}>" for part in column] for column in zip(*triples, strict=True))
    return batch_of(s, p, o, None, [1] * len(triples), [1] * len(triples))


def declare(log: LogWriter) -> None:
    log.append(lambda offset: SetStream(offset, "s", key=BY, parts=(RESULT,)))


def test_a_node_keeps_its_key(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", body(("o", "by", "a"), ("o", "by", "b")))  # no key is declared yet
        declare(log)
        log.append_events("s", body(("o", "by", "a"), ("o", "result", "r"), ("_:x", "by", "a")))
        log.append_events("s", body(("r", "by", "a"), ("a", "p", '"1"'), ("_:x", "by", "b")))
        for bad in (("o", "by", "b"), ("r", "p", '"1"'), ("a", "by", "b"), ("x", "by", "o")):
            with pytest.raises(MessageKeyRefused, match="had the key"):
                log.append_events("s", body(bad))
        with pytest.raises(MessageKeyRefused, match="has the keys"):
            log.append_events("s", body(("y", "by", "a"), ("y", "by", "b")))
        log.append_events("s", body(("y", "by", "b")))  # nothing of a refused body is remembered
        log.append_events("t", body(("o", "by", "b")))
        log.append(lambda offset: DropStream(offset, "s"))
        log.append_events("s", body(("o", "by", "b")))


def test_the_memory_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_keys, "REMEMBERED", 10)
    memory = message_keys.KeyMemory()
    for k in range(100):
        memory.take_in("s", body((f"o{k}", "by", "a")), KEYS["s"])
        with pytest.raises(MessageKeyRefused):
            memory.take_in("s", body((f"o{max(k - 5, 0)}", "by", "b")), KEYS["s"])
        assert np.count_nonzero(memory._known["s"]._key_of) <= 30
        assert len(memory._known["s"]._terms) <= 40, "texts out of use go too"
    for k in range(100):
        with pytest.raises(MessageKeyRefused):
            memory.take_in("s", body((f"refused{k}", "by", "a"), ("o99", "by", "b")), KEYS["s"])
        assert len(memory._known["s"]._terms) <= 60, "those of refused bodies, too"
    memory.take_in("s", body(("o3", "by", "b")), KEYS["s"])


@pytest.mark.parametrize("partitions", [1, 3])
def test_each_message_is_whole_in_its_partition(partitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "SLICE_ROWS", 0)
    sent = (
        [(f"o{k}", "by", f"k{k % 5}") for k in range(20)]
        + [(f"o{k}", "result", f"_:r{k}") for k in range(20)]
        + [(f"_:r{k}", "p", '"1"') for k in range(20)]
    )
    with LogWriter(tmp_path, Clock(), partitions=partitions) as log:
        declare(log)
        for k in range(0, 20, 7):
            log.append_events("s", body(*[triple for triple in sent if k <= int(triple[0].strip("_:or")) < k + 7]))
    for partitions in (1, 2, 3, 4):
        found = list[str]()
        for partition in range(partitions):
            with closing(LogReader(tmp_path, sliced=True)) as reader:
                for block in reader.blocks(1, 1000):
                    rows, places = source_of(block).read_own(partition, partitions, events_of(block), KEYS)
                    whole = block.rows.to_pylist()
                    assert [whole[place] for place in places.tolist()] == rows.to_pylist()
                    nodes = [row["s"] for row in rows.to_pylist()]
                    assert {partition_of(f"<http://e/k{int(node.strip('_:r<>').removeprefix('http://e/o')) % 5}>", partitions) for node in nodes} <= {
                        partition
                    }
                    found += nodes
        assert len(found) == len(sent)
