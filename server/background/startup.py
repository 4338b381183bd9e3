"""Applies the operator's settings of the background at a start.

Files are read before the server takes anything; only what differs from the log is written into it.
"""

from collections.abc import Sequence
from contextlib import closing

from engine.messages import REPLACE
from pipeline.log import LogWriter
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import get_shape
from pipeline.replay.input_files import facts_of
from pipeline.replay.query_files import NamedFile, named_file
from pipeline.solutions.solution_log import SolutionReader
from server.background.manager import BackgroundManager, Change
from server.http.problem_details import Fault
from server.settings import Settings, SettingsError


def read_background(settings: Settings) -> dict[str, str]:
    """Return what the files hold, by graph ("" for none), as N-Triples text. Raises: SettingsError, SourceFault."""
    return graphs_of([named_file(each) for each in settings.background])


def load_background(settings: Settings, graphs: dict[str, str], log: LogWriter) -> None:
    """Write the regime and the `graphs` that `read_background` returned; since they are large, each is removed from
    there. Raises: SettingsError.
    """
    rules = _rules(settings, log)
    with closing(BackgroundManager(log)) as manager:
        try:
            manager.set_entailment(settings.entailment, rules)
            for graph in list(graphs):
                manager.change_graph(Change(graph, graphs.pop(graph), REPLACE), rules)
        except Fault as fault:
            raise SettingsError(f"the background cannot be changed: {fault.problem.detail}") from None


def graphs_of(files: Sequence[NamedFile]) -> dict[str, str]:
    """Return what all files together hold, by graph ("" for none), as N-Triples text. Raises: SourceFault."""
    graphs: dict[str, str] = {}
    for file in files:
        for graph, triples in facts_of(file):
            graphs[graph] = graphs.get(graph, "") + triples
    return graphs


def _rules(settings: Settings, log: LogWriter) -> list[Registration]:
    with closing(SolutionReader(settings.data)) as solutions:
        queries = log.catalogue.with_changes(solutions.changes).values()
    return [query for query in queries if query.stands and get_shape(query.text).is_rule]
