"""Applies the operator's settings of the background at a start.

Files are read before the server takes anything; only what differs from the log is written into it.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing

from engine.messages import REPLACE
from pipeline.log import LogWriter
from pipeline.log.background_graphs import lines_of
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import get_shape
from pipeline.replay.input_files import facts_of
from pipeline.replay.query_files import NamedFile, named_file
from pipeline.solutions.solution_log import SolutionReader
from server.background.manager import BackgroundManager, Change
from server.background.shapes_check import ShapesCheck
from server.http.problem_details import Fault
from server.settings import Settings, SettingsError


def read_background(settings: Settings) -> dict[str, str]:
    """Return what the files hold, by graph ("" for none), as N-Triples text. Raises: SettingsError, SourceFault."""
    return graphs_of([named_file(each) for each in settings.background])


def load_background(settings: Settings, graphs: dict[str, str], log: LogWriter) -> None:
    """Write the regime and the `graphs` that `read_background` returned; since they are large, each is removed from
    there. Raises: SettingsError.
    """
    rules, shapes = _rules(settings, log), ShapesCheck(settings)
    with closing(BackgroundManager(log)) as manager:
        try:
            if shapes.is_on:
                _check_together(shapes, graphs, manager)
            manager.set_entailment(settings.entailment, rules)
            for graph in list(graphs):
                manager.change_graph(Change(graph, graphs.pop(graph), REPLACE), rules)
        except Fault as fault:
            expected = f"; expected {fault.problem.expected}" if fault.problem.expected else ""
            raise SettingsError(f"the background cannot be changed: {fault.problem.detail}{expected}") from None


def _check_together(shapes: ShapesCheck, graphs: Mapping[str, str], manager: BackgroundManager) -> None:
    """Check all graphs as they will be, unless none changes: a restart needs no check. Raises: Fault."""
    before = {name: manager.read_lines(graph) for name, graph in manager.catalogue.graphs.items()}
    after = before | {name: lines_of(triples) for name, triples in graphs.items()}
    if after != before:
        shapes.judge(after.values())


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
