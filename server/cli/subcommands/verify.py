"""Runs `epsparql verify`: checks the emitted solutions of a data directory by the definitions, without the engine."""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from server.cli.subcommands.definition import BROKEN, OK, Commands, add_command, fail

INCOMPLETE = 3
"""The exit code says that nothing wrong was found, but that solutions of the last entries are not there."""


def add_verify(commands: Commands) -> None:
    text = (
        "Check that the solutions of a data directory follow from its log. The check uses the definitions of the language, not the "
        "engine. The server may run meanwhile."
    )
    parser = add_command(commands, "verify", _verify, text)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="DIR",
        help="The solutions of this data directory are checked. It is the directory of `epsparql serve --data`.",
    )
    parser.add_argument("--query", metavar="NAME", help="Only this query is checked.")
    parser.add_argument(
        "--sample",
        type=int,
        default=50,
        metavar="N",
        help="For each query, this many time slices without solutions are also checked. The default is 50.",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="This number is the seed of the random choice of these slices. The default is 0."
    )
    parser.add_argument("--json", action="store_true", help="The output has one JSON object per line, one for each registration of a query.")


def _verify(arguments: argparse.Namespace) -> int:
    """Return 0 if no fault was found, and 1 if one was.

    Return 2 if the directory cannot be read or has no such query, and 3 if solutions are missing.
    """
    from verification.checks import QueryReport, check_directory
    from verification.frames import Unreadable

    try:
        found = check_directory(arguments.data, query=arguments.query, sample=max(arguments.sample, 0), seed=arguments.seed)
    except FileNotFoundError as fault:
        return fail(f"{fault.filename} does not exist; --data names the directory that `epsparql serve --data` was given")
    except OSError as fault:
        return fail(fault)
    except Unreadable as fault:
        return fail(f"{fault}; docs/operations/recovery.md says what to do (Damaged files)", BROKEN)
    reports = found.queries
    if arguments.query is not None and not reports:
        return fail(f"the log of {arguments.data} has no query {arguments.query!r}")

    def tell(report: QueryReport) -> str:
        reach = {"log_position": found.log, "solutions_position": found.solutions}
        return json.dumps(dataclasses.asdict(report) | reach, ensure_ascii=False) if arguments.json else "\n".join(report.describe())

    for report in reports:
        print(tell(report), flush=True)
    faults = sum(sum(report.faults.values()) for report in reports)
    checked = [report for report in reports if not report.reason]
    if not arguments.json:
        print(f"{len(checked)} of {len(reports)} queries checked: {sum(report.derived for report in checked):,} solutions derived, {faults:,} faults")
        print(f"the log reaches position {found.log:,}, and the solutions {found.solutions:,}")
    if not found.is_whole:
        told = f"the solutions of the entries from position {found.solutions:,} to {found.log:,} are not there, and were not checked"
        print(f"{told}; start the server, which computes them, and check again", file=sys.stderr)
    return BROKEN if faults else OK if found.is_whole else INCOMPLETE
