"""Runs `epsparql token`: makes, lists and revokes tokens in a token file.

A running server reads the file again when it has changed.
"""

import argparse
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server.cli.subcommands.definition import OK, USER_FAULT, Commands, add_command, fail

_NAMED = 12
"""The server's logs name a token by so many digits of its SHA-256."""
_LEAST = 8
_NOTE = re.compile(r"[^\n]*")


def add_token(commands: Commands) -> None:
    text = "Make, list or revoke tokens in the file of --token-file. A running server reads the file again when it has changed."
    parser = add_command(commands, "token", _list_tokens, text)
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    make = add_command(
        actions, "make", _make_token, "Make a token and print it. The file gets its SHA-256 alone, so the token is printed only this once."
    )
    make.add_argument(
        "scopes",
        nargs="+",
        metavar="SCOPE",
        help="admin, metrics, read:<query>, read:<query>/<instance>, instances:<query> or ingest:<stream>; * stands for all names.",
    )
    make.add_argument("--note", default="", metavar="TEXT", help="This comment is written in the token's line.")
    revoke = add_command(actions, "revoke", _revoke_token, "Remove a token. Requests with it are refused at once; connections that are open go on.")
    revoke.add_argument(
        "digest", metavar="DIGEST", help=f"The token's SHA-256, or its beginning of {_LEAST} digits or more, as `list` and the server's logs show it."
    )
    listing = add_command(actions, "list", _list_tokens, "List the tokens by the beginnings of their digests, with scopes and notes.")
    for action in (make, revoke, listing):
        action.add_argument("--token-file", type=Path, required=True, metavar="FILE", help="This is the file of tokens. `make` creates it.")


def _make_token(arguments: argparse.Namespace) -> int:
    if not _NOTE.fullmatch(arguments.note):
        return fail("--note has one line")
    import hashlib  # OpenSSL takes a twentieth of the time of `epsparql --help`
    import secrets

    token = secrets.token_urlsafe(24)
    note = f"  # {arguments.note}" if arguments.note else ""
    line = f"{hashlib.sha256(token.encode()).hexdigest()} {' '.join(arguments.scopes)}{note}"
    with _locked(arguments.token_file):
        fault = _replace(arguments.token_file, [*_read_lines(arguments.token_file), line])
    if fault:
        return fail(fault)
    print(token)
    return OK


def _revoke_token(arguments: argparse.Namespace) -> int:
    digest = arguments.digest.lower()
    if len(digest) < _LEAST:
        return fail(f"give at least {_LEAST} digits of the token's SHA-256")
    with _locked(arguments.token_file):
        lines = _read_lines(arguments.token_file)
        found = [line for line in lines if line.startswith(digest)]
        if len(found) != 1:
            return fail(f"{arguments.token_file} has {len(found)} tokens whose SHA-256 begins with {digest!r}; `epsparql token list` shows them")
        fault = _replace(arguments.token_file, [line for line in lines if line is not found[0]])
    return fail(fault) if fault else OK


def _list_tokens(arguments: argparse.Namespace) -> int:
    if not arguments.token_file.exists():
        return fail(f"{arguments.token_file} does not exist", USER_FAULT)
    for digest, rest in _tokens(_read_lines(arguments.token_file)):
        print(f"{digest[:_NAMED]} {rest}")
    return OK


def _tokens(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        digest, _, rest = line.strip().partition(" ")
        if digest and not digest.startswith("#"):
            yield digest, rest.strip()


def _read_lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one command at a time change the file. The lock is on its directory, because the file itself is replaced."""
    directory = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _replace(path: Path, lines: list[str]) -> str:
    """Write the file in one step, readable as before, and return what is wrong with the lines, or an empty text.

    A new file is readable for all, such as the user of a container: it has digests of random tokens, from which
    nobody finds these. A file without tokens is refused, because a server would go on with the tokens of before.
    """
    import tempfile  # help does without it

    from server.settings import SettingsError
    from server.tokens.token_file import load_grants

    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        load_grants(temporary)
        temporary.replace(path)
    except SettingsError as fault:
        return str(fault).replace(str(temporary), str(path))
    finally:
        temporary.unlink(missing_ok=True)
    return ""
