"""This module finds what looks like the time of events that were given the time of arrival because their body states
none.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.messages import Micros, int64s
from pipeline.formats.body_parser import LD_JSON

_NAMES = "at|time|timestamp|ts|date|datetime|start|end|startTime|endTime|createdAt|observedAt|resultTime|generatedAtTime|startsAtTime|endsAtTime"
_VALUE = rb'\s*:\s*(?:\{\s*"@value"\s*:\s*)?'
_MEMBER = re.compile(
    rb'"((?:[^"\\\s]{0,200}[:/#])?(?i:' + _NAMES.encode() + rb'))"' + _VALUE + rb'"?\d|"([^"\\]{1,200})"' + _VALUE + rb'"\d{4}-\d\d-\d\dT\d\d:'
)
_PREDICATE = re.compile(rf"(?i)[:/#](?:{_NAMES})>$")
_DATE_TIME = r"\^\^<http://www\.w3\.org/2001/XMLSchema#dateTime(?:Stamp)?>$"


def time_hint(body: bytes, media_type: str, batch: pa.RecordBatch, arrived: Micros) -> str | None:
    """Return the name that looks like a time, for a body all of whose events came to stand at `arrived`; None where
    there is none.
    """
    if not batch.num_rows or (int64s(batch.column("end")) != arrived).any():
        return None
    if media_type.partition(";")[0].strip().lower() == LD_JSON:
        member = _MEMBER.search(body)
        return (member[1] or member[2]).decode("utf-8", "replace") if member else None
    predicates, objects = batch.column("p"), batch.column("o")
    times = np.flatnonzero(pc.match_substring_regex(objects.dictionary, _DATE_TIME).to_numpy(zero_copy_only=False))
    rows = np.isin(objects.indices.to_numpy(), times)
    named = np.flatnonzero([_PREDICATE.search(name) is not None for name in predicates.dictionary.to_pylist()])
    literals = np.flatnonzero(pc.starts_with(objects.dictionary, '"').to_numpy(zero_copy_only=False))
    rows |= np.isin(predicates.indices.to_numpy(), named) & np.isin(objects.indices.to_numpy(), literals)
    found: str | None = predicates[int(np.argmax(rows))].as_py() if rows.any() else None
    return found
