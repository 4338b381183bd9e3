"""Writes the reference of the command line as a page, from the commands' own help."""

import argparse
import os

from server.cli.commands import parser

_WIDTH = "100"


def write_command_page() -> str:
    """Return a page with the help of each command."""
    os.environ["COLUMNS"] = _WIDTH  # argparse wraps by it
    top = parser()
    (commands,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    lines = ["# Commands", "", f"`epsparql --help` and `epsparql COMMAND --help` print this help. There are {len(commands.choices)} commands.", ""]
    for name, command in commands.choices.items():
        lines += [f"## epsparql {name}", "", command.description or "", "", "```text", command.format_help().strip(), "```", ""]
    return "\n".join(lines)
