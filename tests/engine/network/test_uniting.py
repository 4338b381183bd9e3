"""Queries that came at different moments share as soon as what they keep is the same, and part when the background
tells them apart.
"""

import pytest

from engine.engine import Engine
from engine.kernel.state import layout as c
from engine.messages import Facts
from engine.network.network import Network
from engine.network.shares import Moment
from engine.network.subplan_sharing import move_columns
from tests.engine.network.books import check_books
from tests.engine.planner.test_subplan_sharing import PREFIX, RENAMED, shares_of, text
from tests.engine.runtime.test_registration import RegistrationLog
from tests.support.feeds import EXAMPLE, SECOND

THREE = [f"{PREFIX} WITHIN 4", f"{RENAMED} WITHIN 4", f"{{{RENAMED} WITHIN 4}} SEQ {{?b :C ?z}}"]


def network_of(log: RegistrationLog) -> Network:
    (member,) = log.engine.registry.members
    return member.network


def memory_of(network: Network, registered: int) -> int:
    """How long before now what the goals of its shared part rest on may have begun."""
    (memory,) = {subplan.memory for subplan in network.planned[registered].subplans.values()}
    return memory


def send(log: RegistrationLog, feed: str) -> list[str]:
    found = sorted(row[0] for row in log.send(feed))
    check_books(log.engine)
    return found


def test_they_unite_once_all_rests_on_what_each_of_them_reads() -> None:
    log = RegistrationLog()
    first = log.register("first", text(THREE[0]))
    network = network_of(log)
    memory, sharing = memory_of(network, first), network.sharing
    assert sharing.due == c.FOREVER
    assert send(log, "A(1)@1") == []
    second = log.register("second", text(THREE[1]))
    assert sharing.moments[first] == Moment(0, -1, -c.BIG)
    assert sharing.moments[second] == Moment(1, -1, SECOND)
    assert sharing.due == SECOND + memory
    assert send(log, "A(2)@2 B(2)@2") == ["first"]
    third = log.register("third", text(THREE[2]))
    assert sharing.moments[third] == Moment(3, -1, 2 * SECOND)
    assert sharing.due == SECOND + memory
    until = 1 + memory // SECOND
    assert memory % SECOND == 0
    send(log, f"Z@{until}")
    send(log, f"Z@{until}.5")
    assert shares_of(log) == [], "an occurrence at the first moment may still count"
    assert sharing.due == SECOND + memory
    send(log, f"A(3)@{until}.6")
    assert shares_of(log) == [2]
    assert sharing.due == 2 * SECOND + memory
    send(log, f"Z@{until + 1}.5")
    assert shares_of(log) == [2]
    send(log, f"Z@{until + 1}.6")
    assert shares_of(log) == [3]
    assert sharing.due == c.FOREVER
    (share,) = network.host.shares.numbered.values()
    assert share.moment == Moment(3, -1, 2 * SECOND)
    assert send(log, f"B(4)@{until + 2} C(5)@{until + 3}") == ["first", "second", "third"]


def test_shares_of_different_moments_become_one() -> None:
    log = RegistrationLog()
    for k in range(2):
        log.register(f"early{k}", text(f"{{{PREFIX} WITHIN 4}} SEQ {{?s :C{k} ?z}}"))
    send(log, "A(1)@1")
    for k in range(2):
        log.register(f"late{k}", text(f"{{{RENAMED} WITHIN 4}} SEQ {{?b :D{k} ?z}}"))
    assert shares_of(log) == [2, 2]
    for at in (20, 21, 22):
        send(log, f"A(2)@{at}")
    assert shares_of(log) == [4]
    assert log.engine.goals == 3
    assert send(log, "B(3)@23 C0(1)@24 D1(1)@24") == ["early0"] * 3 + ["late1"] * 3


def test_only_those_whose_time_has_come_unite() -> None:
    """One of another window is not waited for; one without a bound never shares with those before it."""
    log = RegistrationLog()
    log.register("ever", text(f"{PREFIX} SEQ {{?s :C ?z}}"))
    log.register("short", text(f"{PREFIX} WITHIN 2"))
    send(log, "A(1)@1")
    log.register("ever again", text(f"{RENAMED} SEQ {{?b :C ?z}}"))
    log.register("short again", text(f"{RENAMED} WITHIN 2"))
    for at in (10, 11, 12):
        send(log, f"A(2)@{at}")
    assert shares_of(log) == [2]
    assert send(log, "B(3)@13") == ["short"] * 2 + ["short again"] * 2
    assert send(log, "C(3)@14") == ["ever"] * 4 + ["ever again"] * 3


def test_what_waits_for_time_is_of_an_earlier_moment() -> None:
    log = RegistrationLog()
    log.register("one", text(THREE[0]))
    sharing = network_of(log).sharing
    assert sharing.current_moment(-1, -c.BIG) == Moment(0, -1, -c.BIG)
    assert sharing.current_moment(7, 5 * SECOND) == Moment(0, 7, 5 * SECOND)
    send(log, "A(1)@9")
    assert sharing.current_moment(7, 5 * SECOND) == Moment(1, 7, 9 * SECOND)


@pytest.mark.parametrize("restored", [False, True])
def test_a_background_that_concerns_what_is_shared_parts_it(restored: bool) -> None:
    """The goals that it had are each one's then; those that it does not concern go on as they were."""
    log = RegistrationLog()
    for k in range(2):
        log.register(f"pair{k}", text(f"{{{PREFIX}}} SEQ {{?s :C{k} ?z}}"))
        log.register(f"other{k}", text(f"{{ {{?s :D ?x}} SEQ {{?s :B ?y}} }} SEQ {{?s :C{k} ?z}}"))
    send(log, "A(1)@1 A(2)@2 D(1)@2 B(9)@3")
    assert shares_of(log) == [2, 2]
    goals = log.engine.goals
    log.put(Facts(0, "", f"<{EXAMPLE}t> <{EXAMPLE}A> <{EXAMPLE}u> .\n"))
    if restored:
        log.engine = Engine.restore(log.engine.snapshot())
    send(log, "Z@4")
    assert shares_of(log) == [2]
    assert log.engine.goals == goals + 2 + 2, "two of A are kept twice, and each query has the timeless one"
    assert send(log, "C0(1)@5") == ["other0", "pair0", "pair0"]
    assert send(log, "B(t,1)@6 C1(1)@6 C1(t,1)@7") == ["other1", "pair1", "pair1", "pair1"]


def test_goals_that_are_copied_come_behind_those_that_end_later() -> None:
    """The goals of all queries are on the chains of one table, so the copies meet younger goals of other queries there."""
    log, n = RegistrationLog(), 50
    for k in range(2):
        log.register(f"pair{k}", text(f"{{{PREFIX}}} SEQ {{?s :C{k} ?z}}"))
    log.register("later", text("{?s :D ?x} SEQ {?s :E ?y}"))
    send(log, " ".join(f"A(s{k},1)@1" for k in range(n)))
    send(log, " ".join(f"D(s{k},1)@2" for k in range(n)))
    log.put(Facts(0, "", f"<{EXAMPLE}t> <{EXAMPLE}A> <{EXAMPLE}u> .\n"))
    send(log, "Z@3")
    assert shares_of(log) == []
    assert send(log, " ".join(f"E(s{k},1)@4 B(s{k},1)@4" for k in range(n))) == ["later"] * n
    assert send(log, " ".join(f"C1(s{k},1)@5" for k in range(n))) == ["pair1"] * n


def test_columns_are_moved_to_those_of_another_query() -> None:
    log = RegistrationLog()
    log.register("one", text("{?s :A ?x} SEQ {?s :B ?y} SEQ {?s :C ?z}"))
    send(log, "A(1)@1")
    network = network_of(log)
    store = next(iter(network.arrays.read_goals(0, c.SIDES * network.arrays.used["nodes"].end)))
    rows = network.arrays.read_goals(store, store + 1)[store].timed
    first, last = c.VAR, rows.shape[1] - 1
    moved = move_columns(rows, [first, first + 1], [last, first])
    assert moved[:, [c.START, c.END]].tolist() == rows[:, [c.START, c.END]].tolist()
    assert moved[0, c.VAR :].tolist() == [rows[0, first + 1], *[0] * (last - first - 1), rows[0, first]]
