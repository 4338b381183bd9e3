"""Defines what all commands share: exit codes, colours, how a command is added, and how a fault is told."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import TextIO, TypeAlias

from epsparql.solutions.policies import POLICIES, PolicyFault, read_policy

OK, BROKEN, USER_FAULT = 0, 1, 2
RED, GREEN, YELLOW = "31", "32", "33"
"""Colours, as terminals number them."""
EMITS = ("certain", "revised")
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(commands: Commands, name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=run, refuse=parser.error)
    return parser


def add_policy(parser: argparse.ArgumentParser, text: str, default: str) -> None:
    """Add the flag of a consumption policy, with what it does and the words for its default."""
    listed = f"{', '.join(POLICIES[:-1])} or {POLICIES[-1]}"
    parser.add_argument("--policy", type=_read_policy, metavar="POLICY", help=f"{text}: {listed}. The default is {default}.")


def _read_policy(text: str) -> str:
    try:
        return read_policy(text)
    except PolicyFault as fault:
        raise argparse.ArgumentTypeError(str(fault)) from None


def fail(message: object, code: int = USER_FAULT) -> int:
    print(f"{paint('epsparql:', RED, sys.stderr)} {message}", file=sys.stderr)
    return code


def paint(text: str, colour: str | None, stream: TextIO) -> str:
    """Return a text in a colour, where the stream is a terminal that wants colours."""
    return f"\x1b[{colour}m{text}\x1b[0m" if colour and stream.isatty() and not os.environ.get("NO_COLOR") else text
