"""Checks queries for `epsparql check`, prints what it finds as lines or as JSON, and mends the text of a query."""

import json
import sys
from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import Path
from typing import TextIO

import epsparql
from epsparql.deferred_methods import dataclass
from epsparql.errors import Span, Warning_
from pipeline.registrations.mending import mend_text
from pipeline.registrations.query_cache import check_registration, propose_key
from pipeline.replay.query_files import SourceFault, read_asked, read_query
from server.cli.subcommands.definition import OK, RED, USER_FAULT, YELLOW, fail, paint


@dataclass(frozen=True, slots=True)
class Checked:
    """Reports what was found in a file. `faults` are why the query would be refused, as text; the marks are those of
    the server's /check.

    `proposal` says by which message key several partitions could share the query's stream; it is empty where there is
    none. `mended` is the text with all repairs, or None where a fault is left or there is none. The warnings are then
    those of the mended text.
    """

    path: Path
    faults: list[object] = field(default_factory=list)
    errors: list[dict[str, object]] = field(default_factory=list)
    warnings: list[dict[str, object]] = field(default_factory=list)
    proposal: str = ""
    repairs: list[dict[str, object]] = field(default_factory=list)
    mended: str | None = None


def check_files(paths: Iterable[Path], *, strict: bool, as_json: bool) -> int:
    """Check queries and return the exit code: 2 if one would be refused, or with `strict` if there is a warning."""
    found = [_check_file(path) for path in paths]
    if as_json:
        shown = [_show_json(each) for each in found]
        print(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        for each in found:
            _print_found(each, strict=strict)
    return USER_FAULT if any(each.errors or (strict and each.warnings) for each in found) else OK


def _show_json(found: Checked) -> dict[str, object]:
    warnings = [] if found.errors else found.warnings
    shown: dict[str, object] = {"file": str(found.path), "errors": found.errors, "warnings": warnings, "proposal": found.proposal or None}
    return shown | ({"repairs": found.repairs, "mended": found.mended} if found.errors else {})


def mend_file(path: Path, *, strict: bool) -> int:
    """Print the text of a query with all repairs, and each repair on standard error. Return the exit code of the
    mended text's check.

    A text without faults is printed as it is.
    """
    found = _check_file(path)
    if found.errors and found.mended is None:
        return _print_faults(found)
    for repair in found.repairs:
        place = f"{path}:{repair['line']}:{repair['column']}"
        change = f"{repair['found'] or 'nothing'} -> {repair['remedy'] or 'nothing'}"
        print(f"{place}: {paint('mended', YELLOW, sys.stderr)}: {change} ({repair['message']})", file=sys.stderr)
    for mark in found.warnings:
        print(_show_warning(f"{path}{' (mended)' if found.errors else ''}", mark, strict=strict, stream=sys.stderr), file=sys.stderr)
    sys.stdout.write(read_query(path).text if found.mended is None else found.mended)
    return USER_FAULT if strict and found.warnings else OK


def _print_faults(found: Checked) -> int:
    for fault in found.faults:
        fail(fault)
    return USER_FAULT if found.faults else OK


def _print_found(found: Checked, *, strict: bool) -> None:
    if _print_faults(found) == USER_FAULT:
        return
    for mark in found.warnings:
        print(_show_warning(str(found.path), mark, strict=strict, stream=sys.stdout))
    if found.proposal:
        print(f"{found.path}: note: {found.proposal}")


def _show_warning(path: str, mark: dict[str, object], *, strict: bool, stream: TextIO) -> str:
    kind = paint("warning", RED if strict else YELLOW, stream)
    return f"{path}:{mark['line'] or 1}:{mark['column'] or 1}: {kind}: {mark['message']} [{mark['code']}]"


def _check_file(path: Path) -> Checked:
    try:
        query, policy = read_asked(path)
    except SourceFault as fault:
        return Checked(path, [fault], [_mark_place("file", str(fault), None, "")])

    def check(text: str) -> tuple[Warning_, ...]:
        return check_registration(text, name=query.name, policies={query.name: policy})

    mended = mend_text(query.text, check)
    repairs = [_mark_fault(repair.fault) | {"found": repair.found, "remedy": repair.remedy} for repair in mended.repairs]
    found = Checked(path, [query.fault(fault) for fault in mended.all_faults], [_mark_fault(fault) for fault in mended.all_faults])
    if mended.text is None or mended.found is None:
        return found
    warnings = [_mark_place(each.code, each.message, each.span, mended.text) for each in mended.found]
    if repairs:
        return replace(found, warnings=warnings, repairs=repairs, mended=mended.text)
    return replace(found, warnings=warnings, proposal=propose_key(mended.text, policy) or "")


def _mark_fault(fault: epsparql.QueryError) -> dict[str, object]:
    return _mark_place(fault.code, fault.message, fault.span, fault.text) | {"expected": fault.expected}


def _mark_place(code: str, message: str, span: Span | None, text: str) -> dict[str, object]:
    line, column = span.place(text) if span else (None, None)
    return {"code": code, "message": message, "line": line, "column": column}
