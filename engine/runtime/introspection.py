"""This module tells how far a query is: the partial solutions that its operators keep (ETALIS's goals), and the size of what its collectors hold."""

from dataclasses import dataclass
from typing import Literal

from engine.kernel.state import layout as c
from engine.kernel.state.arrays import Net
from engine.network.network import Network
from engine.network.placed_query import Planned
from engine.physical_plan.operator_names import OPERATORS, RELATIONS

SideName = Literal["left", "right", "absent"]
SIDES: dict[int, SideName] = {c.LEFT: "left", c.RIGHT: "right", c.BLOCKER: "absent"}


@dataclass(frozen=True, slots=True)
class Side:
    """Counts the goals that wait at one side of an operator for the other; `oldest` is the least end among the timed ones, in µs."""

    side: SideName
    goals: int
    oldest: int | None


@dataclass(frozen=True, slots=True)
class OperatorState:
    """Describes an operator that keeps something; `on` are the variables that key it, `state_bytes` what it holds beside goals."""

    operator: str
    on: tuple[str, ...]
    sides: tuple[Side, ...]
    state_bytes: int


def measure_progress(network: Network, planned: Planned) -> tuple[OperatorState, ...]:
    """Return the query's operators that keep something, outermost first."""
    names = {column: str(variable) for variable, column in planned.columns.items() if not variable.hidden}
    found = (_describe_operator(network, planned, node, names) for node in range(planned.at.node, planned.after.node))
    return tuple(each for each in found if each.sides or each.state_bytes)


def _describe_operator(network: Network, planned: Planned, node: int, names: dict[int, str]) -> OperatorState:
    net, held = network.net, network.host.shares.find_keeper(planned, node)
    kind, relation = net.nodes[held, [c.KIND, c.RELATION]].tolist()
    at, n = net.nodes[node, [c.KEY_AT, c.KEY_N]].tolist()
    on = sorted(names[column] for column in net.slots[at : at + n].tolist() if column in names)
    sides = (_describe_side(net, held, side, name) for side, name in SIDES.items())
    size = network.collectors.placed[node].collector.size() if node in network.collectors.placed else 0
    return OperatorState(RELATIONS[relation] if kind == c.JOIN else OPERATORS[kind], tuple(on), tuple(s for s in sides if s.goals), size)


def _describe_side(net: Net, node: int, side: int, name: SideName) -> Side:
    head, goals = net.stores[c.SIDES * node + side, [c.HEAD, c.COUNT]].tolist()
    return Side(name, goals, None if head == c.NONE else int(net.rows[head, c.END]))
