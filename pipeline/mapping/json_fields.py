"""This module reads fields of JSON values by their paths.

1. Names that lead through objects make one msgspec Struct, which one call decodes with all of these fields (`Raw`, as they are written).
2. A place with positions, or one that is a value here and an object there, stays `Raw` in this struct. What is in it is decoded value by value.
3. A row whose values are no objects where the struct has some is decoded level by level. Fields beyond such a value are absent.
"""

from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from types import GenericAlias
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from epsparql.deferred_methods import dataclass
from pipeline.mapping.columns import Column, column_of_tokens
from pipeline.mapping.mapping import steps_of

Token: TypeAlias = "Raw | bytes"
NOTHING = Raw()
RAWS = msgspec.json.Decoder(list[Raw])
FAULTS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""msgspec raises these where a text is no JSON of the type."""


@dataclass(slots=True)
class _Place:
    """Represents a place in a value: the numbers of the fields that are there, and the places within it.

    An object's struct is made once.
    """

    numbers: list[int] = field(default_factory=list)
    names: dict[str, "_Place"] = field(default_factory=dict)
    positions: dict[int, "_Place"] = field(default_factory=dict)
    struct: type[msgspec.Struct] | None = None
    row: Any = None

    @property
    def is_object(self) -> bool:
        """Tell whether all fields here lie in an object, so that it is decoded with what is around it."""
        return bool(self.names) and not self.numbers and not self.positions

    def make_struct(self) -> None:
        """Make the struct of the names, and those of the objects within it, and their decoders."""
        members = []
        for k, (name, inner) in enumerate(self.names.items()):
            if inner.names or inner.positions:
                inner.make_struct()
            kind, default = (inner.struct | None, None) if inner.is_object and inner.struct is not None else (Raw, NOTHING)
            members.append((f"f{k}", kind, msgspec.field(default=default, name=name)))
        for inner in self.positions.values():
            if inner.names or inner.positions:
                inner.make_struct()
        self.struct = msgspec.defstruct("Row", members, gc=False)
        self.row = msgspec.json.Decoder(self.struct)


@dataclass(frozen=True, slots=True, eq=False)
class FieldReader:
    """Reads some fields of values.

    `row` decodes one object, and `rows` an array of them, where `of_objects` says that rows are objects.
    """

    root: _Place
    count: int
    row: Any
    rows: Any

    @property
    def of_objects(self) -> bool:
        return not self.root.positions

    def decode(self, token: Token) -> Any:
        """Return one row for `columns`.

        Raises: one of FAULTS where it is no object, or no array where fields are positions.
        """
        if not self.of_objects:
            RAWS.decode(token)
            return token
        try:
            return self.row.decode(token)
        except msgspec.ValidationError:
            if bytes(token).lstrip()[:1] != b"{":
                raise
            return _decode_levels(self.root, token)

    def columns(self, rows: Sequence[Any]) -> list[Column]:
        """Return the column of each field."""
        found: list[list[Raw]] = [[] for _ in range(self.count)]
        if self.of_objects:
            _read_objects(self.root, rows, found)
        else:
            _read_tokens(self.root, rows, found)
        return [column_of_tokens(tokens) for tokens in found]


@lru_cache(maxsize=256)
def reader_of(fields: tuple[str, ...]) -> FieldReader:
    """Return the reader of these fields. Raises: InvalidMapping."""
    root = _Place()
    for number, name in enumerate(fields):
        place = root
        for step in steps_of(name):
            place = place.positions.setdefault(step, _Place()) if isinstance(step, int) else place.names.setdefault(step, _Place())
        place.numbers.append(number)
    root.make_struct()
    rows: Any = GenericAlias(list, (root.struct,))
    return FieldReader(root, len(fields), root.row, msgspec.json.Decoder(rows))


def _decode_levels(place: _Place, token: Token) -> Any:
    """Return an object with its inner objects, decoded level by level; None in place of what is no object."""
    raw: dict[str, Raw] = _MEMBERS.decode(token)
    found: dict[str, Any] = {}
    for k, (name, inner) in enumerate(place.names.items()):
        value = raw.get(name, NOTHING)
        if inner.is_object:
            found[f"f{k}"] = _decode_levels(inner, value) if bytes(value)[:1] == b"{" else None
        else:
            found[f"f{k}"] = value
    assert place.struct is not None
    return place.struct(**found)


_MEMBERS = msgspec.json.Decoder(dict[str, Raw])


def _read_objects(place: _Place, rows: Sequence[Any], found: list[list[Raw]]) -> None:
    """Read the fields within objects, None where there is none."""
    for k, inner in enumerate(place.names.values()):
        name = f"f{k}"
        if inner.is_object:
            _read_objects(inner, [None if row is None else getattr(row, name) for row in rows], found)
        else:
            _read_tokens(inner, [NOTHING if row is None else getattr(row, name) for row in rows], found)


def _read_tokens(place: _Place, tokens: Sequence[Raw], found: list[list[Raw]]) -> None:
    """Read the fields at a place that is a value of any kind.

    A field that is a value here and an object there is absent there.
    """
    if not place.names and not place.positions:
        for number in place.numbers:
            found[number] = list(tokens)
        return
    firsts = [bytes(token)[:1] for token in tokens]
    for number in place.numbers:
        found[number] = [NOTHING if first in (b"{", b"[") else token for token, first in zip(tokens, firsts, strict=True)]
    if place.positions:
        arrays = [_decode_array(token) if first == b"[" else [] for token, first in zip(tokens, firsts, strict=True)]
        for position, inner in place.positions.items():
            _read_tokens(inner, [array[position] if position < len(array) else NOTHING for array in arrays], found)
    if place.names:
        objects = [_decode_object(place, token) if first == b"{" else None for token, first in zip(tokens, firsts, strict=True)]
        _read_objects(place, objects, found)


def _decode_array(token: Token) -> list[Raw]:
    try:
        found: list[Raw] = RAWS.decode(token)
    except FAULTS:
        return []
    return found


def _decode_object(place: _Place, token: Token) -> Any:
    try:
        return place.row.decode(token)
    except msgspec.ValidationError:
        return _decode_levels(place, token)
    except FAULTS:
        return None


def member_of(token: Token, name: str) -> Raw:
    """Return a member of an object, nothing where it has none of this name.

    Raises: one of FAULTS where it is no object.
    """
    found: Raw = reader_of_member(name).decode(token).f0
    return found


@lru_cache(maxsize=256)
def reader_of_member(name: str) -> Any:
    """Return the decoder of objects of which one member is wanted."""
    return msgspec.json.Decoder(msgspec.defstruct("Row", [("f0", Raw, msgspec.field(default=NOTHING, name=name))], gc=False))
