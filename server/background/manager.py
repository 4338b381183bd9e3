"""Manages the server's background: changes are checked before they are written, and what is served is read from the
log.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from engine import messages
from engine.messages import ADD, DROP, Entail, Facts
from epsparql.deferred_methods import dataclass
from pipeline.log import LogWriter
from pipeline.log.background_graphs import Lines, graph_lines, lines_of, nquads, quads_of
from pipeline.log.catalog import BackgroundGraph, Catalogue, Registration
from pipeline.registrations.query_cache import get_shape
from server.background.shapes_check import ShapesCheck
from server.background.shapes_protocol import ShapesVerdict
from server.http.problem_details import Fault, Problem

if TYPE_CHECKING:
    from engine.background.fact_store import FactIndex

_COUNTED = 4096
"""At most this many graphs have a cached count of their triples."""


@dataclass(frozen=True, slots=True)
class Change:
    """Describes a change of a graph ("" for none): ADD, REPLACE or DROP."""

    graph: str
    triples: str
    kind: str


class BackgroundManager:
    """Manages the background of a log. Any thread may ask; the caller makes changes one after another."""

    def __init__(self, log: LogWriter, shapes: ShapesCheck | None = None) -> None:
        """Manage the background of a log. Changes are checked by `shapes`, if they are given."""
        self._shapes = shapes
        self._log, self._reader, self._lock = log, log.reader(), Lock()  # a LogReader serves one thread at a time
        self._turn = Lock()  # for what was checked
        self._counts: dict[str, tuple[BackgroundGraph, int]] = {}  # by the graph's name, as it was when its triples were counted
        self._checked: tuple[object, FactIndex] | None = None  # the key of its graphs (`_state`), and the background
        self._numbers: dict[tuple[str, str, str], int] = {}  # of the static rules checked last, by name, text and default graph
        self._serial = count(1)
        self._mentioned: tuple[object, dict[str, bool]] = None, {}  # the background's key, and which IRIs it mentions

    @property
    def catalogue(self) -> Catalogue:
        return self._log.catalogue

    def change_graph(self, change: Change, rules: Sequence[Registration]) -> None:
        """Write the change, unless it changes nothing.

        Raises: Fault 409 where a rule would feed itself through a negative part. Fault 422 beyond what OWL may entail
        or static rules may derive, or if shapes refuse the background.
        """
        with self._turn:
            self._change_graph(change, rules)

    def _change_graph(self, change: Change, rules: Sequence[Registration]) -> None:
        known = self.catalogue.graphs.get(change.graph)
        before = {} if known is None else self.read_lines(known)
        after = _apply_change(before, change)
        if known is not None and change.kind != DROP and after == before:
            return
        entry = Facts(0, change.graph, "".join(f"{line}\n" for line in _find_new_triples(change, before)), change.kind)
        checked = self._check_background(entry, after, self.catalogue.entailment, rules)
        if self._shapes is not None and self._shapes.is_on:
            self._shapes.judge([after, *self._read_all_but({change.graph})])
        self._log.append(lambda offset: replace(entry, offset=offset))
        self._checked = None if checked is None else (self._state, checked)

    def check_rule(self, name: str, text: str, default_graph: str, rules: Sequence[Registration]) -> None:
        """Check that a static rule can stand beside these rules over the background.

        Raises: Fault 409 or 422, like `change_graph`.
        """
        with self._turn:
            checked = self._check_background(None, {}, self.catalogue.entailment, [*rules, Registration(0, name, text, default_graph=default_graph)])
            self._checked = None if checked is None else (self._state, checked)

    def read_derived(self, graph: str, rules: Sequence[Registration]) -> Lines:
        """Return the triples of a graph as loaded, and those that static rules derive in it."""
        with self._turn:
            known = self._background_after(None, {}, self.catalogue.entailment, _static_rules(rules))
            self._checked = self._state, known
        there = self.catalogue.graphs.get(graph)
        derived = {" ".join(map(known.terms.text, triple)) + " .": None for triple in known.derived(graph).tolist()}
        return ({} if there is None else self.read_lines(there)) | derived

    def set_entailment(self, regime: str, rules: Sequence[Registration]) -> None:
        """Write the regime, unless it holds already. Raises: Fault 409 or 422, like `change`."""
        if regime == self.catalogue.entailment:
            return
        with self._turn:
            checked = self._check_background(None, {}, regime, rules)
            self._log.append(lambda offset: Entail(offset, regime))
            self._checked = None if checked is None else (self._state, checked)

    def read_lines(self, graph: BackgroundGraph) -> Lines:
        with self._lock:
            return graph_lines(self._reader, graph)

    def find_violations(self) -> ShapesVerdict:
        """Return the results of the shapes over the background as it stands.

        Raises: Fault 409 if shapes are not checked, 422 if they cannot be.
        """
        if self._shapes is None or not self._shapes.is_on:
            raise Fault(Problem(HTTPStatus.CONFLICT, "shapes-off", "no shapes are checked; start the server with --shapes report or refuse"))
        return self._shapes.validate(self._read_all_but(()))

    def _read_all_but(self, changed: Collection[str]) -> list[Lines]:
        return [self.read_lines(graph) for graph in list(self.catalogue.graphs.values()) if graph.name not in changed]

    def read_ntriples(self, graph: BackgroundGraph) -> str:
        return "".join(f"{line}\n" for line in self.read_lines(graph))

    def count_triples(self, graph: BackgroundGraph) -> int:
        """Return the number of the graph's triples."""
        counted, number = self._counts.get(graph.name, (None, 0))
        if counted != graph:
            number = len(self.read_lines(graph))
            while len(self._counts) >= _COUNTED:
                del self._counts[next(iter(self._counts))]
            self._counts[graph.name] = graph, number
        return number

    def find_mentioned(self, iris: Collection[str]) -> set[str]:
        """Return those of the IRIs that a triple of the background has; the answers are cached until the background
        changes.
        """
        state = self._state
        if self._mentioned[0] != state or len(self._mentioned[1]) >= _COUNTED:
            self._mentioned = state, {}
        known = self._mentioned[1]
        if ahead := {iri: f"<{iri}>" for iri in iris if iri not in known}:
            found = dict.fromkeys(ahead, False)
            for graph in list(self.catalogue.graphs.values()):
                text = "\n".join(self.read_lines(graph))
                found |= {iri: True for iri, term in ahead.items() if term in text}
            known.update(found)
        return {iri for iri in iris if known[iri]}

    def read_facts(self, rules: Sequence[Registration]) -> "FactIndex":
        """Return the background as it stands, with what the static rules among `rules` derive."""
        with self._turn:
            return self._background_after(None, {}, self.catalogue.entailment, _static_rules(rules))

    def close(self) -> None:
        self._reader.close()

    @property
    def _state(self) -> object:
        """Return a key of the background: while the key is equal, so is the background."""
        return self.catalogue.entailment, tuple(self.catalogue.graphs.values())

    def _check_background(self, entry: Facts | None, lines: Lines, regime: str, rules: Sequence[Registration]) -> "FactIndex | None":
        """Return the background as it is after an entry, or None where it need not be checked.

        The entry gives its graph these lines; without an entry the background is taken as it is.

        Raises: Fault if the rules would not stand, or OWL would go beyond its limits.
        """
        if not rules and regime == messages.RDFS:
            return None
        from engine.background.static_rules.derivations import NegativeRecursion
        from engine.errors import EntailmentLimit
        from engine.network.stratification import Cycle
        from engine.validation.validate import check_background  # loads the kernel, so only where a query is planned

        static = _static_rules(rules)
        others = [rule for rule in rules if rule not in static]
        try:
            known = self._background_after(entry, lines, regime, static)
            check_background(known, [(rule.text, rule.policy, rule.default_graph) for rule in others])
        except NegativeRecursion as recursion:
            detail = f"static rules would depend on their own negation: {recursion}"
            expected = recursion.remedy or (
                "a predicate of its own for what is derived without the negation, or a schema without what closes the cycle"
            )
            raise Fault(Problem(HTTPStatus.CONFLICT, "cyclic-negation", detail, expected=expected)) from None
        except Cycle as cycle:
            detail = f"with this background, a rule would read its own negation without a strict step in time: {cycle.way}"
            expected = "a background without what closes the cycle, or a SEQ, OPTIONALSEQ or WITHOUT ... FOR on the cycle"
            raise Fault(Problem(HTTPStatus.CONFLICT, "cyclic-negation", detail, expected=expected)) from None
        except EntailmentLimit as limit:
            if entry is not None and not lines:
                return known  # taking a graph away is the remedy
            if not known.is_derived:
                expected = "fewer facts, or rules that derive less (see Static rules in docs/background.md for the limits)"
                raise Fault(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, limit.code, str(limit), expected=expected)) from None
            expected = (
                "a background without a long chain of a transitive property (a path, :p+, needs none) or a large set of equal "
                "things, or --entailment rdfs"
            )
            raise Fault(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, limit.code, str(limit), expected=expected)) from None
        return known

    def _background_after(self, entry: Facts | None, lines: Lines, regime: str, static: Sequence[Registration]) -> "FactIndex":
        """Return the background after the entry with these static rules, built on the one checked last if no graph
        has changed since.

        Raises: NegativeRecursion.
        """
        from engine.validation.validate import background_after, background_of, background_with  # as above

        keys = [(rule.name, rule.text, rule.default_graph) for rule in static]
        self._numbers = numbers = {key: self._numbers.get(key) or next(self._serial) for key in keys}
        rules = [(numbers[key], *key) for key in keys]
        if self._checked is not None and self._checked[0] == self._state and regime == self.catalogue.entailment:
            known = background_with(self._checked[1], rules)
            return known if entry is None else background_after(known, entry.graph, entry.triples, entry.change)
        others = [known for known in self.catalogue.graphs.values() if entry is None or known.name != entry.graph]
        with self._lock:
            text = nquads(self._reader, others)
        return background_with(background_of(text if entry is None else text + quads_of(lines, entry.graph), regime), rules)


def _static_rules(rules: Sequence[Registration]) -> list[Registration]:
    return [rule for rule in rules if get_shape(rule.text).graph is not None]


def _apply_change(before: Lines, change: Change) -> Lines:
    match change.kind:
        case messages.ADD:
            return before | lines_of(change.triples)
        case messages.REPLACE:
            return lines_of(change.triples)
        case _:
            return {}


def _find_new_triples(change: Change, before: Lines) -> Lines:
    """Return the triples that the entry needs: when adding, only the new ones."""
    lines = lines_of(change.triples)
    return {line: None for line in lines if line not in before} if change.kind == ADD else lines
