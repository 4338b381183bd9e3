"""Formats the server's log on stderr: plain lines, or one JSON object a line."""

import json
import logging
import sys
from asyncio import CancelledError
from contextvars import ContextVar
from datetime import UTC, datetime

REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""Lines that are logged during a request carry this id."""


class JsonLines(logging.Formatter):
    """Writes time, level, logger, message and the id of the present request; a request's own line also describes it."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := REQUEST_ID.get():
            line["request_id"] = request_id
        line |= getattr(record, "about", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """Writes lines for people, with the id of the present request if there is one."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record).replace("\r", "\\r")
        request_id = REQUEST_ID.get()
        return f"{text} [request {request_id}]" if request_id else text


def without_trace(record: logging.LogRecord) -> bool:
    """Make a warning without a trace of text that is no UTF-8: that is the client's fault, not ours.

    Requests that a stop cancels have no lines of their own, because one line counts them.
    """
    fault = record.exc_info and record.exc_info[1]
    if isinstance(fault, UnicodeDecodeError):
        record.exc_info, record.levelno, record.levelname = None, logging.WARNING, "WARNING"
    return not isinstance(fault, CancelledError)


def log_to_stderr(log_format: str) -> None:
    """Set up the log. Each request has a line in JSON alone, which machines read."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").addFilter(without_trace)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("epsparql.requests").setLevel(logging.INFO if log_format == "json" else logging.WARNING)
