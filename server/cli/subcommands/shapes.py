"""Runs `epsparql shapes`: writes a query whose solutions are the violations of SHACL's shapes."""

import argparse
import sys
from pathlib import Path

from server.cli.subcommands.definition import OK, Commands, add_command, fail


def add_shapes(commands: Commands) -> None:
    text = (
        "Write a query from shapes of SHACL. Its solutions are the violations of a stream: ?focus, ?path, ?value, ?constraint and ?message. "
        "The stream needs blank nodes as subjects, or the setting local."
    )
    parser = add_command(commands, "shapes", _write_query, text)
    parser.add_argument("shapes", type=Path, metavar="SHAPES", help="This file holds the shapes in Turtle.")
    parser.add_argument("--stream", metavar="NAME", help="The query reads this stream. Without it, the query reads the stream default.")
    parser.add_argument("--partial", action="store_true", help="Parts that no query is written for are left out with a warning, and not refused.")


def _write_query(arguments: argparse.Namespace) -> int:
    """Return 0, or 2 if the shapes cannot be read, or are not covered without --partial."""
    from epsparql.shapes import ShapesFault, read_shapes, write_violation_query

    try:
        shapes, left_out = read_shapes(arguments.shapes.read_bytes(), str(arguments.shapes))
    except ShapesFault as fault:
        return fail(fault)
    except OSError as fault:
        return fail(f"{arguments.shapes} cannot be read: {fault.strerror}")
    named = "".join(f"\n  {each}" for each in left_out)
    if left_out and not arguments.partial:
        return fail(f"{arguments.shapes}: no query is written for these parts; --partial leaves them out:{named}")
    query = write_violation_query(shapes, arguments.stream)
    if not query:
        return fail(f"{arguments.shapes}: no part is left that a query can check{named}")
    if left_out:
        print(f"epsparql: {arguments.shapes}: these parts are left out:{named}", file=sys.stderr)
    print(query, end="")
    return OK
