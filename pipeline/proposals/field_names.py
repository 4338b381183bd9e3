"""This module names fields by the shortest ends of their paths that tell them apart."""

import re
from collections import Counter
from collections.abc import Sequence

from pipeline.mapping.templates import encode_value
from pipeline.proposals.fields import Field


def name_fields(fields: Sequence[Field]) -> dict[str, str]:
    """Return a name for each field's path: `update.state` is `update_state` beside `state`, and `state` alone."""
    lengths = {field.path: _shortest(field) for field in fields}
    by_path = {field.path: field for field in fields}
    while True:
        names = {path: _join_steps(by_path[path], length) for path, length in lengths.items()}
        counts = Counter(names.values())
        longer = [path for path, name in names.items() if counts[name] > 1 and lengths[path] < len(_steps(by_path[path]))]
        if not longer:
            return _number_equals(names)
        for path in longer:
            lengths[path] += 1


def _shortest(field: Field) -> int:
    """Return the least number of steps that name a field: a position alone is no name."""
    trailing = 0
    for step in reversed(field.steps):
        if isinstance(step, str):
            break
        trailing += 1
    return min(trailing + 1, len(field.steps))


def _join_steps(field: Field, count: int) -> str:
    steps = _steps(field)[-count:]
    return clean_name("_".join([*([] if isinstance(steps[0], str) else ["value"]), *map(str, steps)]))


def _steps(field: Field) -> tuple[str | int, ...]:
    """Return the steps of a field's path, which for a field of the document begins there."""
    return ("document", *field.steps) if field.is_around else field.steps


def clean_name(text: str) -> str:
    """Return a text as it may stand in a prefixed name."""
    return encode_value(re.sub(r"[^\w-]+", "_", text).strip("_")) or "field"


def _number_equals(names: dict[str, str]) -> dict[str, str]:
    """Return the names with numbers behind those that are still equal, such as those of `a b` and `a_b`."""
    taken, found = set[str](), dict[str, str]()
    for path, name in names.items():
        free = name if name not in taken else next(f"{name}_{k}" for k in range(2, len(names) + 3) if f"{name}_{k}" not in taken)
        taken.add(free)
        found[path] = free
    return found
