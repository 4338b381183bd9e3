"""Computes how far a query's time has come, so that subscribers may rely on it (semantics.md section 8)."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping

from engine.messages import REVISED, Micros
from epsparql.deferred_methods import dataclass
from pipeline.formats.batches.timestamps import iso
from pipeline.log.catalog import Catalogue, Registration, Stream
from pipeline.registrations.query_cache import get_shape
from pipeline.registrations.stream_dependencies import Written, find_alive, find_fed, find_sources, find_unfed, find_written

_SAMPLES = 64
_APART_S = 0.05


@dataclass(frozen=True, slots=True)
class QueryProgress:
    """Promises that no solution with an `end` below `watermark` will follow; with `finished`, none at all."""

    watermark: Micros
    finished: bool

    def document(self) -> dict[str, object]:
        at: dict[str, object] = {"watermark": iso(self.watermark)}
        return {"progress": at | {"finished": True} if self.finished else at}


@dataclass(frozen=True, slots=True)
class _Sample:
    """Records streams that hold no entry at or after the log position `bound`.

    If it is `revised`, an entry `Revise` follows all changes of the past.
    """

    taken_s: float
    seen: int
    bound: int
    streams: Mapping[str, Stream]
    revised: bool

    @property
    def settled(self) -> bool:
        return self.bound == self.seen


class WatermarkHistory:
    """Remembers the streams' watermarks at some log positions, since solutions come later than the entries of the log."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=_SAMPLES)

    def take_sample(self, catalogue: Catalogue, now_s: float) -> bool:
        """Record the present watermarks: the newest always, older ones some way apart.

        Returns True if they are settled; otherwise the caller has to call again soon. The committer may be between
        applying an entry and counting it. So only streams found unchanged a while later are known to hold no more
        than the counted entries.
        """
        streams, revised = dict(catalogue.streams), not catalogue.unrevised
        seen = catalogue.position
        samples = self._samples
        if samples and samples[-1].seen == seen and samples[-1].streams == streams:
            if not samples[-1].settled and now_s - samples[-1].taken_s >= _APART_S:
                samples[-1] = _Sample(now_s, seen, seen, streams, revised)
            return samples[-1].settled
        if len(samples) > 1 and samples[-1].taken_s - samples[-2].taken_s < _APART_S:
            samples.pop()
        samples.append(_Sample(now_s, seen, seen + 1, streams, revised))
        return False

    def compute_progress(self, solved: int, registration: Registration, rules: Iterable[Registration]) -> QueryProgress | None:
        """Return a query's progress once the entries before the log position `solved` have been applied; None while
        nothing can be said.
        """
        if registration.lead is not None:
            return None
        for sample in reversed(self._samples):
            told = sample.revised or registration.emit != REVISED
            if told and max(registration.registered, registration.since) < sample.seen and sample.bound <= solved:
                written = find_written(get_shape(rule.text) for rule in rules)
                return _progress(get_shape(registration.text).streams, written, sample.streams)
        return None


def _progress(reads: Collection[str], written: Written, streams: Mapping[str, Stream]) -> QueryProgress | None:
    """Return the least watermark of the fed streams that a reader of `reads` rests on.

    The result is None while a stream that was never fed holds it back.
    """
    known = find_fed(streams)
    if find_unfed(reads, written, find_alive(written, known)):
        return None
    resting = [known[name] for name in find_sources(reads, written) if name in known]
    open_ = [stream.watermark for stream in resting if not stream.finished]
    if open_:
        told = [watermark for watermark in open_ if watermark is not None]
        return QueryProgress(min(told), finished=False) if len(told) == len(open_) else None
    ends = [stream.latest for stream in resting if stream.latest is not None]
    return QueryProgress(max(ends, default=0), finished=True) if resting else None
