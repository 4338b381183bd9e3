"""This module proposes the subject of rows: the nearest field that identifies the thing which a row is about."""

import re
from collections.abc import Sequence
from typing import Any

from pipeline.proposals.choices import MOST_ALTERNATIVES, Choices
from pipeline.proposals.field_names import clean_name
from pipeline.proposals.fields import Field

_IDENTIFIERS = frozenset(
    ["id", "ids", "uid", "uuid", "guid", "eui", "mmsi", "imo", "imei", "iccid", "mac", "serial", "sn", "icao", "addr", "address", "kennung",
     "seriennummer"]
)  # fmt: skip
_THINGS = frozenset(
    ["sensor", "device", "station", "machine", "meter", "vehicle", "asset", "pump", "probe", "tag", "channel", "location", "site", "buoy",
     "slave", "robot", "ship", "vessel", "symbol", "ticker", "stn", "gerät", "geraet", "messstelle", "standort", "anlage", "maschine",
     "zähler", "zaehler", "kanal", "fahrzeug"]
)  # fmt: skip
"""These words name the thing of a row, alone or before a word such as `name` or `number`: `sensor_type` is none."""
_QUALIFIERS = frozenset(["id", "ids", "name", "no", "nr", "num", "number", "code", "key", "address", "ref"])
_THING_ENDS = ("sensor", "station", "device", "eui", "stelle", "gerät", "maschine")
_NO_IDENTIFIERS = frozenset(
    ["acid", "android", "avoid", "bid", "covid", "fluid", "grid", "humid", "hybrid", "invalid", "lid", "liquid", "mid", "paid", "rapid",
     "rigid", "solid", "valid", "void"]
)  # fmt: skip
"""These words end in "id" too."""
_HOSTS = frozenset(["host", "hostname", "ip", "instance", "node", "thing"])
_LABELS = frozenset(["name", "key", "job", "label", "source", "line", "plant", "room", "raum", "ort", "quelle", "city"])
_GROUPS = frozenset(
    ["route", "trip", "location", "site", "application", "tenant", "gateway", "profile", "group", "project", "account", "region", "area",
     "parent", "join", "org", "organization", "addr", "address"]
)  # fmt: skip
"""Identifiers of these are of what a thing belongs to."""
_OF_EVENTS = frozenset(
    ["event", "message", "msg", "trace", "span", "transaction", "tx", "correlation", "request", "session", "batch", "row", "record", "seq",
     "sequence", "log", "packet", "unique", "context", "boot", "deduplication"]
)  # fmt: skip
_ABOUT_ROWS = frozenset(["source", "meta", "metadata", "header", "headers", "context"])
"""Objects of these names describe how a row came about, and not its thing."""
BLANK_NODE = "a blank node for each row"
MOST_FIELDS = MOST_ALTERNATIVES - 1
_FRACTION = r"^[+-]?[0-9]*[.,][0-9]+$"
_IRI = r"^(?:https?://|urn:)[^\s<>\"{}|\\^`]+$"


def guess_subject(fields: Sequence[Field], choices: Choices) -> tuple[str, list[str], Field | None]:
    """Return the template of the subject, "" for none, what was guessed, and the field that is used.

    Raises: FormatError.
    """
    named = [each for each in fields if _is_usable(each) and _strength(each) is not None]
    found = sorted(named, key=lambda each: _rank(each, fields.index(each)))
    if not found:
        return "", ["no field looks like a subject: each row gets a blank node; name it with subject, such as sensor/{sensor}"], None
    chosen = choices.choose_value("subject", [*(each.path for each in found[:MOST_FIELDS]), BLANK_NODE])
    if chosen == BLANK_NODE:
        return "", [f"each row gets a blank node, as you say; the alternative is {found[0].path!r}"], None
    field = next(each for each in found if each.path == chosen)
    instead = next((f"; the alternative is {each.path!r}" for each in found if each is not field), "")
    if field.matches(_IRI):
        return f"{{+{field.path}}}", [f"the subject is the IRI in {field.path!r}{instead}"], field
    return f"{clean_name(field.last_name)}/{{{field.path}}}", [f"the subject is made of {field.path!r}{instead}"], field


def is_identifier(field: Field) -> bool:
    """Tell whether a field is named as one that identifies something."""
    return _strength(field) in (0, 1, 4)


def _is_usable(field: Field) -> bool:
    """Tell whether each row has a value that can stand in an IRI, and a template can name the field."""
    names_field = not re.search(r"[{}]", field.path) and field.path[0] not in "+#./;?&"
    return field.is_whole and field.is_scalar and "" not in field.texts and names_field and not field.matches(_FRACTION)


def _strength(field: Field) -> int | None:
    """Return how well a name identifies a thing, 0 for its identifier and 4 for that of an event; None for other
    fields.
    """
    words = field.words
    if not words:
        return None
    last, named = words[-1], set(words)
    is_id = last in _IDENTIFIERS or (last.endswith("id") and last not in _NO_IDENTIFIERS)
    is_thing = last in _THINGS or last.endswith(_THING_ENDS) or (last in _QUALIFIERS and bool(_THINGS & named))
    if is_id or is_thing:
        return 4 if _OF_EVENTS & named else 1 if _GROUPS & named else 0
    return 2 if _HOSTS & named else 3 if _LABELS & named else None


def _rank(field: Field, place: int) -> tuple[Any, ...]:
    """Return the rank of a field: within the row first, then one that several rows share, then the nearest, then the
    finest.
    """
    distinct = len(field.texts)
    sharing = 0 if field.rows == 1 or 1 < distinct < field.rows else 1 if distinct == 1 else 2
    describes_row = any(str(step).lower() in _ABOUT_ROWS for step in field.steps[:-1])
    fineness = -distinct if sharing == 0 else 0
    return field.is_around, describes_row, -field.path.count("[*]"), _strength(field), sharing, len(field.steps), fineness, place
