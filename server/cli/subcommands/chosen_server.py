"""Finds the server that a command talks to: by its URL, or by a name that a file of the user's gives it.

The file is `epsparql/servers.toml` below XDG_CONFIG_HOME, else below ~/.config. A table of it is a server:

    [plant]
    url = "https://plant.example.org"
    token_env = "PLANT_TOKEN"  # or token_file
    ca_file = "plant.pem"  # the certificates to trust; without it, those that the system trusts
"""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from connectors.credentials import read_credentials
from connectors.errors import WrongOption

if TYPE_CHECKING:
    from epsparql.client import Client

VARIABLE, TOKEN_VARIABLE = "EPSPARQL_SERVER", "EPSPARQL_TOKEN"
DEFAULT = "http://127.0.0.1:8080"
_PATIENCE_S = 60.0
_MEMBERS = ("url", "token_env", "token_file", "ca_file")


class WrongServer(Exception):
    """The server that was asked for cannot be found; the message says why."""


def add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server",
        metavar="URL",
        help=f"This is the server's URL, or its name in ~/.config/epsparql/servers.toml. The default is {VARIABLE}, or else {DEFAULT}.",
    )
    parser.add_argument(
        "--token-env",
        metavar="NAME",
        help=f"This environment variable holds the token. The default is that of the server in servers.toml, or else {TOKEN_VARIABLE}.",
    )
    parser.add_argument(
        "--ca-file", metavar="FILE", help="With https, the certificates of this PEM file are trusted. The default is those that the system trusts."
    )


def servers_file(environment: Mapping[str, str] = os.environ) -> Path:
    return Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "epsparql" / "servers.toml"


class ChosenServer(NamedTuple):
    """Names a server, with the token for it and the certificates to trust."""

    url: str
    token: str | None
    ca_file: str | None


def connect_client(arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> "Client":
    """Return a client of the server that the options of a command name. Raises: WrongServer."""
    from epsparql.client import Client  # it loads websockets, which help does without

    chosen = choose_server(arguments, environment)
    try:
        return Client(chosen.url, chosen.token, _PATIENCE_S, ca_file=chosen.ca_file)
    except OSError as error:  # also what ssl raises
        raise WrongServer(f"{chosen.ca_file} has no certificates that can be read: {error.strerror or error}") from None


def choose_server(arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> ChosenServer:
    """Return the server that the options of a command name. Raises: WrongServer."""
    wanted = arguments.server or environment.get(VARIABLE) or DEFAULT
    url, options = (wanted, {}) if "://" in wanted else _find_named(wanted, servers_file(environment))
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
        raise WrongServer(f"{url!r} is no URL of a server; expected one such as {DEFAULT}")
    ca_file = arguments.ca_file or options.pop("ca_file", None)
    if arguments.token_env:
        options = {"token_env": arguments.token_env}
    try:
        token = read_credentials(options, ("token",), environment).get("token", environment.get(TOKEN_VARIABLE))
    except WrongOption as fault:
        raise WrongServer(str(fault)) from None
    return ChosenServer(url, token, ca_file)


def explain_silence(arguments: argparse.Namespace, fault: Exception, environment: Mapping[str, str] = os.environ) -> str:
    """Say which server does not answer a command, why, and what to do."""
    wanted = arguments.server or environment.get(VARIABLE) or DEFAULT
    why = getattr(fault, "strerror", None) or fault
    return f"the server {wanted} does not answer: {why}; `epsparql serve` starts one, and --server names another"


def _find_named(name: str, path: Path) -> tuple[str, dict[str, str]]:
    """Return the URL of a server in the file, and the place of its token."""
    import tomllib  # help does without it

    try:
        servers = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WrongServer(f"{name!r} is no URL, and {path}, which would give servers names, does not exist") from None
    except OSError as error:
        raise WrongServer(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise WrongServer(f"{path} is no TOML in UTF-8: {error}") from None
    found = servers.get(name)
    if not isinstance(found, dict):
        raise WrongServer(f"{path} has no server {name!r}; it has {', '.join(servers) or 'none'}")
    if wrong := [member for member in found if member not in _MEMBERS]:
        raise WrongServer(f"{path}: {name} cannot have {wrong[0]!r}; it may have {', '.join(_MEMBERS)}")
    if not all(isinstance(value, str) for value in found.values()) or "url" not in found:
        raise WrongServer(f"{path}: {name} needs an url, and its members are strings")
    return found["url"], {member: value for member, value in found.items() if member != "url"}
