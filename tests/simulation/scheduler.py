"""Runs tasks one at a time in an order that a seed decides, under a clock of its own.

Each task is a greenlet, and they share one thread: a task hands over where it waits, and where it touches a disk or a
store. So a history is a function of its seed, and a failing one is repeated exactly.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

_MOST_STEPS = 50_000
"""A history with more steps than this does not end."""


class TaskKilled(BaseException):
    """Ends a task of a process that was killed. No handler of the product takes it for a fault."""


class Deadlock(Exception):
    """Reports that every task waits for another one."""


class Process:
    """Groups the tasks that are killed, and stand still, together.

    What stands `outside` does harm, and works on no disk itself.
    """

    def __init__(self, name: str, *, outside: bool = False) -> None:
        self.name, self.outside = name, outside
        self.alive, self.frozen = True, False


class Task:
    """Holds work that goes on when the scheduler lets it."""

    def __init__(self, name: str, process: Process, work: Callable[[], None]) -> None:
        self.name, self.process = name, process
        self.done = False
        self.failure: BaseException | None = None
        self.met: Callable[[], bool] = lambda: True
        self.deadline_s: float | None = None
        self.greenlet = greenlet(partial(self._run, work))

    def _run(self, work: Callable[[], None]) -> None:
        try:
            if self.process.alive:
                work()
        except TaskKilled:
            pass
        except BaseException as failure:  # noqa: BLE001 - the scheduler raises it
            self.failure = failure
        self.done = True


_running: list["Scheduler"] = []


def is_simulated() -> bool:
    """Return whether a task of the simulation that runs makes the call."""
    return bool(_running) and _running[-1].task is not None and getcurrent() is _running[-1].task.greenlet


class Scheduler:
    """Runs a history. `now_s` is the time of its clock, which passes where nobody has anything to do at once."""

    def __init__(self, seed: int) -> None:
        self.random, self.now_s = Random(seed), 0.0
        self.tasks: list[Task] = []
        self.task: Task | None = None
        self.trace: list[str] = []

    def start(self, name: str, process: Process, work: Callable[[], None]) -> Task:
        task = Task(name, process, work)
        self.tasks.append(task)
        return task

    def note(self, text: str) -> None:
        """Write a line into the trace that a failing history shows."""
        name = "" if self.task is None else f"{self.task.process.name}/{self.task.name}: "
        self.trace.append(f"{self.now_s:10.3f} {name}{text}")

    # ------------------------------------------------------------ called by tasks
    def wait(self, met: Callable[[], bool], within_s: float | None = None) -> bool:
        """Hand over until `met` holds or some time has passed. Return whether it holds. Raises: TaskKilled."""
        task = self.task
        assert task is not None
        if not task.process.alive:
            raise TaskKilled
        task.met, task.deadline_s = met, None if within_s is None else self.now_s + max(within_s, 0.0)
        self._main.switch()
        if not task.process.alive:
            raise TaskKilled
        return met()

    def sleep(self, seconds: float) -> None:
        self.wait(lambda: False, seconds)

    def hand_over(self) -> None:
        """Let another task have its turn, perhaps. Raises: TaskKilled."""
        self.wait(lambda: True)

    # ------------------------------------------------------------ the history
    def run(self, over: Callable[[], bool]) -> None:
        """Run tasks until it is over. Raises: Deadlock; what a task raises."""
        _running.append(self)
        self._main = getcurrent()
        try:
            for _ in range(_MOST_STEPS):
                if over():
                    return
                self._step()
            raise Deadlock(f"{_MOST_STEPS} steps did not end the history")
        finally:
            self._end()
            _running.pop()

    def _step(self) -> None:
        self.tasks = [task for task in self.tasks if not task.done]
        ready = [task for task in self.tasks if self._is_ready(task)]
        if not ready:
            deadlines = [task.deadline_s for task in self.tasks if task.deadline_s is not None and not task.process.frozen]
            if not deadlines:
                raise Deadlock(", ".join(f"{task.process.name}/{task.name}" for task in self.tasks))
            self.now_s = min(deadlines)
            return
        self._resume(self.random.choice(ready))

    def _is_ready(self, task: Task) -> bool:
        if not task.process.alive:
            return True
        if task.process.frozen:
            return False
        return (task.deadline_s is not None and task.deadline_s <= self.now_s) or task.met()

    def _resume(self, task: Task) -> None:
        self.task = task
        task.greenlet.parent = self._main
        task.greenlet.switch()
        self.task = None
        if task.failure is not None:
            raise task.failure

    def _end(self) -> None:
        """End what is left."""
        for task in self.tasks:
            task.process.alive = False
        for task in self.tasks:
            while not task.done:
                with suppress(BaseException):
                    self._resume(task)

    # ------------------------------------------------------------ what stands for `threading`
    def primitives(self) -> dict[str, Callable[..., Any]]:
        """Return what stands for the names of the module threading."""
        return {
            "Thread": lambda target, name="", daemon=False, args=(): _Thread(self, target, name, args),
            "Lock": lambda: _Lock(self),
            "RLock": lambda: _Lock(self),
            "Condition": lambda: _Condition(self),
            "Event": lambda: _Event(self),
        }


class _Lock:
    """A lock that its holder may take again: the product relies on no lock that refuses that."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._holder, self._depth = scheduler, None, 0

    _holder: Task | None

    def acquire(self, blocking: bool = True) -> bool:
        if not is_simulated():
            return True
        task = self._scheduler.task
        if self._holder not in (None, task):
            if not blocking:
                return False
            self._scheduler.wait(lambda: self._holder is None or not self._holder.process.alive)
        self._holder, self._depth = task, self._depth + 1 if self._holder is task else 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if self._depth <= 0:
            self._holder = None

    def __enter__(self) -> "_Lock":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class _Condition(_Lock):
    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self._told = 0

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Wait as threading's does: the lock is free meanwhile, and the predicate is looked at by whoever has the lock."""
        deadline = None if timeout is None else self._scheduler.now_s + timeout
        while not (found := predicate()):
            left = None if deadline is None else deadline - self._scheduler.now_s
            if left is not None and left <= 0:
                return found
            told = self._told
            self.release()
            self._scheduler.wait(partial(self._was_told, told), left)
            self.acquire()
        return found

    def _was_told(self, told: int) -> bool:
        return self._told != told

    def notify_all(self) -> None:
        self._told += 1


class _Event:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._set = scheduler, False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True

    def wait(self, timeout: float | None = None) -> bool:
        return self._scheduler.wait(lambda: self._set, timeout)


class _Thread:
    ident: int | None = None

    def __init__(self, scheduler: Scheduler, target: Callable[..., None], name: str, args: tuple[Any, ...]) -> None:
        self._scheduler, self._work, self._name = scheduler, lambda: target(*args), name
        self._task: Task | None = None

    def start(self) -> None:
        assert self._scheduler.task is not None
        self.ident = 1
        self._task = self._scheduler.start(self._name, self._scheduler.task.process, self._work)

    def join(self, timeout: float | None = None) -> None:
        self._scheduler.wait(lambda: self._task is None or self._task.done, timeout)

    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done
