"""Keeps alerts from repeating: the setting `once_per` of a connector that writes solutions.

A file holds the keys of the solutions that the sink has up to a position. It is replaced after each write, so it is never ahead of the sink:
1. At a start, read the file, and the solutions from its position up to the sink's cursor. Deciding on these again gives the keys at the cursor.
2. Choose those of a page that are sent. Write them to the sink.
3. Replace the file. If the sink fails or the process ends before, this begins anew at 1.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from connectors.errors import SystemFault
from connectors.outbound.sink import Cursor, SolutionMessage
from epsparql.durable_files import replace_file
from epsparql.solutions.once_per import OncePer, SentKeys, check_variables

Documents = Iterator[dict[str, Any]]
_NONE = -1  # no registration has this number


class RepeatFilter:
    """Leaves out the solutions that repeat one that the sink has. `path` is the file of the keys."""

    def __init__(self, once_per: OncePer, path: Path) -> None:
        self._once_per, self._path = once_per, path
        self._stored, self._present = SentKeys(), SentKeys()
        self._registered, self._id = _NONE, ""
        self._text = ""
        self._load()

    @property
    def forgotten(self) -> int:
        """Return the number of keys that the bound let go too soon."""
        return self._stored.forgotten

    def resume(self, cursor: Cursor | None, read_from: Callable[[int, str], Documents]) -> None:
        """Bring the keys to the sink's cursor. `read_from` yields the solutions of a registration after an id.

        A sink that was set back has not what the keys say, so they begin anew.
        """
        self._present, self._text = self._stored.copy(), ""
        if cursor is None or cursor.registered != self._registered or cursor.id < self._id:
            self._begin_anew(cursor.registered if cursor else _NONE, cursor.id if cursor else "")
        elif cursor.id > self._id:
            for document in read_from(self._registered, self._id):
                if document["id"] > cursor.id:
                    break
                self._is_due(document)
            self._save(cursor.registered, cursor.id)

    def follow_registration(self, registered: int, text: str, read_variables: Callable[[], tuple[str, ...]]) -> None:
        """Follow a registration, with this text of its query.

        Keys of another registration suppress nothing. Raises: SystemFault.
        """
        if text != self._text:
            try:
                check_variables(self._once_per, read_variables())
            except ValueError as fault:
                raise SystemFault(f"{fault}; change once_per, or the query") from None
            self._text = text
        if registered != self._registered:
            self._begin_anew(registered, "")

    def choose(self, solutions: Sequence[SolutionMessage]) -> list[SolutionMessage]:
        """Return those that are sent, in their order."""
        return [each for each in solutions if self._is_due(each.document)]

    def record_written(self, cursor: Cursor) -> None:
        """Record that the sink has all chosen solutions, of which the last one has this cursor."""
        self._save(cursor.registered, cursor.id)

    def _is_due(self, document: dict[str, Any]) -> bool:
        key, within = self._once_per.make_key(document), self._once_per.within
        if self._present.is_repeat(key, within):
            return False
        self._present.record_sent(key, within)
        return True

    def _begin_anew(self, registered: int, id_: str) -> None:
        self._present = SentKeys()
        self._save(registered, id_)

    def _load(self) -> None:
        """Read the file. One that is missing or damaged, or of another setting, holds no keys."""
        with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            found = json.loads(self._path.read_bytes())
            if found["once_per"] == self._once_per.to_setting():
                self._stored = SentKeys({str(key): int(end) for key, end in found["ends"].items()}, int(found["forgotten"]))
                self._registered, self._id = int(found["registered"]), str(found["id"])

    def _save(self, registered: int, id_: str) -> None:
        """Replace the file in one step. Raises: SystemFault."""
        content = {"once_per": self._once_per.to_setting(), "registered": registered, "id": id_}
        data = json.dumps(content | {"ends": self._present.ends, "forgotten": self._present.forgotten}).encode()
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, data, mode=0o600)
        except OSError as error:
            raise SystemFault(f"the keys of sent alerts cannot be kept in {self._path}: {error.strerror}; make room, or allow it") from None
        self._stored, self._registered, self._id = self._present.copy(), registered, id_
