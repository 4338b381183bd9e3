"""Which server writes to a store that has no locks and no conditional creation: the one of the latest epoch (docs/decisions/0034).

A server claims the epoch after the last one by an object with its own name, and looks whether another has claimed the same. Whoever writes looks after each write,
and before it tells anyone, whether there is a later claim: if there is none, a later server, which claims before it looks at what there is, finds that write.
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
"""What is listed may have been removed when it is read: then there is something later."""


@dataclass(frozen=True, slots=True, order=True)
class Claim:
    epoch: int
    server: str
    """The name that a data directory has for itself."""
    start: str
    """Of the process: two may run on copies of one directory."""

    @property
    def key(self) -> str:
        return f"{self.epoch:010d}-{self.server}-{self.start}"

    def name(self, version: int) -> str:
        """No object is ever written twice, for that takes more than one step in some stores. The first one claims; whoever tells a version writes."""
        return f"{_FOLDER}/{self.key}-{version:010d}"


class _Told(msgspec.Struct, frozen=True):
    """What those of before have told is in here too, as far as it still says something."""

    begins: dict[str, int]
    bounds: list[tuple[int, dict[str, Bound]]]


def new_server() -> str:
    return token_hex(8)


class Fence:
    """Of one server."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._claim: Claim | None = None
        self.bounds: list[tuple[int, dict[str, Bound]]] = []
        """From where on in each log the servers of epochs have written, up to the last one that has."""
        self.begins: dict[str, int] = {}
        """The segment with which each log begins. What lies before it is on its way out."""
        self.last: Claim | None = None
        """The last claim whose server has written."""
        self._version = 0

    @property
    def claim(self) -> Claim:
        """That of this server."""
        assert self._claim is not None
        return self._claim

    @property
    def epoch(self) -> int:
        return self.claim.epoch

    def bounds_of(self, kind: str) -> list[tuple[int, Bound]]:
        return [(epoch, each[kind]) for epoch, each in self.bounds if kind in each]

    def look(self) -> None:
        """What others have claimed and told. Raises: StoreFailed."""
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
        """The next epoch. Raises: StoreTaken if another server does the same at this moment; StoreFailed."""
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
        """Leave the store to whoever has it. Only before anything was written under the epoch, which another server may get."""
        with suppress(OSError, StoreFailed):  # then it waits for a start
            self._place.remove(self.claim.name(0))

    def begin(self, bounds: dict[str, Bound]) -> None:
        """Tell from where on it writes, before it does. Raises: StoreTaken, StoreFailed."""
        self.bounds = [*self.bounds, (self.epoch, bounds)]
        self._tell(self.begins)

    def cut(self, begins: dict[str, int]) -> None:
        """Tell with which segments the logs begin, before those ahead of them go: no later server looks for what goes. Raises: StoreTaken, StoreFailed."""
        if begins != self.begins:
            self._tell(begins)

    def check(self) -> None:
        """Raises: StoreTaken if a later server has come; StoreFailed."""
        self._checked()

    def _checked(self) -> list[tuple[Claim, int]]:
        found = self._claims()
        if all(claim != self.claim for claim, _ in found) or found[-1][0].epoch > self.epoch:
            raise StoreTaken(str(self._place), "another server has begun to write to")
        return found

    def _tell(self, begins: dict[str, int]) -> None:
        bounds = standing(self.bounds, begins)
        self._version += 1  # of a try that failed there may be an object all the same
        self._place.put(self.claim.name(self._version), msgspec.json.encode(_Told(begins, bounds)))
        found = self._checked()
        self.bounds, self.begins = bounds, begins
        for claim, version in found:
            if (claim, version) != (self.claim, self._version):
                self._place.remove(claim.name(version))

    def _claims(self) -> list[tuple[Claim, int]]:
        found = [_NAME.fullmatch(name) for name in self._place.names(_FOLDER)]
        return sorted((Claim(int(each[1]), each[2], each[3]), int(each[4])) for each in found if each is not None)
