"""How far a query's time has come, as a subscriber may rely on it (semantics.md section 8)."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engine.entries import Micros
from pipeline.catalogue import Catalogue, Registration, Stream
from pipeline.times import iso
from server.compiled import Shape, shape

_SAMPLES = 64
_APART_S = 0.05


@dataclass(frozen=True, slots=True)
class Progress:
    """No solution with an `end` below `watermark` will follow; with `finished`, none at all."""

    watermark: Micros
    finished: bool

    def document(self) -> dict[str, object]:
        at: dict[str, object] = {"watermark": iso(self.watermark)}
        return {"progress": at | {"finished": True} if self.finished else at}


@dataclass(frozen=True, slots=True)
class _Sample:
    """`streams` hold no entry at or after the log position `bound`."""

    taken_s: float
    seen: int
    bound: int
    streams: Mapping[str, Stream]

    @property
    def settled(self) -> bool:
        return self.bound == self.seen


class Timeline:
    """Remembers what the streams' watermarks were at some log positions, since solutions trail behind the log."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=_SAMPLES)

    def sample(self, catalogue: Catalogue, now_s: float) -> bool:
        """Keep the present watermarks: the newest always, older ones some way apart. True if they are settled; else call again soon.

        The committer may be between applying an entry and counting it, so only streams found unchanged a while later are known to
        hold no more than the entries that were counted.
        """
        streams = dict(catalogue.streams)
        seen = catalogue.position
        samples = self._samples
        if samples and samples[-1].seen == seen and samples[-1].streams == streams:
            if not samples[-1].settled and now_s - samples[-1].taken_s >= _APART_S:
                samples[-1] = _Sample(now_s, seen, seen, streams)
            return samples[-1].settled
        if len(samples) > 1 and samples[-1].taken_s - samples[-2].taken_s < _APART_S:
            samples.pop()
        samples.append(_Sample(now_s, seen, seen + 1, streams))
        return False

    def progress(self, solved: int, registration: Registration, queries: Iterable[Registration]) -> Progress | None:
        """Of a query, when the entries before the log position `solved` have been applied; None while nothing can be said."""
        if registration.lead is not None:
            return None
        for sample in reversed(self._samples):
            if max(registration.registered, registration.since) < sample.seen and sample.bound <= solved:
                rules = [found for query in queries if query.stands and (found := shape(query.text)).into is not None]
                return _progress(shape(registration.text).streams, rules, sample.streams)
        return None


def reached(streams: Collection[str], rules: Sequence[Shape]) -> frozenset[str]:
    """These streams, and those that the rules which write into them read."""
    found = set(streams)
    while True:
        wider = found | {stream for rule in rules if rule.into in found for stream in rule.streams}
        if wider == found:
            return frozenset(found)
        found = wider


def _progress(reads: Collection[str], rules: Sequence[Shape], streams: Mapping[str, Stream]) -> Progress | None:
    """The least watermark of the fed streams that a reader of `reads` rests on; None while one that was never fed holds it back."""
    names = reached(reads, rules)
    fed = {name: stream for name, stream in streams.items() if stream.latest is not None or stream.finished}
    if any(name not in fed and not _carried(name, rules, fed) for name in names):
        return None
    resting = [fed[name] for name in names if name in fed]
    open_ = [stream.watermark for stream in resting if not stream.finished]
    if open_:
        known = [watermark for watermark in open_ if watermark is not None]
        return Progress(min(known), finished=False) if len(known) == len(open_) else None
    ends = [stream.latest for stream in resting if stream.latest is not None]
    return Progress(max(ends, default=0), finished=True) if resting else None


def _carried(name: str, rules: Sequence[Shape], fed: Collection[str]) -> bool:
    """Whether rules write a stream that nobody feeds, and have a clock of their own: another stream, fed or to be fed."""
    derived = {rule.into for rule in rules}
    return name in derived and any(other in fed or other not in derived for other in reached((name,), rules) - {name})
