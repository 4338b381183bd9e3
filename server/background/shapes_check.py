"""Checks the background against the shapes of SHACL in it, in a process of its own (`shapes_process.py`)."""

import json
import logging
import signal
import subprocess
from collections.abc import Iterable
from hashlib import sha256
from http import HTTPStatus
from threading import Lock

from epsparql.extras import MissingExtra, check_extra
from pipeline.log.background_graphs import Lines
from server.background.shapes_protocol import DONE, INVALID, NO_MEMORY, NOT_COVERED, ShapesLimits, ShapesVerdict
from server.http.problem_details import Fault, Problem
from server.settings import OFF, REFUSE, Settings, SettingsError
from server.subordinate_process import run_process

_MARK = "<http://www.w3.org/ns/shacl#"
"""A background without this has no shapes."""
_ENDED_IN_TIME = (-signal.SIGPROF, -signal.SIGALRM)
_log = logging.getLogger("epsparql.server")


class ShapesCheck:
    """Checks backgrounds as the setting `shapes` says, one at a time. A check is bounded like a query of /sparql."""

    def __init__(self, settings: Settings) -> None:
        """Raises: SettingsError if pyshacl is needed, but not installed."""
        self._settings, self._turn = settings, Lock()
        self._newest: tuple[bytes, ShapesVerdict] | None = None  # the hash of the triples checked last, and their verdict
        try:
            if self.is_on:
                check_extra("shacl", f"--shapes {settings.shapes}")
        except MissingExtra as missing:
            raise SettingsError(str(missing)) from None

    @property
    def is_on(self) -> bool:
        return self._settings.shapes != OFF

    def judge(self, graphs: Iterable[Lines]) -> None:
        """Check a background of these graphs before it is written: log what is wrong, or refuse it.

        Raises: Fault 422 where the setting is to refuse.
        """
        try:
            verdict = self.validate(graphs)
        except Fault as fault:
            if self._settings.shapes == REFUSE:
                raise
            _log.warning("the background is not checked: %s", fault.problem.detail)
            return
        if not verdict["violations"]:
            return
        detail = _describe_violation(verdict)
        if self._settings.shapes == REFUSE:
            raise _refuse("shapes-violated", detail, "triples that meet the shapes; --shapes report loads the others too")
        _log.warning("the background violates its shapes: %s", detail)

    def validate(self, graphs: Iterable[Lines]) -> ShapesVerdict:
        """Return the results for a background of these graphs. Raises: Fault 422 if it cannot be checked, and 500."""
        lines: set[str] = set().union(*graphs)
        if not any(_MARK in line for line in lines):
            return ShapesVerdict(outcome=DONE, detail="", results=0, violations=0, shown=[])
        triples = "".join(f"{line}\n" for line in sorted(lines)).encode()
        with self._turn:
            if self._newest is None or self._newest[0] != sha256(triples).digest():
                self._newest = sha256(triples).digest(), self._run(triples)
            return self._newest[1]

    def _run(self, triples: bytes) -> ShapesVerdict:
        limit_s, memory = self._settings.sparql_timeout_s, self._settings.max_sparql_memory
        try:
            header = json.dumps(ShapesLimits(seconds=limit_s, memory=memory)).encode()
            done = run_process("server.background.shapes_process", header + b"\n" + triples, limit_s)
            is_late = done.returncode in _ENDED_IN_TIME
        except subprocess.TimeoutExpired:
            is_late = True
        if is_late:
            detail = f"the check of the shapes takes more than {limit_s:g} s of processor time"
            raise _refuse("beyond-time", detail, "simpler shapes, fewer triples, or a larger EPSPARQL_SPARQL_TIMEOUT_S")
        if done.returncode:
            raise Fault(Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the check of the shapes has failed; the server's log has the details"))
        verdict: ShapesVerdict = json.loads(done.stdout)
        if verdict["outcome"] == INVALID:
            raise _refuse("shapes-invalid", f"the shapes cannot be used: {verdict['detail']}", "shapes of SHACL Core")
        if verdict["outcome"] == NOT_COVERED:
            raise _refuse("shapes-invalid", f"{verdict['detail']} is not evaluated, because shapes may run no code", "shapes of SHACL Core")
        if verdict["outcome"] == NO_MEMORY:
            detail = f"the check of the shapes needs more than {memory} bytes of memory"
            raise _refuse("beyond-memory", detail, "simpler shapes, fewer triples, or a larger EPSPARQL_MAX_SPARQL_MEMORY")
        return verdict


def _refuse(code: str, detail: str, expected: str) -> Fault:
    return Fault(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, code, detail, expected=expected))


def _describe_violation(verdict: ShapesVerdict) -> str:
    """Return the first violation in words, and how many others there are."""
    first, others = verdict["shown"][0], verdict["violations"] - 1
    path = f" at {first['path']}" if first["path"] else ""
    more = f" (and {others} more)" if others else ""
    return f"{first['focus']} violates the shape {first['shape']}{path}: {first['message']}{more}"
