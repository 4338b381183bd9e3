"""This program writes the C headers of the tables' columns and codes from the Python modules that name them. So each
is defined in one place.

    python engine/native/headers.py DIRECTORY

It runs before the package is installed, so it loads the modules by their paths; they use the standard library alone.
"""

import ast
import runpy
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAYOUTS = {
    "formats_layout": "engine/native/formats_layout.py",
    "terms_layout": "engine/dictionary/layout.py",
    "batch_layout": "engine/dictionary/batch_layout.py",
    "answers_layout": "engine/dictionary/answers_layout.py",
    "groups_layout": "engine/aggregation/group_tables/layout.py",
    "runs_layout": "engine/aggregation/runs/layout.py",
    "chains_layout": "engine/aggregation/chains/layout.py",
    "kernel_layout": "engine/kernel/state/layout.py",
}
"""The modules, by the names of their headers."""


def constants(names: Mapping[str, object]) -> list[str]:
    """Return a definition of each number with a name in capitals."""
    found = []
    for name, value in names.items():
        if name.isupper() and not name.startswith("_") and isinstance(value, int | float) and not isinstance(value, bool):
            found.append(f"#define {name} " + (f"((i64){value})" if isinstance(value, int) else value.hex()))
    return found


def records(tables: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a structure of 8-byte cells for each table, whose columns have the names of its fields; a column with
    two names is a union.
    """
    found = []
    for table, fields in tables.items():
        columns: dict[int, list[str]] = {}
        for field, column in fields.items():
            columns.setdefault(column, []).append(field)
        cells = [columns.get(k, [f"unnamed_{k}"]) for k in range(max(columns) + 1)]
        texts = [f"i64 {names[0]};" if len(names) == 1 else f"union {{ i64 {', '.join(names)}; }};" for names in cells]
        found.append(f"typedef struct {{ {' '.join(texts)} }} {table.title().replace('_', '')}Record;")
    return found


def enumerate_tables() -> str:
    """Return the numbers of the kernel's tables, by the fields of `Net`; their module needs what is not installed
    yet, so it is read as text.
    """
    module = ast.parse((ROOT / "engine/kernel/state/arrays.py").read_text())
    net = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Net")
    names = [node.target.id for node in net.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    return f"enum {{ {', '.join(f'TABLE_{name.upper()}' for name in names)} }};"


def powers_of_five(least: int, most: int) -> list[str]:
    """Return a table of the leading 128 bits, high and low word, of the powers of five, with which doubles are found.

    They are rounded down; up where a power of ten divides words of digits exactly (D. Lemire, Number Parsing at a
    Gigabyte per Second, appendix B).
    """
    lines = []
    for q in range(least, most + 1):
        power = 5 ** abs(q)
        bits = power.bit_length()
        leading = (1 << bits + 127) // power + (q >= -27) if q < 0 else (power << 128) >> bits
        lines.append(f"{{{leading >> 64:#x}, {leading & (1 << 64) - 1:#x}}},")
    return ["#include <stdint.h>", f"enum {{ LEAST_POWER = {least}, MOST_POWER = {most} }};", "static const uint64_t POWERS[][2] = {", *lines, "};"]


def write_headers(directory: Path) -> None:
    """Write the header of each layout."""
    for header, module in LAYOUTS.items():
        names = runpy.run_path(str(ROOT / module))
        lines = [f"/* made of {module} */", "#pragma once", *constants(names), *records(names.get("RECORDS", {}))]
        if header == "kernel_layout":
            lines.append(enumerate_tables())
        (directory / f"{header}.h").write_text("\n".join([*lines, ""]))
    powers = powers_of_five(-342, 308)  # of finite doubles with a word of digits
    (directory / "powers_of_five.h").write_text("\n".join(["#pragma once", *powers, ""]))


if __name__ == "__main__":
    write_headers(Path(sys.argv[1]))
