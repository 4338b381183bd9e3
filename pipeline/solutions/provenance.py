"""This module tells why a query gave a solution.

It derives the solution again from the log on request, so nothing is kept for it while queries run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import field
from pathlib import Path

import numpy as np
import pyarrow as pa

from engine.background.changes import RuleRejected, apply_change, is_change
from engine.background.fact_store import FactIndex
from engine.background.reasoning.rdfs_schema import Triple
from engine.expressions.literals import parse_term
from engine.messages import Events, Micros
from engine.provenance import Members, Occurrence, OwnEvent, OwnEvents, Proof, Step, StepBudget, Target, TooMuch, Used, World, justified
from engine.provenance.justify import looks_back, windows_of
from engine.rewrite import SIMPLIFICATIONS, rewrite_query
from engine.triples.quads import GraphName, triples_of
from epsparql import algebra as a
from epsparql import parse
from epsparql.deferred_methods import dataclass
from epsparql.etalis.header import is_program
from epsparql.etalis.translator import translate_told
from pipeline.errors import Gone, NotFoundAgain, TooMuchWork
from pipeline.log.catalog import Registration
from pipeline.log.codec import Content, decode, decode_records
from pipeline.log.segments import FrameReader, oldest
from pipeline.solutions.program_events import derive_own, list_written
from pipeline.solutions.solution_ids import key_of
from pipeline.solutions.solution_log import SolutionReader, StoredSolution, listed, solution_id

MOST_ROWS = 5_000_000
"""At most this many rows of the log are looked through for one answer."""
MOST_STEPS = 2_000_000
"""At most this many steps of the search are taken: matches that are tried."""
_PAGE = 10_000
_LAST = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Justification:
    """Holds a solution with the proof that it rests on, and, by their ids, the solutions of rules in that proof."""

    registration: Registration
    solution: StoredSolution
    proof: Proof
    rules: "Mapping[tuple[str, str], Justification]"


@dataclass(slots=True)
class Justifier:
    """Justifies solutions for one answer.

    `queries` are the registered ones: their rules derived the occurrences on the streams that they write.
    """

    data_dir: Path
    solutions: SolutionReader
    queries: Sequence[Registration]
    most_rows: int = MOST_ROWS
    budget: StepBudget = field(default_factory=lambda: StepBudget(MOST_STEPS))
    _parsed: dict[int, a.Query] = field(default_factory=dict)
    _found: dict[tuple[str, str], Justification] = field(default_factory=dict)

    def why(self, registration: Registration, solution: StoredSolution) -> Justification:
        """Return the justification of a solution. Raises: TooMuchWork, NotFoundAgain, Gone."""
        try:
            return self._whole(registration, solution)
        except (TooMuch, RecursionError):
            raise TooMuchWork(
                f"more than {self.most_rows} rows of the log or {MOST_STEPS} steps would be needed; limit the query with WITHIN or a "
                f"WINDOW, or use a query that reads less"
            ) from None

    def _whole(self, registration: Registration, solution: StoredSolution) -> Justification:
        involved = self._involved(registration)
        lo = None if any(looks_back(self._query(each)) for each in involved) else solution.start
        past = self._past(involved, lo, solution.end, solution.entry)
        derived = [occurrence for rule in involved[1:] for occurrence in self._derived(rule, lo, solution.end)]
        query = self._query(registration)
        if isinstance(query, a.Construct) and query.into in query.streams:
            derived += self._derived(registration, lo, solution.end)
        return self._justified(registration, solution, _Log(past.occurrences + derived, past.known), frozenset())

    def _justified(self, registration: Registration, solution: StoredSolution, log: "_Log", above: frozenset[tuple[str, str]]) -> Justification:
        me, query = (registration.name, solution.id), self._query(registration)
        if me in self._found:
            return self._found[me]
        after = registration.registered if registration.reads_from is None else registration.reads_from - 1
        seen = [
            o for o in log.occurrences
            if o.stream in query.streams and (o.offset is None or o.offset > after) and (o.rule is None or (o.rule, o.solution) not in above | {me})
        ]  # fmt: skip
        triples = tuple(_triples_in(solution)) if isinstance(query, a.Construct | a.Describe) else ()
        target = Target(solution.values, triples, solution.start, solution.end)
        program = query if isinstance(query, a.Select) and query.program else None
        own = [] if program is None else derive_own(program, registration.policy, seen, log.known, solution.end)
        self.budget.spend(len(own))
        world = World([*seen, *own], log.known.premises, log.known, windows_of(query, solution.end), self.budget)
        rewritten = rewrite_query(query, registration.default_graph, without=SIMPLIFICATIONS)
        proof = justified(rewritten, target, world)
        if proof is not None and isinstance(rewritten, a.Select) and rewritten.rules:
            proof = OwnEvents(rewritten.rules, world, solution.end if world.first is None else world.first, own).explain(proof)
        if proof is None:
            raise NotFoundAgain(
                f"the solution {solution.id} of {registration.name!r} cannot be derived again: a rule that it depends on was dropped or "
                "replaced, or was registered after it"
            )
        rules = dict(self._rules_in(proof, log, above | {me}))
        self._found[me] = found = Justification(registration, solution, proof, rules)
        return found

    def _rules_in(self, proof: Proof, log: "_Log", above: frozenset[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], Justification]]:
        for occurrence in dict.fromkeys(_derived_in(proof.steps)):
            assert occurrence.rule is not None
            assert occurrence.solution is not None
            rule = next(each for each in self.queries if each.name == occurrence.rule)
            solution = find(self.solutions, rule.registered, occurrence.solution)
            assert solution is not None, "it was read from there"
            yield (rule.name, solution.id), self._justified(rule, solution, log, above)

    # ------------------------------------------------------------ queries
    def _query(self, registration: Registration) -> a.Query:
        if registration.registered not in self._parsed:
            text = registration.text
            self._parsed[registration.registered] = translate_told(text) if is_program(text) else parse(text).query
        return self._parsed[registration.registered]

    def _into(self, registration: Registration) -> str | None:
        return a.written_stream(self._query(registration))

    def _involved(self, registration: Registration) -> list[Registration]:
        """Return the query and the rules that it rests on."""
        found, streams = [registration], set(self._query(registration).streams)
        while new := [each for each in self.queries if each not in found and self._into(each) in streams]:
            found += new
            streams |= {stream for each in new for stream in self._query(each).streams}
        return found

    # ------------------------------------------------------------ the log
    def _past(self, involved: Sequence[Registration], lo: Micros | None, hi: Micros, entry: int) -> "_Log":
        """Return the occurrences that these queries read, and the background as of then.

        The occurrences end by `hi`, start at `lo` at the earliest, and are in entries up to `entry`.
        """
        streams = {stream for each in involved for stream in self._query(each).streams}
        first = min(each.registered + 1 if each.reads_from is None else each.reads_from for each in involved)
        kept = oldest(self.data_dir / "log")
        if kept > 0:
            raise Gone(f"the log now begins at offset {kept}, and explaining a solution needs the background before it")
        known = FactIndex()
        found: list[Occurrence] = []
        rows = 0
        with closing(FrameReader(self.data_dir / "log")) as frames:
            for frame in frames.frames(0):
                if frame.first > entry:
                    break
                payload = frames.payload(frame)
                _, records, _ = decode_records(frame.first, payload)
                for record in records:
                    if record.entry.offset <= entry and is_change(record.entry, known):
                        with suppress(RuleRejected):
                            known = apply_change(known, record.entry)
                may_count = lo is None or any(record.latest is not None and record.latest >= lo for record in records)
                if frame.after > first and frame.rows and may_count:
                    rows += frame.rows
                    if rows > self.most_rows:
                        raise TooMuch
                    found += self._occurrences(decode(frame.first, payload), streams, lo, hi, entry)
        return _Log(found, known)

    def _occurrences(self, content: Content, streams: set[str], lo: Micros | None, hi: Micros, entry: int) -> Iterator[Occurrence]:
        events = [record.entry for record in content.records if isinstance(record.entry, Events)]
        which = np.repeat(np.arange(len(events)), [e.rows for e in events])
        wanted = np.array([e.stream in streams and e.offset <= entry for e in events])
        start, end = (content.rows.column(name).cast(pa.int64()).to_numpy() for name in ("start", "end"))
        chosen = wanted[which] & (end <= hi) & ~content.rows.column("late").to_numpy(zero_copy_only=False)
        if lo is not None:
            chosen &= start >= lo
        places = np.flatnonzero(chosen)
        self.budget.spend(len(places))
        rows = content.rows.take(pa.array(places))
        s, p, o, g = (rows.column(name).to_pylist() for name in "spog")
        for k, place in enumerate(places.tolist()):
            event = events[which[place]]
            graph: GraphName | None = None if g[k] is None else parse_term(g[k])  # type: ignore[assignment]  # a graph's name is no literal
            triple = parse_term(s[k]), parse_term(p[k]), parse_term(o[k])
            yield Occurrence(triple, event.stream, int(start[place]), int(end[place]), graph, event.offset)

    def _derived(self, rule: Registration, lo: Micros | None, hi: Micros) -> Iterator[Occurrence]:
        """Yield the occurrences that a rule derived, as its solutions have them."""
        into, query = self._into(rule), self._query(rule)
        assert into is not None
        after = None if lo is None else solution_id(lo - 1, _LAST)
        while page := listed(self.solutions.read(rule.registered, after, _PAGE)):
            self.budget.spend(len(page))
            for solution in page:
                if solution.end > hi:
                    return
                if lo is None or solution.start >= lo:
                    for triple in list_written(query, solution) if isinstance(query, a.Select) else _triples_in(solution):
                        yield Occurrence(triple, into, solution.start, solution.end, None, None, rule.name, solution.id)
            after = page[-1].id


@dataclass(frozen=True, slots=True)
class _Log:
    occurrences: list[Occurrence]
    known: FactIndex


def find(solutions: SolutionReader, registered: int, identifier: str) -> StoredSolution | None:
    """Return a registration's solution by its id, or None. Raises: ValueError for a text that is no id."""
    end, ordinal = key_of(identifier)
    before = solution_id(end, ordinal - 1) if ordinal else solution_id(end - 1, _LAST) if end > -(2**63) else None
    found = listed(solutions.read(registered, before, 1))
    return found[0] if found and found[0].id == identifier else None


def _derived_in(steps: Iterable[Step]) -> Iterator[Occurrence]:
    for step in steps:
        match step:
            case Used(given=Occurrence(rule=str()) as occurrence):
                yield occurrence
            case Members(shown=shown):
                for proof in shown:
                    yield from _derived_in(proof.steps)
            case OwnEvent(proof=proof):
                yield from _derived_in(proof.steps)


def _triples_in(solution: StoredSolution) -> list[Triple]:
    return list(triples_of("\n".join(text or "" for text in solution.values)))
