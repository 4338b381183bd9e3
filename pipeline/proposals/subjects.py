"""This module proposes the subject of rows: the nearest field that identifies the thing which a row is about."""

import re
from collections.abc import Sequence
from typing import Any

from pipeline.proposals.field_names import clean_name
from pipeline.proposals.fields import Field

_STRONG = frozenset(
    [
        "id",
        "ids",
        "uid",
        "uuid",
        "guid",
        "eui",
        "mmsi",
        "imo",
        "imei",
        "iccid",
        "mac",
        "serial",
        "sensor",
        "device",
        "station",
        "machine",
        "meter",
        "vehicle",
        "entity",
        "asset",
        "icao",
        "gerät",
        "geraet",
        "kennung",
        "sn",
        "addr",
        "address",
        "ieeeaddr",
        "pump",
        "probe",
        "tag",
        "channel",
        "location",
        "site",
    ]
)
_STRONG_ENDS = ("id", "sensor", "station", "device", "eui")
_WEAK = frozenset(["name", "key", "node", "thing", "host", "hostname", "instance", "job", "label", "source", "unit", "line", "plant", "room"])
_OF_EVENTS = frozenset(
    [
        "event",
        "message",
        "msg",
        "trace",
        "span",
        "transaction",
        "tx",
        "correlation",
        "request",
        "session",
        "batch",
        "row",
        "record",
        "seq",
        "sequence",
        "log",
        "packet",
        "unique",
        "context",
    ]
)
_IRI = r"^(?:https?://|urn:)[^\s<>\"{}|\\^`]+$"


def guess_subject(fields: Sequence[Field]) -> tuple[str, list[str], Field | None]:
    """Return the template of the subject, "" for none, what was guessed, and the field that is used."""
    named = [each for each in fields if _is_usable(each) and _strength(each) is not None]
    found = sorted(named, key=lambda each: _rank(each, fields.index(each)))
    if not found:
        return "", ["no field looks like a subject: each row gets a blank node; name it with subject, such as sensor/{sensor}"], None
    field = found[0]
    instead = f"; the alternative is {found[1].path!r}" if len(found) > 1 else ""
    if field.matches(_IRI):
        return f"{{+{field.path}}}", [f"the subject is the IRI in {field.path!r}{instead}"], field
    return f"{clean_name(field.last_name)}/{{{field.path}}}", [f"the subject is made of {field.path!r}{instead}"], field


def is_identifier(field: Field) -> bool:
    """Tell whether a field is named as one that identifies something."""
    return _strength(field) in (0, 2)


def _is_usable(field: Field) -> bool:
    """Tell whether each row has a value that can stand in an IRI, and a template can name the field."""
    return field.is_whole and field.is_scalar and "" not in field.texts and not re.search(r"[{}]", field.path) and field.path[0] not in "+#./;?&"


def _strength(field: Field) -> int | None:
    """Return 0 for the identifier of a thing, 1 for a name, 2 for the identifier of an event; None for other fields."""
    words = field.words
    if not words:
        return None
    if _STRONG & set(words) or words[-1].endswith(_STRONG_ENDS):
        return 2 if _OF_EVENTS & set(words) else 0
    return 1 if _WEAK & set(words) else None


def _rank(field: Field, place: int) -> tuple[Any, ...]:
    """Return the rank of a field: within the row first, then one that several rows share, then the nearest."""
    distinct = len(field.texts)
    sharing = 0 if field.rows == 1 or 1 < distinct < field.rows else 1 if distinct == 1 else 2
    return field.is_around, _strength(field), sharing, len(field.steps), place
