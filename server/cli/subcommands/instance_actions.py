"""Does the work of the command `instances`: what is printed goes to stdout."""

import json
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from epsparql.client import ApiError, Client, segment
from epsparql.errors import explain_unreadable
from epsparql.events.media_types import NDJSON
from server.cli.subcommands.client_actions import WrongInput, list_parts, print_json, print_table

_PAGE = 10_000


def change_instances(client: Client, arguments: Namespace) -> None:
    """Add, change, remove or list instances, as the arguments say."""
    if arguments.set is not None:
        name, *values = arguments.set
        client.set_instance(arguments.query, name, dict(map(_read_value, values)))
        print(f"the instance {name} is set")
    elif arguments.remove is not None:
        for name in arguments.remove:
            client.remove_instance(arguments.query, name)
        print(f"{len(arguments.remove):,} instances removed")
    elif arguments.load is not None:
        _load_file(client, arguments.query, arguments.load)
    else:
        _list_instances(client, arguments)


def _read_value(text: str) -> tuple[str, Any]:
    """Return a parameter and its value. Numbers and booleans are those of JSON; other texts are for the server to read."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise WrongInput(f"{text!r} is no value of a parameter; write it as in limit=25")
    try:
        found = json.loads(value)
    except ValueError:
        return name, value
    return name, found if isinstance(found, bool | int | float) else value


def _load_file(client: Client, query: str, path: Path) -> None:
    count, lines = {"set": 0, "removed": 0}, 0
    try:
        with path.open("rb") as file:
            for body in list_parts(file, NDJSON):
                found = json.loads(client.request("POST", f"/queries/{segment(query)}/instances", body, Content_Type=NDJSON)[2])
                count = {kind: n + found[kind] for kind, n in count.items()}
                lines += body.count(b"\n")
    except OSError as error:
        if error.filename is None:
            raise
        raise WrongInput(f"{path}: {explain_unreadable(error)}") from None
    except ApiError as fault:
        if (line := fault.problem.get("line")) is None:
            raise
        raise WrongInput(f"{path}:{lines + line}: {fault.problem.get('detail', fault)}; the {lines:,} lines before were taken") from None
    print(f"{count['set']:,} instances set, {count['removed']:,} removed")


def _list_instances(client: Client, arguments: Namespace) -> None:
    pages = _list_pages(client, arguments.query, arguments.prefix)
    if arguments.json:
        for page in pages:
            print_json(page)
        return
    documents = [document for page in pages for document in page]
    names: Sequence[str] = list(documents[0]["values"]) if documents else ()
    print_table(("instance", *names), [(each["id"], *(each["values"][name] for name in names)) for each in documents])


def _list_pages(client: Client, query: str, prefix: str) -> Iterator[list[dict[str, Any]]]:
    after = ""
    while page := client.instances(query, after=after, prefix=prefix, limit=_PAGE):
        yield page
        after = page[-1]["id"]
