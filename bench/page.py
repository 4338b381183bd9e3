"""`python -m bench.page` writes the tables of docs/benchmarks.md from the JSON lines of benches in bench/results.

A table stands between two marks of the page, of which the first says what it has:

    <!-- figures runs where length=10: query, report, groups, events_per_cpu_s as events per CPU second -->
    <!-- end -->

The lines are those of `runs.jsonl` whose `length` is 10 and which have a `query`. Several conditions are joined by
"and". A key with a dot, such as
`busiest_s.4`, is a member of a member.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measurement import UnusableInput, format_figure

_MARKED = re.compile(r"(<!-- figures (?P<name>[\w-]+)(?: where (?P<where>\w+=[^:]+))?: (?P<columns>[^>]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def write_tables(page: Path, results: Path) -> None:
    """Write the tables of a page anew, from the files of a folder.

    Raises: UnusableInput for a page that is not there, or a table without lines.
    """
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise UnusableInput(f"{page}: {error.strerror}; expected a page with marks such as <!-- figures runs: query, report -->") from None
    page.write_text(_MARKED.sub(lambda found: found[1] + _table(found, results) + found[5], text), encoding="utf-8")


def _table(mark: re.Match[str], results: Path) -> str:
    columns = [column.partition(" as ") for column in mark["columns"].split(", ")]
    rows = [
        line for line in _read_lines(results / f"{mark['name']}.jsonl") if _is_wanted(line, mark["where"]) and _find(line, columns[0][0]) is not None
    ]
    if not rows:
        raise UnusableInput(f"{results / mark['name']}.jsonl has no line for the table of {columns[0][0]}; run epsparql bench {mark['name']} --json")
    lines = ["", f"| {' | '.join(title or key.replace('_', ' ') for key, _, title in columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| {' | '.join(format_figure(_find(row, key)) for key, _, _ in columns)} |" for row in rows]
    dates, machines = sorted({row["measured"] for row in rows}), sorted({row["machine"] for row in rows})
    return "\n".join([*lines, "", f"Measured on {' and '.join(dates)}, {' and '.join(machines)}.", ""])


def _read_lines(file: Path) -> Sequence[dict[str, Any]]:
    if not file.exists():
        return ()
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _is_wanted(line: Mapping[str, Any], where: str | None) -> bool:
    wanted = [condition.partition("=") for condition in where.split(" and ")] if where else []
    return all(str(line.get(key)) == value for key, _, value in wanted)


def _find(line: Mapping[str, Any], key: str) -> Any:
    found: Any = line
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


if __name__ == "__main__":
    write_tables(Path("docs/benchmarks.md"), Path("bench/results"))
