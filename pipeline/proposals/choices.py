"""This module holds what a user decides about a proposal, and records what the file leaves open."""

from collections.abc import Mapping, Sequence
from dataclasses import field

from engine.messages import Micros
from epsparql.deferred_methods import dataclass
from pipeline.errors import FormatError

MOST_ALTERNATIVES = 20
"""A choice offers at most so many alternatives."""
OWN_PARAMETERS = ("order", "time_zone")
"""Users decide these choices by parameters of their own."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Describes something that the file leaves open: the value that was taken, and the others that can be."""

    setting: str
    value: str
    alternatives: tuple[str, ...]


@dataclass(slots=True)
class Choices:
    """Holds what a user decides, and the present time; None leaves a choice to the file.

    `chosen` has further decisions by setting. `offered` records the choices of a proposal while it is made.
    """

    now: Micros
    order: str | None = None
    zone: str | None = None
    chosen: Mapping[str, str] = field(default_factory=dict)
    offered: dict[str, Choice] = field(default_factory=dict)

    def choose_value(self, setting: str, values: Sequence[str]) -> str:
        """Return the user's value of a setting, else the first, and record the choice.

        Raises: FormatError where the user's value is none of them.
        """
        offered = tuple(dict.fromkeys(values))[: MOST_ALTERNATIVES + 1]
        value = self.chosen.get(setting, offered[0])
        if value not in offered:
            raise FormatError("choice", f"the choice {setting!r} has no value {value!r}", expected=f"one of {', '.join(map(repr, offered))}")
        if len(offered) > 1:
            self.record_choice(setting, value, offered)
        return value

    def record_choice(self, setting: str, value: str, values: Sequence[str] = ()) -> None:
        """Record that a setting has a value, and that it could have the others."""
        self.offered[setting] = Choice(setting, value, tuple(each for each in values if each != value))

    def check_settings(self) -> None:
        """Check that each decision concerns a choice that was offered. Raises: FormatError."""
        offered = [setting for setting in self.offered if setting not in OWN_PARAMETERS]
        unknown = next((setting for setting in self.chosen if setting not in offered), None)
        if unknown is not None:
            expected = f"one of {', '.join(map(repr, offered[:MOST_ALTERNATIVES]))}" if offered else "none: the rows leave nothing open"
            raise FormatError("choice", f"the rows do not offer the choice {unknown!r}", expected=expected)
