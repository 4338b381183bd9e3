"""This module plans the positive two-sided operators: AND, SEQ, EQUALS and the interval relations."""

from collections.abc import Sequence
from functools import reduce

from engine.kernel.state import layout as c
from engine.pattern_scope import Scope
from engine.physical_plan.join_trees import Linear, Pairing, Shape, Tree, ends_of, tree_of
from engine.physical_plan.plan import Node, PathJoin
from engine.planner.builder.join_nodes import PlacedJoin, add_join, shorten_lives
from engine.planner.builder.join_order import choose_shape, find_chain
from engine.planner.builder.local_subjects import note_star
from engine.planner.builder.plan_builder import Conditions, PlanBuilder, Target
from engine.planner.builder.temporal_relations import Joining, relation_of
from engine.planner.operators import path_reachability
from engine.planner.operators.instances import plan_instances
from engine.planner.operators.property_paths import plan_path
from engine.rewrite.join_instances import is_relation
from epsparql import algebra as a
from epsparql.deferred_methods import dataclass


def plan_join(builder: PlanBuilder, pattern: Joining, target: Target, span: int, wanted: Conditions) -> None:
    if isinstance(pattern, a.SeqJoin) and (operands := find_chain(builder.query, builder.options.policy, pattern)):
        plan_chain(builder, operands, target, span, wanted)
        return
    if is_relation(pattern.right):
        plan_instances(builder, pattern, target, span, wanted)
        return
    left, right, relation = pattern.left, pattern.right, relation_of(pattern)
    x, y = builder.scope(left), builder.scope(right)
    join = add_join(builder, x, y, relation, target, span, wanted)
    if relation == c.ANY and path_reachability.is_reachable(right, x):
        _plan_with_path(builder, join, left, right, c.LEFT, span)
    elif relation == c.ANY and path_reachability.is_reachable(left, y):
        _plan_with_path(builder, join, right, left, c.RIGHT, span)
    else:
        shorten_lives(builder.node(join.node), builder.network.find_lives(left, right))
        if relation in (c.ANY, c.EQUALS):
            note_star(builder, join.node, left, right)
        builder.plan_pattern(left, (join.node, c.LEFT), span, join.to_left)
        suppresses = relation == c.SEQ and builder.options.suppresses and not x.timeless
        with builder.gated_by(join.node if suppresses else builder.gate):
            builder.plan_pattern(right, (join.node, c.RIGHT), span, join.to_right)


def _plan_with_path(builder: PlanBuilder, join: PlacedJoin, operand: a.Pattern, path: a.Pattern, side: int, span: int) -> None:
    """Plan a join of an operand, on this side, with a path.

    The path's walks over the background are found from the operand's solutions.
    """
    assert isinstance(path, a.Path)
    wanted, of_path = (join.to_left, join.to_right) if side == c.LEFT else (join.to_right, join.to_left)
    deep = path_reachability.is_path_deep(builder, path)
    split = builder.add_node(Node(c.PASS, span=span))
    builder.plan_pattern(operand, (split, c.LEFT), span, wanted)
    found = builder.enforce((join.node, c.EMIT), c.FOREVER, of_path)
    reached = path_reachability.plan_reachable(builder, path, builder.scope(operand), found)
    builder.set_targets(split, [(join.node, side), reached])
    if not deep:
        builder.limit_targets(split, 1)
    sleep, own = path_reachability.add_sleep(builder, deep), len(builder.fragment.nodes)
    plan_path(builder, path, *builder.settle((join.node, c.LEFT + c.RIGHT - side), span, of_path), sleep)
    timeless = builder.scope(operand).joined(builder.scope(path)).timeless
    nodes = range(own, len(builder.fragment.nodes))
    builder.fragment.paths.append(PathJoin((join.node, side), reached, deep, timeless, sleep.first, nodes))


# ---------------------------------------------------------------- chains of SEQ
def plan_chain(builder: PlanBuilder, operands: Sequence[a.Pattern], target: Target, span: int, wanted: Conditions) -> None:
    """Plan a chain of SEQs in the order of joins that promises the least work, `{A SEQ B} SEQ {C SEQ D}` for example.

    What a timeless operand joins depends on when it came (semantics.md section 10), so no operand may be timeless.
    The network plans the query as written again when the background brings one.
    """
    shape: Shape = Linear.WRITTEN
    scopes = [builder.scope(operand) for operand in operands]
    if not any(scope.timeless for scope in scopes):
        given = builder.options.shape
        shape = choose_shape(operands, builder.options.order, span) if given is None or isinstance(given, Pairing) else given
    builder.fragment.shape = shape
    tree = tree_of(shape, len(operands))
    assert not isinstance(tree, int)
    _Chain(builder, operands, scopes).plan_tree(tree, target, span, wanted)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Plans the operands of a chain of SEQs as a tree of joins, and notes where the solutions of each part go."""

    builder: PlanBuilder
    operands: Sequence[a.Pattern]
    scopes: Sequence[Scope]

    def plan_tree(self, tree: tuple[Tree, Tree], target: Target, span: int, wanted: Conditions) -> None:
        left, right = tree
        node, to_left, to_right = add_join(self.builder, self._scope(left), self._scope(right), c.SEQ, target, span, wanted)
        self.builder.fragment.segments |= {ends_of(left): (node, c.LEFT), ends_of(right): (node, c.RIGHT)}
        self._plan_part(left, (node, c.LEFT), span, to_left)
        self._plan_part(right, (node, c.RIGHT), span, to_right)

    def _plan_part(self, tree: Tree, target: Target, span: int, wanted: Conditions) -> None:
        self.builder.fragment.stages[target] = ends_of(tree)
        if isinstance(tree, int):
            self.builder.plan_pattern(self.operands[tree], target, span, wanted)
        else:
            self.plan_tree(tree, *self.builder.settle(target, span, wanted))

    def _scope(self, tree: Tree) -> Scope:
        first, last = ends_of(tree)
        return reduce(Scope.joined, self.scopes[first : last + 1])
