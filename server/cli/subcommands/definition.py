"""Defines what all commands share: exit codes, how a command is added, and how a fault is told."""

import argparse
import sys
from collections.abc import Callable
from typing import TypeAlias

OK, BROKEN, USER_FAULT = 0, 1, 2
POLICIES = ("unrestricted", "recent", "chronological")  # engine.messages has them too, but loads pyarrow
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(commands: Commands, name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=run)
    return parser


def fail(message: object, code: int = USER_FAULT) -> int:
    print(f"epsparql: {message}", file=sys.stderr)
    return code
