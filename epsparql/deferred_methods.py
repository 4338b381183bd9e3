"""Defines the decorator `dataclass`: that of the standard library, whose methods are generated when one is first called.

The standard library compiles up to nine methods a class, in a third of a millisecond. A start defines hundreds of
classes, and uses a third of them.

1. The class that a program sees has its slots and the names of its fields at once, and a stub for each method.
2. The first call of a stub has the standard library make a class of the same definition, and takes over its methods.
"""

import gc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import Field
from dataclasses import dataclass as generate_methods
from inspect import get_annotations
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

_FIELDS, _PARAMETERS, _SIGNATURE = "__dataclass_fields__", "__dataclass_params__", "__signature__"
_FROZEN = ("__setattr__", "__delattr__", "__getstate__", "__setstate__")
_CLASS_VARIABLE: object = ClassVar


class _Deferred:
    """Generates the methods of the class `owner`."""

    __slots__ = ("_namespace", "_options", "owner")

    owner: type

    def __init__(self, namespace: dict[str, Any], options: dict[str, bool]) -> None:
        self._namespace, self._options = namespace, options

    def generate(self) -> None:
        """Take over the standard library's methods. Two threads may do so at once: they make the same ones."""
        made = type(self.owner)(self.owner.__name__, self.owner.__bases__, dict(self._namespace))
        for name, value in vars(generate_methods(slots=True, **self._options)(made)).items():
            if name not in self._namespace and (isinstance(value, FunctionType) or name in (_FIELDS, _PARAMETERS)):
                setattr(self.owner, name, value)
        with suppress(AttributeError):
            delattr(self.owner, _SIGNATURE)  # that of __init__ is read from now on

    def make_stub(self, name: str) -> Callable[..., Any]:
        def call_generated(*arguments: Any, **named: Any) -> Any:
            self.generate()
            return getattr(self.owner, name)(*arguments, **named)

        return call_generated


class _Attribute:
    """Generates the methods where someone reads an attribute that tells about them."""

    __slots__ = ("_deferred", "_name")

    def __init__(self, deferred: _Deferred, name: str) -> None:
        self._deferred, self._name = deferred, name

    def __get__(self, instance: object, owner: type) -> object:
        self._deferred.generate()
        return getattr(self._deferred.owner, self._name)


def _define(given: type, *, frozen: bool, eq: bool) -> type:
    namespace = {name: value for name, value in vars(given).items() if name not in ("__dict__", "__weakref__")}
    namespace["__qualname__"] = given.__qualname__
    if "__eq__" in namespace and namespace.get("__hash__") is None:
        namespace.pop("__hash__", None)  # Python has set it, and not the author
    own = [name for name, kind in get_annotations(given).items() if get_origin(kind) is not _CLASS_VARIABLE]
    bases = [vars(base) for base in given.__mro__[-2:0:-1]]
    is_argument = {name: True for base in bases if _FIELDS in base for name in base["__match_args__"]}
    is_argument |= {name: not isinstance(default := namespace.get(name), Field) or default.init for name in own}
    inherited = {slot for base in bases for slot in base.get("__slots__", ())}
    deferred = _Deferred(namespace, {"frozen": frozen, "eq": eq})
    visible: dict[str, Any] = {name: deferred.make_stub(name) for name in ("__init__", "__repr__", *_FROZEN * frozen)}
    if eq:
        visible |= {"__eq__": deferred.make_stub("__eq__"), "__hash__": deferred.make_stub("__hash__") if frozen else None}
    visible["__match_args__"] = tuple(name for name, is_one in is_argument.items() if is_one)
    visible["__slots__"] = tuple(name for name in own if name not in inherited)
    visible |= {name: _Attribute(deferred, name) for name in (_FIELDS, _SIGNATURE)}
    visible |= {name: value for name, value in namespace.items() if name not in own}
    deferred.owner = type(given)(given.__name__, given.__bases__, visible)
    return deferred.owner


def generate_all() -> None:
    """Generate the methods of all classes. A process calls this before it forks: each fork would generate its own."""
    for each in gc.get_objects():
        if type(each) is _Deferred:
            each.generate()


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # a type checker sees the standard library's
else:

    def dataclass(*, slots: bool, frozen: bool = False, eq: bool = True) -> Callable[[type], type]:
        """Return the decorator of a class with these properties. `slots` is always true."""
        assert slots
        return lambda given: _define(given, frozen=frozen, eq=eq)
