"""A store holds what was acknowledged, whoever is killed when, and whoever has not noticed yet that another server
has come.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.log import LogWriter
from pipeline.log.segments import oldest
from tests.fault_tolerance.two_writers import Server, Turn, copied, entries, opened, small, snapshots, solved, stream
from tests.soak import examples

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # who is killed ends so
SERVERS, HOOKS = 3, 2
ACTIONS = [*["append"] * 8, *["hook"] * 3, *["unhook"] * 2, *["round"] * 4, *["solve"] * 3, *["forget", "mend", "start", "restart"] * 2, "copy"]
STEPS = st.tuples(
    st.integers(0, SERVERS - 1),
    st.sampled_from(ACTIONS),
    st.sampled_from([0, 1, 2, 3, 5, 8, 13, 1000, 1000]),
    st.sampled_from([*[Turn.DONE] * 4, *Turn]),
)


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    with small():
        yield


class Play:
    """Up to SERVERS at a time, on one store."""

    def __init__(self, root: Path) -> None:
        self._root, self._store = root, root / "store"
        self.acknowledged: list[tuple[int, str]] = []
        self._made: list[Server] = []
        self._stand: list[Server | None] = [None] * SERVERS
        self._named, self._copies = 0, False
        self._hooks: dict[str, bool | None] = {}
        """Whether each is there; None where that was not answered, or may be behind in the copy of a directory whose
        server went on.
        """

    def step(self, number: int, action: str, count: int, turn: Turn) -> None:
        server = self._stand[number]
        if action in ("start", "copy", "restart"):
            if server is not None and not server.dead:
                if action != "copy":
                    return
                number = (number + 1) % SERVERS
            self._start(number, server if action != "start" else None)
            action = "round"  # what goes on in the same thread
        elif server is None or server.dead or server.log is None:
            action = "round"
        server = self._stand[number]
        if server is None:
            return
        lane = server.committing if action == "append" else server.keeping
        if not lane.busy and server.log is not None and not server.dead:
            self._begin(server, action)
        while lane.busy and count:
            lane.go(Turn.DONE)
            count -= 1
        if lane.busy and turn is not Turn.DONE:
            lane.go(turn)
        if server.dead:
            server.kill()

    def _begin(self, server: Server, action: str) -> None:
        if action == "append":
            self._named += 1
            server.append(f"s{self._named}")
        elif action in ("hook", "unhook"):
            self._hook(server, action == "hook")
        else:
            {"round": server.round, "mend": server.mend, "solve": server.solve, "forget": server.forget}[action]()

    def _hook(self, server: Server, wanted: bool) -> None:
        self._named += 1
        name = f"h{self._named % HOOKS}"
        self._hooks[name] = None
        server.hook(name, wanted, lambda: self._hooks.update({name: None if self._copies else wanted}))

    def _start(self, number: int, of: Server | None) -> None:
        present = self._stand[number]
        if present is not None:
            present.kill()
        data = self._root / f"{len(self._made)}"
        if of is not None:
            self._copies = self._copies or not of.dead
            copied(of.data, data)
        server = Server(data, self._store, self.acknowledged)
        self._made.append(server)
        self._stand[number] = server
        server.start()

    def on(self) -> None:
        """Whoever lives goes on, undisturbed."""
        for server in self._stand:
            for lane in (server.keeping, server.committing) if server is not None else ():
                while lane.busy:
                    lane.go(Turn.DONE)

    def check(self) -> None:
        """A server that begins now has all, and those that go on do not take it away."""
        for server in self._stand:
            if server is not None and server.log is None:
                server.kill()  # it would take the store
        data = self._root / "then"
        keeper, log = opened(data, self._store)
        self._whole(data, log)
        self._hooked(data)
        for _ in range(4):
            self._named += 1
            self.acknowledged.append((log.append(stream(f"s{self._named}")), f"s{self._named}"))
        self.on()
        keeper.round()
        keeper.mend()
        self._whole(data, log)
        log.close()
        keeper.stop()
        self._hooked(data)
        keeper, log = opened(self._root / "last", self._store)
        self._hooked(self._root / "last")
        self._whole(self._root / "last", log)
        log.close()
        keeper.stop()

    def _whole(self, data: Path, log: LogWriter) -> None:
        found, begin = entries(data), oldest(data / "log")
        assert list(found) == list(range(begin, log.head()))
        assert {(position, name) for position, name in self.acknowledged if position >= begin} <= {*found.items()}
        assert {name for _, name in self.acknowledged} <= log.catalogue.streams.keys()
        first, last = solved(data)
        assert first <= last <= log.head()
        assert not begin or any(begin <= position <= last for position in snapshots(data))

    def _hooked(self, data: Path) -> None:
        found = {path.stem for path in (data / "observers").glob("*.json")}
        assert {name: name in found for name, there in self._hooks.items() if there is not None}.items() <= self._hooks.items()

    def clear(self) -> None:
        for server in self._made:
            server.clear()


@settings(max_examples=examples(60))
@given(st.lists(STEPS, min_size=5, max_size=80))
def test_what_was_acknowledged_is_there_once(steps: list[tuple[int, str, int, Turn]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        play = Play(Path(root))
        try:
            for step in steps:
                play.step(*step)
            play.check()
        finally:
            play.clear()
