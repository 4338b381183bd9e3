"""Explains why queries of a replay found nothing, over the log that the replay wrote."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import epsparql
from engine.messages import RDFS, Entail, Events, Facts, Register
from epsparql.algebra import BackgroundRule
from pipeline.diagnosis.diagnosis import Question, diagnose
from pipeline.diagnosis.evaluation.probing import Setting
from pipeline.diagnosis.evaluation.sample import read_others, read_sample
from pipeline.diagnosis.model import Diagnosis
from pipeline.log import LogReader
from pipeline.registrations.query_cache import get_shape
from pipeline.registrations.stream_dependencies import find_sources, find_written

MOST_EXPLAINED = 5

Controls = list[Entail | Facts | Register]


def explain_silent(directory: Path, streams: Collection[str], names: Sequence[str]) -> Iterator[Diagnosis]:
    """Diagnose the first of some queries over the log of a replay, whose files gave events of `streams`."""
    controls = _read_controls(directory)
    for entry in controls:
        if isinstance(entry, Register) and entry.name in names[:MOST_EXPLAINED] and not isinstance(epsparql.parse(entry.text).query, BackgroundRule):
            yield diagnose(_ask(directory, streams, entry, controls))


def _read_controls(directory: Path) -> Controls:
    """Return the entries before the first events, which say what the queries rest on."""
    found: Controls = []
    with closing(LogReader(directory)) as reader:
        for offset in range(reader.head()):
            entry = reader.entry(offset)
            if isinstance(entry, Events):
                break
            if isinstance(entry, Entail | Facts | Register):
                found.append(entry)
    return found


def _ask(directory: Path, streams: Collection[str], entry: Register, controls: Controls) -> Question:
    rules = [each for each in controls if isinstance(each, Register) and each.name != entry.name and get_shape(each.text).is_rule]
    facts = [(each.graph, each.triples) for each in controls if isinstance(each, Facts)]
    regime = next((each.regime for each in controls if isinstance(each, Entail)), RDFS)
    setting = Setting(facts, regime, rules, entry.default_graph, entry.policy)
    own = find_sources(get_shape(entry.text).streams, find_written(get_shape(each.text) for each in rules))
    others = sorted({*streams} - own)
    sample = read_sample(directory, dict.fromkeys(sorted(own), 0))
    return Question(entry.name, epsparql.parse(entry.text), setting, sample, lambda: read_others(directory, dict.fromkeys(others, 0)))
