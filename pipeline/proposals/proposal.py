"""This module proposes a mapping for a file, and says of each guess what else it could be.

1. The layout is found: where rows are, and which fields they have.
2. All rows are read as a mapping reads them, so that the guesses rest on each value of the file.
3. The time, the subject and what each other field becomes are guessed.
4. The mapping is run on the file. Its first rows are the preview.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from epsparql.deferred_methods import dataclass
from epsparql.events.media_types import CSV, JSON, LINES
from pipeline.errors import FormatError
from pipeline.formats.batches.batch_builder import Interval
from pipeline.formats.batches.expansion_budget import ExpansionBudget
from pipeline.mapping.columns import ABSENT, Table
from pipeline.mapping.csv_dialect import read_number_format
from pipeline.mapping.mapper import map_body, read_table, refuse_rejected
from pipeline.mapping.mapping import Mapping as RowMapping
from pipeline.mapping.mapping import compile_mapping, read_mapping
from pipeline.proposals.choices import Choice, Choices
from pipeline.proposals.document_layout import ROWS, find_document_layout
from pipeline.proposals.field_names import name_fields
from pipeline.proposals.fields import Field
from pipeline.proposals.line_layout import find_line_layout
from pipeline.proposals.preview import preview_rows
from pipeline.proposals.subjects import guess_subject, is_identifier
from pipeline.proposals.table_layout import Layout, find_table_layout
from pipeline.proposals.times import AmbiguousDates, guess_time
from pipeline.proposals.values import find_shared_words, guess_number_format, guess_values

_FINDERS: dict[str, Callable[[bytes, Choices], Layout]] = {CSV: find_table_layout, JSON: find_document_layout, LINES: find_line_layout}
_EXPECTED = "a header and a row of CSV, an object of JSON, or lines"


@dataclass(frozen=True, slots=True)
class Proposal:
    """Holds a mapping's document, what was guessed, what the file leaves open, and the triples of the first rows."""

    document: dict[str, Any]
    comments: tuple[str, ...]
    choices: tuple[Choice, ...]
    preview: tuple[tuple[str, ...], ...]


def propose_mapping(body: bytes, media_type: str, base: str, choices: Choices) -> Proposal:
    """Return a mapping for a body that runs on it.

    Raises: FormatError where there are no rows, one cannot be read, or no field has a name that can be read;
    AmbiguousDates.
    """
    layout, table = _read_all(body, media_type, base, choices)
    null = layout.words.get("null", ("",) if table.has_header else ())
    fields = [Field.from_column(path, table.columns[path], null, is_cell=table.has_header) for path in layout.fields]
    comments = [f"looked at {table.count} row{'s'[: table.count != 1]}", *layout.comments, *_tell_unusable(fields)]
    fields = [each for each in fields if each.is_usable]
    time, told, used = guess_time(fields, choices)
    comments += told
    subject, told, about = guess_subject([each for each in fields if each not in used], choices)
    comments += told
    document = layout.words | {"base": base} | time | ({"subject": subject} if subject else {})
    rest = [each for each in fields if each not in used and each is not about]
    document |= _describe_types(rest, table, comments)
    document |= _describe_values(rest, name_fields(fields), layout, choices, comments)
    choices.check_settings()
    mapping = compile_mapping(json.dumps(document))
    return Proposal(document, tuple(comments), tuple(choices.offered.values()), _run(body, media_type, mapping, table))


def _read_all(body: bytes, media_type: str, base: str, choices: Choices) -> tuple[Layout, Table]:
    """Return all fields of all rows. Raises: FormatError where there is none, or one cannot be read."""
    layout = _FINDERS[media_type](body, choices)
    table = _read_rows(body, media_type, layout, base)
    if table.faults and "items" in layout.words:
        told = f"row {_show_fault(table)}; so each document is a row, though items {json.dumps(layout.words['items'])} leads to rows in others"
        layout = find_document_layout(body, None)
        choices.offered.pop(ROWS, None)
        layout.comments.append(told)
        table = _read_rows(body, media_type, layout, base)
    if table.faults:
        raise FormatError("mapping", f"row {_show_fault(table)}", expected="rows that can be read; no mapping runs on this one")
    if not table.count:
        raise FormatError("mapping", "there are no rows to propose a mapping from", expected=_EXPECTED)
    return layout, table


def _read_rows(body: bytes, media_type: str, layout: Layout, base: str) -> Table:
    if not layout.fields:
        raise FormatError("mapping", "; ".join(["no field has a value and a name that can be read", *layout.comments]), expected=_EXPECTED)
    properties = {path: {"iri": "urn:x"} for path in layout.fields}
    mapping = read_mapping(layout.words | {"base": base, "properties": properties})
    return read_table(body, media_type, mapping, ExpansionBudget(len(body)))


def _show_fault(table: Table) -> str:
    fault = min(table.faults)
    return f"{fault.row + 1}: {fault.reason}"


def _describe_types(fields: Sequence[Field], table: Table, comments: list[str]) -> dict[str, Any]:
    """Return a class for the rows where some would give no triple, which does not map; add why."""
    present = [table.columns[each.path].indices != ABSENT for each in fields]
    if not present:
        comments.append("no field is left for properties: each row becomes an :Event")
    elif not table.has_header and not (found := np.any(present, axis=0)).all():
        comments.append(f"row {int(np.argmin(found)) + 1} has none of the fields below, so each row becomes an :Event; without types it does not map")
    else:
        return {}
    return {"types": [":Event"]}


def _tell_unusable(fields: Sequence[Field]) -> list[str]:
    return [
        f"{each.path!r} is left out: it has arrays or objects, or bytes that are no UTF-8; a path or items may lead into it"
        for each in fields
        if not each.is_usable
    ]


def _describe_values(fields: Sequence[Field], names: Mapping[str, str], layout: Layout, choices: Choices, comments: list[str]) -> dict[str, Any]:
    """Return the words about what fields become; add what was guessed."""
    cells = [each for each in fields if each.is_cell]
    words, told = guess_number_format(cells, layout.words.get("delimiter", ","), choices)
    comments += told
    numbers = read_number_format(words)
    properties: dict[str, Any] = {}
    null = find_shared_words(fields)
    for each in fields:
        absent = null[each.path]
        if absent and choices.choose_value(f"null:{each.path}", ("no value", "text")) == "text":
            absent = []
        guess = guess_values(each, absent, numbers, is_identifier=is_identifier(each)).settle_kind(f"values:{each.path}", choices)
        iri = f":{names[each.path]}"
        properties[each.path] = {"iri": iri} | guess.words if guess.words else iri
        comments.append(
            f"{each.path!r}: {iri}{' as ' + guess.words['datatype'] if 'datatype' in guess.words else ''}"
            f"{'; ' + guess.comment if guess.comment else ''}"
        )
    return words | ({"properties": properties} if properties else {})


def _run(body: bytes, media_type: str, mapping: RowMapping, table: Table) -> tuple[tuple[str, ...], ...]:
    """Return the triples of the first rows, after the mapping has run on all of them.

    Raises: FormatError where a row does not map.
    """
    timeless = Interval(0, 0)
    refuse_rejected(map_body(body, media_type, mapping, timeless))
    return preview_rows(replace(table, faults=()), mapping)


__all__ = ["AmbiguousDates", "Choices", "Proposal", "propose_mapping"]
