"""A task says what a node is to do with a row, and which side the row came from."""

from engine.kernel import inlined
from engine.kernel.state.layout import (
    BLOCKER,
    DECIDE_BLOCKER,
    DECIDE_LEFT,
    DECIDE_RIGHT,
    GO_ON_LEFT,
    GO_ON_RIGHT,
    GO_ON_STORED_LEFT,
    GO_ON_STORED_RIGHT,
    LEFT,
    LEFT_CHOICE,
    LOOK_ON_STORED,
    ORDER,
    RIGHT,
    SETTLE,
    TASKS_OF_CLOSE,
    YOUNGEST,
)


@inlined
def opposite_of(side):
    """Return the side of a join's partners."""
    return RIGHT if side == LEFT else LEFT


@inlined
def task_to_go_on(side, stored):
    """Return the task of a row that goes on at a goal; `stored` says that it is a goal itself."""
    if stored:
        return GO_ON_STORED_LEFT if side == LEFT else GO_ON_STORED_RIGHT
    return GO_ON_LEFT if side == LEFT else GO_ON_RIGHT


@inlined
def task_to_decide(side):
    """Return the task of a row that waits for the close of the instant."""
    return DECIDE_LEFT if side == LEFT else DECIDE_RIGHT if side == RIGHT else DECIDE_BLOCKER


@inlined
def side_of(task):
    """Return the side that a task's row came from."""
    if task == BLOCKER or task == DECIDE_BLOCKER:
        return BLOCKER
    return RIGHT if task == RIGHT or task == GO_ON_RIGHT or task == GO_ON_STORED_RIGHT or task == DECIDE_RIGHT else LEFT


@inlined
def goes_on(task):
    return goes_on_stored(task) or task == GO_ON_LEFT or task == GO_ON_RIGHT


@inlined
def goes_on_stored(task):
    return task == GO_ON_STORED_LEFT or task == GO_ON_STORED_RIGHT


@inlined
def decides(task):
    """Return whether a task is one of the close of an instant."""
    return DECIDE_LEFT <= task < TASKS_OF_CLOSE


@inlined
def phase_of(task):
    """Return a number that is greater for a later phase of a policy's node; to decide by a side is the first one."""
    return max(task, DECIDE_BLOCKER)


@inlined
def holds_goal(task):
    """Return whether a task's row is a stored goal, which its store frees."""
    of_policy = task == ORDER or task == LEFT_CHOICE or task == SETTLE or task == YOUNGEST
    return of_policy or goes_on_stored(task) or task == LOOK_ON_STORED


@inlined
def life_of(node, side):
    """Return how long a node (its record) keeps goals of a side."""
    return node.life_left if side == LEFT else node.life_right if side == RIGHT else node.life_blocker
