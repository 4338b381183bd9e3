"""Runs `epsparql diagnose`: says why a query finds nothing, over files in this process, or for a registered query by
asking its server.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsparql.events.on_error import DEAD_LETTERS, REFUSE
from epsparql.extras import check_extra
from epsparql.solutions.policies import PolicyFault
from server.cli.subcommands.chosen_server import WrongServer, add_server_options, connect_client, explain_silence
from server.cli.subcommands.definition import BROKEN, OK, USER_FAULT, Commands, add_command, fail
from server.cli.subcommands.input_options import add_dead_letters, add_inputs, add_on_error, find_letters_fault

if TYPE_CHECKING:
    from pipeline.diagnosis.model import Diagnosis

_SUFFIXES = (".rq", ".sparql", ".event")


def add_diagnose(commands: Commands) -> None:
    text = (
        "Say why a query finds nothing: the first step that lets nothing through, and what would have passed. It exits with 1 if no reason is known."
    )
    parser = add_command(commands, "diagnose", _diagnose, text)
    parser.add_argument(
        "query", metavar="Q.rq|NAME", help="This is the file of a query over the files of --stream, or the name of a query of a server."
    )
    parser.add_argument(
        "--json", action="store_true", help="The output is a JSON object, as the schema DiagnosisDocument in openapi.yaml describes it."
    )
    add_inputs(parser)
    add_on_error(parser, REFUSE, "The default is refuse.")
    add_dead_letters(parser)
    add_server_options(parser)


def _diagnose(arguments: argparse.Namespace) -> int:
    if Path(arguments.query).exists() or Path(arguments.query).suffix.lower() in _SUFFIXES:
        check_extra("engine", "epsparql diagnose FILE")
        return _diagnose_file(arguments)
    return _ask_server(arguments)


def _diagnose_file(arguments: argparse.Namespace) -> int:
    from pipeline.replay.input_files import read_names
    from pipeline.replay.query_files import SourceFault, named_file, read_asked
    from pipeline.replay.replay import Replay, diagnose_files, policies_of
    from server.process import clock

    if (fault := find_letters_fault(arguments)) is not None:
        return fail(fault)
    try:
        query, policy = read_asked(Path(arguments.query))
        replay = Replay(
            [query],
            [named_file(each) for each in arguments.stream],
            [named_file(each) for each in arguments.background],
            default_graph=arguments.default_graph,
            policies={query.name: policy} | policies_of(arguments.policy, [query]),
            entailment=arguments.entailment or "rdfs",
            mappings=[named_file(each) for each in arguments.mapping],
            rounds=arguments.round is not None,
            on_error=arguments.on_error,
            dead_letters=arguments.dead_letters or Path(DEAD_LETTERS),
            names=read_names(arguments.base, arguments.prefix),
        )
        found = diagnose_files(replay, clock, lambda told: print(f"epsparql: {told}", file=sys.stderr))
    except PolicyFault as fault:
        return fail(f"--policy: {fault}")
    except SourceFault as fault:
        return fail(fault)
    if not found:
        return fail(f"{arguments.query}: a rule over the background reads no events")
    return print_diagnosis(found[0].list_members(), as_json=arguments.json)


def _ask_server(arguments: argparse.Namespace) -> int:
    from epsparql.client import ApiError, Unreachable

    try:
        document = connect_client(arguments).diagnose(arguments.query)
    except WrongServer as fault:
        return fail(fault)
    except ApiError as fault:
        return fail(fault, USER_FAULT if fault.status < 500 else BROKEN)
    except (OSError, Unreachable) as fault:
        return fail(explain_silence(arguments, fault), BROKEN)
    return print_diagnosis(document, as_json=arguments.json)


def print_diagnosis(document: Mapping[str, Any], *, as_json: bool) -> int:
    """Print a diagnosis, as its document or as lines for people, and return the exit code."""
    print(json.dumps(document, ensure_ascii=False) if as_json else "\n".join(_describe_diagnosis(document)))
    return BROKEN if document["state"] == "unknown" else OK


def _describe_diagnosis(document: Mapping[str, Any]) -> list[str]:
    examined, reason = document["examined"], document["reason"]
    if examined["events"] == 1 and examined["to"] is not None:
        events = f"1 event, which ends at {examined['to']}, was"
    else:
        span = f", which end from {examined['from']} to {examined['to']}," if examined["to"] is not None else ""
        events = f"{examined['events']:,} events{span} were"
    lines = [f"{document['query']}: {'the last ' if examined['bounded'] else ''}{events} examined"]
    lines += [_describe_step(step) for step in document["steps"]]
    if reason is not None:
        place = f"line {reason['line']}, column {reason['column']}: " if reason["line"] is not None else ""
        lines.append(f"why nothing: {place}{reason['message']} [{reason['code']}]")
        lines += [f"what to do: {reason['remedy']}"] if reason["remedy"] else []
    else:
        lines.append(
            "the query finds solutions" if document["state"] == "found" else "no reason is known; epsparql trial runs the query over all of the log"
        )
    return lines


def _describe_step(step: Mapping[str, Any]) -> str:
    place = f"{step['line']}:{step['column']}" if step["line"] is not None else ""
    taken = " + ".join(f"{count:,}" for count in step["in"])
    return (
        f"{place:>7}  {f'{taken} ->' if taken else '':>16} {step['out']:,}{'+' if step['more'] else ''}  {step['operator']} {step['text']}".rstrip()
    )


def print_silent(found: "Sequence[Diagnosis]") -> None:
    """Print one line on stderr for each query that found nothing."""
    for each in found:
        why = f"why nothing: {each.reason}" if each.reason is not None else "nothing was found, and no reason is known"
        print(f"epsparql: {each.query}: {why} (epsparql diagnose shows each step)", file=sys.stderr)
