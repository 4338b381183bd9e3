"""This bench compares a revised query with the same one emitted as certain, from bodies of ndjson to encoded WebSocket frames; then it sends a late event.

Both read one stream that is revisable within 10 minutes, at 1,000 events a second of event time. The steps are those of a server with the in-process
runner, one after the other in one thread beside the log's own.
"""

import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from bench.measurement import WrongCount, line, one_core, peak_rss_mb
from bench.workloads import BEGIN, EVERY, PREFIXES, WORKLOADS, Drawn, drawn, texts_of, times_of
from engine.messages import CERTAIN, REVISED, Finish, Micros, Register, Revise, SetStream
from pipeline.formats.batches.timestamps import iso
from pipeline.formats.body_parser import NDJSON, parse_body
from pipeline.log import LogWriter
from pipeline.registrations.query_cache import find_form
from pipeline.runners.engine_host import EngineHost
from pipeline.solutions.json_encoder import Envelope, ndjson
from pipeline.solutions.solution_log import SolutionReader, SolutionWriter, listed

HORIZON: Micros = 600_000_000
_BODY = 1_000
_STREAM, _PAGE = "default", 100_000


def measure(workload: str, n: int, k: int) -> Iterator[str]:
    """Yield a line: the CPU of both, their ratio, and how long the answer to a late event takes.

    The events that fill the horizon are not measured. If there are less than twice as many, the horizon is shorter.
    """
    one_core()
    horizon = min(HORIZON, n // 2 * EVERY)
    bodies = list(_bodies(drawn(n, k)))
    with tempfile.TemporaryDirectory() as directory:
        for name, part in (("warm-up", bodies[:3]), *((emit, bodies) for emit in (CERTAIN, REVISED))):
            emit = CERTAIN if name == CERTAIN else REVISED
            with ExitStack() as stack:
                run = _Run(Path(directory) / name, WORKLOADS[workload], emit, horizon, stack)
                filled = horizon // EVERY // _BODY
                for body in part[:filled]:
                    run.post_body(body)
                began = time.process_time()
                for body in part[filled:]:
                    run.post_body(body)
                cpu, before = time.process_time() - began, run.delivered
                late_cpu, late_s = run.send_late(n, horizon) if name == REVISED else (0.0, 0.0)
                changed = run.delivered - before
                run.finish()
                if name == CERTAIN:
                    certain, found = cpu, run.delivered
    if run.delivered - changed != found:
        raise WrongCount("the revised query", run.delivered - changed, found)
    yield line(
        "revision", workload=workload, n=n, k=k, matches=found, horizon_s=horizon // 1_000_000, certain_cpu_s=round(certain, 2),
        revised_cpu_s=round(cpu, 2), ratio=round(cpu / certain, 2), pending=horizon // EVERY, changes=changed, late_s=round(late_s, 2),
        late_cpu_s=round(late_cpu, 2), events_per_s=round((n - horizon // EVERY) / cpu), peak_rss_mb=peak_rss_mb(),
    )  # fmt: skip


def _bodies(events: Drawn) -> Iterator[bytes]:
    texts, instants = texts_of(events.values), times_of(0, len(events)).tolist()
    for first in range(0, len(events), _BODY):
        which = range(first, min(first + _BODY, len(events)))
        yield b"\n".join(_event(int(events.ids[k]), "abc"[events.types[k]], texts[k], instants[k]) for k in which)


def _event(subject: int, name: str, value: str, at: Micros) -> bytes:
    terms = {"s": f"<http://example.org/id/{subject}>", "p": f"<http://example.org/{name}>", "o": value, "at": iso(at)}
    return json.dumps(terms).encode()


class _Run:
    """Drives a data directory with one query."""

    def __init__(self, directory: Path, text: str, emit: str, horizon: Micros, stack: ExitStack) -> None:
        self._log = stack.enter_context(LogWriter(directory, lambda: BEGIN))
        self._host = stack.enter_context(closing(EngineHost(directory, reader=self._log.reader())))
        self._output = stack.enter_context(closing(SolutionWriter(directory)))
        self._solutions = stack.enter_context(closing(SolutionReader(directory)))
        self._log.append(lambda offset: SetStream(offset, _STREAM, revisable=horizon))
        self._registered = self._log.append(lambda offset: Register(offset, "q", PREFIXES + text, emit=emit))
        self._log.append(Revise)
        self._form = find_form(PREFIXES + text, emit)
        self._last: str | None = None
        self.delivered = self.written = 0

    def post_body(self, body: bytes) -> None:
        self._log.append_events(_STREAM, parse_body(body, NDJSON, default=None, arrived=BEGIN))
        self._deliver()

    def send_late(self, n: int, horizon: Micros) -> tuple[float, float]:
        """Send an event that is nearly as late as it may be, and return the CPU and the time until its changes are encoded."""
        began_cpu, began = time.process_time(), time.perf_counter()
        latest = int(times_of(n - 1, n)[0])
        self.post_body(_event(1, "a", texts_of(drawn(1, 1).values)[0], max(latest - horizon + 1_000_000, BEGIN)))
        self._log.append(Revise)
        self._deliver()
        return time.process_time() - began_cpu, time.perf_counter() - began

    def finish(self) -> None:
        self._log.append(lambda offset: Finish(offset, _STREAM))
        self._deliver()

    def _deliver(self) -> None:
        for piece in self._host.run(self._output.position, self._log.head()):
            self._output.commit(piece.lo, piece.hi, piece.outcome.solutions, piece.outcome.changes)
        while (page := self._solutions.read(self._registered, self._last, _PAGE)).num_rows:
            self.written += len(ndjson(page, {"q": self._form}, Envelope.FRAME).text)
            self.delivered += page.num_rows
            self._last = listed(page.slice(page.num_rows - 1))[0].id
