"""This module writes an engine's state as a snapshot has it: the engine and those beside it, each with its networks."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from numpy.typing import NDArray

from engine.background.changes import read_static_rule, with_standing_rules
from engine.background.fact_store import FactIndex, numbers_of
from engine.dictionary.term_dictionary import TermTable
from engine.engine_state import Beginning, EngineState, SideEngine
from engine.errors import Refusal, SnapshotMismatch
from engine.instances.relation import InstanceRelation
from engine.messages import ADD, RDFS, MessageKey, Register
from engine.network.network import Network
from engine.network.stratification import Cycle
from engine.partitioning import division_from_json, division_to_json
from engine.physical_plan.join_trees import PlanShape
from engine.planner.builder.join_order import Rates
from engine.runtime.event_queue import Waiting
from engine.runtime.event_scheduler import ScheduledNetwork
from engine.runtime.query_registry import Registry
from engine.runtime.watermarks import StreamTime
from engine.snapshot.network_state import FEED, pending, pending_again, restore, snapshot_network
from epsparql import QueryError


def state_of(engine: EngineState) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the engine's state: a part that is fit for JSON, and arrays by name."""
    arrays: dict[str, NDArray[Any]] = {f"terms.{name}": array for name, array in engine.registry.terms.arrays().items()}
    meta = _store_engine(engine, arrays, None)
    return meta | {"behind": [_store_side(engine, lead, side, arrays) for lead, side in engine.sides.items()]}, arrays


def terms_of(arrays: Mapping[str, NDArray[Any]]) -> TermTable:
    return TermTable.restored({name.removeprefix("terms."): array for name, array in arrays.items() if name.startswith("terms.")})


def restore_state(engine: EngineState, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Bring a new engine over the same terms to where `state_of` was told. Raises SnapshotMismatch."""
    _restore_engine(engine, meta, arrays)
    for stored in meta.get("behind", ()):
        feeding = stored.get("feeding", [])  # earlier versions gave none
        beside = [engine.make_beside(engine.registry.make_beside()) for _ in (*stored["engines"], *feeding)]
        for other, found in zip(beside, [*stored["engines"], *feeding], strict=True):
            other.registry.known = engine.registry.known
            _restore_engine(other, found, arrays)
        entries, lead, replaces = tuple(Register.from_plain(values) for values in stored["beginning"]), stored["lead"], stored.get("replaces")
        begins = deque([Beginning(entries[0].reads_from or 0, entries)] if entries else [])
        engine.sides[lead] = SideEngine(
            beside[0], set(stored["own"]), begins, reader=lead if replaces is None else replaces, replaces=replaces is not None,
            present=beside[1] if len(stored["engines"]) > 1 else None, feeding=deque(beside[len(stored["engines"]) :]), paused=stored["paused"],
        )  # fmt: skip


def _store_engine(engine: EngineState, arrays: dict[str, NDArray[Any]], common: FactIndex | None) -> dict[str, Any]:
    """Return the state but for the terms and the side engines, and add its arrays to `arrays`.

    The background is left out if it is the `common` one.
    """
    registry = engine.registry
    members = []
    for member in registry.members:
        network, own = snapshot_network(member.network)
        own["pending"] = pending(member.pending.table)
        place = sum(name.endswith(".pending") for name in arrays)  # arrays of a member have its number in front
        arrays |= {f"{place}.{name}": array for name, array in own.items()}
        part, knows = division_to_json(member.part), member.network.planning.knows
        earlier = list({id(known): known for known in knows.values() if known is not registry.known}.values())
        arrays |= {f"{place}.known.{j}": known.numbers for j, known in enumerate(earlier)}
        members.append({
            "place": place, "time": member.time, "pending": list(FEED), "network": network, "part": part, "revised": member.revised,
            "without": sorted(member.network.planning.without),
            "with": sorted(registry.without - member.network.planning.without),  # it comes from an engine of another share
            "ignorant": [[registered, earlier.index(known)] for registered, known in knows.items() if known is not registry.known],
            "regimes": [known.regime for known in earlier],
            "static_rules": [_rules_of(known) for known in earlier],
        })  # fmt: skip
    if common is not registry.known:
        number: int | None = sum(name.startswith("known.") for name in arrays)
        arrays[f"known.{number}"] = registry.known.numbers
    else:
        number = None
    return {
        "position": engine.position,
        "streams": {name: asdict(stream) for name, stream in registry.streams.items()},
        "known": number,
        "instances": _store_instances(registry, arrays),
        "entailment": registry.known.regime,
        "static_rules": _rules_of(registry.known),
        "registered": [asdict(entry) for entry in registry.registered.values()],
        "fallen": [asdict(entry) for entry in registry.fallen.values()],
        "members": members,
        "sets": registry.sets.to_json(),
        "message_keys": {stream: asdict(key) for stream, key in registry.message_keys.items()},
    }


def _store_instances(registry: Registry, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return which arrays have the rows of instances, by registration, and when instances changed."""
    places = []
    for registered, relation in registry.instances.items():
        places.append([registered, sum(name.startswith("instances.") for name in arrays)])
        arrays[f"instances.{places[-1][1]}"] = relation.live_rows
    return {"places": places, "moments": registry.moments.offsets if places else []}


def _restore_instances(registry: Registry, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    registry.instances = {registered: InstanceRelation(registry.terms, arrays[f"instances.{place}"]) for registered, place in meta["places"]}
    registry.restore_moments(meta["moments"])


def _rules_of(known: FactIndex) -> list[list[Any]]:
    return [[rule.registered, rule.name, rule.text, rule.default_graph] for rule in known.rules]


def _with_rules(known: FactIndex, kept: Iterable[Sequence[Any]]) -> FactIndex:
    """Return a background with the static rules that a snapshot has."""
    entries = (Register(registered, name, text, default_graph=default_graph) for registered, name, text, default_graph in kept)
    return with_standing_rules(known, [rule for entry in entries if (rule := read_static_rule(entry)) is not None])


def _store_side(engine: EngineState, lead: int, side: SideEngine, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    return {
        "lead": lead,
        "own": sorted(side.queries),
        "paused": side.paused,
        "replaces": side.reader if side.replaces else None,
        "beginning": [asdict(entry) for beginning in side.begins for entry in beginning.entries],
        "engines": [_store_engine(other, arrays, engine.registry.known) for other in (side.engine, side.present) if other is not None],
        "feeding": [_store_engine(other, arrays, engine.registry.known) for other in side.feeding],
    }


def _restore_engine(engine: EngineState, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Take over what `_store_engine` gave."""
    registry, engine.position = engine.registry, meta["position"]
    registry.streams = {name: StreamTime(**values) for name, values in meta["streams"].items()}
    if meta.get("known") is not None or meta.get("facts") is not None:
        registry.known = known_from(meta, arrays, registry.terms)
    registry.message_keys = {stream: MessageKey(key["predicate"], tuple(key["parts"])) for stream, key in meta.get("message_keys", {}).items()}
    registry.registered = {entry.offset: entry for entry in map(Register.from_plain, meta["registered"])}
    registry.fallen = {entry.offset: entry for entry in map(Register.from_plain, meta["fallen"])}
    if "instances" in meta:  # earlier snapshots have none
        _restore_instances(registry, meta["instances"], arrays)
    for k, member in enumerate(meta["members"]):
        place = member.get("place", k)
        own = {name.removeprefix(f"{place}."): array for name, array in arrays.items() if name.startswith(f"{place}.")}
        registry.members.append(_restore_member(registry, member, own))


def _restore_member(registry: Registry, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ScheduledNetwork:
    part = division_from_json(meta.get("part"))
    earlier = [FactIndex.given_as(arrays[f"known.{j}"], registry.terms, regime) for j, regime in enumerate(meta.get("regimes", ()))]
    earlier = [_with_rules(known, rules) for known, rules in zip(earlier, meta.get("static_rules", [()] * len(earlier)), strict=True)]
    ignorant = {registered: earlier[j] for registered, j in meta.get("ignorant", ())}
    left_out = (registry.without | frozenset(meta.get("without", ()))) - frozenset(meta.get("with", ()))
    known = earlier[0] if earlier else registry.known
    network = Network(registry.terms, known=known, owns=registry.make_owner_test(part), without=left_out)

    def add(registered: int, rates: Rates, shape: PlanShape | None) -> None:
        registry.restore_query(network, registry.registered[registered], rates, shape, ignorant.get(registered, registry.known))

    try:
        restore(network, meta["network"], arrays, add)
    except (QueryError, Refusal, Cycle) as fault:
        raise SnapshotMismatch(f"this version refuses a query: {fault}") from fault
    network.background.begun = meta["time"]
    if ignorant:  # the next instant brings them the background
        network.planning.known = earlier[0]
        network.background.announce(registry.known, meta["time"])
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
