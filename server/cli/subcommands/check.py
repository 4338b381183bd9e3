"""Checks queries for `epsparql check`, and prints what it finds as lines or as JSON."""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import epsparql
from epsparql.errors import Span
from pipeline.registrations.query_cache import check_registration, propose_key
from pipeline.replay.query_files import SourceFault, read_asked
from server.cli.subcommands.definition import OK, RED, USER_FAULT, YELLOW, fail, paint


@dataclass(frozen=True, slots=True)
class Checked:
    """Reports what was found in a file. `fault` is why the query would be refused, as text; the marks are those of the server's /check.

    `proposal` says by which message key several partitions could share the query's stream; it is empty where there is none.
    """

    path: Path
    fault: object = None
    errors: list[dict[str, object]] = field(default_factory=list)
    warnings: list[dict[str, object]] = field(default_factory=list)
    proposal: str = ""


def check_files(paths: Iterable[Path], *, strict: bool, as_json: bool) -> int:
    """Check queries and return the exit code: 2 if one would be refused, or with `strict` if there is a warning."""
    found = [_check_file(path) for path in paths]
    if as_json:
        shown = [{"file": str(each.path), "errors": each.errors, "warnings": each.warnings, "proposal": each.proposal or None} for each in found]
        print(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        for each in found:
            _print_found(each, strict=strict)
    return USER_FAULT if any(each.errors or (strict and each.warnings) for each in found) else OK


def _print_found(found: Checked, *, strict: bool) -> None:
    if found.fault is not None:
        fail(found.fault)
    for mark in found.warnings:
        kind = paint("warning", RED if strict else YELLOW, sys.stdout)
        print(f"{found.path}:{mark['line'] or 1}:{mark['column'] or 1}: {kind}: {mark['message']} [{mark['code']}]")
    if found.proposal:
        print(f"{found.path}: note: {found.proposal}")


def _check_file(path: Path) -> Checked:
    try:
        query, policy = read_asked(path)
    except SourceFault as fault:
        return Checked(path, fault, [_mark_place("file", str(fault), None, "")])
    try:
        warnings = check_registration(query.text, name=query.name, policies={query.name: policy})
        text = epsparql.parse(query.text).text
    except epsparql.QueryError as error:
        mark = _mark_place(error.code, error.message, error.span, error.text) | {"expected": error.expected}
        return Checked(path, query.fault(error), [mark])
    marks = [_mark_place(each.code, each.message, each.span, text) for each in warnings]
    return Checked(path, warnings=marks, proposal=propose_key(query.text, policy) or "")


def _mark_place(code: str, message: str, span: Span | None, text: str) -> dict[str, object]:
    line, column = span.place(text) if span else (None, None)
    return {"code": code, "message": message, "line": line, "column": column}
