"""This module writes an engine's state as a snapshot has it: the engine and those beside it, each with its networks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from numpy.typing import NDArray

from engine.background.changes import read_static_rule, with_standing_rules
from engine.background.fact_store import FactIndex, numbers_of
from engine.dictionary.term_dictionary import TermTable
from engine.engine_state import Behind, EngineState
from engine.errors import Refusal, SnapshotMismatch
from engine.messages import ADD, RDFS, MessageKey, Register
from engine.network.network import Network
from engine.network.stratification import Cycle
from engine.partitioning import division_from_json, division_to_json
from engine.physical_plan.join_trees import PlanShape
from engine.planner.builder.join_order import Rates
from engine.runtime.event_queue import Waiting
from engine.runtime.event_scheduler import ScheduledNetwork
from engine.runtime.watermarks import StreamTime
from engine.snapshot.network_state import FEED, pending, pending_again, restore, snapshot_network
from epsparql import QueryError


def state_of(engine: EngineState) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the engine's state: a part that is fit for JSON, and arrays by name."""
    arrays: dict[str, NDArray[Any]] = {f"terms.{name}": array for name, array in engine.terms.arrays().items()}
    meta = _kept(engine, arrays) | {"behind": [_kept_behind(engine, behind, arrays) for behind in engine.behind.values()]}
    return meta, arrays


def terms_of(arrays: Mapping[str, NDArray[Any]]) -> TermTable:
    return TermTable.restored({name.removeprefix("terms."): array for name, array in arrays.items() if name.startswith("terms.")})


def restore_state(engine: EngineState, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Bring a new engine over the same terms to where `state_of` was told. Raises SnapshotMismatch."""
    _restore(engine, meta, arrays)
    for kept_behind in meta.get("behind", ()):
        beside = [engine.beside() for _ in kept_behind["engines"]]
        for other, found in zip(beside, kept_behind["engines"], strict=True):
            other.known = engine.known
            _restore(other, found, arrays)
        beginning = tuple(Register.from_plain(values) for values in kept_behind["beginning"])
        later = beside[1] if len(beside) > 1 else None
        own, lead = set(kept_behind["own"]), kept_behind["lead"]
        engine.behind[lead] = Behind(lead, own, beside[0], kept_behind["paused"], beginning, later, replaces=kept_behind.get("replaces"))


def _kept(engine: EngineState, arrays: dict[str, NDArray[Any]], beside: EngineState | None = None) -> dict[str, Any]:
    """Return the state but for the terms and the engines that are behind, and add its arrays to `arrays`.

    Facts that the engine `beside` has are left out.
    """
    members = []
    for member in engine.members:
        network, own = snapshot_network(member.network)
        own["pending"] = pending(member.pending.table)
        place = sum(name.endswith(".pending") for name in arrays)  # arrays of a member have its number in front
        arrays |= {f"{place}.{name}": array for name, array in own.items()}
        part, knows = division_to_json(member.part), member.network.planning.knows
        earlier = list({id(known): known for known in knows.values() if known is not engine.known}.values())
        arrays |= {f"{place}.known.{j}": known.numbers for j, known in enumerate(earlier)}
        members.append({
            "place": place, "time": member.time, "pending": list(FEED), "network": network, "part": part, "revised": member.revised,
            "without": sorted(member.network.planning.without),
            "with": sorted(engine.without - member.network.planning.without),  # it comes from an engine of another share
            "ignorant": [[registered, earlier.index(known)] for registered, known in knows.items() if known is not engine.known],
            "regimes": [known.regime for known in earlier],
            "static_rules": [_rules_of(known) for known in earlier],
        })  # fmt: skip
    if beside is None or beside.known is not engine.known:
        number = sum(name.startswith("known.") for name in arrays)
        arrays[f"known.{number}"] = engine.known.numbers
    else:
        number = None
    return {
        "position": engine.position,
        "streams": {name: asdict(stream) for name, stream in engine.streams.items()},
        "known": number,
        "entailment": engine.known.regime,
        "static_rules": _rules_of(engine.known),
        "registered": [asdict(entry) for entry in engine.registered.values()],
        "fallen": [asdict(entry) for entry in engine.fallen.values()],
        "members": members,
        "sets": engine.sets.to_json(),
        "message_keys": {stream: asdict(key) for stream, key in engine.message_keys.items()},
    }


def _rules_of(known: FactIndex) -> list[list[Any]]:
    return [[rule.registered, rule.name, rule.text, rule.default_graph] for rule in known.rules]


def _with_rules(known: FactIndex, kept: Iterable[Sequence[Any]]) -> FactIndex:
    """Return a background with the static rules that a snapshot has."""
    entries = (Register(registered, name, text, default_graph=default_graph) for registered, name, text, default_graph in kept)
    return with_standing_rules(known, [rule for entry in entries if (rule := read_static_rule(entry)) is not None])


def _kept_behind(engine: EngineState, behind: Behind, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {
        "lead": behind.lead,
        "own": sorted(behind.own),
        "paused": behind.paused,
        "replaces": behind.replaces,
        "beginning": [asdict(entry) for entry in behind.beginning],
        "engines": [_kept(other, arrays, engine) for other in behind.engines],
    }


def _restore(engine: EngineState, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Take over what `_kept` gave."""
    engine.position = meta["position"]
    engine.streams = {name: StreamTime(**values) for name, values in meta["streams"].items()}
    if meta.get("known") is not None or meta.get("facts") is not None:
        engine.known = known_from(meta, arrays, engine.terms)
    engine.message_keys = {stream: MessageKey(key["predicate"], tuple(key["parts"])) for stream, key in meta.get("message_keys", {}).items()}
    engine.registered = {entry.offset: entry for entry in map(Register.from_plain, meta["registered"])}
    engine.fallen = {entry.offset: entry for entry in map(Register.from_plain, meta["fallen"])}
    for k, member in enumerate(meta["members"]):
        place = member.get("place", k)
        own = {name.removeprefix(f"{place}."): array for name, array in arrays.items() if name.startswith(f"{place}.")}
        engine.members.append(_member_restored(engine, member, own))


def _member_restored(engine: EngineState, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ScheduledNetwork:
    part = division_from_json(meta.get("part"))
    earlier = [FactIndex.given_as(arrays[f"known.{j}"], engine.terms, regime) for j, regime in enumerate(meta.get("regimes", ()))]
    earlier = [_with_rules(known, rules) for known, rules in zip(earlier, meta.get("static_rules", [()] * len(earlier)), strict=True)]
    ignorant = {registered: earlier[j] for registered, j in meta.get("ignorant", ())}
    left_out = (engine.without | frozenset(meta.get("without", ()))) - frozenset(meta.get("with", ()))
    known = earlier[0] if earlier else engine.known
    network = Network(engine.terms, known=known, owns=engine.make_owner_test(part), without=left_out)

    def add(registered: int, rates: Rates, shape: PlanShape | None) -> None:
        engine.restore_query(network, engine.registered[registered], rates, shape, ignorant.get(registered, engine.known))

    try:
        restore(network, meta["network"], arrays, add)
    except (QueryError, Refusal, Cycle) as fault:
        raise SnapshotMismatch(f"this version refuses a query: {fault}") from fault
    network.background.begun = meta["time"]
    if ignorant:  # the next instant brings them the background
        network.planning.known = earlier[0]
        network.background.announce(engine.known, meta["time"])
    pending, revised = Waiting.from_table(pending_again(meta["pending"], arrays["pending"])), meta.get("revised", False)
    return ScheduledNetwork(network, meta["time"], pending, part, revised, silent=revised, apart=True)


def known_from(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], terms: TermTable) -> FactIndex:
    """Return the background of a snapshot; older snapshots have it as texts."""
    regime = meta.get("entailment", RDFS)
    if meta.get("known") is not None:
        return _with_rules(FactIndex.given_as(arrays[f"known.{meta['known']}"], terms, regime), meta.get("static_rules", ()))
    known = FactIndex(terms, regime)
    for text, graph in meta["facts"]:
        known = known.with_change(graph, numbers_of(text, terms), ADD)
    return known
