"""Programs run by `epsparql replay`, in this process."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.replay.input_files import NamedBody
from pipeline.replay.query_files import NamedFile, QueryFile, named_file, read_program
from pipeline.replay.replay import Replay, run

STREAM = "text/x-etalis-stream"


class Reported(NamedTuple):
    """An event as a line of output has it; `args` is JSON text."""

    event: str
    args: str
    start: str
    end: str


def reported(line: str) -> Reported:
    document = json.loads(line)
    return Reported(document["event"], json.dumps(document["args"]), document["start"], document["end"])


def run_files(directory: Path) -> list[Reported]:
    """Run the program and the stream of a directory."""
    query, policy = read_program([directory / "program.event"])
    return _run(query, policy, named_file(str(directory / "stream.stream")))


def run_program(tmp_path: Path, program: str, stream: str, media_type: str = STREAM, background: Sequence[Path] = ()) -> list[Reported]:
    path = tmp_path / "p.event"
    path.write_text(program, encoding="utf-8")
    query, policy = read_program([path])
    return _run(query, policy, NamedBody("", Path("s.stream"), stream.encode(), media_type), background)


def _run(query: QueryFile, policy: str, stream: NamedFile | NamedBody, background: Sequence[Path] = ()) -> list[Reported]:
    out = io.BytesIO()
    replay = Replay([query], [stream], [NamedFile("", path) for path in background], policies={query.name: policy})
    run(replay, "ndjson", out, lambda: 0, lambda _: None, lambda _: None)
    return [reported(line) for line in out.getvalue().decode().splitlines()]
