"""Runs `epsparql backup`: copies a data directory, whose server may run."""

import argparse
from pathlib import Path

from server.cli.subcommands.definition import BROKEN, OK, Commands, add_command, fail


def add_backup(commands: Commands) -> None:
    text = (
        "Copy a data directory to another directory, and check the copy. The server may run meanwhile. `epsparql serve --data` "
        "continues from the copy."
    )
    parser = add_command(commands, "backup", _back_up, text)
    parser.add_argument("data", type=Path, metavar="DIR", help="This is the directory of `epsparql serve --data`.")
    parser.add_argument("target", type=Path, metavar="TARGET", help="The copy is made here. The directory must be empty, or not exist yet.")


def _back_up(arguments: argparse.Namespace) -> int:
    """Return 0 after a whole copy, 1 if a log is damaged, and 2 if the directories cannot be used."""
    from pipeline.errors import BackupFailed, Corrupt
    from pipeline.replication.backup import back_up

    try:
        position = back_up(arguments.data, arguments.target)
    except BackupFailed as fault:
        return fail(fault)
    except Corrupt as fault:
        return fail(fault, BROKEN)
    except OSError as fault:
        return fail(f"{arguments.data} could not be copied to {arguments.target}: {fault}; check the directories and the free space")
    print(f"{arguments.data} is copied to {arguments.target}, up to log position {position:,}")
    return OK
