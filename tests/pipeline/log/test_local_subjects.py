"""Bodies of streams whose subjects are local: which of them are refused, in every way in which they may come."""

from pathlib import Path

import pyarrow as pa
import pytest

from engine.messages import DropStream, SetStream
from pipeline.errors import SubjectReturned
from pipeline.formats.batches.batch_builder import batch_of
from pipeline.log import LogWriter, local_subjects
from tests.support.logs import Clock

EX = "http://e/"


def body(text: str, *, takes_back: bool = False) -> pa.RecordBatch:
    """`x:p=1@3` is a triple at an instant; `_:mx:p=1@3` one of a blank node."""
    rows = []
    for part in text.split():
        subject, rest = part.rsplit(":", 1)
        predicate, value = rest.split("=")
        value, time = value.split("@")
        rows.append((subject if subject[0] == "_" else f"<{EX}{subject}>", f"<{EX}{predicate}>", f'"{value}"', int(time)))
    s, p, o, at = (list(column) for column in zip(*rows, strict=True))
    batch = batch_of(s, p, o, None, at, at)
    return batch.set_column(6, batch.schema.field("late"), pa.array([takes_back] * len(rows)))


def declare(log: LogWriter, **settings: object) -> None:
    log.append(lambda offset: SetStream(offset, "s", **{"local": True, "max_delay": 100, **settings}))  # type: ignore[arg-type]  # a row's own


ROWS = [
    pytest.param(["x:p=1@1", "x:q=1@1"], [1], id="another triple"),
    pytest.param(["x:p=1@1", "x:p=2@1"], [1], id="another value"),
    pytest.param(["x:p=1@1", "x:p=1@2"], [1], id="another time"),
    pytest.param(["x:p=1@1 x:q=1@1", "x:p=1@1"], [1], id="a part of it"),
    pytest.param(["x:p=1@1", "y:p=1@1", "z:p=2@2 x:r=1@2"], [2], id="beside a subject of its own"),
    pytest.param(["x:p=1@1 x:q=2@2", "y:p=1@1", "x:q=2@2 x:p=1@1"], [], id="sent again in another order"),
    pytest.param(["x:p=1@1", "x:p=1@1", "x:q=1@1", "x:p=1@1"], [2], id="a refused body is not remembered"),
    pytest.param(["x:p=1@1", "z:p=2@2 x:r=1@2", "z:p=3@2"], [1], id="nor what it says of others"),
    pytest.param(["_:ma:p=1@1", "_:ma:q=1@1"], [], id="a blank node of a message cannot return"),
    pytest.param(["_:ka:p=1@1", "_:ka:q=1@1"], [1], id="that of a mapped row with a key may"),
    pytest.param(["y:p=200@200", "x:p=1@1 x:q=200@200", "x:p=1@1 x:q=200@200"], [], id="rows that are late may be sent again"),
]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(("sent", "refused"), ROWS)
def test_which_bodies_are_refused(tmp_path: Path, sent: list[str], refused: list[int], restarts: bool) -> None:
    """A start forgets nothing, since the log has it."""
    found, log = list[tuple[int, str]](), LogWriter(tmp_path, Clock())
    declare(log)
    for k, text in enumerate(sent):
        if restarts:
            log.close()
            log = LogWriter(tmp_path, Clock())
        try:
            log.append_events("s", body(text))
        except SubjectReturned as fault:
            found.append((k, str(fault)))
    log.close()
    assert [k for k, _ in found] == refused
    for k, message in found:
        subject = f"<{EX}x>" if "x" in sent[k] else "_:ka"
        assert message.startswith(f"another body has described {subject}, and the subjects of stream 's' are local")


def test_a_retraction_describes_nothing(tmp_path: Path) -> None:
    """It is allowed, and what it took back may come again as it was."""
    for _ in range(2):  # the second time after a start
        with LogWriter(tmp_path, Clock()) as log:
            declare(log, revisable=100)
            log.append_events("s", body("x:p=1@1 x:q=1@1"))
            log.append_events("s", body("x:q=1@1", takes_back=True))
            log.append_events("s", body("x:q=7@1", takes_back=True))
            log.append_events("s", body("x:p=1@1 x:q=1@1"))
            with pytest.raises(SubjectReturned):
                log.append_events("s", body("x:q=2@1"))


def test_what_came_before_the_setting_does_not_count(tmp_path: Path) -> None:
    with LogWriter(tmp_path, Clock()) as log:
        log.append_events("s", body("x:p=1@1"))
        declare(log)
        log.append_events("s", body("x:p=2@1"))
        log.append_events("other", body("x:p=3@1"))
        with pytest.raises(SubjectReturned):
            log.append_events("s", body("x:p=1@1"))
        declare(log, local=False)
        log.append_events("s", body("x:p=1@1"))
        declare(log)
        log.append_events("s", body("x:p=2@1"))
        log.append(lambda offset: DropStream(offset, "s"))
        log.append_events("s", body("x:p=1@1"))


@pytest.mark.parametrize("restarts", [False, True])
def test_the_last_subjects_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarts: bool) -> None:
    """A start reads the log's segments back, as far as it needs to."""
    monkeypatch.setattr(local_subjects, "REMEMBERED", 10)
    log = LogWriter(tmp_path, Clock(), segment_bytes=4096)
    declare(log)
    for k in range(40):
        log.append_events("s", body(f"n{k}:p=1@1"))
    if restarts:
        log.close()
        log = LogWriter(tmp_path, Clock(), segment_bytes=4096)
    with log:
        for k in range(30, 40):
            with pytest.raises(SubjectReturned):
                log.append_events("s", body(f"n{k}:p=2@1"))
        for k in range(20):
            log.append_events("s", body(f"n{k}:p=2@1"))
