"""Defines the commands that are clients of a server.

They need the base installation alone, and load what they need when they run.
"""

import argparse
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from server.cli.subcommands.chosen_server import WrongServer, add_server_options, connect_client, explain_silence
from server.cli.subcommands.definition import BROKEN, EMITS, OK, USER_FAULT, Commands, add_command, add_policy, fail
from server.cli.subcommands.diagnose import add_diagnose

_LAST, _MOST_LAST = 10, 1_000
MOST_WARNED = 100
"""The warnings of so many queries are listed, unless queries are named."""


def _add_client_command(commands: Commands, name: str, act: str, text: str, actions: str = "client_actions") -> argparse.ArgumentParser:
    """Add a command that calls the function `act` of the module `actions` with a client and the arguments."""
    parser = add_command(commands, name, _run, text)
    parser.set_defaults(act=act, actions=actions)
    add_server_options(parser)
    return parser


def _run(arguments: argparse.Namespace) -> int:
    """Run a command and return its exit code: 2 if the server refuses what was asked for, 1 if it fails or does not
    answer.
    """
    from epsparql.client import ApiError, Closed, Unreachable

    actions = import_module(f"server.cli.subcommands.{arguments.actions}")
    client = None
    try:
        client = connect_client(arguments)
        getattr(actions, arguments.act)(client, arguments)
    except (WrongServer, actions.WrongInput, Closed) as fault:
        return fail(fault)
    except ApiError as fault:
        return fail(fault, USER_FAULT if fault.status < 500 else BROKEN)
    except BrokenPipeError:
        raise
    except (OSError, Unreachable) as fault:
        return fail(explain_silence(arguments, fault), BROKEN)
    return OK


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="Each line of the output is a JSON object, as the server sends it.")


def _add_queries(commands: Commands) -> None:
    parser = _add_client_command(commands, "queries", "list_queries", "List the queries of a server, with their state, counts and warnings.")
    text = f"Only these queries are listed. Without names, all are listed, and the first {MOST_WARNED} with their warnings, which go to stderr."
    parser.add_argument("name", nargs="*", metavar="NAME", help=text)
    _add_json(parser)


def _add_streams(commands: Commands) -> None:
    _add_json(_add_client_command(commands, "streams", "list_streams", "List the streams of a server, with their watermark and counts."))


def _add_register(commands: Commands) -> None:
    text = "Register a query on a server. Warnings go to stderr. Nothing changes if the same query is already registered under this name."
    parser = _add_client_command(commands, "register", "register_query", text)
    parser.add_argument("query", type=Path, metavar="FILE", help="This file holds the query, or an ETALIS program if its suffix is .event.")
    parser.add_argument("--name", metavar="NAME", help="This is the query's name. The default is the file's name without its suffix.")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--replace", action="store_true", help="A different query of this name is dropped first, with its solutions.")
    place.add_argument(
        "--promote", action="store_true", help="The text replaces the running query of this name, which keeps its solutions and subscribers."
    )
    _add_place(
        parser,
        "The query reads from now (the default), the beginning, or this offset of the log. With --promote, the default is where the query began.",
    )
    parser.set_defaults(change_columns=False)
    parser.add_argument(
        "--emit",
        choices=EMITS,
        help="The solutions are certain (the default), or revised: found at once, and withdrawn if a later event changes them.",
    )


def _add_promote(commands: Commands) -> None:
    text = (
        "Let a text replace a running query, which keeps its solutions and subscribers. `register --promote` does the same, and "
        "registers a new query."
    )
    parser = _add_client_command(commands, "promote", "promote_query", text)
    parser.add_argument("query", type=Path, metavar="FILE", help="This file holds the new text.")
    parser.add_argument("--name", metavar="NAME", help="This is the query's name. The default is the file's name without its suffix.")
    _add_place(parser, "The text reads from where the query began (the default), from now, the beginning, or this offset of the log.")
    parser.add_argument("--change-columns", action="store_true", help="The text may have other columns than the query has now.")
    parser.set_defaults(promote=True, replace=False, emit=None)


def _add_place(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--from", dest="start", metavar="PLACE", help=text)
    add_policy(parser, "This is the consumption policy", "unrestricted, or the program's")


def _add_send(commands: Commands) -> None:
    text = "Send files of events to a stream of a server. A file of lines is sent in parts, so it may be of any size."
    parser = _add_client_command(commands, "send", "send_files", text)
    parser.add_argument("stream", metavar="STREAM", help="This is the stream. The server creates it if there is none of this name.")
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="This file holds events. The file - is stdin.")
    parser.add_argument(
        "--type", metavar="TYPE", help="This is the media type of the files. The default depends on each file's suffix; stdin is ndjson."
    )
    parser.add_argument(
        "--mapping",
        type=Path,
        metavar="FILE",
        help="The stream gets the mapping in this file, which `epsparql map` proposes. Files of CSV, JSON and log lines need one.",
    )
    parser.add_argument("--at", metavar="TIME", help="Events without a time of their own get this time.")


def _add_tail(commands: Commands) -> None:
    parser = _add_client_command(commands, "tail", "print_tail", "Print the last solutions of a query, and then each new one as it is found.")
    parser.add_argument("name", metavar="NAME", help="This is the query, or with --stream the stream.")
    parser.add_argument("--stream", action="store_true", help="NAME is a stream, whose events are printed in place of solutions.")
    parser.add_argument(
        "--last", type=_parse_count, default=_LAST, metavar="N", help=f"The last N solutions or events come first. The default is {_LAST}."
    )
    parser.add_argument("--instance", metavar="INSTANCE", help="Only the solutions of this instance of a query with PARAMETERS are printed.")
    parser.add_argument("--after", metavar="ID", help="All solutions or events after this id come first, however many there are.")
    parser.add_argument("--count", type=int, metavar="N", help="The command ends after this many lines.")
    _add_json(parser)


def _parse_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST_LAST):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to {_MOST_LAST}")
    return int(text)


def _add_instances(commands: Commands) -> None:
    text = "List the instances of a query with PARAMETERS, or add, change and remove some."
    parser = _add_client_command(commands, "instances", "change_instances", text, "instance_actions")
    parser.add_argument("query", metavar="QUERY", help="This is the query.")
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--set",
        nargs="+",
        metavar=("INSTANCE", "VALUE"),
        help="This instance is added or changed, with a value for each parameter such as limit=25, room=<http://example.org/hall> or user='\"Ann\"'.",
    )
    change.add_argument("--remove", nargs="+", metavar="INSTANCE", help="These instances are removed.")
    change.add_argument(
        "--load", type=Path, metavar="FILE", help='Each line of this file adds, changes or removes an instance: {"id": …, "values": {…} or null}.'
    )
    parser.add_argument("--prefix", default="", metavar="TEXT", help="Only instances whose ids begin so are listed.")
    _add_json(parser)


def _add_drop(commands: Commands) -> None:
    parser = _add_client_command(commands, "drop", "drop_named", "Drop a query and its solutions, or a stream.")
    parser.add_argument("name", metavar="NAME", help="This is the query, or with --stream the stream.")
    parser.add_argument("--stream", action="store_true", help="The stream NAME is deleted.")


def _add_mcp(commands: Commands) -> None:
    text = "Serve a server's streams and queries to assistants, by the Model Context Protocol: over stdin and stdout, or over HTTP."
    parser = _add_client_command(commands, "mcp", "serve_assistants", text)
    about = "Serve http://127.0.0.1:PORT/mcp in place of stdin and stdout. Each request needs a token of its own, if the server asks for tokens."
    parser.add_argument("--http", type=int, metavar="PORT", help=about)


CLIENT_COMMANDS: Mapping[str, Callable[[Commands], None]] = {
    "queries": _add_queries,
    "streams": _add_streams,
    "register": _add_register,
    "promote": _add_promote,
    "send": _add_send,
    "tail": _add_tail,
    "instances": _add_instances,
    "drop": _add_drop,
    "diagnose": add_diagnose,
    "mcp": _add_mcp,
}
