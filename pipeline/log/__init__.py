"""This package holds the input log: every event and control entry, in one order.

`data_dir` is always the server's --data directory; the log lives in its `log/`. `pipeline/log/writer.py` writes the
log, and `pipeline/log/reader.py` reads it; import both from here.
"""

from pipeline.log.idempotency_keys import Ack
from pipeline.log.reader import LateRow, LogReader, RejectedRow, SharedReader
from pipeline.log.writer import AckFuture, LogWriter, Queueing

__all__ = ["Ack", "AckFuture", "LateRow", "LogReader", "LogWriter", "Queueing", "RejectedRow", "SharedReader"]
