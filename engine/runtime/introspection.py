"""This module tells how far a query is: the rows that came into its operators and went out, and the partial solutions that they keep (ETALIS's goals).

It also tells the size of what collectors hold.
"""

from dataclasses import dataclass
from typing import Literal

from engine.kernel.state import layout as c
from engine.kernel.state.arrays import Net
from engine.network.network import Network
from engine.network.placed_query import Planned
from engine.physical_plan.operator_names import OPERATORS, RELATIONS

SideName = Literal["left", "right", "absent"]
_NO_SPAN = c.FOREVER - 1  # a span of no bound, or one that no sum of spans reaches
SIDES: dict[int, SideName] = {c.LEFT: "left", c.RIGHT: "right", c.BLOCKER: "absent"}


@dataclass(frozen=True, slots=True)
class Side:
    """Counts the rows that came in at one side of an operator, and the goals that wait there for the other side.

    `oldest` is the least end among the timed goals, in µs.
    """

    side: SideName
    goals: int
    oldest: int | None
    taken: int = 0


@dataclass(frozen=True, slots=True)
class OperatorState:
    """Describes an operator; `on` are the variables that key it, `state_bytes` what it holds beside goals.

    `given` rows went out of it, and `refused` ones did not pass its filter. `kind` is its node's. Sides without rows and goals are left out.
    """

    operator: str
    on: tuple[str, ...]
    sides: tuple[Side, ...]
    state_bytes: int
    given: int = 0
    refused: int = 0
    kind: int = c.NONE

    @property
    def keeps(self) -> bool:
        return self.state_bytes > 0 or any(side.goals for side in self.sides)


def measure_progress(network: Network, planned: Planned) -> tuple[OperatorState, ...]:
    """Return the query's operators, outermost first; what only hands rows on is none."""
    names = {column: str(variable) for variable, column in planned.columns.items() if not variable.hidden}
    nodes = (node for node in range(planned.at.node, planned.after.node) if not _hands_on(network.net, node))
    return tuple(_describe_operator(network, planned, node, names) for node in nodes)


def _hands_on(net: Net, node: int) -> bool:
    """Return whether a node stands for no step of a plan."""
    kind, filter_, span, keep, moves = net.nodes[node, [c.KIND, c.FILTER, c.SPAN, c.KEEP, c.MOVE_N]].tolist()
    plain = kind == c.PASS and filter_ == c.NONE and span >= _NO_SPAN
    return bool(kind == c.DROPPED or plain or (kind == c.MOVE and keep == 1 and moves == 0))


def _describe_operator(network: Network, planned: Planned, node: int, names: dict[int, str]) -> OperatorState:
    net, held = network.net, network.host.shares.find_keeper(planned, node)
    kind, relation = net.nodes[held, [c.KIND, c.RELATION]].tolist()
    at, n = net.nodes[node, [c.KEY_AT, c.KEY_N]].tolist()
    on = sorted(names[column] for column in net.slots[at : at + n].tolist() if column in names)
    sides = (_describe_side(net, held, side, name) for side, name in SIDES.items())
    size = network.collectors.placed[node].collector.size() if node in network.collectors.placed else 0
    told = tuple(side for side in sides if side.goals or side.taken)
    given, refused = net.stores[c.SIDES * held, [c.GIVEN, c.REFUSED]].tolist()
    return OperatorState(RELATIONS[relation] if kind == c.JOIN else OPERATORS[kind], tuple(on), told, size, given, refused, kind)


def _describe_side(net: Net, node: int, side: int, name: SideName) -> Side:
    head, goals, taken = net.stores[c.SIDES * node + side, [c.HEAD, c.COUNT, c.TAKEN]].tolist()
    return Side(name, goals, None if head == c.NONE else int(net.rows[head, c.END]), taken)
