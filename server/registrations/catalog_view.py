"""Shows routes the log's streams and queries, with the states that the runner reported."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from itertools import islice, takewhile

from epsparql.deferred_methods import dataclass
from pipeline.log import LateRow, LogReader, LogWriter, RejectedRow
from pipeline.log.catalog import Catalogue, Instance, Registration, Stream
from pipeline.registrations.query_cache import get_shape
from pipeline.solutions.result_kinds import InstanceLife
from pipeline.solutions.solution_log import SolutionReader
from server.http.problem_details import Fault, Problem, unknown_fault

_SHOWN = 200  # characters of an id


class LateFeed:
    """Reads what came late, and what was rejected, since a stream was created.

    Requests take turns, because a LogReader serves one thread at a time.
    """

    def __init__(self, reader: LogReader) -> None:
        self._reader, self._turn = reader, asyncio.Lock()

    async def read_rows(self, stream: Stream, after: int, limit: int) -> list[LateRow]:
        """Return the late rows of a stream, as `LogReader.late`. Raises: Gone."""
        async with self._turn:
            return await asyncio.to_thread(self._reader.late, stream.name, after, limit, stream.created)

    async def read_rejected(self, stream: Stream, after: int, limit: int) -> list[RejectedRow]:
        """Return the rejected rows of a stream, as `LogReader.rejected`. Raises: Gone."""
        async with self._turn:
            return await asyncio.to_thread(self._reader.rejected, stream.name, after, limit, stream.created)

    def close(self) -> None:
        self._reader.close()


@dataclass(frozen=True, slots=True, eq=False)
class _Rules:
    """Lists the rules among the queries of a catalogue up to the one registered at `seen`: thousands of queries are
    looked at once, not at each request.

    A query stays a rule, or no rule, whatever text is promoted.
    """

    catalogue: Catalogue
    seen: int = -1
    found: tuple[Registration, ...] = ()

    def read_on(self, catalogue: Catalogue) -> "_Rules":
        """Return the list with the queries that have come since.

        One of another catalogue, which a failed write leaves, begins anew.
        """
        before = self if catalogue is self.catalogue else _Rules(catalogue)
        if catalogue.newest <= before.seen:
            return before
        queries = list(catalogue.queries.values())  # in order of registration
        new = list(takewhile(lambda query: query.registered > before.seen, reversed(queries)))[::-1]
        if not new:
            return before
        rules = [query for query in new if get_shape(query.text).is_rule]
        left = [rule for rule in before.found if (now := catalogue.queries.get(rule.name)) is not None and now.registered == rule.registered]
        return _Rules(catalogue, new[-1].registered, (*left, *rules))


class CatalogView:
    """Shows the catalog of a log.

    Hold `changing` between a check of the catalog and the control entry that rests on it.
    """

    def __init__(self, log: LogWriter, solutions: SolutionReader) -> None:
        self.log, self._solutions = log, solutions
        self.late_feed = LateFeed(log.reader())
        self.changing = asyncio.Lock()
        self._rules = _Rules(log.catalogue)

    # ------------------------------------------------------------ streams
    def get_stream(self, name: str) -> Stream:
        """Return the stream of this name. Raises: Fault 404."""
        known = self.log.catalogue.streams.get(name)
        if known is not None:
            return known
        streams = self.list_streams()
        if name not in streams:
            raise unknown_fault("stream", name, streams)
        return streams[name]

    def list_streams(self) -> dict[str, Stream]:
        """Return the streams that were fed or set up, then those that queries read or write, as their first event
        would create them.
        """
        found = dict(self.log.catalogue.streams)
        for query in self.list_queries():
            if query.state in ("running", "paused"):
                for name in get_shape(query.text).touched:
                    found.setdefault(name, Stream(name, query.registered))
        return found

    # ------------------------------------------------------------ queries
    def get_query(self, name: str) -> Registration:
        """Return the query of this name, with the state that the runner reported. Raises: Fault 404."""
        queries = self.log.catalogue.queries
        if name not in queries:
            raise unknown_fault("query", name, dict(queries))
        return self.with_state(queries[name])

    def get_instances(self, registration: Registration) -> Mapping[str, Instance]:
        """Return the instances of a query with PARAMETERS, by id. Raises: Fault 409."""
        if not get_shape(registration.text).parameters:
            detail = f"the query {registration.name!r} has no PARAMETERS, so it has no instances; register it with PARAMETERS (?a ?b)"
            raise Fault(Problem(HTTPStatus.CONFLICT, "no-parameters", detail, query=registration.name))
        return self.log.catalogue.instances.get(registration.registered, {})

    def get_instance(self, registration: Registration, instance: str) -> Instance:
        """Return an instance. Raises: Fault 404, which names no other instance; 409."""
        found = self.get_instances(registration).get(instance)
        if found is None:
            detail = f"the query {registration.name!r} has no instance {instance[:_SHOWN]!r}; PUT it, or look for it in the list of instances"
            raise Fault(Problem(HTTPStatus.NOT_FOUND, "unknown-instance", detail, query=registration.name))
        return found

    def get_life(self, registration: Registration, instance: str) -> InstanceLife:
        """Return the present life of an instance. Raises as `get_instance`."""
        return InstanceLife(instance, self.get_instance(registration, instance).since)

    def is_alive(self, registration: Registration, life: InstanceLife) -> bool:
        """Return whether an instance was not removed since this life of it began."""
        known = self.log.catalogue.instances.get(registration.registered, {}).get(life.instance)
        return known is not None and known.since == life.since

    def list_queries(self) -> list[Registration]:
        return self._with_states(list(self.log.catalogue.queries.values()))

    def list_some(self, names: Iterable[str]) -> list[Registration]:
        """Return those of these queries that are there, in the order of the names."""
        found = (self.log.catalogue.queries.get(name) for name in names)
        return self._with_states([query for query in found if query is not None])

    def list_page(self, after: int, limit: int | None, may: Callable[[str], bool]) -> list[Registration]:
        """Return the first `limit` queries that were registered after an offset and whose names pass `may`, in order
        of registration.
        """
        queries = (query for query in list(self.log.catalogue.queries.values()) if query.registered > after and may(query.name))
        return self._with_states(list(islice(queries, limit)))

    def _with_states(self, queries: Sequence[Registration]) -> list[Registration]:
        """Return queries with the states that the runner reported."""
        changes = {change.registered: change for change in self._solutions.changes}
        return [query.after_changes(changes) for query in queries]

    def list_rules(self) -> list[Registration]:
        """Return the CONSTRUCT queries that have not failed, static rules included, in order of registration."""
        catalogue = self.log.catalogue
        known = self._rules = self._rules.read_on(catalogue)
        changes = {change.registered: change for change in self._solutions.changes} if known.found else {}
        now = (catalogue.queries.get(rule.name) for rule in known.found)
        rules = [query for query, rule in zip(now, known.found, strict=True) if query is not None and query.registered == rule.registered]
        return [rule for query in rules if (rule := query.after_changes(changes)).stands]

    def with_state(self, registration: Registration) -> Registration:
        return self._with_states([registration])[0]

    def is_current(self, registration: Registration) -> bool:
        """Return whether the registration has not been dropped or replaced since."""
        return self.refresh(registration) is not None

    def refresh(self, registration: Registration) -> Registration | None:
        """Return the registration as it is now: behind, caught up, or with another text.

        None if it was dropped or replaced.
        """
        now = self.log.catalogue.queries.get(registration.name)
        if now is None or now.registered != registration.registered:
            return None
        return self.with_state(now) if now.versions else now
