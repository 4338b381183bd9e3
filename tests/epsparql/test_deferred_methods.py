"""Dataclasses whose methods are generated when first called are those of the standard library."""

import copy
import dataclasses
import inspect
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from threading import Barrier, Thread
from typing import Any, ClassVar, Generic, TypeVar

import pytest

import server.app  # noqa: F401  (its classes, and those of the engine, are checked)
from epsparql import deferred_methods

Define = Callable[..., Any]
T = TypeVar("T")
PACKAGES = ("epsparql", "engine", "pipeline", "server")


def define_point(dataclass: Define) -> Any:
    @dataclass(frozen=True, slots=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        seen: list[int] = dataclasses.field(default_factory=list, compare=False)
        label: str = dataclasses.field(default="p", init=False)
        origin: ClassVar[int] = 0

        def norm(self) -> int:
            return abs(self.x) + abs(self.y)

    return Point


def define_counter(dataclass: Define) -> Any:
    @dataclass(slots=True)
    class Counter:
        """A counter, which changes, so it has no hash."""

        x: int
        double: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.double = 2 * self.x

    return Counter


def define_identity(dataclass: Define) -> Any:
    @dataclass(frozen=True, slots=True, eq=False)
    class Identity:
        """An object that equals itself alone."""

        x: int

    return Identity


def define_own_equality(dataclass: Define) -> Any:
    @dataclass(frozen=True, slots=True)
    class Rounded:
        """A number with an equality of its own, and a printed form of its own."""

        x: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self)) and self.x // 10 == other.x // 10

        def __repr__(self) -> str:
            return "rounded"

    return Rounded


def define_heir(dataclass: Define) -> Any:
    @dataclass(frozen=True, slots=True)
    class Base(ABC):
        """A base whose methods an heir's constructor calls first."""

        x: int

        @abstractmethod
        def name(self) -> str: ...

    @dataclass(frozen=True, slots=True)
    class Heir(Base, Generic[T]):
        """An heir with a field more."""

        y: int = 3

        def name(self) -> str:
            return "heir"

    return Heir


CLASSES = [define_point, define_counter, define_identity, define_own_equality, define_heir]


@pytest.mark.parametrize("define", CLASSES)
def test_a_class_is_that_of_the_standard_library(define: Callable[[Define], Any]) -> None:
    ours, theirs = define(deferred_methods.dataclass), define(dataclasses.dataclass)
    assert (ours.__match_args__, vars(ours)["__slots__"]) == (theirs.__match_args__, vars(theirs)["__slots__"])
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)
    assert inspect.signature(define(deferred_methods.dataclass)) == inspect.signature(theirs)  # before the first call
    one, other, equal = ours(7), ours(40), ours(7)
    assert [repr(one), one == other, one == equal] == [repr(theirs(7)), theirs(7) == theirs(40), theirs(7) == theirs(7)]
    assert inspect.signature(ours) == inspect.signature(theirs)
    assert [(each.name, each.init) for each in dataclasses.fields(ours)] == [(each.name, each.init) for each in dataclasses.fields(theirs)]
    assert vars(ours).keys() == vars(theirs).keys()
    if ours.__hash__ is not None:
        assert (hash(one) == hash(equal)) == (hash(theirs(7)) == hash(theirs(7)))


@pytest.mark.parametrize("define", [define_point, define_heir])
def test_a_frozen_instance_does_not_change(define: Callable[[Define], Any]) -> None:
    ours = define(deferred_methods.dataclass)
    instance = ours(7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.x = 8
    assert dataclasses.replace(instance, x=8) == ours(8)
    assert copy.copy(instance) == instance
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        ours()


def test_the_first_call_may_be_of_any_method() -> None:
    """A class that was never called is filled by pickle, and an heir's own constructor calls its base's."""
    state = pickle.dumps(Boxed(7))
    assert pickle.loads(state).x == 7
    made = define_point(deferred_methods.dataclass)
    empty = made.__new__(made)
    empty.__setstate__([1, 2, [], "p"])
    assert empty.norm() == 3

    @deferred_methods.dataclass(slots=True)
    class Doubled(define_counter(deferred_methods.dataclass)):  # type: ignore[misc]  # a class that a function returns
        y: int

        def __init__(self) -> None:
            super(Doubled, self).__init__(4)  # noqa: UP008  (Python puts the class before it had slots in super())
            self.y = 5

    assert (Doubled().x, Doubled().double, Doubled().y) == (4, 8, 5)


@deferred_methods.dataclass(frozen=True, slots=True)
class Boxed:
    x: int


def test_all_methods_are_generated_at_once() -> None:
    made = define_heir(deferred_methods.dataclass)
    deferred_methods.generate_all()
    assert not [name for name, value in vars(made).items() if getattr(value, "__name__", "") == "call_generated"]
    assert made(1) == made(1, 3)


def test_threads_may_call_a_class_first_at_once() -> None:
    for _ in range(20):
        made, found, barrier = define_point(deferred_methods.dataclass), list[Any](), Barrier(4)

        def call(made: Any = made, found: list[Any] = found, barrier: Barrier = barrier) -> None:
            barrier.wait()
            found.append(made(1))

        threads = [Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [made(1)] * 4


def test_each_class_of_the_server_has_the_slots_and_names_of_its_fields() -> None:
    checked = 0
    for made in set(_descend(object)):
        if str(made.__module__).partition(".")[0] in PACKAGES and {"__dataclass_fields__", "__slots__"} <= vars(made).keys():
            slots = [slot for base in made.__mro__[::-1] for slot in vars(base).get("__slots__", ())]
            fields = dataclasses.fields(made)
            assert slots == [each.name for each in fields], made
            accepted = [name for name, each in inspect.signature(made).parameters.items() if each.kind is not each.KEYWORD_ONLY]
            assert made.__match_args__ == tuple(accepted), made
            assert not [name for name, value in vars(made).items() if getattr(value, "__name__", "") == "call_generated"], made
            checked += 1
    assert checked > 100


def _descend(base: type) -> Iterator[Any]:
    for each in list[Any](type.__subclasses__(base)):
        yield each
        yield from _descend(each)
