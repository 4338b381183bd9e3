"""This module expands names and IRI templates such as `sensor/{sensor}`: relative to a base, with prefixes, and with
values percent-encoded.
"""

import re
from urllib.parse import quote

from epsparql.deferred_methods import dataclass
from pipeline.errors import FormatError, InvalidMapping
from pipeline.formats.batches.ntriples import PREDICATES
from pipeline.formats.namespaces import Namespaces

LONGEST_TEMPLATE = 2_000
"""A template has at most this many characters."""
SAFE_VALUE = r"^[A-Za-z0-9._~-]+$"
"""A value of this form stands in an IRI as it is."""

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_ENCODED = re.compile("[^A-Za-z0-9._~\\-\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef]+")
"""R2RML's "IRI-safe" values: all but the characters of `iunreserved` (here: of the first plane) are percent-encoded."""
_NOT_RESERVED = re.compile("[^A-Za-z0-9._~\\-\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef:/?#\\[\\]@!$&'()*+,;=%]+")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """Stands for a field's value; with `reserved` (RFC 6570's `{+name}`) the characters that delimit parts of an IRI
    stay as they are.
    """

    field: str
    reserved: bool


@dataclass(frozen=True, slots=True)
class Template:
    """Holds the texts and placeholders of an IRI.

    A template of one placeholder `{+name}` alone takes an IRI or name from the field.
    """

    parts: tuple[str | Placeholder, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.field for part in self.parts if isinstance(part, Placeholder)))

    @property
    def reference(self) -> str | None:
        """Return the field that gives the whole name; None for any other template."""
        part = self.parts[0]
        return part.field if len(self.parts) == 1 and isinstance(part, Placeholder) and part.reserved else None


def parse_template(text: object, member: str, names: Namespaces) -> Template:
    """Return the template of a mapping's member. Raises: InvalidMapping."""
    if not isinstance(text, str) or not text:
        raise InvalidMapping(member, "is no text", 'an IRI or a template such as "sensor/{sensor}"')
    if len(text) > LONGEST_TEMPLATE:
        raise InvalidMapping(member, f"has more than {LONGEST_TEMPLATE} characters", "a shorter template")
    if any(brace in _PLACEHOLDER.sub("", text) for brace in "{}"):
        raise InvalidMapping(member, f"the braces of {text!r} do not pair", 'each field in braces of its own, such as "sensor/{sensor}"')
    if (whole := _PLACEHOLDER.fullmatch(text)) is not None and whole[1].startswith("+"):
        return Template((_placeholder(whole[1], member),))
    try:
        expanded = names.expand(text)
        PREDICATES.checked(f"<{_PLACEHOLDER.sub('x', expanded)}>")
    except ValueError as fault:
        raise InvalidMapping(member, str(fault), "") from None
    except FormatError as fault:
        raise InvalidMapping(member, f"{text!r} gives no IRI: {fault.message}", "an IRI without spaces") from None
    return Template(tuple(_parts(expanded, member)))


def _parts(text: str, member: str) -> list[str | Placeholder]:
    found: list[str | Placeholder] = []
    for number, piece in enumerate(_PLACEHOLDER.split(text)):  # texts and names by turns
        if number % 2:
            found.append(_placeholder(piece, member))
        elif piece:
            found.append(piece)
    return found


def _placeholder(name: str, member: str) -> Placeholder:
    reserved = name.startswith("+")
    if not name.removeprefix("+"):
        raise InvalidMapping(member, "braces without a field in them", 'the name of a field, such as "{sensor}"')
    if not reserved and name[0] in "#./;?&":
        raise InvalidMapping(member, f"the operator {name[0]!r} of URI templates is not known here", "{name} or {+name}")
    return Placeholder(name.removeprefix("+"), reserved)


def encode_value(value: str, *, reserved: bool = False) -> str:
    """Return the value as it may stand in an IRI."""
    return (_NOT_RESERVED if reserved else _ENCODED).sub(lambda found: quote(found[0], safe=""), value)
