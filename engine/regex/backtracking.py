"""This module matches patterns with back references, which RE2 has not: by backtracking, in at most `MOST_STEPS` steps.

A pattern is compiled to a program of a machine with a stack of places to go back to (Cox, Regular Expression
Matching: the Virtual Machine Approach). A count of steps bounds a match, not a clock: each server and each replay
must give the same answer.
"""

from bisect import bisect_right
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple, assert_never

from epsparql.regex.character_sets import fold, resolve_class
from epsparql.regex.syntax import Alternation, Anchor, CharacterClass, Concatenation, Node, Parentheses, Pattern, PatternFault, Reference, Repeat

MOST_STEPS = 1 << 18
"""These are about a quarter of a second."""
_SLOTS_COPIED = 16
"""As many slots are copied in a step."""
Captures = tuple[int, ...]
"""The start and the end of each group, the whole match first; -1 where it has captured nothing."""


class Op(Enum):
    """Names what an instruction does."""

    CLASS = auto()  # take a character in `bounds`
    FORK = auto()  # go to `target`, and later to `other`
    JUMP = auto()
    SAVE = auto()  # note the place in `slot`
    PROGRESS = auto()  # fail where nothing was taken since the place in `slot`
    REFERENCE = auto()  # take what the group has captured
    ANCHOR = auto()
    MATCH = auto()


class Step(NamedTuple):
    """Is an instruction.

    `bounds` are the ends of ranges of characters: a code is in one if an odd number of them is not above it.
    """

    op: Op
    target: int = 0
    other: int = 0
    slot: int = 0
    bounds: tuple[int, ...] = ()
    anchor: Anchor = Anchor.START
    folded: bool = False


class RegexProgram:
    """Holds the instructions of a pattern. Slots after those of the groups hold where the rounds of repetitions began."""

    def __init__(self, pattern: Pattern) -> None:
        self._steps = list[Step]()
        self._slots = 2 * pattern.groups + 2
        self._add_all(Parentheses(pattern.root, 0))
        self._steps.append(Step(Op.MATCH))

    def find_matches(self, text: str) -> Iterator[Captures]:
        """Yield the matches from left to right, none within another.

        Raises: PatternFault, where they take too many steps.
        """
        budget, start = [MOST_STEPS], 0
        while start <= len(text):
            found = self._match(text, start, budget)
            if found is None:
                start += 1
            else:
                yield found
                start = found[1] + (found[0] == found[1])

    # ------------------------------------------------ compiling
    def _add_all(self, node: Node) -> None:
        match node:
            case CharacterClass():
                self._steps.append(Step(Op.CLASS, bounds=tuple(bound for first, last in resolve_class(node) for bound in (first, last + 1))))
            case Anchor():
                self._steps.append(Step(Op.ANCHOR, anchor=node))
            case Reference(number, folded):
                self._steps.append(Step(Op.REFERENCE, slot=2 * number, folded=folded))
            case Parentheses(inner, number):
                saved = [] if number is None else [Step(Op.SAVE, slot=2 * number), Step(Op.SAVE, slot=2 * number + 1)]
                self._steps += saved[:1]
                self._add_all(inner)
                self._steps += saved[1:]
            case Concatenation(parts):
                for part in parts:
                    self._add_all(part)
            case Alternation(branches):
                self._add_branches(branches)
            case Repeat():
                self._add_repeat(node)
            case _:
                assert_never(node)

    def _add_branches(self, branches: tuple[Node, ...]) -> None:
        jumps = list[int]()
        for branch in branches[:-1]:
            fork = self._reserve()
            self._add_all(branch)
            jumps.append(self._reserve())
            self._steps[fork] = Step(Op.FORK, fork + 1, len(self._steps))
        self._add_all(branches[-1])
        for jump in jumps:
            self._steps[jump] = Step(Op.JUMP, len(self._steps))

    def _add_repeat(self, node: Repeat) -> None:
        """Write the rounds out that are numbered; where there is no limit, a loop follows them."""
        for _ in range(node.least):
            self._add_all(node.inner)
        forks = list[int]()
        for _ in range(0 if node.most is None else node.most - node.least):
            forks.append(self._reserve())
            self._add_all(node.inner)
        if node.most is None:
            forks.append(self._reserve())
            slot, self._slots = self._slots, self._slots + 1
            self._steps.append(Step(Op.SAVE, slot=slot))
            self._add_all(node.inner)
            self._steps += (Step(Op.PROGRESS, slot=slot), Step(Op.JUMP, forks[-1]))
        for fork in forks:
            ahead, out = fork + 1, len(self._steps)
            self._steps[fork] = Step(Op.FORK, *((out, ahead) if node.lazy else (ahead, out)))

    def _reserve(self) -> int:
        self._steps.append(Step(Op.MATCH))
        return len(self._steps) - 1

    # ------------------------------------------------ matching
    def _match(self, text: str, start: int, budget: list[int]) -> Captures | None:
        """Return the first match that begins at `start`, in the order of preference."""
        pending: list[tuple[int, int, Captures]] = [(0, start, (-1,) * self._slots)]
        while pending:
            at, place, slots = pending.pop()
            while True:
                budget[0] -= 1
                if budget[0] < 0:
                    raise PatternFault(f"a pattern with a back reference took more than {MOST_STEPS:,} steps")
                step = self._steps[at]
                match step.op:
                    case Op.MATCH:
                        return slots
                    case Op.JUMP:
                        at = step.target
                        continue
                    case Op.FORK:
                        pending.append((step.other, place, slots))
                        at = step.target
                        continue
                    case Op.SAVE:
                        slots = (*slots[: step.slot], place, *slots[step.slot + 1 :])
                        budget[0] -= len(slots) // _SLOTS_COPIED
                        at += 1
                        continue
                taken = _take_step(step, text, place, slots)
                if taken is None:
                    break
                place, at = taken, at + 1
        return None


def _take_step(step: Step, text: str, place: int, slots: Captures) -> int | None:
    """Return the place after what an instruction takes; None where it fails."""
    match step.op:
        case Op.CLASS:
            return place + 1 if place < len(text) and bisect_right(step.bounds, ord(text[place])) & 1 else None
        case Op.PROGRESS:
            return place if place > slots[step.slot] else None
        case Op.REFERENCE:
            return _take_reference(step, text, place, slots)
        case Op.ANCHOR if _holds(step.anchor, text, place):
            return place
    return None


def _take_reference(step: Step, text: str, place: int, slots: Captures) -> int | None:
    """Take what a group has captured; one that has captured nothing is empty."""
    start, end = slots[step.slot], slots[step.slot + 1]
    captured = text[start:end] if 0 <= start < end else ""
    if not step.folded:
        return place + len(captured) if text.startswith(captured, place) else None
    other = text[place : place + len(captured)]
    alike = len(other) == len(captured) and all(one == two or ord(two) in fold(one) for one, two in zip(captured, other, strict=True))
    return place + len(captured) if alike else None


def _holds(anchor: Anchor, text: str, place: int) -> bool:
    match anchor:
        case Anchor.START:
            return place == 0
        case Anchor.END:
            return place == len(text)
        case Anchor.LINE_START:
            return place == 0 or (text[place - 1] == "\n" and place < len(text))
        case Anchor.LINE_END:
            return place == len(text) or text[place] == "\n"
    assert_never(anchor)
