"""This module decides which server writes to a store without locks and conditional creation: the server of the latest epoch (docs/decisions/0034).

A server claims the epoch after the last one by an object with its own name, and looks whether another has claimed the same. A writer looks after each
write, and before it tells anyone, whether there is a later claim. If there is none, a later server, which claims before it looks at what there is,
finds that write.
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex

import msgspec

from pipeline.errors import StoreFailed, StoreTaken
from pipeline.object_store.backends import Place
from pipeline.replication.object_names import Bound, standing

_FOLDER = "claims"
_NAME = re.compile(r"(\d{10})-([0-9a-f]{16})-([0-9a-f]{8})-(\d{10})")
_TRIES = 10
"""A listed object may have been removed before it is read, and then there is a later one: a look is tried this often."""


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    epoch: int
    server: str
    """A data directory has this name for itself."""
    start: str
    """The process has this name: two may run on copies of one directory."""

    @property
    def key(self) -> str:
        return f"{self.epoch:010d}-{self.server}-{self.start}"

    def name(self, version: int) -> str:
        """Return the name of an object of this claim. The object of the first version claims; a server that tells a later version writes.

        No object is ever written twice, for that takes more than one step in some stores.
        """
        return f"{_FOLDER}/{self.key}-{version:010d}"


class _Told(msgspec.Struct, frozen=True):
    """Holds what a server tells, with what earlier servers have told, as far as that still says something."""

    begins: dict[str, int]
    bounds: list[tuple[int, dict[str, Bound]]]


def new_server() -> str:
    return token_hex(8)


class Fence:
    """Fences the store for one server."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._claim: Claim | None = None
        self.bounds: list[tuple[int, dict[str, Bound]]] = []
        """The bounds say from where on in each log the servers of epochs have written, up to the last one that has."""
        self.begins: dict[str, int] = {}
        """Each log begins with this segment. Earlier segments are being removed."""
        self.last: Claim | None = None
        """The server of this claim was the last to write."""
        self._version = 0

    @property
    def claim(self) -> Claim:
        """Return the claim of this server."""
        assert self._claim is not None
        return self._claim

    @property
    def epoch(self) -> int:
        return self.claim.epoch

    def bounds_of(self, kind: str) -> list[tuple[int, Bound]]:
        return [(epoch, each[kind]) for epoch, each in self.bounds if kind in each]

    def look(self) -> None:
        """Read what others have claimed and told. Raises: StoreFailed."""
        for _ in range(_TRIES):
            found = self._claims()
            self.last, version = max(((claim, version) for claim, version in found if version), default=(None, 0))
            if self.last is None:
                self.bounds, self.begins = [], {}
                return
            data = self._place.read(self.last.name(version))
            if data is not None:
                try:
                    told = msgspec.json.decode(data, type=_Told)
                except msgspec.MsgspecError as fault:
                    raise StoreFailed(f"the object {self.last.name(version)} is damaged: {fault}") from None
                self.bounds, self.begins = told.bounds, told.begins
                return
        raise StoreFailed("servers begin to write to it faster than can be seen")

    def take(self, server: str) -> None:
        """Claim the next epoch. Raises: StoreTaken if another server does the same at this moment; StoreFailed."""
        claim = self._claim = Claim(max((each.epoch for each, _ in self._claims()), default=0) + 1, server, token_hex(4))
        try:
            self._place.put(claim.name(0), b"{}")
            if any(each.epoch >= claim.epoch and each != claim for each, _ in self._claims()):
                raise StoreTaken(str(self._place), "another server is starting with")
            self.look()
        except BaseException:
            self.withdraw()
            raise

    def withdraw(self) -> None:
        """Leave the store to its present holder. Call this only before anything was written under the epoch, which another server may get."""
        with suppress(OSError, StoreFailed):  # then it waits for a start
            self._place.remove(self.claim.name(0))

    def begin(self, bounds: dict[str, Bound]) -> None:
        """Tell from where on this server writes, before it does. Raises: StoreTaken, StoreFailed."""
        self.bounds = [*self.bounds, (self.epoch, bounds)]
        self._tell(self.begins)

    def cut(self, begins: dict[str, int]) -> None:
        """Tell with which segments the logs begin, before earlier segments go: no later server looks for those. Raises: StoreTaken, StoreFailed."""
        if begins != self.begins:
            self._tell(begins)

    def check(self) -> None:
        """Check that no later server has come. Raises: StoreTaken if one has; StoreFailed."""
        self._checked()

    def _checked(self) -> list[tuple[Claim, int]]:
        found = self._claims()
        if all(claim != self.claim for claim, _ in found) or found[-1][0].epoch > self.epoch:
            raise StoreTaken(str(self._place), "another server has begun to write to")
        return found

    def _tell(self, begins: dict[str, int]) -> None:
        bounds = standing(self.bounds, begins)
        self._version += 1  # a try that failed may have left an object all the same
        self._place.put(self.claim.name(self._version), msgspec.json.encode(_Told(begins, bounds)))
        found = self._checked()
        self.bounds, self.begins = bounds, begins
        for claim, version in found:
            if (claim, version) != (self.claim, self._version):
                self._place.remove(claim.name(version))

    def _claims(self) -> list[tuple[Claim, int]]:
        found = [_NAME.fullmatch(name) for name in self._place.names(_FOLDER)]
        return sorted((Claim(int(each[1]), each[2], each[3]), int(each[4])) for each in found if each is not None)
