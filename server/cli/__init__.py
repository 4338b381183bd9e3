"""The package holds the command line.

Each command's work is in a file of its own, which is loaded when it is asked for.
"""

from server.cli.commands import main

__all__ = ["main"]
