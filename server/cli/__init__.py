"""The command line: each command's work in a file of its own, loaded when it is asked for."""

from server.cli.commands import main

__all__ = ["main"]
