"""This module proposes what the values of a field become: numbers, times or texts, and which words mean that there is
none.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from epsparql.deferred_methods import dataclass
from epsparql.terms import XSD
from pipeline.mapping.columns import CELL, NUMBER, STRING, Column
from pipeline.mapping.csv_dialect import NumberFormat
from pipeline.mapping.literals import DECIMAL, DOUBLE, INTEGER, find_ill_formed
from pipeline.mapping.mapping import MAX_WORDS
from pipeline.proposals.choices import Choices
from pipeline.proposals.fields import Field

NO_VALUE = frozenset(
    ("", "m", "mm", "-", "--", "---", "unavailable", "unknown", "na", "n/a", "n.a.", "nan", "null", "none", "nil", "#n/a", "missing", "?")
)
"""These words, in capital or small letters, mean that there is no value in a column whose other values are numbers."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_CODE = re.compile(r"[+-]?0[0-9]+")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_GROUPED_BY_POINTS = re.compile(r"[+-]?[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]+)?")
_GROUPED_BY_COMMAS = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_DATES = (("dateTime", r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"), ("date", r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))
_TEXT_NAMES = frozenset(["version", "code", "zip", "plz", "postcode", "phone", "unit", "units"])
"""Texts of JSON under these names stay text, also if they are numbers."""
_SHOWN = 3
_DECIMAL_COMMAS, _GROUPING_COMMAS = "numbers with decimal commas", "numbers with commas between thousands"
_NUMBERS, _MIXED, _TEXT = "numbers", "numbers and text", "text"


@dataclass(frozen=True, slots=True)
class ValueGuess:
    """Holds the words of a property beside its iri, and what was guessed about it, "" where nothing is in doubt.

    `kind` names the values, and `others` has the words for each other kind that they can be.
    """

    words: dict[str, Any]
    comment: str = ""
    kind: str = ""
    others: tuple[tuple[str, dict[str, Any]], ...] = ()

    def settle_kind(self, setting: str, choices: Choices) -> "ValueGuess":
        """Return the guess with the kind that a user chose. Raises: FormatError."""
        if not self.others:
            return self
        kind = choices.choose_value(setting, [self.kind, *(kind for kind, _ in self.others)])
        return (
            self if kind == self.kind else ValueGuess(dict(self.others)[kind], f"values are {kind}, as you say; the alternative is {self.kind}", kind)
        )


def is_number(text: str) -> bool:
    """Tell whether a text is a number, also one with a decimal comma or with commas between thousands."""
    return any(form.fullmatch(text) for form in (_NUMBER, _DECIMAL_COMMA, _GROUPED_BY_POINTS, _GROUPED_BY_COMMAS))


def find_no_values(field: Field) -> list[str]:
    """Return the words of a field that mean "no value": where all other values are numbers."""
    words = [text for text in field.texts if text.lower() in NO_VALUE]
    if not words or len(words) == len(field.texts) or not all(is_number(text) for text in field.texts if text.lower() not in NO_VALUE):
        return []
    return words


def find_shared_words(fields: Sequence[Field]) -> dict[str, list[str]]:
    """Return by path the words that mean "no value" in each field.

    A word that has this meaning in a column of numbers has it in other columns too, if they have numbers or nothing
    else.
    """
    found = {field.path: find_no_values(field) for field in fields}
    shared = {word for words in found.values() for word in words}
    for field in fields:
        words = [text for text in field.texts if text in shared]
        if field.is_cell and (len(words) == len(field.texts) or any(map(is_number, field.texts))):
            found[field.path] = words
    return found


def guess_number_format(fields: Sequence[Field], delimiter: str, choices: Choices) -> tuple[dict[str, str], list[str]]:
    """Return how cells write numbers that Turtle would not read so, and what was guessed about it. Raises: FormatError."""
    words, told = _find_number_format(fields, delimiter)
    if not words:
        return words, told
    ways = {_DECIMAL_COMMAS: words} if "decimal" in words else {_GROUPING_COMMAS: words, _DECIMAL_COMMAS: {"decimal": ","}}
    chosen = choices.choose_value("numbers", [*ways, _TEXT])
    return (words, told) if ways.get(chosen) is words else (ways.get(chosen, {}), [f"cells with commas are read as {chosen}, as you say"])


def _find_number_format(fields: Sequence[Field], delimiter: str) -> tuple[dict[str, str], list[str]]:
    comma, points, commas = list[str](), list[str](), list[str]()
    for field in fields:
        texts = [text for text in field.texts if text.lower() not in NO_VALUE]
        if all(_GROUPED_BY_COMMAS.fullmatch(text) or _NUMBER.fullmatch(text) for text in texts) and delimiter != ";":
            commas += [text for text in texts if "," in text]
        elif all(_DECIMAL_COMMA.fullmatch(text) or _GROUPED_BY_POINTS.fullmatch(text) or _NUMBER.fullmatch(text) for text in texts):
            comma += [text for text in texts if "," in text]
            points += [text for text in texts if _GROUPED_BY_POINTS.fullmatch(text)]
    if comma:
        if any("," in text for text in points):
            return {"decimal": ",", "group": "."}, [
                f"{comma[0]!r} is a number with a decimal comma, and points stand between thousands; without decimal and group it is text"
            ]
        value = comma[0].replace(",", ".")
        grouped = f'; {points[0]!r} is read as it stands: group "." makes it {points[0].replace(".", "")}' if points else ""
        return {"decimal": ","}, [f"{comma[0]!r} is the number {value}, with a decimal comma; without decimal it is text{grouped}"]
    if commas:
        shown = commas[0].replace(",", "")
        return {"group": ","}, [f'{commas[0]!r} is the number {shown}, with commas between thousands; decimal "," makes commas decimal marks']
    return {}, []


def guess_values(field: Field, null: Sequence[str], numbers: NumberFormat, *, is_identifier: bool) -> ValueGuess:
    """Return what the values of a field become, so that each of them has that form. The words of `null` mean no value."""
    words: dict[str, Any] = {"null": [*([""] if "" not in null and field.is_cell else []), *null]} if null else {}
    told = f"{', '.join(map(repr, null[:_SHOWN]))} {'means' if len(null) == 1 else 'mean'} no value; without null it is text" if null else ""
    kept = field.without(null) if null else field
    read = numbers.rewrite(kept.values)
    texts: list[str] = read.texts.to_pylist()
    if not texts or kept.has_booleans:
        return ValueGuess(words, told)
    if not all(_NUMBER.fullmatch(text) for text in texts):
        return _guess_texts(kept, texts, words)
    code = next((text for text in texts if _CODE.fullmatch(text)), None)
    if code is not None and all(re.fullmatch(r"[+-]?[0-9]+", text) for text in texts):
        return ValueGuess(
            words | {"datatype": "xsd:string"},
            f"{code!r} begins with zero, so values are codes and text; datatype xsd:integer makes them numbers",
            _TEXT,
            ((_NUMBERS, words | {"datatype": "xsd:integer"}),),
        )
    are_strings = bool((read.kinds == STRING).all())
    if are_strings and (is_identifier or _TEXT_NAMES & set(field.words)):
        told = f"texts such as {texts[0]!r} stay text; datatype xsd:decimal makes them numbers"
        name = next((each for each in ("decimal", "double") if not find_ill_formed(read, XSD + each)), None)
        return ValueGuess(words, told, _TEXT, ((_NUMBERS, words | {"datatype": f"xsd:{name}"}),) if name else ())
    return _guess_numbers(read, words, told, are_strings=are_strings)


def _guess_numbers(read: Column, words: dict[str, Any], told: str, *, are_strings: bool) -> ValueGuess:
    """Return the guess for numbers: without a datatype where Turtle reads all of them alike."""
    texts = read.texts.to_pylist()
    alike = any(all(re.search(form, text) for text in texts) for form in (INTEGER, DECIMAL, DOUBLE))
    if alike and bool(np.isin(read.kinds, (CELL, NUMBER)).all()):
        return ValueGuess(words, told)
    # texts of which all are whole in this file may have fractions in the next one
    names = ("decimal", "double", "string") if are_strings else ("integer", "decimal", "double", "string")
    name = next(name for name in names if not find_ill_formed(read, XSD + name))
    if are_strings:
        told = "; ".join(filter(None, [told, f"texts such as {texts[0]!r} are numbers; without datatype they stay text"]))
        return ValueGuess(words | {"datatype": f"xsd:{name}"}, told, _NUMBERS, ((_TEXT, words),))
    return ValueGuess(words | {"datatype": f"xsd:{name}"}, told)


def _guess_texts(field: Field, texts: Sequence[str], words: dict[str, Any]) -> ValueGuess:
    """Return the guess for values that are not all numbers: dates, words beside numbers, or texts."""
    if not (field.values.kinds == NUMBER).any():
        for name, form in _DATES:
            if field.matches(form) and not find_ill_formed(field.values, XSD + name):
                return ValueGuess(words | {"datatype": f"xsd:{name}"})
    if not any(_NUMBER.fullmatch(text) for text in texts) or not (np.isin(field.values.kinds, (CELL, NUMBER))).any():
        return ValueGuess(words)
    others = [text for text in texts if not _NUMBER.fullmatch(text)]
    shown = ", ".join(map(repr, others[:_SHOWN]))
    if any(re.search(r"\d", text) for text in others):
        told = f"all values are text, since {shown} is no number; without datatype the others are numbers"
        return ValueGuess(words | {"datatype": "xsd:string"}, told, _TEXT, ((_MIXED, words),))
    told = f"numbers are numbers, and words such as {shown} are text; null {others[0]!r} makes that word no value"
    null = list(dict.fromkeys([*words.get("null", [""] * field.is_cell), *others]))
    return ValueGuess(words, told, _MIXED, ((_NUMBERS, words | {"null": null}),) if len(null) <= MAX_WORDS else ())


__all__ = ["NO_VALUE", "ValueGuess", "find_shared_words", "guess_number_format", "guess_values", "is_number"]
