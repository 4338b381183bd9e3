"""This module chooses which solutions a receiver of alerts is sent, where its setting `once_per` keeps alerts from
repeating.

Of the solutions in their order, one is sent if no sent one with the same key ended later than its end minus a
duration. A key is the terms of some variables; an unbound one is a value of its own.
"""

import json
from collections.abc import Mapping
from dataclasses import field
from difflib import get_close_matches
from hashlib import blake2b
from typing import Any, NamedTuple

from epsparql.deferred_methods import dataclass
from epsparql.literals import MAX_MICROS, duration_micros, duration_text

MOST_KEYS = 10_000
"""So many keys are kept for a receiver.

One more forgets those that cannot suppress a solution any more, and then the one that ended first.
"""
EXAMPLE = '{"variables": ["sensor"], "within": "PT1H"}'
_MEMBERS = ("variables", "within")
_MOST_VARIABLES, _SHOWN = 20, 100
_ZERO_TIME = 1 << 63
"""Ids write a time as its microseconds plus this number, so that their order is that of texts."""


class SolutionKey(NamedTuple):
    """Holds a digest of the terms by which a solution is told apart, and the microsecond of its end."""

    digest: str
    end: int


@dataclass(frozen=True, slots=True)
class OncePer:
    """Says that of the solutions with equal terms of `variables`, one is sent `within` so many microseconds."""

    variables: tuple[str, ...]
    within: int

    def make_key(self, document: Mapping[str, Any]) -> SolutionKey:
        """Return the key of a solution of a SELECT as the server wrote it."""
        binding = document["binding"]
        terms = json.dumps([binding.get(variable) for variable in self.variables], sort_keys=True).encode()
        return SolutionKey(blake2b(terms, digest_size=12).hexdigest(), int(document["id"][:16], 16) - _ZERO_TIME)

    def to_setting(self) -> dict[str, Any]:
        """Return the setting as `read_once_per` takes it."""
        return {"variables": list(self.variables), "within": duration_text(self.within)}


@dataclass(slots=True)
class SentKeys:
    """Holds when the last sent solution of each key ended.

    At most MOST_KEYS are kept; `forgotten` counts those that the bound let go too soon.
    """

    ends: dict[str, int] = field(default_factory=dict)
    forgotten: int = 0

    def is_repeat(self, key: SolutionKey, within: int) -> bool:
        """Return whether a solution is not to be sent, because one with its key was."""
        sent = self.ends.get(key.digest)
        return sent is not None and sent > key.end - within

    def record_sent(self, key: SolutionKey, within: int) -> None:
        """Record that a solution was sent."""
        self.ends[key.digest] = max(key.end, self.ends.get(key.digest, key.end))
        if len(self.ends) > MOST_KEYS:
            self.ends = {digest: end for digest, end in self.ends.items() if end > key.end - within}
        if len(self.ends) > MOST_KEYS:
            del self.ends[min(self.ends, key=self.ends.__getitem__)]
            self.forgotten += 1

    def copy(self) -> "SentKeys":
        return SentKeys(dict(self.ends), self.forgotten)


def read_once_per(given: object) -> OncePer:
    """Return what the setting `once_per` says.

    Raises: ValueError, whose text begins with the place and names the remedy.
    """
    if not isinstance(given, dict):
        raise ValueError(f"once_per must be an object such as {EXAMPLE}, not {_quote_given(given)}")
    for name in given:
        if name not in _MEMBERS:
            near = get_close_matches(str(name)[:_SHOWN], _MEMBERS, n=1, cutoff=0.0)[0]
            raise ValueError(f"once_per.{str(name)[:_SHOWN]} is not known; the nearest member is {near}")
    return OncePer(_read_variables(given.get("variables")), _read_within(given.get("within")))


def check_variables(once_per: OncePer, known: tuple[str, ...]) -> None:
    """Check that a query has the variables of the setting. Raises: ValueError."""
    for variable in once_per.variables:
        if variable not in known:
            has = ", ".join(f"?{each}" for each in known[:_MOST_VARIABLES]) or "none: once_per is for the solutions of a SELECT"
            raise ValueError(f"once_per.variables has ?{variable}, which the query does not select; its variables are {has}")


def _read_variables(given: object) -> tuple[str, ...]:
    if not (isinstance(given, list) and 0 < len(given) <= _MOST_VARIABLES and all(isinstance(each, str) and each.strip("?$") for each in given)):
        raise ValueError(f'once_per.variables must be 1 to {_MOST_VARIABLES} names of variables such as ["sensor"], not {_quote_given(given)}')
    return tuple(dict.fromkeys(each.removeprefix("?").removeprefix("$") for each in given))


def _read_within(given: object) -> int:
    micros = None
    if isinstance(given, str):
        micros = duration_micros(given)
    elif isinstance(given, int | float) and not isinstance(given, bool) and abs(given) < 1e12:
        micros = round(given * 1_000_000)
    if micros is None or not 0 < micros <= MAX_MICROS:
        raise ValueError(
            f'once_per.within must be a day-time duration longer than zero such as "PT1H", or a number of seconds, not {_quote_given(given)}'
        )
    return micros


def _quote_given(given: object) -> str:
    return "nothing" if given is None else json.dumps(given, default=str)[:_SHOWN]
