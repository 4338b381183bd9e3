"""Defines the command line. Heavy modules are imported where a command needs them, so that help is printed at once."""

import argparse
import gc
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from epsparql.events.on_error import DEAD_LETTERS, REFUSE
from epsparql.extras import MissingExtra, check_extra
from epsparql.solutions.policies import PolicyFault
from server.cli.subcommands.backup import add_backup
from server.cli.subcommands.chosen_server import WrongServer, add_server_options, connect_client, explain_silence
from server.cli.subcommands.client_commands import CLIENT_COMMANDS
from server.cli.subcommands.definition import BROKEN, GREEN, OK, RED, Commands, add_command, add_policy, fail, paint
from server.cli.subcommands.diagnose import print_silent
from server.cli.subcommands.input_options import add_dead_letters, add_entailment, add_inputs, add_on_error, find_letters_fault
from server.cli.subcommands.shapes import add_shapes
from server.cli.subcommands.token import add_token
from server.cli.subcommands.verify import add_verify

if TYPE_CHECKING:
    from pipeline.replay.query_files import QueryFile
    from pipeline.replay.replay import ReplayStep, ReplaySummary

_RUNNERS = ("spark", "inprocess")
_OPTIONAL_STEPS = ("constants", "equalities", "unused", "filters", "windows", "order", "expiry", "suppression", "pairs", "passing", "bounds", "sums")
"""These equal `engine.rewrite.SIMPLIFICATIONS` and `engine.planner.CHOICES`, whose modules load pyarrow too."""
_SHELLS = ("bash", "zsh", "tcsh")
_COMPARED = 40
"""So many characters of an unknown command are compared with the known ones."""
_CHECKOUT = Path(__file__).parents[2]
_MOST_SLICES = 4096  # pipeline.slices.plan has it too, but loads numpy
_GARBAGE_LOOK = 500_000, 4, 1
"""Python looks for garbage among new objects each time that there are so many: more than a command makes to load its
code. With its usual 700 that is a tenth of a start, whose objects stay. A server sets its own values later.
"""

_EXTRAS = {"serve": "server", "connect": "server", "demo": "server", "bench": "server", "trial": "server", "token": "server"}
"""Commands that need more than the extra `engine`."""


def main(argv: list[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 if we or the machine failed, 2 if the user's input is at fault."""
    gc.set_threshold(*_GARBAGE_LOOK)
    try:
        return _run_command(argv)
    except MissingExtra as fault:
        return fail(fault)
    finally:
        if argv is None:  # the process is this command's, and would look at all objects once more before it ends, for a seventh of a start
            gc.freeze()


def _run_command(argv: list[str] | None) -> int:
    first, *_ = [*(sys.argv[1:] if argv is None else argv), ""]
    if first == "--version":
        _top_parser().parse_args([first])  # prints it, also where nothing but the base is installed
    adders = _list_adders()
    chosen = [adders[first]] if first in adders else list(adders.values())  # arguments of others cost a twentieth of a start
    if first in CLIENT_COMMANDS:
        arguments = _parse_command(chosen, argv)
    else:
        check_extra(_EXTRAS.get(first, "engine"), f"epsparql {first}".rstrip())
        arguments = _parse_command(chosen, argv)
        if argv is None:  # the process is this command's
            from server.process import keep_freed_memory, leave_out_unused

            keep_freed_memory()  # before Arrow is imported, by functions of users for example
            if first != "bench":  # it measures data frames, too
                leave_out_unused()
        fault = _fault_of_functions()
        if fault is not None:
            return fail(fault)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        return command(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of stdout had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK


def _fault_of_functions() -> Exception | None:
    """Return why the modules that EPSPARQL_FUNCTIONS names cannot be used, or None."""
    if "EPSPARQL_FUNCTIONS" in os.environ:
        from engine.expressions.extensions import ExtensionFault, extensions

        try:
            extensions()
        except ExtensionFault as fault:
            return fault
    return None


_FIRST_STEPS = """Begin with a file of your own: `epsparql map FILE` proposes a mapping, and `epsparql replay --query Q.rq --stream FILE
--mapping mapping.json` runs a query over it. `epsparql COMMAND --help` has the options of a command, and a server shows the documentation at /docs.
"""


def _top_parser() -> argparse.ArgumentParser:
    about = "epsparql evaluates continuous EP-SPARQL queries over streams of time-stamped RDF, or over rows of CSV and JSON."
    parser = argparse.ArgumentParser(prog="epsparql", description=about, epilog=_FIRST_STEPS)
    parser.add_argument("--version", action=_Version, nargs=0, help="Print the version and exit.")
    return parser


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    return _build_parser(_list_adders().values())[0]


def _list_adders() -> dict[str, Callable[[Commands], None]]:
    """Return what adds each command, in the order of the help."""
    ours = {
        "serve": _add_serve,
        "connect": _add_connect,
        "replay": _add_replay,
        "map": _add_map,
        "explain": _add_explain,
        "check": _add_check,
        "test": _add_test,
        "shapes": add_shapes,
        "trial": _add_trial,
        "verify": add_verify,
        "backup": add_backup,
        "token": add_token,
        "warm": _add_warm,
        "demo": _add_demo,
        "completion": _add_completion,
    }
    has_benches = (_CHECKOUT / "bench" / "commands.py").is_file()  # they are in a checkout of the sources alone
    return {**ours, **({"bench": _add_bench} if has_benches else {}), **CLIENT_COMMANDS}


def _add_bench(commands: Commands) -> None:
    if str(_CHECKOUT) not in sys.path:
        sys.path.append(str(_CHECKOUT))  # the benchmarks are no part of what is installed
    import_module("bench.commands").add_bench(commands)


def _build_parser(adders: Iterable[Callable[[Commands], None]]) -> tuple[argparse.ArgumentParser, Commands]:
    parser = _top_parser()
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in adders:
        add(commands)
    return parser, commands


def _parse_command(adders: Iterable[Callable[[Commands], None]], argv: list[str] | None) -> argparse.Namespace:
    """Parse arguments.

    An unknown command is refused with the nearest one, and what is too many with the usage of its own command.
    """
    parser, commands = _build_parser(adders)
    first = next(iter(sys.argv[1:] if argv is None else argv), "-")
    if first not in commands.choices and not first.startswith("-"):
        near = get_close_matches(first[:_COMPARED], list(commands.choices), 1)
        parser.error(f"there is no command {first!r}; {f'was {near[0]} meant?' if near else f'{parser.prog} --help lists the commands'}")
    arguments, rest = parser.parse_known_args(argv)
    if rest:
        arguments.refuse(f"unrecognized arguments: {' '.join(rest)}")
    return arguments


class _Version(argparse.Action):
    """Prints the version. It is looked up only on request, since reading the package's metadata takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"{parser.prog} {version('epsparql')}")
        parser.exit()


# ---------------------------------------------------------------- serve
def _add_serve(commands: Commands) -> None:
    from server.cli.settings_doc import form_of, group_settings, show_default
    from server.settings import CONFIG, REMOVED, RENAMED, flag_of

    about = "Run the server. Each setting can also be an environment variable EPSPARQL_*, or a line of the TOML file of --config."
    parser = add_command(commands, "serve", _serve, about)
    parser.usage = "%(prog)s [--config FILE] [OPTION ...]"
    parser.add_argument(
        f"--{CONFIG}", type=Path, metavar="FILE", help="This TOML file holds settings. Flags and environment variables override the file."
    )
    for title, settings in group_settings():
        group = parser.add_argument_group(title)
        for setting in settings:
            default = show_default(setting.default).replace("`", "")
            about = f"{setting.metadata['about']}{f' The default is {default}.' if default else ''}".replace("%", "%%")
            more: dict[str, Any] = {}
            if setting.name == "spark_conf":
                more = {"action": "append", "metavar": setting.metadata["form"]}
            elif setting.name == "background":
                more = {"action": "extend", "nargs": "+", "metavar": setting.metadata["form"]}
            repeated = " The flag may be repeated." * bool(more)
            group.add_argument(
                flag_of(setting.name), help=about + repeated, **({"metavar": form_of(setting)} | more)
            )  # read with the variables and the file, so that faults are told alike
    for former in RENAMED.values():
        parser.add_argument(flag_of(former), help=argparse.SUPPRESS)
    for removed in REMOVED:
        parser.add_argument(flag_of(removed), action="store_true", default=None, help=argparse.SUPPRESS)


def _warn(message: object) -> None:
    print(f"epsparql: {message}", file=sys.stderr, flush=True)


def _serve(arguments: argparse.Namespace) -> int:
    from server.process import defer_validators

    defer_validators()  # before FastAPI is imported
    from pipeline.errors import PipelineError
    from pipeline.replay.query_files import SourceFault
    from server.cli.serve import serve
    from server.settings import SettingsError, settings_from

    try:
        code = serve(settings_from(vars(arguments), os.environ, _warn))
    except (SettingsError, SourceFault, PipelineError) as error:
        code = fail(error)
    except KeyboardInterrupt:
        code = 130
    return code


# ---------------------------------------------------------------- connect
def _add_connect(commands: Commands) -> None:
    text = "Run connectors, which move events from other systems to a server's streams, and solutions from its queries to other systems."
    parser = add_command(commands, "connect", _connect, text)
    parser.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="This TOML file names the server and the connectors. The page Connectors of the documentation describes it.",
    )


def _connect(arguments: argparse.Namespace) -> int:
    from connectors.errors import ConnectorError
    from server.cli.connect import connect

    try:
        return connect(arguments.file)
    except ConnectorError as fault:
        return fail(fault)


# ---------------------------------------------------------------- replay
def _add_asked(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--query",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="This file holds a query. The query's name is the file's name without its suffix. The flag may be repeated.",
    )
    parser.add_argument(
        "--rules",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="This file holds an ETALIS program. The program's name is the file's name without its suffix. If the flag is repeated, the "
        "files form one program.",
    )
    parser.add_argument(
        "--static",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="This file holds facts and static rules of the ETALIS program. The flag may be repeated.",
    )


def _add_replay(commands: Commands) -> None:
    parser = add_command(commands, "replay", _replay, "Run queries over files as finished streams. Solutions go to stdout.")
    _add_asked(parser)
    add_inputs(parser)
    add_on_error(parser, REFUSE, "The default is refuse.")
    add_dead_letters(parser)
    parser.add_argument("--runner", choices=_RUNNERS, default="inprocess", help="This runner evaluates the queries. The default is inprocess.")
    parser.add_argument("--master", default="local[*,4]", help="With --runner spark, queries run on this Spark master. The default is local[*,4].")
    parser.add_argument(
        "--slices",
        type=_slice_count,
        metavar="N",
        help="The events are cut into this many slices of time. The slices are evaluated in parallel if all queries look back for a bounded time. "
        "1 means no slices. The default depends on the number of cores and events. The solutions are the same for each number.",
    )
    parser.add_argument("--low-latency", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--format", choices=("ndjson", "json", "csv", "turtle"), default="ndjson", help="Solutions are written in this format. The default is ndjson."
    )


def _slice_count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST_SLICES):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of slices from 1 to {_MOST_SLICES}")
    return int(text)


def _replay(arguments: argparse.Namespace) -> int:
    from pipeline.replay.input_files import read_names
    from pipeline.replay.query_files import SourceFault, named_file
    from pipeline.replay.replay import Replay, RunnerFailed, policies_of, run
    from server.process import clock
    from server.settings import without_effect

    if arguments.runner == "spark":
        check_extra("server", "--runner spark")
    if arguments.low_latency:
        _warn(without_effect("--low-latency"))
    if (fault := find_letters_fault(arguments)) is not None:
        return fail(fault)
    began = time.monotonic()
    try:
        queries, own = _read_asked(arguments)
        streams, background = [named_file(each) for each in arguments.stream], [named_file(each) for each in arguments.background]
        policies = policies_of(arguments.policy, queries) | own
        replay = Replay(
            queries,
            streams,
            background,
            arguments.runner,
            arguments.master,
            arguments.default_graph,
            policies,
            arguments.entailment or "rdfs",
            [named_file(each) for each in arguments.mapping],
            arguments.round is not None,
            arguments.slices,
            arguments.on_error,
            arguments.dead_letters or Path(DEAD_LETTERS),
            read_names(arguments.base, arguments.prefix),
        )
        with _progress() as tell:
            summary = run(replay, arguments.format, sys.stdout.buffer, clock, tell, _warn, explains=True)
    except PolicyFault as fault:
        return fail(f"--policy: {fault}")
    except SourceFault as fault:
        return fail(fault)
    except RunnerFailed as failure:
        print(f"epsparql: the {arguments.runner} runner {failure}", file=sys.stderr)
        return BROKEN
    _summarise(summary, time.monotonic() - began)
    print_silent(summary.silent)
    return OK


def _read_asked(arguments: argparse.Namespace) -> "tuple[list[QueryFile], dict[str, str]]":
    """Return the queries and the program of a replay, and the program's policy by its name.

    Raises: SourceFault, PolicyFault.
    """
    from pipeline.replay.query_files import SourceFault, read_program, read_query
    from pipeline.replay.replay import policies_of

    queries = [read_query(path) for path in arguments.query]
    if not arguments.rules:
        if not queries:
            raise SourceFault("replay", "nothing is given to run", expected="--query FILE or --rules FILE")
        return queries, {}
    program, _ = read_program(arguments.rules, arguments.static)
    wanted = policies_of(arguments.policy, [*queries, program]).get(program.name)
    program, policy = read_program(arguments.rules, arguments.static, wanted)
    return [*queries, program], {program.name: policy}


@contextmanager
def _progress() -> "Iterator[Callable[[ReplayStep], None]]":
    """Show a progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _step: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True, soft_wrap=True), transient=True) as bar:  # lines that come meanwhile stay whole
        task = bar.add_task("replay", total=None)
        yield lambda step: bar.update(task, completed=step.done, total=step.of)


def _summarise(summary: "ReplaySummary", seconds: float) -> None:
    if not sys.stderr.isatty():
        return
    print(f"{summary.occurrences:,} occurrences in {summary.entries:,} messages, {seconds:.1f} s", file=sys.stderr)
    for name, count in summary.solutions.items():
        print(f"{name}: {count:,} solutions", file=sys.stderr)


# ---------------------------------------------------------------- map
def _add_map(commands: Commands) -> None:
    about = (
        "Propose a mapping for a file of CSV, JSON or log lines. The mapping goes to stdout. The guesses, each with its alternative, "
        "and the triples of the "
        "first three rows go to stderr. If day and month can be either way round, the exit status is 2 and nothing is proposed."
    )
    parser = add_command(commands, "map", _map, about)
    parser.add_argument("file", type=Path, metavar="FILE", help="This file holds the rows: .csv, .tsv, .json, .ndjson, .jsonl, .log or .txt.")
    parser.add_argument("--base", default="http://example.org/", metavar="IRI", help="Names are relative to this IRI.")
    order = parser.add_mutually_exclusive_group()
    order.add_argument("--day-first", dest="order", action="store_const", const="day-first", help="Dates such as 04/01/2026 are in January.")
    order.add_argument("--month-first", dest="order", action="store_const", const="month-first", help="Dates such as 04/01/2026 are in April.")
    parser.add_argument("--time-zone", metavar="ZONE", help="Times that name no zone are local to this one, such as Europe/Vienna or +01:00.")
    parser.add_argument(
        "--choose",
        type=_choice,
        action="append",
        default=[],
        metavar="SETTING=VALUE",
        help="The proposal takes this alternative, as stderr lists them. The flag may be repeated.",
    )


def _choice(text: str) -> tuple[str, str]:
    setting, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("expected SETTING=VALUE, such as subject=sensor")
    return setting, value


def _map(arguments: argparse.Namespace) -> int:
    import json
    import time

    from pipeline.errors import InvalidMapping
    from pipeline.mapping.mapping import check_base
    from pipeline.proposals.choices import OWN_PARAMETERS, Choices
    from pipeline.proposals.proposal import AmbiguousDates
    from pipeline.replay.proposed_mappings import propose_for_file
    from pipeline.replay.query_files import SourceFault

    try:
        base = check_base(arguments.base)
        choices = Choices(time.time_ns() // 1_000, arguments.order, arguments.time_zone, dict(arguments.choose))
        proposal = propose_for_file(arguments.file, base, choices)
    except AmbiguousDates as fault:
        return fail(f"{arguments.file}: {fault.message}; expected --day-first or --month-first")
    except InvalidMapping as fault:
        return fail(f"{'--time-zone' if fault.member == 'time_zone' else '--base'}: {fault.message}; expected {fault.expected}")
    except SourceFault as fault:
        return fail(fault)
    for comment in proposal.comments:
        _warn(comment)
    for choice in proposal.choices:
        if choice.setting == "time_zone":
            print(f"time_zone is {choice.value or 'UTC'!r}; else --time-zone ZONE, such as Europe/Vienna", file=sys.stderr)
        elif choice.setting not in OWN_PARAMETERS:
            others = " or ".join(f"--choose '{choice.setting}={value}'" for value in choice.alternatives)
            print(f"{choice.setting} is {choice.value!r}; else {others}", file=sys.stderr)
    for number, triples in enumerate(proposal.preview, 1):
        print(f"row {number}:", *(triples or ["gives no triple"]), sep="\n  ", file=sys.stderr)
    print(json.dumps(proposal.document, ensure_ascii=False, indent=2))
    return OK


# ---------------------------------------------------------------- explain, check, warm
def _add_explain(commands: Commands) -> None:
    parser = add_command(commands, "explain", _explain, "Show a query's algebra and plan.")
    parser.add_argument("query", type=Path, metavar="Q.rq", help="This file holds the query, or an ETALIS program if its suffix is .event.")
    parser.add_argument(
        "--format",
        choices=("text", "json", "mermaid"),
        default="text",
        help="The output has this format. The schema PlanDocument in openapi.yaml describes the format json.",
    )
    add_policy(parser, "The query is planned for this consumption policy", "unrestricted, or the program's")
    parser.add_argument(
        "--rates",
        type=_rates,
        default={},
        metavar="IRI=N,...",
        help="The planner expects N triples with the predicate IRI, within the query's window if the query has one.",
    )
    parser.add_argument(
        "--without",
        choices=_OPTIONAL_STEPS,
        action="append",
        default=[],
        help="The planner skips this optional optimization. The flag may be repeated.",
    )
    parser.add_argument(
        "--background",
        action="append",
        default=[],
        metavar="[GRAPH=]FILE",
        help="The query is planned with the background triples of this file. The plan shows which of them are copied and which are "
        "looked up. The flag may be repeated.",
    )
    add_entailment(parser)


def _rates(text: str) -> dict[str, int]:
    """Parse rates such as `http://example.org/a=1000,http://example.org/b=10`."""
    pairs = [part.rpartition("=") for part in text.split(",")]
    if not all(iri and n.isascii() and n.isdigit() for iri, _, n in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form IRI=N,IRI=N, such as http://example.org/a=1000")
    return {iri: int(n) for iri, _, n in pairs}


def _explain(arguments: argparse.Namespace) -> int:
    import epsparql
    from pipeline.registrations.query_cache import Observed, explain_query, find_background_reads
    from pipeline.replay.input_files import nquads_of
    from pipeline.replay.query_files import SourceFault, named_file, read_asked

    try:
        query, policy = read_asked(arguments.query, arguments.policy)
        background = nquads_of([named_file(each) for each in arguments.background])
        reads = find_background_reads(background, query.text, policy, arguments.entailment or "rdfs")
        print(explain_query(query.text, arguments.format, policy=policy, rates=arguments.rates, without=arguments.without, observed=Observed(reads)))
    except SourceFault as fault:
        return fail(fault)
    except epsparql.QueryError as error:
        return fail(query.fault(error))
    return OK


def _add_check(commands: Commands) -> None:
    parser = add_command(commands, "check", _check, "Print faults and warnings of queries. The exit code is 2 if there is a fault.")
    parser.add_argument("query", type=Path, nargs="+", metavar="Q.rq", help="This file holds a query, or an ETALIS program if its suffix is .event.")
    parser.add_argument("--strict", action="store_true", help="A warning counts as a fault, and the exit code is then 2.")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="The output is a JSON array with one object for each file.")
    output.add_argument("--mend", action="store_true", help="Print the text of one query with its faults mended. Each repair goes to stderr.")


def _check(arguments: argparse.Namespace) -> int:
    from server.cli.subcommands.check import check_files, mend_file

    if arguments.mend:
        if len(arguments.query) != 1:
            return fail("--mend prints the text of one query; give one file")
        return mend_file(arguments.query[0], strict=arguments.strict)
    return check_files(arguments.query, strict=arguments.strict, as_json=arguments.json)


def _add_test(commands: Commands) -> None:
    parser = add_command(
        commands,
        "test",
        _test,
        "Run tests of queries over files, and compare the solutions with the expected ones. The exit code is 1 if a test fails.",
    )
    parser.add_argument(
        "path", type=Path, nargs="+", metavar="PATH", help="This is a folder of tests, or a Markdown page whose queries are followed by timelines."
    )
    parser.add_argument("--update", action="store_true", help="Where solutions differ, the found ones replace the expected ones in the files.")
    add_on_error(parser, None, f"This is in place of what test.toml says; the file is {DEAD_LETTERS} in the test's folder.")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="The results are also written to this file as JUnit XML.")


def _test(arguments: argparse.Namespace) -> int:
    from pipeline.query_tests.cases import find_cases
    from pipeline.query_tests.execution import run_case, write_junit
    from pipeline.replay.query_files import SourceFault

    began, results = time.monotonic(), []
    try:
        cases = find_cases(arguments.path)
    except SourceFault as fault:
        return fail(fault)
    if not cases:
        return fail(f"{', '.join(map(str, arguments.path))}: there is no test here; docs/cookbook/tests.md shows how to write one")
    for case in cases:
        results.append(run_case(case, update=arguments.update, on_error=arguments.on_error))
        colour = GREEN if results[-1].passed else RED
        print("\n".join([paint(results[-1].headline(), colour, sys.stdout), *results[-1].details()]), flush=True)
        print_silent(results[-1].silent)
    failed = sum(not result.passed for result in results)
    print(f"{len(results) - failed} passed, {failed} failed in {time.monotonic() - began:.1f} s")
    if arguments.junit is not None:
        try:
            write_junit(arguments.junit, results)
        except OSError as fault:
            return fail(f"{arguments.junit}: {fault.strerror}")
    return BROKEN if failed else OK


def _add_trial(commands: Commands) -> None:
    text = "Show what a query would have found in the past of a server's log. Solutions that only the new or only the old query finds go to stdout."
    parser = add_command(commands, "trial", _trial, text)
    parser.add_argument("query", type=Path, metavar="Q.rq", help="This file holds the query.")
    parser.add_argument(
        "--against", metavar="NAME", help="The query is compared with the registered query of this name. Without it, all solutions are new."
    )
    parser.add_argument(
        "--from",
        dest="start",
        default="beginning",
        metavar="PLACE",
        help="The trial begins at this offset of the log, date or time. The default is the beginning.",
    )
    parser.add_argument(
        "--to", dest="end", default="now", metavar="PLACE", help="The trial ends before this offset of the log, date or time. The default is now."
    )
    add_policy(parser, "This is the consumption policy", "that of NAME, or unrestricted")
    add_server_options(parser)


def _trial(arguments: argparse.Namespace) -> int:
    from epsparql.client import ApiError, Unreachable
    from pipeline.replay.query_files import SourceFault, read_query
    from pipeline.replay.replay import ReplayStep
    from server.cli.subcommands.trial import describe_trial, try_query

    try:
        text = read_query(arguments.query).text
        options = {"compare_with": arguments.against, "start": arguments.start, "until": arguments.end}
        options |= {"policy": arguments.policy} if arguments.policy else {}
        with _progress() as tell:
            document = try_query(connect_client(arguments), text, options, lambda done, of: tell(ReplayStep(done, of)))
    except (SourceFault, ApiError, WrongServer) as fault:
        return fail(fault)
    except BrokenPipeError:
        raise
    except (OSError, Unreachable) as fault:
        return fail(explain_silence(arguments, fault), BROKEN)
    for line in describe_trial(document):
        print(line, file=sys.stderr)
    return OK if document["state"] == "completed" else fail(f"the trial failed: {document['reason']}")


def _add_warm(commands: Commands) -> None:
    add_command(commands, "warm", _warm, "Store Spark's classes, once per machine, so that later starts of Spark take half the time.")


def _warm(_arguments: argparse.Namespace) -> int:
    from pipeline.errors import JavaMissing, SparkFailed

    began = time.monotonic()
    try:
        check_extra("server", "Spark")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # the server uses none
            from pipeline.spark import job

            print("storing Spark's classes (up to 60 s, once per machine)", file=sys.stderr, flush=True)
            job.cache_jvm_classes()
    except (JavaMissing, SparkFailed, MissingExtra) as fault:
        print(f"Spark starts without stored classes: {fault}", file=sys.stderr)
    print(f"done after {time.monotonic() - began:.1f} s", file=sys.stderr)
    return OK


# ---------------------------------------------------------------- demo, completion
def _add_completion(commands: Commands) -> None:
    parser = add_command(commands, "completion", _complete, "Print a script that completes commands and options in a shell.")
    parser.add_argument("shell", choices=_SHELLS, help="This is the shell.")


def _complete(arguments: argparse.Namespace) -> int:
    from shtab import complete

    print(complete(parser(), shell=arguments.shell))
    return OK


def _add_demo(commands: Commands) -> None:
    parser = add_command(commands, "demo", _demo, "Send the weather of 2013 through a server, and show the solutions of three queries.")
    parser.add_argument("--runner", choices=_RUNNERS, default="spark", help="The runner evaluates the queries. The default is spark.")
    parser.add_argument("--export-svg", type=Path, metavar="FILE", help="The demo's last screen is written to this SVG file.")
    parser.add_argument("--keep", action="store_true", help="After the demo, the server keeps running with its queries until you press Ctrl-C.")


def _demo(arguments: argparse.Namespace) -> int:
    from server.cli.demo import demo

    return demo(arguments.runner, arguments.export_svg, keep=arguments.keep)
