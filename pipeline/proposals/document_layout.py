"""This module finds the rows in documents of JSON: the documents themselves, or the elements of arrays within them,
at any depth.

An array has the rows if its elements have times of their own. Where the document has a time too, the part with more
values has the rows.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from epsparql.deferred_methods import dataclass
from pipeline.errors import FormatError
from pipeline.mapping.csv_dialect import to_utf8
from pipeline.mapping.json_fields import Token
from pipeline.mapping.json_reader import ROOT, split_documents
from pipeline.mapping.mapping import MAX_DEPTH, MAX_PROPERTIES, escape_name, is_readable
from pipeline.proposals.choices import Choices
from pipeline.proposals.table_layout import Layout
from pipeline.proposals.times import is_time_name

LOOKED_AT = 1_000
"""The fields of so many documents, and of so many rows, are found."""
_POSITIONS = 4  # the positions of an array of at most so many numbers become fields
_LONGEST_TUPLE = 32
_LONGEST_PATH = 200
_ALL = "[*]"
ROWS, _DOCUMENTS = "rows", "documents"
_ISO = re.compile(r"(?:19|20)\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d.*)?")
_EPOCH = re.compile(r"(?:\d{9,10}|\d{12,13}|\d{15,16}|\d{18,19})(?:\.\d+)?")
_ENVELOPE = ("schema", "payload")
"""Kafka Connect sends a record as its payload, with a schema that describes it."""
Path: TypeAlias = tuple[str, ...]


class _Written(str):
    """Holds a JSON number as it is written."""


@dataclass(slots=True)
class _Array:
    """Counts what the elements of the arrays at a path have: values of their own, elements with a time, documents
    with such an array.
    """

    elements: int = 0
    values: int = 0
    timed: int = 0
    documents: int = 0
    samples: list[Any] = field(default_factory=list)


def find_document_layout(body: bytes, choices: Choices | None) -> Layout:
    """Return where the rows of a body are, and their fields.

    Without `choices` each document is a row. Raises: FormatError where there are none.
    """
    documents = [_decode(bytes(each)) for each in split_documents(to_utf8(body))[:LOOKED_AT]]
    if not documents:
        raise FormatError("mapping", "there are no rows to propose a mapping from", expected="an object of JSON, or an array or lines of them")
    root = _Array()
    arrays: dict[Path, _Array] = {}
    for document in documents:
        _survey(document, (), root, arrays)
    chosen = _choose_rows(_choose(documents, root, arrays), arrays, choices) if choices is not None else []
    words: dict[str, Any] = {"format": "json"}
    if not chosen:
        told = [f"each document is a row; {_tell_left_out(map(_show, arrays))}, and items leads to their elements"] if arrays else []
        return Layout(words, _limit(_paths(documents), told), told)
    shown = [_show(path) for path in chosen]
    words["items"] = shown[0] if len(shown) == 1 else shown
    told = [f"rows are the elements of {' and '.join(map(repr, shown))}; without items each document is a row"]
    others = [path for path in arrays if all(path != each[: len(path)] for each in chosen)]
    told += [f"{_tell_left_out(map(_show, others))}; a position, such as values[0], leads into one"] if others else []
    rows = [row for path in chosen for row in arrays[path].samples]
    return Layout(words, _limit([*_paths(rows), *_paths_around(documents, chosen[0])], told), told)


def _choose_rows(best: list[Path], arrays: Iterable[Path], choices: Choices) -> list[Path]:
    """Return the paths of the arrays that a user chose, [] for the documents, else the best ones."""
    ways = {", ".join(map(_show, paths)) or _DOCUMENTS: paths for paths in (best, [], *([path] for path in arrays))}
    return ways[choices.choose_value(ROWS, list(ways))] if len(ways) > 1 else best


def _tell_left_out(arrays: Iterable[str]) -> str:
    shown = sorted(arrays)
    named = f"{', '.join(map(repr, shown[:3]))}{' and others' if len(shown) > 3 else ''}"
    return f"the array {named} is left out" if len(shown) == 1 else f"the arrays {named} are left out"


def _decode(text: Token) -> Any:
    try:
        return json.loads(text, parse_float=_Written, parse_int=_Written)
    except (ValueError, RecursionError):
        return None


def _limit(paths: Sequence[str], told: list[str]) -> tuple[str, ...]:
    """Return the paths that a mapping takes: not those of arrays as a whole, nor very long ones, nor more than it may
    have.
    """
    arrays = [path.removesuffix(_ALL) for path in dict.fromkeys(paths) if path.endswith(_ALL)]
    if arrays:
        told.append(f"{_tell_left_out(arrays)}; a position leads into one, such as {arrays[0]}[0]")
    found = tuple(path for path in dict.fromkeys(paths) if len(path) <= _LONGEST_PATH and not path.endswith(_ALL))
    if len(found) > MAX_PROPERTIES:
        told.append(f"the fields after {found[MAX_PROPERTIES - 1]!r} are left out: a mapping has at most {MAX_PROPERTIES}")
    return found[:MAX_PROPERTIES]


# ---------------------------------------------------------------- arrays
def _survey(value: Any, path: Path, own: _Array, arrays: dict[Path, _Array]) -> bool:
    """Count the values beneath a place, and those of arrays in it; return whether one outside of inner arrays is a
    time.
    """
    if len(path) >= MAX_DEPTH:
        return False
    if isinstance(value, dict):
        times = [_survey(each, (*path, name), own, arrays) for name, each in _members(value)]
        return any(times)
    if isinstance(value, list) and any(isinstance(each, dict) or _is_tuple(each) for each in value):
        array = arrays.setdefault((*path, "*"), _Array())
        array.documents += 1
        for each in value:
            array.elements += 1
            array.timed += _survey(each, (*path, "*"), array, arrays)
            if len(array.samples) < LOOKED_AT:
                array.samples.append(each)
        return False
    if isinstance(value, list):
        own.values += 1
        return _is_tuple(value)
    own.values += 1
    return _is_time(value)


def _members(value: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the members of an object whose names can be read, without the schema of a payload."""
    yield from ((name, each) for name, each in value.items() if is_readable(name) and not (name == _ENVELOPE[0] and _ENVELOPE[1] in value))


def _is_tuple(value: Any) -> bool:
    """Tell whether a value is an array of a time and some values."""
    return (
        isinstance(value, list)
        and 2 <= len(value) <= _LONGEST_TUPLE
        and _is_time(value[0])
        and not all(map(_is_time, value))
        and not any(isinstance(each, dict | list) for each in value)
    )


def _is_time(value: Any) -> bool:
    if isinstance(value, _Written):
        return _EPOCH.fullmatch(value) is not None
    return isinstance(value, str) and (_ISO.fullmatch(value) or _EPOCH.fullmatch(value)) is not None


def _choose(documents: Sequence[Any], root: _Array, arrays: dict[Path, _Array]) -> list[Path]:
    """Return the paths of the arrays whose elements are rows; [] where documents are."""
    if all(isinstance(each, list) for each in documents):
        return _choose_timed({path: each for path, each in arrays.items() if path[0] == "*"}) or [path for path in arrays if path == ("*",)]
    timed = _choose_timed(arrays)
    has_time = all(map(_has_time, documents))
    if timed:
        inside = sum(arrays[path].values for path in timed)
        return timed if not has_time or 2 * inside >= root.values + inside else []
    whole = [path for path, each in arrays.items() if each.documents == len(documents) and path.count("*") == 1 and len(path) <= 3]
    tables = [path for path in whole if all(isinstance(sample, dict) for sample in arrays[path].samples)]
    if len(tables) == 1 and 2 * arrays[tables[0]].values >= root.values + arrays[tables[0]].values:
        return tables
    return []


def _has_time(value: Any) -> bool:
    """Tell whether a document has a time outside of its arrays, named as one."""
    if not isinstance(value, dict):
        return False
    return any(_has_time(each) or (_is_time(each) and is_time_name(name)) for name, each in _members(value))


def _choose_timed(arrays: dict[Path, _Array]) -> list[Path]:
    """Return the path of the arrays with most values whose elements have times, and those beside it that are named
    alike.
    """
    timed = {path: each for path, each in arrays.items() if each.elements and each.timed == each.elements}
    if not timed:
        return []
    best = max(timed, key=lambda path: timed[path].values)
    around, name = best[: _last_star(best)], best[-2] if len(best) > 1 else ""
    return [best, *(path for path in timed if path != best and len(path) > 1 and path[-2] == name and path[: _last_star(path)] == around)]


def _last_star(path: Path) -> int:
    """Return the length of the path to the element around the array."""
    return max((k + 1 for k, step in enumerate(path[:-1]) if step == "*"), default=0)


def _show(path: Path) -> str:
    shown = ""
    for step in path:
        shown += _ALL if step == "*" else f"{'.' if shown else ''}{escape_name(step)}"
    return shown


# ---------------------------------------------------------------- fields
def _paths(rows: Sequence[Any], before: str = "") -> list[str]:
    """Return the paths to the values of rows. A place that is null or absent where it has no members is no value."""
    found = dict[str, bool]()
    for row in rows:
        for path, value in _flatten(row, before):
            found[path] = found.get(path, False) or value is not None
    inner = {path for path in found if any(other.startswith((f"{path}.", f"{path}[")) for other in found)} if len(found) <= MAX_PROPERTIES else set()
    return [path for path, has_value in found.items() if has_value or path not in inner]


def _flatten(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth < MAX_DEPTH - 1:
        for name, each in _members(value):
            yield from _flatten(each, f"{path}{'.' if path and not path.endswith('.') else ''}{escape_name(name)}", depth + 1)
    elif isinstance(value, list):
        if _is_tuple(value) or (len(value) <= _POSITIONS and value and all(isinstance(each, _Written) for each in value)):
            yield from ((f"{path}[{k}]", each) for k, each in enumerate(value))
        elif value and not any(isinstance(each, dict) for each in value):
            yield f"{path}{_ALL}", value
    elif path and not isinstance(value, dict):
        yield path, value


def _paths_around(documents: Sequence[Any], path: Path) -> list[str]:
    """Return the paths to the values of the document and of the elements around rows."""
    found, level = list[str](), list(documents)
    for k, step in enumerate(path):
        if k == 0 or path[k - 1] == "*":
            prefix = ROOT + _show(path[:k])
            found += _paths([_without_arrays(each) for each in level if isinstance(each, dict)], f"{prefix}." if k else prefix)
        if step == "*":
            level = [inner for each in level if isinstance(each, list) for inner in each][:LOOKED_AT]
        else:
            level = [each[step] for each in level if isinstance(each, dict) and step in each]
    return found


def _without_arrays(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object without the arrays in it, which lead to rows."""
    return {name: _without_arrays(each) if isinstance(each, dict) else each for name, each in value.items() if not isinstance(each, list)}
