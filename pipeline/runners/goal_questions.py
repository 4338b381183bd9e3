"""This module asks the engines of a data directory for partial matches that their reports do not list.

    server ── note `goals-question` ──▶ each partition's engine, between two pieces of the log
    server ◀── note `goals-answer-<partition>` ──

Nothing is looked for unless somebody asks (docs/decisions/0080-partial-matches-in-words.md).
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import msgspec

from engine.runtime.introspection import MatchWish, PartialMatch, sort_matches
from pipeline.partition_count import name_of, recorded
from pipeline.status_files import note_path, read_checksum, read_note, write_note

_QUESTION, _ANSWER = "goals-question", "goals-answer-"
_LOOK_S = 0.05
"""A partition looks for a question at most so often: a look costs a system call."""


class GoalQuestion(msgspec.Struct, frozen=True):
    """Asks for partial matches of a registration; `id` tells it from others."""

    id: str
    registered: int
    wish: MatchWish


class GoalAnswer(msgspec.Struct, frozen=True):
    """Holds the matches of a partition, or of all, as of a log position."""

    id: str
    position: int
    matches: list[PartialMatch]


class GoalAnswerer:
    """Answers questions for one partition. `clock` gives seconds."""

    def __init__(self, data_dir: Path | str, partition: str, clock: Callable[[], float]) -> None:
        self._question, self._answer, self._clock = note_path(data_dir, _QUESTION), note_path(data_dir, f"{_ANSWER}{partition}"), clock
        self._seen, self._after = b"", -1.0

    def answer(self, position: int, find: Callable[[int, MatchWish], list[PartialMatch]]) -> None:
        """Answer the question that stands, if it was not answered. Ignore a full disk.

        `find` gives the partial matches of a registration at the log position.
        """
        if self._clock() < self._after:
            return
        self._after, checksum = self._clock() + _LOOK_S, read_checksum(self._question)
        if checksum in (b"", self._seen):
            return
        self._seen = checksum
        with suppress(OSError, msgspec.DecodeError):
            asked = msgspec.json.decode(read_note(self._question) or b"", type=GoalQuestion)
            write_note(self._answer, msgspec.json.encode(GoalAnswer(asked.id, position, find(asked.registered, asked.wish))))


class GoalAsker:
    """Asks all partitions. A question takes the place of the one before, so put it when that one has ended."""

    def __init__(self, data_dir: Path | str) -> None:
        self._data = data_dir

    def put_question(self, registered: int, wish: MatchWish) -> GoalQuestion:
        question = GoalQuestion(uuid4().hex, registered, wish)
        write_note(note_path(self._data, _QUESTION), msgspec.json.encode(question))
        return question

    def find_answer(self, question: GoalQuestion) -> GoalAnswer | None:
        """Return the partial matches of all partitions together; None as long as one has not answered."""
        partitions = recorded(self._data) or 1
        paths = [note_path(self._data, f"{_ANSWER}{name_of(partition, partitions)}") for partition in range(partitions)]
        answers = [each for path in paths if (each := _read_answer(path)) is not None and each.id == question.id]
        if len(answers) < len(paths):
            return None
        matches = [match for each in answers for match in each.matches]
        return GoalAnswer(question.id, min(each.position for each in answers), sort_matches(matches, question.wish))


def _read_answer(path: Path) -> GoalAnswer | None:
    with suppress(msgspec.DecodeError):
        note = read_note(path)
        return None if note is None else msgspec.json.decode(note, type=GoalAnswer)
    return None
