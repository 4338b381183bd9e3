"""Runs one connector in a process of its own: `python -m connectors.worker`.

The first line of stdin is JSON: the connector, the server and the credentials, which so stand in no command line and
no environment. The process ends when stdin ends, that is with whoever started it. Its status goes to stdout, a line
of JSON for each change.
"""

import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from connectors.assignment import HOPELESS, Assignment, decode_assignment
from connectors.configuration import Connector, check_library
from connectors.errors import ConnectorError, MissingLibrary, WrongOption
from connectors.inbound.delivery import InboundDelivery
from connectors.outbound.delivery import OutboundDelivery
from connectors.outbound.repeats import RepeatFilter
from connectors.server_access import ServerAccess
from connectors.status import FAILED, RETRYING, StatusBoard, encode_status
from connectors.systems import IN, SYSTEMS

_TELL_S = 0.2


def create_end(connector: Connector, credentials: Mapping[str, str]) -> Any:
    """Return the source or the sink of a connector, as its direction asks. Raises: MissingLibrary, WrongOption."""
    check_library(connector.system)
    system = SYSTEMS[connector.system]
    name = system.source if connector.direction == IN else system.sink
    assert name is not None
    return resolve_name(name)(connector, credentials)


def run_assignment(assignment: Assignment, board: StatusBoard, stopping: threading.Event) -> None:
    """Run a connector until `stopping` is set. Raises: MissingLibrary, WrongOption."""
    connector, server = assignment.connector, ServerAccess(assignment.server, assignment.token, *(assignment.trust or ()))
    end = create_end(connector, assignment.credentials)
    if connector.direction == IN:
        InboundDelivery(connector, end, server, board, stopping).run()
    else:
        OutboundDelivery(connector, end, server, board, stopping, _create_filter(assignment)).run()


def _create_filter(assignment: Assignment) -> RepeatFilter | None:
    once_per = assignment.connector.options["once_per"]
    if once_per is None:
        return None
    assert assignment.keys is not None
    return RepeatFilter(once_per, Path(assignment.keys))


class _Reporter:
    """Writes the status to stdout whenever it has changed."""

    def __init__(self, board: StatusBoard) -> None:
        self._board, self._told = board, ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(_TELL_S):
            self._tell()

    def _tell(self) -> None:
        text = encode_status(self._board.present)
        if text != self._told:
            self._told = text
            print(text, flush=True)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._tell()


def _end_with_stdin() -> None:
    """End the process when stdin ends. All state is elsewhere, so this is as safe at any moment as a crash."""
    while sys.stdin.readline():
        pass
    os._exit(0)


def run_worker() -> int:
    """Run the connector of stdin's first line, and return the exit code."""
    line = sys.stdin.readline()
    board, stopping = StatusBoard(), threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes; whoever started this one stops it in an orderly way
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    reporter = _Reporter(board)
    try:
        run_assignment(decode_assignment(line), board, stopping)
    except (MissingLibrary, WrongOption) as fault:
        board.record_fault(FAILED, str(fault))
        return HOPELESS
    except ConnectorError as fault:
        board.record_fault(RETRYING, str(fault))  # whoever started this process starts it again
        return 1
    except MemoryError:
        board.record_fault(RETRYING, "it needs more bytes of memory than max_memory; read less at a time (batch), or raise max_memory")
        return 1
    finally:
        reporter.close()
    return 0


if __name__ == "__main__":
    sys.exit(run_worker())
