"""This program writes the C headers of the tables' columns and codes from the modules in Python that name them, so that each stands in one place.

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
    "terms_layout": "engine/dictionary/native/layout.py",
    "answers_layout": "engine/dictionary/native/answers/layout.py",
    "groups_layout": "engine/aggregation/group_tables/layout.py",
    "runs_layout": "engine/aggregation/runs/layout.py",
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
    """Return a structure of 8-byte cells for each table, whose columns have the names of its fields; a column with two names is a union."""
    found = []
    for table, fields in tables.items():
        columns: dict[int, list[str]] = {}
        for field, column in fields.items():
            columns.setdefault(column, []).append(field)
        cells = [columns.get(k, [f"unnamed_{k}"]) for k in range(max(columns) + 1)]
        texts = [f"i64 {names[0]};" if len(names) == 1 else f"union {{ i64 {', '.join(names)}; }};" for names in cells]
        found.append(f"typedef struct {{ {' '.join(texts)} }} {table.title().replace('_', '')}Record;")
    return found


def tables() -> str:
    """Return the numbers of the kernel's tables, by the fields of `Net`; their module needs what is not installed yet, so it is read as text."""
    module = ast.parse((ROOT / "engine/kernel/state/arrays.py").read_text())
    net = next(node for node in module.body if isinstance(node, ast.ClassDef) and node.name == "Net")
    names = [node.target.id for node in net.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    return f"enum {{ {', '.join(f'TABLE_{name.upper()}' for name in names)} }};"


def write_headers(directory: Path) -> None:
    """Write the header of each layout."""
    for header, module in LAYOUTS.items():
        names = runpy.run_path(str(ROOT / module))
        lines = [f"/* made of {module} */", "#pragma once", *constants(names), *records(names.get("RECORDS", {}))]
        if header == "kernel_layout":
            lines.append(tables())
        (directory / f"{header}.h").write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    write_headers(Path(sys.argv[1]))
