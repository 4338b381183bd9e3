"""Tells followers of a query that another text took its place."""

import hashlib
import json
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from engine.messages import int64s
from pipeline.formats.batches.timestamps import iso
from pipeline.log.catalog import Registration, Version
from pipeline.registrations.query_cache import find_form, get_shape
from pipeline.solutions.result_kinds import Form
from pipeline.solutions.solution_ids import FIRST_ID, notice_id
from pipeline.solutions.solution_log import SolutionReader, listed
from server.http.path_names import encode_name
from server.query_output.page_cache import Notice


class PromotionNotices:
    """Makes the notices of one registration.

    Each stands between the last solution of a version and the first one of the next.
    """

    def __init__(self, solutions: SolutionReader, registered: int) -> None:
        self._solutions, self._registered = solutions, registered
        self._notices: dict[int, Notice | None] = {}  # by the promotion's offset; None where that place is no longer known

    def is_ready(self, registration: Registration) -> bool:
        """Return whether all notices are there already, so that none is read from the solution log."""
        return not registration.versions or all(version.offset in self._notices for version in registration.promoted[1:])

    def find_next(self, registration: Registration, after: str) -> Notice | None:
        """Return the first notice beyond the id `after`."""
        if not registration.versions:
            return None
        for old, new in pairwise(registration.promoted):
            if new.offset not in self._notices:
                last = _find_last_before(self._solutions, self._registered, new.position)
                self._notices[new.offset] = None if last is None else _write_notice(registration.name, last, old, new)
        notices = (self._notices[version.offset] for version in registration.promoted[1:])
        return next((notice for notice in notices if notice is not None and notice.id > after), None)


def _find_last_before(solutions: SolutionReader, registered: int, position: int) -> str | None:
    """Return the id of a registration's last solution of an entry before a position, FIRST_ID for none; None if that
    may be no longer kept.
    """
    tally = solutions.tally(registered)
    n = bisect_left(range(tally.gone, tally.count), position, key=lambda rank: listed(solutions.read_rank(registered, rank, 1))[0].entry)
    if n == 0:
        return FIRST_ID if tally.gone == 0 else None
    return listed(solutions.read_rank(registered, tally.gone + n - 1, 1))[0].id


def _write_notice(name: str, last: str, before: Version, after: Version) -> Notice:
    id_ = notice_id(last, after.number)
    text = json.dumps({
        "query": name, "id": id_, "position": after.position, "at": iso(after.at), "from": _describe_text(before), "to": _describe_text(after),
        "versions": f"/queries/{encode_name(name)}/versions",
    })  # fmt: skip
    return Notice(id_, text)


def _describe_text(version: Version) -> dict[str, int | str]:
    return {"version": version.number, "sha256": hash_text(version.text)}


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def split_by_form(registration: Registration, found: pa.RecordBatch) -> Sequence[tuple[pa.RecordBatch, Form]]:
    """Return solutions (STORED) in parts of one form each, in their order. Versions of a query may have other columns."""
    versions = registration.promoted if registration.versions else ()
    if len(versions) <= 1 or not found.num_rows:
        return [(found, find_form(registration.text, registration.emit))]
    place = np.searchsorted([version.position for version in versions], int64s(found.column("entry")), side="right") - 1
    forms = [get_shape(version.text).form for version in versions]
    numbers = np.array([forms.index(form) for form in forms])[np.maximum(place, 0)]
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), found.num_rows]
    return [(found.slice(begin, end - begin), forms[numbers[begin]]) for begin, end in pairwise(cuts)]
