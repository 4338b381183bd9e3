"""This module compares the emitted solutions of a data directory with what the definitions give for its log.

The time of a query is cut into slices. Each slice in which a solution ends, and a sample of the others, is evaluated
by itself: from the events of the slice, and those before it that the query's reach takes in. So each emitted solution
needs a derivation, and none may be missing in these slices.
"""

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from epsparql import algebra
from epsparql.algebra import Query
from epsparql.terms import BlankNode, Term, TripleTerm, TripleTermPattern, Variable
from epsparql.trees import replace_fields, walk_nodes
from verification.definitions.expressions import date_time
from verification.definitions.model import Fact, Micros, Occurrence, Solution, Triple, marked
from verification.definitions.queries import Given, Streams, found
from verification.definitions.rdfs import entailed
from verification.definitions.rules import Rules, instantiated
from verification.frames import Unreadable
from verification.history import END_OF_TIME, History, Registration
from verification.log_files import Emitted, SolutionLog, parse_term, parse_triples, read_saved_mark, read_solutions, wait_for_solutions
from verification.reach import Reach, is_positive, reach_through_rules

SLICE_ROWS = 150
"""A slice has about so many events that the query may use."""
MOST_ROWS = 6_000
"""A slice with more events, those before it included, is left out: the definitions are evaluated by brute force."""
SHOWN = 20
"""At most this many faults of a kind are listed for a query; all are counted."""
Row = tuple[Micros, Micros, object]
"""A solution's interval with what it shows, in a form that can be compared."""


class NotChecked(Exception):
    """Says why a query is not checked."""


@dataclass
class QueryReport:
    """Holds what was found for one query: of each kind of fault the count, and at most SHOWN texts."""

    name: str
    registered: int
    solutions: int
    reason: str = ""
    derived: int = 0
    slices: int = 0
    complete_slices: int = 0
    checked_slices: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    listed: dict[str, list[str]] = field(default_factory=dict)

    def describe(self) -> list[str]:
        """Return the report for people."""
        counted = f"{self.name or 'registration'} ({self.registered}): {self.solutions:,} solutions"
        if self.reason:
            return [f"{counted}, not checked: {self.reason}", *self._listed()]
        first = f"{counted}, {self.derived:,} derived; none may be missing in {self.complete_slices:,} of {self.slices:,} slices"
        left = self.solutions - self.derived - self.faults.get("unexplained", 0)
        return [first + (f"; {left:,} not looked at" if left else ""), *self._listed()]

    def _listed(self) -> list[str]:
        return [f"  {kind}: {text}" for kind, texts in self.listed.items() for text in texts] + [
            f"  {kind}: {count - SHOWN:,} more" for kind, count in self.faults.items() if count > SHOWN
        ]

    def add_faults(self, kind: str, texts: Iterable[str]) -> None:
        for text in texts:
            self.faults[kind] = self.faults.get(kind, 0) + 1
            if self.faults[kind] <= SHOWN:
                self.listed.setdefault(kind, []).append(text)


@dataclass(frozen=True)
class DirectoryReport:
    """Holds what was found for each query, and how far the logs reach.

    `log` is the position at the begin of the check, which a server may pass.
    """

    log: int
    solutions: int
    queries: list[QueryReport]

    @property
    def is_whole(self) -> bool:
        """Return whether there are solutions for all entries of the log. Those of other entries have not been seen."""
        return self.solutions >= self.log


def check_directory(data_dir: Path, *, query: str | None = None, sample: int = 50, seed: int = 0) -> DirectoryReport:
    """Check the queries of a data directory, or the one of a name. `sample` is how many slices without solutions are
    looked at for each.

    Raises: Unreadable, FileNotFoundError.
    """
    saved = read_saved_mark(data_dir)
    reached = wait_for_solutions(data_dir)
    found = read_solutions(data_dir)  # first: of a server that runs, the log is then no shorter
    history = History(data_dir)
    _check_origin(data_dir, history, found, saved)
    reports = []
    for registration in history.registrations.values():
        if query in (None, registration.name):
            solutions = found.emitted.pop(registration.offset, [])
            report = QueryReport(registration.name, registration.offset, len(solutions))
            failures = (entry for registered, entry, state, _ in found.changes if registered == registration.offset and state == "failed")
            report.add_faults("numbering", _misnumbered(solutions))
            try:
                if found.begin > registration.offset:
                    raise NotChecked(f"retention has removed the solutions before log position {found.begin}")
                _Check(history, registration, solutions, min([found.position, *failures]), report).check_slices(sample, random.Random(seed))
            except NotChecked as why:
                report.reason = str(why)
            except NotImplementedError as what:
                report.reason = f"the definitions do not have {_shortened(str(what))}"
            reports.append(report)
    if query is None:
        for registered, solutions in found.emitted.items():
            if registered not in history.registrations:
                reports.append(QueryReport("", registered, len(solutions), "its registration is no longer in the log"))
    return DirectoryReport(min(reached, history.position), found.position, reports)


def _check_origin(data_dir: Path, history: History, found: SolutionLog, saved: tuple[int, int]) -> None:
    """Check that solutions and catalog belong to this log, and that the log is whole. Raises: Unreadable."""
    log, solutions = data_dir / "log", data_dir / "solutions"
    position, mark = saved
    if position > history.position:
        raise Unreadable(f"{log} ends at position {history.position}, and catalogue.json was saved at {position}: the end of the log is missing")
    if found.position > history.position:
        raise Unreadable(f"{solutions} reaches log position {found.position}, and {log} ends at {history.position}: the end of the log is missing")
    if mark and history.find_mark(position) not in (None, mark):
        raise Unreadable(f"{data_dir / 'catalogue.json'} is of another log than {log}, at position {position}")
    for position, mark in found.marks:
        if history.find_mark(position) not in (None, mark):
            raise Unreadable(f"{solutions} is of another log than {log}, at position {position}")
    for registered, name in found.names.items():
        known = history.registrations.get(registered)
        if registered >= history.first and (known is None or known.name != name):
            raise Unreadable(f"{solutions} is of another log than {log}: the query {name!r} was not registered at position {registered}")


def _misnumbered(solutions: Sequence[Emitted]) -> Iterator[str]:
    """Yield what is wrong with ids: ends never fall, and solutions that end together are numbered from 0."""
    for before, after in pairwise([Emitted(-1, 0, -END_OF_TIME, -1, ()), *solutions]):
        expected = before.ordinal + 1 if before.end == after.end else 0
        if after.end < before.end or after.ordinal != expected:
            yield f"{_show_row((after.start, after.end, after.values))} has the number {after.ordinal} at its instant, after {before.ordinal}"


@dataclass
class _Check:
    history: History
    registration: Registration
    solutions: Sequence[Emitted]
    position: int
    report: QueryReport

    # ------------------------------------------------------------ what is known of the query
    @cached_property
    def query(self) -> Query:
        query = self.registration.query
        if query is None:
            raise NotChecked("its text is not EP-SPARQL alone")
        if isinstance(query, algebra.Describe | algebra.BackgroundRule) or (isinstance(query, algebra.Select) and query.rules):
            raise NotChecked("descriptions, static rules and programs are not checked")
        if isinstance(query, algebra.Select) and query.parameters:
            raise NotChecked("queries with PARAMETERS are not checked")
        return replace_fields(query, pattern=marked(query.pattern))

    @cached_property
    def writing_rules(self) -> dict[str, tuple[Registration, algebra.Construct]]:
        """Return the rules that write what the query looks for, through other rules too."""
        found: dict[str, tuple[Registration, algebra.Construct]] = {}
        rules = [each for each in self.history.registrations.values() if isinstance(each.query, algebra.Construct)]
        while True:
            queries: list[Query] = [self.query, *(rule for _, rule in found.values())]
            streams, wanted = {stream for query in queries for stream in query.streams}, self._named_predicates(queries)
            more = {
                each.name: (each, replace_fields(each.query, pattern=marked(each.query.pattern)))
                for each in rules
                if isinstance(each.query, algebra.Construct) and each.query.into in streams and _may_write(each.query, wanted)
            }
            if more.keys() == found.keys():
                return found
            found = more

    @cached_property
    def streams(self) -> frozenset[str]:
        return frozenset(self.query.streams).union(*(rule.streams for _, rule in self.writing_rules.values()))

    @cached_property
    def facts(self) -> frozenset[Fact]:
        return self.history.facts(self.registration.offset)

    @cached_property
    def predicates(self) -> frozenset[str] | None:
        """Return the predicates that the query and its rules name, None if others matter."""
        return self._named_predicates([self.query, *(rule for _, rule in self.writing_rules.values())])

    def _named_predicates(self, queries: Iterable[Query]) -> frozenset[str] | None:
        if self.facts:
            return None  # by its schema, one predicate entails others
        nodes = [node for query in queries for node in walk_nodes(query.pattern)]
        patterns = [node for node in nodes if isinstance(node, algebra.TriplePattern)]
        general = any(isinstance(node, algebra.Path | algebra.Graph) for node in nodes)
        if general or any(isinstance(each.predicate, Variable | TripleTermPattern) for each in patterns):
            return None
        return frozenset(str(each.predicate) for each in patterns)

    @cached_property
    def positive(self) -> bool:
        return all(is_positive(rule, each.settings) for each, rule in self.writing_rules.values())

    @cached_property
    def reach(self) -> Reach:
        rules = [(rule, each.settings) for each, rule in self.writing_rules.values()]
        reach = reach_through_rules(self.query, self.registration.settings, rules, bool(self.facts))
        timeless = self.facts or any(isinstance(node, algebra.Values) for node in walk_nodes(self.query.pattern))
        return Reach(None, False) if self.writing_rules and (timeless or not self.positive) else reach

    @cached_property
    def due(self) -> Micros:
        """Return the least watermark of the streams: all solutions that end before it must be there."""
        known = []
        for name in self.streams:
            stream = self.history.streams.get(name)
            watermark = None if stream is None else stream.watermark(self.position)
            if watermark is not None:
                known.append(watermark)
            elif all(rule.into != name for _, rule in self.writing_rules.values()):
                return -END_OF_TIME  # nothing has come yet, and the query waits
        return min(known, default=-END_OF_TIME)

    def _refuse(self) -> None:
        """Raise NotChecked for what this program does not follow."""
        names = {self.registration.offset: "the query", **{each.offset: f"the rule {name!r}" for name, (each, _) in self.writing_rules.items()}}
        for each in self.history.registrations.values():
            if isinstance(each.query, algebra.Select) and each.query.into in self.streams:
                raise NotChecked(f"the program {each.name!r} writes what it reads, and programs are not checked")
        if self.history.first > 0:
            raise NotChecked("retention has removed the beginning of the log")
        paused: set[int] = set()
        for entry in self.history.others:
            registered = entry.members.get("registered")
            if registered in names:
                if entry.kind == "promote":
                    raise NotChecked(f"the text of {names[registered]} was replaced by a promotion at offset {entry.offset}")
                if entry.kind == "drop" and registered != self.registration.offset:
                    raise NotChecked(f"{names[registered]} was dropped at offset {entry.offset}")
                paused = paused | {registered} if entry.kind == "pause" else paused - {registered} if entry.kind == "resume" else paused
            if entry.kind == "facts" and entry.offset > self.registration.reads_from:
                raise NotChecked(f"the background changed at offset {entry.offset}")
            if entry.kind == "entail" and entry["regime"] != "rdfs":
                raise NotChecked("the background's schema is OWL 2 RL")
            if entry.kind == "unset" and entry["stream"] in self.streams and entry.offset > self.registration.reads_from:
                raise NotChecked(f"the stream {entry['stream']!r} was deleted at offset {entry.offset}")
        if paused:
            raise NotChecked(f"{names[paused.pop()]} is paused")
        if any(registration.revised for registration in (self.registration, *(each for each, _ in self.writing_rules.values()))):
            raise NotChecked("it gives changes, or rests on a rule that does")
        for name in sorted(self.streams & self.history.retractions.keys()):
            raise NotChecked(f"events of the stream {name!r} were taken back at offset {self.history.retractions[name]}")
        if any(isinstance(each.query, algebra.BackgroundRule) for each in self.history.registrations.values()):
            raise NotChecked("static rules derive background")
        texts = [self.query, *(rule for _, rule in self.writing_rules.values())]
        policies = {each.settings.policy for each in (self.registration, *(each for each, _ in self.writing_rules.values()))}
        ordered = "the policy chronological" if "chronological" in policies else ""
        ordered = "ONCE PER" if any(isinstance(node, algebra.Once) for node in walk_nodes(tuple(texts))) else ordered
        if ordered and self.history.has_divided_instant(self.streams):
            raise NotChecked(f"{ordered} goes by the order of the log, and events of one instant came in several entries")
        between = [each.offset for each, _ in self.writing_rules.values()]
        if between and any(
            min(self.registration.reads_from, *between) < offset < max(self.registration.offset, *between)
            for name in self.streams
            for offset, _ in (self.history.streams[name].watermarks if name in self.history.streams else ())
        ):
            raise NotChecked("events came between the registrations of the query and of its rules")

    # ------------------------------------------------------------ slices
    def check_slices(self, sample: int, chance: random.Random) -> None:
        self._refuse()
        for entry in self.history.others:
            if entry.kind == "drop" and entry["registered"] == self.registration.offset:
                self.position = min(self.position, entry.offset)
        ends = self.history.ends(self.streams, self.registration.reads_from, self.predicates)
        due, reach = self.due, self.reach
        every = self.history.ends(self.query.streams, self.registration.reads_from, None)
        self.first = every[0] if every else None
        self.horizon = max(self.history.ends(self.streams, 0, None), default=0) if due >= END_OF_TIME else due - 1
        certain = self.positive and is_positive(self.query, self.registration.settings)  # what only adds is emitted at the watermark already
        last = due if certain or due >= END_OF_TIME else due - 1
        emitted = [each for each in self.solutions if each.end <= last]
        if reach.back is None and len(ends) <= MOST_ROWS // 3:
            reach = Reach(END_OF_TIME, False)
        if reach.back is None and not reach.inside:
            raise NotChecked(f"each solution depends on all earlier events, and there are {len(ends):,}")
        bounds = _bounds(ends, emitted, last, whole=reach.back == END_OF_TIME)
        self.report.slices = len(bounds)
        places = [each.end for each in emitted]
        filled: list[tuple[Micros, Micros, Sequence[Emitted]]] = []
        empty: list[tuple[Micros, Micros, Sequence[Emitted]]] = []
        for low, high in bounds:
            part = emitted[bisect_right(places, low) : bisect_right(places, high)]
            (filled if part else empty).append((low, high, part))
        chosen = [*filled, *(chance.sample(empty, min(sample, len(empty))) if reach.back is not None else ())]
        for low, high, part in chosen:
            self._check_slice(low, high, part, reach)

    def _check_slice(self, low: Micros, high: Micros, part: Sequence[Emitted], reach: Reach) -> None:
        """Compare the solutions that end in (low, high].

        Without a bounded reach, it is seen whether each has a derivation within its interval.
        """
        begin = min((each.start for each in part), default=low) if reach.back is None else low - reach.back
        streams = self._streams(begin - 1, high)
        if sum(map(len, streams.values())) > MOST_ROWS:
            return
        expected = Counter(row for row in self._rows(streams) if low < row[1] <= high)
        given = Counter(_row(self.query, each) for each in part)
        if isinstance(self.query, algebra.Construct):  # bindings tell its solutions apart, and two may show the same triples
            expected, given = Counter(set(expected)), Counter(set(given))
        unexplained = given - expected
        self.report.checked_slices += 1
        self.report.derived += len(part) - unexplained.total()
        self.report.add_faults("unexplained", map(_show_row, unexplained.elements()))
        if reach.back is not None:
            self.report.complete_slices += 1
            self.report.add_faults("missing", map(_show_row, (expected - given).elements()))

    def _streams(self, after: Micros, until: Micros) -> dict[str, frozenset[Occurrence]]:
        read = {name: self.history.occurrences(name, after, until, self.registration.reads_from, self.predicates) for name in self.streams}
        return {name: entailed(rows, self.facts) for name, rows in read.items()}

    def _rows(self, streams: Streams) -> Iterator[Row]:
        """Yield the rows that the definitions give over these events."""
        settings = self.registration.settings
        everything = self._close_streams(streams) if self.writing_rules else streams
        solutions = found(self.query, Given(everything, everything, self.facts, None, self.horizon, settings, self.first))
        if isinstance(self.query, algebra.Ask) and not solutions and self.due >= END_OF_TIME:
            yield self.horizon, self.horizon, "false"
        for x in solutions:
            assert x.start is not None
            assert x.end is not None
            match self.query:
                case algebra.Select(_, projection):
                    yield x.start, x.end, tuple(None if (term := x.lookup(each)) is None else _masked(term) for each in projection)
                case algebra.Construct(template):
                    triples = frozenset(_masked_triple(triple) for triple in instantiated("", template, x))
                    if triples:
                        yield x.start, x.end, triples
                case _:
                    yield x.start, x.end, "true"

    def _close_streams(self, streams: Streams) -> Streams:
        """Return the streams with what the rules derive: the least fixpoint, at once where nothing is ever taken
        away, otherwise instant by instant.
        """
        if not self.positive:
            rules = {name: rule for name, (_, rule) in self.writing_rules.items()}
            horizons = dict.fromkeys(rules, self.horizon)
            return Rules(rules, streams, self.facts, horizons, {name: each.settings for name, (each, _) in self.writing_rules.items()}).run()
        grown = {name: streams.get(name, frozenset()) for name in self.streams | {rule.into for _, rule in self.writing_rules.values()}}
        while True:
            more = dict(grown)
            for name, (each, rule) in self.writing_rules.items():
                given = Given(grown, grown, self.facts, None, self.horizon, each.settings, self.first)
                more[rule.into] |= entailed(self._occurrences(name, rule, found(rule, given)), self.facts)
            if more == grown:
                return grown
            grown = more

    @staticmethod
    def _occurrences(name: str, rule: algebra.Construct, solutions: Iterable[Solution]) -> Iterator[Occurrence]:
        for x in solutions:
            assert x.start is not None
            assert x.end is not None
            yield from (Occurrence(triple, x.start, x.end) for triple in instantiated(name, rule.template, x))


def _may_write(rule: algebra.Construct, predicates: frozenset[str] | None) -> bool:
    """Return whether a rule may derive triples with one of these predicates."""
    return predicates is None or any(isinstance(each.predicate, Variable) or str(each.predicate) in predicates for each in rule.template)


def _bounds(ends: Sequence[Micros], emitted: Sequence[Emitted], last: Micros, *, whole: bool) -> list[tuple[Micros, Micros]]:
    """Cut the time up to `last` into slices (low, high] of about SLICE_ROWS events."""
    instants = sorted({each.end for each in emitted[:1]} | {ends[k] for k in range(0, len(ends), SLICE_ROWS)})
    first = min([*instants, last]) - 1
    cuts = [] if whole else [end for end in instants if first < end < last]
    edges = [first, *cuts, last]
    return [(low, high) for low, high in pairwise(edges) if low < high]


# ---------------------------------------------------------------- rows
def _row(query: Query, each: Emitted) -> Row:
    """Return an emitted solution as `_Check._rows` gives them; one of terms that cannot be read equals none of these."""
    try:
        return _read_row(query, each)
    except (SyntaxError, IndexError):
        return each.start, each.end, each.values


def _read_row(query: Query, each: Emitted) -> Row:
    if isinstance(query, algebra.Construct):
        return each.start, each.end, frozenset(_masked_triple(parse_triples(f"{text.rstrip(' .')} .")[0]) for text in each.values if text)
    if isinstance(query, algebra.Ask):
        return each.start, each.end, str(parse_term(each.values[0] or '""')).split('"')[1]
    return each.start, each.end, tuple(None if text is None else _masked(parse_term(text)) for text in each.values)


def _masked(term: Term) -> str:
    """Return a term's text. Blank nodes have labels of the server's choice, so one stands for all."""
    if isinstance(term, TripleTerm):
        return f"<<( {_masked(term.subject)} {_masked(term.predicate)} {_masked(term.object)} )>>"
    return "_:" if isinstance(term, BlankNode) else str(term)


def _masked_triple(triple: Triple) -> tuple[str, ...]:
    return tuple(map(_masked, triple))


def _show_row(row: tuple[Micros, Micros, object]) -> str:
    start, end, values = row
    listed = sorted(map(" ".join, values)) if isinstance(values, frozenset) else values if isinstance(values, tuple) else [values]
    return _shortened(f"[{_moment(start)}, {_moment(end)}] {', '.join('-' if value is None else str(value) for value in listed)}")


def _moment(micros: Micros) -> str:
    try:
        return date_time(micros).lexical
    except OverflowError:
        return str(micros)


def _shortened(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]} …"
