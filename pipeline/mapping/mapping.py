"""This module reads mapping documents, which say how fields of CSV, JSON or lines become triples, and checks them
member by member.

A document is compiled once to a `Mapping`. The words of W3C's CSVW are synonyms: aboutUrl, propertyUrl, valueUrl,
datatype, null, lang.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from epsparql.deferred_methods import dataclass
from epsparql.terms import RDF, XSD
from pipeline.errors import InvalidMapping
from pipeline.formats.namespaces import NO_NAMES, Namespaces
from pipeline.mapping.csv_dialect import DIALECT_MEMBERS, CsvDialect, NumberFormat, find_groups, read_dialect, read_number_format
from pipeline.mapping.json_ld_context import Context, read_context
from pipeline.mapping.templates import Template, parse_template
from pipeline.mapping.time_formats import TimeFormat, read_time_format

MAX_PROPERTIES, MAX_WORDS, MAX_DEPTH = 500, 100, 16
"""A mapping has at most so many properties; a list in it so many members; a path so many steps."""
FORMATS = ("csv", "json", "lines")
MOST_TIME_FIELDS = 8
MEMBERS = (
    "format", "items", "time", "time_format", "time_zone", "round", "key", "base", "prefixes", "subject", "aboutUrl", "properties",
    "@context", "types",
    "null", *DIALECT_MEMBERS,
)  # fmt: skip
PROPERTY_MEMBERS = ("iri", "propertyUrl", "value", "valueUrl", "datatype", "null", "lang")
_CSVW_TYPES = {"number": "double", "datetime": "dateTime", "binary": "base64Binary", "any": "anyAtomicType"}
_XSD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_TAG = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_STEP = re.compile(r"(?:[^.\\]|\\.)+", re.DOTALL)
_UNREADABLE = re.compile(r'[\\"\x00-\x1f]')
"""Names of members that have one of these cannot be read: msgspec takes none."""
_POSITIONS = re.compile(r"(.*?)((?:(?<!\\)\[\d{1,4}\])*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Property:
    """Says what triple a field gives: its predicate, and its object, which is an IRI by `value` or else a literal."""

    field: str
    iri: Template
    value: Template | None
    datatype: str | None
    lang: str | None
    null: tuple[str, ...] | None  # None: those of the mapping

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields that make its triple."""
        return tuple(dict.fromkeys([*self.iri.fields, *([self.field] if self.value is None else self.value.fields)]))


@dataclass(frozen=True, slots=True)
class Mapping:
    """Says how rows become triples. `by_json_ld` types numbers as JSON-LD does, and not as Turtle does."""

    format: str | None
    items: tuple[tuple[str, ...], ...]  # the paths to rows; () where each document is a row
    time: tuple[str, ...]  # the texts of several fields are joined by spaces; () for none
    time_format: TimeFormat
    key: tuple[str, ...]
    names: Namespaces
    subject: Template | None
    properties: tuple[Property, ...]
    types: tuple[Template, ...]
    null: tuple[str, ...] | None  # None: the empty cell in CSV, nothing in JSON
    dialect: CsvDialect
    numbers: NumberFormat
    by_json_ld: bool

    def rounded(self) -> "Mapping":
        """Return the mapping that rounds times finer than a microsecond."""
        return replace(self, time_format=replace(self.time_format, rounds=True))

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields that are read, each once."""
        templates = [self.subject, *(each for one in self.properties for each in (one.iri, one.value))]
        named = [*self.key, *self.time, *(one.field for one in self.properties if one.value is None)]
        return tuple(dict.fromkeys([*named, *(field for template in templates if template is not None for field in template.fields)]))


@lru_cache(maxsize=256)
def compile_mapping(text: str, base: str = "") -> Mapping:
    """Return the mapping of a document's JSON text; `base` stands in for a base of its own. Raises: InvalidMapping."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise InvalidMapping("", f"the mapping is no JSON: {fault}", "a JSON object") from None
    return read_mapping(document, base)


def read_mapping(document: Any, base: str = "") -> Mapping:
    """Return the mapping of a document. Raises: InvalidMapping."""
    found = _object(document, "", MEMBERS)
    context = read_context(found["@context"]) if "@context" in found else None
    if context is not None and "properties" in found:
        raise InvalidMapping("@context", "excludes properties", "one of the two")
    names = _namespaces(found, base, context)
    subject = _synonym(found, "subject", "aboutUrl", "")
    mapping = Mapping(
        format=_one_of(found, "format", FORMATS),
        items=tuple(parse_items(path) for path in _words(found["items"], "items")) if "items" in found else (),
        time=_time_fields(found["time"]) if "time" in found else (),
        time_format=read_time_format(found),
        key=_words(found["key"], "key") if "key" in found else (),
        names=names,
        subject=parse_template(found[subject], subject, names) if subject else _subject_of(context, names),
        properties=tuple(_properties(found, names, context)),
        types=tuple(parse_template(each, "types", names) for each in _words(found["types"], "types")) if "types" in found else (),
        null=_words(found["null"], "null") if "null" in found else None,
        dialect=read_dialect(found),
        numbers=read_number_format(found),
        by_json_ld=context is not None,
    )
    if not mapping.properties and not mapping.types:
        raise InvalidMapping("properties", "is missing", 'what each field becomes, such as {"temp": ":temperature"}; a @context; or types')
    if any(template.fields for template in mapping.types):
        raise InvalidMapping("types", "have fields in braces", 'IRIs; for a class from a field, a property with the iri "rdf:type" and a value')
    _check_groups(mapping)
    for member in ("time_format", "time_zone", "round"):
        if member in found and not mapping.time:
            raise InvalidMapping(member, "is given without time", "time, the name of the field")
    return mapping


def _check_groups(mapping: Mapping) -> None:
    """Check that a pattern of lines names each field. Raises: InvalidMapping."""
    groups = find_groups(mapping.dialect.pattern) if mapping.dialect.pattern else None
    unknown = next((field for field in mapping.fields if groups is not None and field not in groups), None)
    if groups is not None and unknown is not None:
        raise InvalidMapping(unknown, "is no group of the pattern", f"one of {', '.join(groups[:MAX_WORDS])}")


def parse_items(path: str) -> tuple[str, ...]:
    """Return the steps of a path to rows; the step "*" goes to each element of an array. Raises: InvalidMapping."""
    steps: list[str] = []
    for piece in re.split(r"(?<!\\)\.", path):
        name = re.sub(r"(\[\*\])+$", "", piece)
        steps += [*([_unescape(name)] if name else []), *["*"] * ((len(piece) - len(name)) // 3)]
        if not piece or re.search(r"(?<!\\)[][]", name) or not is_readable(_unescape(name)):
            raise InvalidMapping("items", f"{path!r} is no path to rows", 'names and [*], such as "readings[*]" or "data.readings[*]"')
    if len(steps) > MAX_DEPTH:
        raise InvalidMapping("items", f"has more than {MAX_DEPTH} steps", "a shorter path")
    return tuple(steps)


def steps_of(field: str) -> tuple[str | int, ...]:
    """Return the names and positions on the way to a field of JSON.

    `a.b` is b in a, `a[0]` the first element of a, `a\\.b` one name. Raises: InvalidMapping.
    """
    steps = list[str | int]()
    for piece in _STEP.findall(field):
        name, positions = _POSITIONS.fullmatch(piece).groups()  # type: ignore[union-attr]  # it matches any text
        steps += [*([_unescape(name)] if name else []), *(int(position) for position in re.findall(r"\d+", positions))]
    if len(steps) > MAX_DEPTH:
        raise InvalidMapping(field, f"has more than {MAX_DEPTH} steps", "a shorter path")
    if not all(is_readable(step) for step in steps if isinstance(step, str)):
        message = "has a quotation mark, a backslash or a control character, which the names of members of JSON may not have here"
        raise InvalidMapping(field, message, 'another name of the member; "format": "csv" if it is a column of CSV')
    return tuple(steps) or (field,)


def is_readable(name: str) -> bool:
    """Tell whether a member of JSON can be read by its name."""
    return _UNREADABLE.search(name) is None


def escape_name(name: str) -> str:
    """Return a member's name as it stands in a path."""
    return re.sub(r"([\\.\[\]])", r"\\\1", name)


def _unescape(name: str) -> str:
    return re.sub(r"\\([\\.\[\]])", r"\1", name)


# ---------------------------------------------------------------- members
def _namespaces(found: dict[str, Any], base: str, context: Context | None) -> Namespaces:
    prefixes = dict(context.prefixes) if context is not None else {}
    for name, iri in _object(found.get("prefixes", {}), "prefixes").items():
        prefixes[name.removesuffix(":")] = _absolute(iri, f"prefixes.{name}")
    if len(prefixes) > MAX_WORDS:
        raise InvalidMapping("prefixes", f"has more than {MAX_WORDS} members", "fewer prefixes")
    own = _absolute(found["base"], "base") if "base" in found else (context.base if context is not None and context.base else base)
    return Namespaces(own, prefixes)


def _absolute(iri: Any, member: str) -> str:
    if not isinstance(iri, str) or not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", iri):
        raise InvalidMapping(member, "is no IRI", "an absolute IRI such as http://example.org/")
    parse_template(iri, member, NO_NAMES)
    return iri


def check_base(base: str) -> str:
    """Return a stream's base. Raises: InvalidMapping."""
    return _absolute(base, "base") if base else ""


def _subject_of(context: Context | None, names: Namespaces) -> Template | None:
    return parse_template(f"{{+{context.subject}}}", "@context", names) if context is not None and context.subject is not None else None


def _properties(found: dict[str, Any], names: Namespaces, context: Context | None) -> Iterable[Property]:
    documents = _object(found.get("properties", {}), "properties") if context is None else context.properties
    if len(documents) > MAX_PROPERTIES:
        raise InvalidMapping("properties", f"has more than {MAX_PROPERTIES} members", "fewer properties, or the data in several streams")
    for field, document in documents.items():
        yield _read_property(field, document, names)


def _read_property(field: str, document: Any, names: Namespaces) -> Property:
    where = f"properties.{field}"
    found = {"iri": document} if isinstance(document, str) else _object(document, where, PROPERTY_MEMBERS)
    iri, value = (_synonym(found, *pair, where) for pair in (("iri", "propertyUrl"), ("value", "valueUrl")))
    if iri is None:
        raise InvalidMapping(where, "has no iri", 'the predicate, such as {"iri": ":temperature"}')
    for name in ("datatype", "lang"):
        if value is not None and name in found:
            raise InvalidMapping(f"{where}.{name}", f"excludes {value}, which gives an IRI", "one of the two")
    if "datatype" in found and "lang" in found:
        raise InvalidMapping(f"{where}.lang", "excludes datatype", "one of the two")
    if "lang" in found and not (isinstance(found["lang"], str) and _TAG.fullmatch(found["lang"])):
        raise InvalidMapping(f"{where}.lang", "is no language tag", 'a tag such as "en"')
    return Property(
        field,
        parse_template(found[iri], f"{where}.{iri}", names),
        parse_template(found[value], f"{where}.{value}", names) if value else None,
        _datatype(found["datatype"], f"{where}.datatype", names) if "datatype" in found else None,
        found["lang"].lower() if "lang" in found else None,
        _words(found["null"], f"{where}.null") if "null" in found else None,
    )


def _datatype(name: Any, member: str, names: Namespaces) -> str:
    """Return a datatype's IRI; a name alone is one of XSD's or CSVW's."""
    if isinstance(name, str) and _XSD_NAME.fullmatch(name):
        return XSD + _CSVW_TYPES.get(name, name)
    template = parse_template(name, member, names)
    if template.fields:
        raise InvalidMapping(member, "has a field in braces", "one datatype such as xsd:decimal")
    iri = str(template.parts[0])
    if iri == RDF + "langString":
        raise InvalidMapping(member, "is of texts with a language", 'lang, such as "en"')
    return iri


def _time_fields(value: Any) -> tuple[str, ...]:
    fields = _words(value, "time")
    if not fields or not all(fields) or len(fields) > MOST_TIME_FIELDS:
        raise InvalidMapping("time", "names no field", f'the name of a field, or a list of at most {MOST_TIME_FIELDS}, such as ["Date", "Time"]')
    return fields


# ---------------------------------------------------------------- what a member may be
def _object(value: Any, member: str, allowed: tuple[str, ...] = ()) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidMapping(member, "is no object", "a JSON object")
    for name in value:
        if allowed and name not in allowed:
            raise InvalidMapping(f"{member}.{name}" if member else name, "is not known here", ", ".join(allowed))
    return value


def _read_text(found: dict[str, Any], name: str) -> str:
    value = found[name]
    if not isinstance(value, str) or not value:
        raise InvalidMapping(name, "is no text", "a string that is not empty")
    return value


def _one_of(found: dict[str, Any], name: str, allowed: tuple[str, ...]) -> str | None:
    if name in found and found[name] not in allowed:
        raise InvalidMapping(name, f"cannot be {found[name]!r}", " or ".join(allowed))
    return found.get(name)


def _words(value: Any, member: str) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InvalidMapping(member, "is no text", "a string, or a list of strings")
    if len(words) > MAX_WORDS:
        raise InvalidMapping(member, f"has more than {MAX_WORDS} members", "fewer")
    return tuple(words)


def _synonym(found: dict[str, Any], name: str, csvw: str, where: str) -> str | None:
    """Return which of two words of one meaning is used."""
    if name in found and csvw in found:
        raise InvalidMapping(f"{where}.{csvw}".lstrip("."), f"means the same as {name}", "one of the two")
    return next((word for word in (name, csvw) if word in found), None)


__all__ = ["FORMATS", "Mapping", "Property", "check_base", "compile_mapping", "escape_name", "parse_items", "read_mapping", "steps_of"]
