"""An object store at the other end of a network: it takes time, may not answer, and refuses to create what is there."""

from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import StoreFailed
from tests.simulation.scheduler import Process, Scheduler


@dataclass(slots=True)
class SharedBucket:
    """Holds the objects.

    Calls take up to `slow_s`, and those of cut-off processes fail; one in `drops` is answered with a failure, done or
    not.
    """

    objects: dict[str, bytes] = field(default_factory=dict)
    slow_s: float = 0.05
    drops: float = 0.0
    cut_off: list[Process] = field(default_factory=list)


class StoreClient:
    """One process's way to the store. It is an ObjectStore."""

    patience_s: float | None = 10.0

    def __init__(self, bucket: SharedBucket, process: Process, scheduler: Scheduler) -> None:
        self._bucket, self._process, self._scheduler = bucket, process, scheduler

    def __str__(self) -> str:
        return "the store"

    def _call(self, work: Any) -> Any:
        """Do some work at one instant of a call. Raises: StoreFailed, TaskKilled."""
        scheduler, bucket = self._scheduler, self._bucket
        scheduler.sleep(scheduler.random.random() * bucket.slow_s)
        if self._process in bucket.cut_off:
            scheduler.sleep(2.0)
            raise StoreFailed("the network is cut")
        lost = scheduler.random.random() < bucket.drops
        if lost and scheduler.random.random() < 0.5:
            raise StoreFailed("the request was lost")
        found = work()
        scheduler.sleep(scheduler.random.random() * bucket.slow_s)
        if lost or self._process in bucket.cut_off:
            raise StoreFailed("the answer was lost")
        return found

    def read(self, name: str) -> bytes | None:
        found: bytes | None = self._call(lambda: self._bucket.objects.get(name))
        return found

    def put(self, name: str, data: Any) -> None:
        self._call(lambda: self._bucket.objects.__setitem__(name, bytes(data)))

    def create(self, name: str, data: bytes) -> bool:
        created: bool = self._call(lambda: self._bucket.objects.setdefault(name, made := bytes(bytearray(data))) is made)
        return created

    def names(self, folder: str) -> list[str]:
        def listed() -> list[str]:
            rest = [name.removeprefix(f"{folder}/") for name in self._bucket.objects if name.startswith(f"{folder}/")]
            return sorted({f"{name.partition('/')[0]}/" if "/" in name else name for name in rest})

        found: list[str] = self._call(listed)
        return found

    def remove(self, name: str) -> None:
        self._call(lambda: self._bucket.objects.pop(name, None))

    def close(self) -> None:
        pass
