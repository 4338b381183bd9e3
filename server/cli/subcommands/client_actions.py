"""Does the work of the commands that are clients of a server: what is printed goes to stdout, and warnings go to
stderr.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

from epsparql.client import ApiError, Change, Client, Solution, segment, solution_of
from epsparql.connection.messages import change_of, query_path
from epsparql.errors import explain_unreadable
from epsparql.events.media_types import LINES, MAPPED_SUFFIXES, N_QUADS, N_TRIPLES, NDJSON, SUFFIXES
from epsparql.extras import check_extra
from epsparql.solutions.solution import term_of
from server.cli.subcommands.chosen_server import choose_server
from server.cli.subcommands.client_commands import MOST_WARNED
from server.cli.subcommands.definition import GREEN, RED, YELLOW, paint

_PART_BYTES = 1 << 20
_ANSWER_S = 5.0  # a tool says so where the server does not answer for this time
_BY_LINE = (NDJSON, N_TRIPLES, N_QUADS, LINES)
_PROGRAM, _QUERY = "text/x-etalis-event", "application/sparql-query"
_COLOURS = {"running": GREEN, "failed": RED, "paused": YELLOW}


class WrongInput(Exception):
    """Signals input of a command that cannot be used; the message says why."""


# ---------------------------------------------------------------- lists
def list_queries(client: Client, arguments: Namespace) -> None:
    """Print the queries, with the warnings of those that are named, or of the first ones: each costs a request."""
    queries = [each for each in client.queries() if not arguments.name or each["name"] in arguments.name]
    if unknown := set(arguments.name) - {each["name"] for each in queries}:
        raise WrongInput(f"there is no query {min(unknown)!r}; `epsparql queries` lists all")
    documents = [document for each in queries[: None if arguments.name else MOST_WARNED] if (document := _find_query(client, each["name"]))]
    if arguments.json:
        return print_json([*documents, *queries[len(documents) :]])
    doubts = {each["name"]: f"{len(each['warnings']):,}" for each in documents}
    rows = [
        (each["name"], each["state"], f"{each['solutions']:,}", f"{each['lag']:,}", doubts.get(each["name"], "-"), each["reason"] or "")
        for each in queries
    ]
    print_table(("query", "state", "solutions", "lag", "warnings", "reason"), rows)
    for document in documents:
        _print_warnings(_printable(document["name"]), document)
    return None


def _find_query(client: Client, name: str) -> dict[str, Any] | None:
    """Return a query's document; None if it was dropped meanwhile."""
    try:
        return client.query(name)
    except ApiError as fault:
        if fault.status != HTTPStatus.NOT_FOUND:
            raise
        return None


def _print_warnings(place: str, document: Mapping[str, Any]) -> None:
    """Print the warnings of a query to stderr; `place` is its name or file."""
    for warning in document["warnings"]:
        at = f"{place}:{warning['line']}:{warning['column']}" if warning["line"] else place
        print(f"{at}: warning: {_printable(warning['message'])} [{warning['code']}]", file=sys.stderr)


def list_streams(client: Client, arguments: Namespace) -> None:
    streams = json.loads(client.request("GET", "/streams")[2])["streams"]
    if not arguments.json:
        rows = [(each["name"], each["watermark"] or "-", f"{each['accepted']:,}", f"{each['late']:,}", f"{each['rejected']:,}") for each in streams]
        return print_table(("stream", "watermark", "accepted", "late", "rejected"), rows)
    return print_json(streams)


def print_json(documents: Iterable[Mapping[str, Any]]) -> None:
    for document in documents:
        print(json.dumps(document, ensure_ascii=False))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns; on a terminal that wants colours, states have theirs."""
    shown = [head, *([_printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in shown) for k in range(len(head))]
    for row in shown:
        cells = (paint(cell.ljust(width), _COLOURS.get(cell), sys.stdout) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def _printable(text: str) -> str:
    """Return a text whose control characters are escaped, since what others sent must not drive the user's terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\u{ord(c):04X}" for c in text)


# ---------------------------------------------------------------- queries
def register_query(client: Client, arguments: Namespace) -> None:
    path: Path = arguments.query
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongInput(f"{path}: {explain_unreadable(error)}") from None
    name = arguments.name or path.stem
    options = {"columns": "change"} if arguments.change_columns else {}
    options |= {"replace": "promote" if arguments.promote else "true" if arguments.replace else "false"}
    options |= {option: value for option, value in (("from", arguments.start), ("policy", arguments.policy), ("emit", arguments.emit)) if value}
    kind = _PROGRAM if path.suffix == ".event" else _QUERY
    try:
        status, _, content = client.request("PUT", f"/queries/{segment(name)}?{urlencode(options)}", text, Content_Type=kind)
    except ApiError as fault:
        if "line" not in fault.problem:
            raise
        place = f"{path}:{fault.problem['line']}:{fault.problem.get('column') or 1}"
        expected = f"; expected {fault.problem['expected']}" if fault.problem.get("expected") else ""
        raise WrongInput(f"{place}: {fault.problem.get('detail', fault)}{expected}") from None
    document = json.loads(content)
    _print_warnings(str(path), document)
    print(f"{_printable(name)} {_describe_registration(status, document['promotion'] if arguments.promote else None)}")


def promote_query(client: Client, arguments: Namespace) -> None:
    """Let a text replace a query that is there, and refuse to register a new one."""
    client.query(arguments.name or arguments.query.stem)
    register_query(client, arguments)


def _describe_registration(status: int, promotion: Mapping[str, Any] | None) -> str:
    """Return what became of a text, from the answer's status and its promotion."""
    if status == 201 or promotion is None:
        return "is registered" if status == 201 else "was registered already"
    if promotion["state"] == "waiting":
        return "is to be promoted: the text reads the log, and then takes the query's place"
    place = f"version {promotion['version']}, from offset {promotion['position']} on" if promotion["version"] else promotion["reason"]
    return f"is {promotion['state']}: {place}"


def drop_named(client: Client, arguments: Namespace) -> None:
    kind, whole = ("streams", "stream") if arguments.stream else ("queries", "query")
    client.request("DELETE", f"/{kind}/{segment(arguments.name)}")
    print(f"the {whole} {_printable(arguments.name)} is dropped")


# ---------------------------------------------------------------- events
def send_files(client: Client, arguments: Namespace) -> None:
    """Send files one after the other, and print what was accepted of each.

    Raises: WrongInput, which says how far it came.
    """
    if arguments.mapping is not None:
        client.set_mapping(arguments.stream, _read_mapping(arguments.mapping))
    for path in arguments.files:
        media_type = arguments.type or _find_type(path, mapped=arguments.mapping is not None)
        options = {"at": arguments.at} if arguments.at else {}
        accepted = late = rejected = lines = 0
        try:
            with sys.stdin.buffer if str(path) == "-" else path.open("rb") as file:
                for body in list_parts(file, media_type):
                    query = f"?{urlencode(options)}" if options else ""
                    _, _, answer = client.request("POST", f"/streams/{segment(arguments.stream)}/events{query}", body, Content_Type=media_type)
                    found = json.loads(answer)
                    accepted, late, rejected = accepted + found["accepted"], late + found.get("late", 0), rejected + found.get("rejected", 0)
                    lines += body.count(b"\n")
                    if found.get("warning"):
                        print(f"epsparql: {path}: {_printable(found['warning'])}", file=sys.stderr)
        except OSError as error:
            if error.filename is None:
                raise
            raise WrongInput(f"{path}: {explain_unreadable(error)}") from None
        except ApiError as fault:
            before = f"; the {lines:,} lines before were accepted" if lines else ""
            line = fault.problem.get("line")
            place = f"{path}:{lines + line}:{fault.problem.get('column') or 1}" if line else str(path)
            raise WrongInput(f"{place}: {fault.problem.get('detail', fault)}{before}{_tell_expected(fault, media_type)}") from None
        counts = f"{accepted:,} events accepted, {late:,} late"
        print(f"{path}: {counts}" + (f", {rejected:,} rejected" if rejected else ""))


def _read_mapping(path: Path) -> Any:
    """Return the mapping in a file, which the server checks. Raises: WrongInput for a file that is no JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise WrongInput(f"{path}: {explain_unreadable(error)}") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise WrongInput(f"{path}: the mapping is no JSON: {error}") from None


def _tell_expected(fault: ApiError, media_type: str) -> str:
    """Return what the server expected, or the option that gives a stream the mapping which it lacks; "" if unknown."""
    lacks_mapping = fault.status == HTTPStatus.UNSUPPORTED_MEDIA_TYPE and media_type in MAPPED_SUFFIXES.values()
    expected = "--mapping FILE, which epsparql map proposes" if lacks_mapping else fault.problem.get("expected")
    return f"; expected {expected}" if expected else ""


def _find_type(path: Path, *, mapped: bool) -> str:
    """Return the media type of a suffix; with a mapping, `.ndjson` has rows of JSON. Raises: WrongInput."""
    if str(path) == "-":
        return NDJSON
    found = (SUFFIXES | MAPPED_SUFFIXES if mapped else MAPPED_SUFFIXES | SUFFIXES).get(path.suffix.lower())
    if found is None:
        raise WrongInput(f"{path}: no format of events is known by the suffix {path.suffix!r}; --type names one")
    return found


def list_parts(file: BinaryIO, media_type: str) -> Iterator[bytes]:
    """Return bodies of whole lines where each line stands for itself, else one body."""
    if media_type.partition(";")[0].strip() not in _BY_LINE:
        yield file.read()
        return
    while body := file.read(_PART_BYTES) + file.readline():
        yield body


# ---------------------------------------------------------------- following
def print_tail(client: Client, arguments: Namespace) -> None:
    texts = _tail_events(client, arguments) if arguments.stream else _tail_solutions(client, arguments)
    for text in islice(texts, arguments.count):
        print(text, flush=True)


def _tail_events(client: Client, arguments: Namespace) -> Iterator[str]:
    with client.tail(arguments.name, arguments.last, after=arguments.after) as events:
        for event in events:
            yield json.dumps(event, ensure_ascii=False) if arguments.json else _describe_event(event)


def _tail_solutions(client: Client, arguments: Namespace) -> Iterator[str]:
    last: list[dict[str, Any]] = []
    after, revised = arguments.after, client.query(arguments.name)["emit"] == "revised"
    if after is None:
        path = f"{query_path(arguments.name, arguments.instance)}/solutions?order=newest&limit={max(arguments.last, 1)}"
        lines = client.request("GET", path, Accept=NDJSON)[2].splitlines()
        last = [json.loads(line) for line in reversed(lines)]
        after = last[-1]["seq" if revised else "id"] if last else None
    read = change_of if revised else solution_of
    for document in last if arguments.last else ():
        yield json.dumps(document, ensure_ascii=False) if arguments.json else _describe_word(read(document))
    with client.follow(arguments.name, after=after, instance=arguments.instance) as feed:
        for word in feed.changes() if revised else feed:
            yield json.dumps(_list_members(word), ensure_ascii=False) if arguments.json else _describe_word(word)


def _list_members(word: Solution | Change) -> dict[str, Any]:
    """Return the members that the server sent."""
    members = {name: getattr(word, name) for name in word.__slots__}
    if isinstance(word, Change):
        return members | {name: [_list_members(each) for each in members[name]] for name in ("added", "withdrawn")}
    return {name: value for name, value in members.items() if value is not None}


def _describe_word(word: Solution | Change) -> str:
    if isinstance(word, Solution):
        return _describe_solution(word)
    signed = [("+", each) for each in word.added] + [("-", each) for each in word.withdrawn]
    return "\n".join(f"{sign} {_describe_solution(each)}" for sign, each in signed)


def _describe_solution(solution: Solution) -> str:
    if solution.binding is not None:
        text = "  ".join(f"?{name}={term_of(term)}" for name, term in solution.binding.items())
    elif solution.event is not None:
        text = f"{solution.event}({', '.join(map(str, solution.args or ()))})"
    else:
        text = str(solution.boolean).lower() if solution.triples is None else solution.triples.strip().replace("\n", "  ")
    of = "" if solution.instance is None else f"{solution.instance}: "
    return _printable(f"{_describe_interval(solution.start, solution.end)}  {of}{text}")


def _describe_event(event: Mapping[str, Any]) -> str:
    terms = " ".join(str(event[place]) for place in ("s", "p", "o", "g") if event.get(place))
    return _printable(f"{_describe_interval(event['start'], event['end'])}  {terms}" + ("  (late)" if event.get("late") else ""))


def _describe_interval(start: str, end: str) -> str:
    return start if start == end else f"{start} to {end}"


def serve_assistants(_: Client, arguments: Namespace) -> None:
    """Serve until the assistant's program ends, or over HTTP until a signal. Raises: MissingExtra."""
    check_extra("mcp", "epsparql mcp")
    import asyncio  # other commands do without it

    from epsparql.async_client import AsyncClient
    from server.mcp.mcp_server import McpServer

    chosen = choose_server(arguments)

    def make_client(token: str | None) -> AsyncClient:
        return AsyncClient(chosen.url, token, _ANSWER_S, ca_file=chosen.ca_file)

    server = McpServer(make_client, chosen.token, over_http=arguments.http is not None)
    asyncio.run(server.run_stdio() if arguments.http is None else server.run_http(arguments.http))
