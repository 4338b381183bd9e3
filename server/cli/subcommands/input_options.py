"""Defines the options that name what a query reads in files: its streams, their mappings, the background, and how it
is evaluated.
"""

import argparse
from pathlib import Path

from epsparql.events.on_error import DEAD_LETTER, DEAD_LETTERS, ON_ERROR, read_on_error
from epsparql.solutions.policies import POLICIES

_ENTAILMENTS = ("rdfs", "owl-rl")  # engine.messages has them too, but loads pyarrow


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add all options of a query's input."""
    parser.add_argument(
        "--stream",
        action="extend",
        nargs="+",
        default=[],
        metavar="[NAME=]FILE",
        help="These files hold the events of a stream. Without NAME, this is the stream default. Files of one stream are merged in the "
        "order of their events' end times. The flag may be repeated.",
    )
    parser.add_argument(
        "--background",
        action="extend",
        nargs="+",
        default=[],
        metavar="[GRAPH=]FILE",
        help="These files hold background triples, which always hold. The flag may be repeated.",
    )
    parser.add_argument(
        "--mapping",
        action="append",
        default=[],
        metavar="[STREAM=]FILE",
        help="This mapping turns the fields of .csv, .json and .ndjson files into triples, for one stream or for all streams. If an .ndjson file has "
        "events, its terms may have the mapping's prefixes and base. The flag may be repeated.",
    )
    _add_names(parser)
    parser.add_argument(
        "--round",
        choices=("microsecond",),
        help="Times of events that are finer than a microsecond are rounded to the nearest one. Without this flag they are refused.",
    )
    add_entailment(parser)
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="[QUERY=]POLICY",
        help=f"This is the consumption policy of a query, or of all queries: {', '.join(POLICIES[:-1])} or {POLICIES[-1]}. The "
        "default is unrestricted. The flag may be repeated.",
    )
    parser.add_argument(
        "--default-graph",
        choices=("all", "unnamed"),
        default="all",
        help="Patterns outside GRAPH match all triples (all, the default), or only triples that are in no named graph (unnamed).",
    )


def _add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prefix",
        action="append",
        default=[],
        metavar="NAME=IRI",
        help="Terms of events in .ndjson files may have this prefix. The flag may be repeated.",
    )
    parser.add_argument(
        "--base", default="", metavar="IRI", help="Relative terms of .ndjson files, and names of mappings without a base, are relative to this IRI."
    )


def add_entailment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--entailment", choices=_ENTAILMENTS, help="Triples are inferred from the background's schema by these rules. The default is rdfs."
    )


def add_on_error(parser: argparse.ArgumentParser, default: str | None, about: str) -> None:
    """Add the option for rows that cannot be read or do not map."""
    parser.add_argument(
        "--on-error",
        type=_read_error_rule,
        default=default,
        metavar="{refuse,skip,dead_letter}",
        help="This concerns rows, and lines of ndjson, that cannot be read or do not map. With refuse they end the run. With skip they are left out "
        f"and counted. With dead_letter they are counted, and written to a file with their reasons. {about}",
    )


def add_dead_letters(parser: argparse.ArgumentParser) -> None:
    """Add the option for the file of such rows."""
    parser.add_argument(
        "--dead-letters", type=Path, metavar="FILE", help=f"With --on-error dead_letter, this file takes the rows. The default is {DEAD_LETTERS}."
    )


def _read_error_rule(text: str) -> str:
    word = read_on_error(text)
    if word is None:
        raise argparse.ArgumentTypeError(f"{text!r} says nothing about faults; expected {', '.join(ON_ERROR)}")
    return word


def find_letters_fault(arguments: argparse.Namespace) -> str | None:
    """Return why the file of dead letters would stay empty, None if it does not."""
    if arguments.dead_letters is None or arguments.on_error == DEAD_LETTER:
        return None
    return f"--dead-letters {arguments.dead_letters}: nothing is written there with --on-error {arguments.on_error}; add --on-error {DEAD_LETTER}"
