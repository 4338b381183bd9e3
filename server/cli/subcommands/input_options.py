"""Defines the options that name what a query reads in files: its streams, their mappings, the background, and how it is evaluated."""

import argparse

_ENTAILMENTS = ("rdfs", "owl-rl")  # engine.messages has them too, but loads pyarrow


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add all options of a query's input."""
    parser.add_argument(
        "--stream",
        action="extend",
        nargs="+",
        default=[],
        metavar="[NAME=]FILE",
        help="These files hold the events of a stream. Without NAME, this is the stream default. Files of one stream are merged in the order of their events' end times. The flag may be repeated.",
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
        help="This mapping turns the fields of .csv, .json and .ndjson files into triples, for one stream or for all streams. The flag may be repeated.",
    )
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
        help="This is the consumption policy of a query, or of all queries: unrestricted (the default), recent or chronological. The flag may be repeated.",
    )
    parser.add_argument(
        "--default-graph",
        choices=("all", "unnamed"),
        default="all",
        help="Patterns outside GRAPH match all triples (all, the default), or only triples that are in no named graph (unnamed).",
    )


def add_entailment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--entailment", choices=_ENTAILMENTS, help="Triples are inferred from the background's schema by these rules. The default is rdfs."
    )
