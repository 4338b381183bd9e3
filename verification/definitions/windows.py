"""RSP-QL's named windows in the reference evaluator: plain SPARQL over their content, report by report (semantics.md
section 7).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from epsparql.algebra import NamedWindow, Report, Sources
from epsparql.deferred_methods import dataclass
from verification.definitions.model import Bindings, Micros, Occurrence, Solution

Contents = Mapping[str, frozenset[Occurrence]]
"""What each window shows, by its name."""
Streams = Mapping[str, frozenset[Occurrence]]


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant at which the query reports."""

    instant: Micros
    contents: Contents


def moments(windows: tuple[NamedWindow, ...], streams: Streams, horizon: Micros) -> Iterator[Moment]:
    """Each multiple of a step at which some window holds an occurrence from before the end, then the first at which
    none does.
    """
    ends = {o.end for window in windows for o in streams.get(window.stream, frozenset())}
    if not ends:
        return
    longest = max(window.length + window.step for window in windows)
    steps = {multiple for window in windows for multiple in range(min(ends) // window.step * window.step, max(ends) + 2 * longest, window.step)}
    filled = False
    for instant in sorted(steps):
        contents = {window.name: _content(window, streams, instant) for window in windows}
        lasting = any(o.end <= horizon or instant <= horizon for content in contents.values() for o in content)
        if lasting or filled:
            yield Moment(instant, {name: _at_once(content, instant) for name, content in contents.items()})
        filled = lasting


def _content(window: NamedWindow, streams: Streams, instant: Micros) -> frozenset[Occurrence]:
    """Return the window's content as of the last multiple of the window's own step."""
    last = instant // window.step * window.step
    return frozenset(o for o in streams.get(window.stream, frozenset()) if last - window.length < o.end <= last)


def _at_once(content: frozenset[Occurrence], instant: Micros) -> frozenset[Occurrence]:
    return frozenset(Occurrence(o.triple, instant, instant, o.graph) for o in content)


def reported(
    sources: Sources, streams: Streams, horizon: Micros, evaluated: Callable[[Moment], list[Solution]], shown: Callable[[Solution], Bindings]
) -> Iterator[Solution]:
    """The reports' solutions, each from the largest window's start to its instant; ISTREAM and DSTREAM compare what
    is `shown`.
    """
    largest = max(window.length for window in sources.windows)
    previous: list[Solution] = []
    for moment in moments(sources.windows, streams, horizon):
        found = evaluated(moment)
        match sources.report:
            case Report.ISTREAM:
                chosen = _missing(found, previous, shown)
            case Report.DSTREAM:
                chosen = _missing(previous, found, shown)
            case _:
                chosen = found
        yield from (x.at(moment.instant - largest, moment.instant) for x in chosen)
        previous = found


def _missing(these: list[Solution], those: list[Solution], shown: Callable[[Solution], Bindings]) -> list[Solution]:
    """These without as many as there are equal ones among those."""
    left, kept = Counter(map(shown, those)), []
    for x in these:
        if left[shown(x)]:
            left[shown(x)] -= 1
        else:
            kept.append(x)
    return kept
