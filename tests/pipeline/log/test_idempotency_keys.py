"""Idempotency keys: each stream's own, for a day, whatever becomes of the server, its files and its clock."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import Overloaded
from pipeline.log import LogWriter, idempotency_keys
from pipeline.log.idempotency_keys import HOUR, KEYS_FOLDER, REMEMBERED, Ack, IdempotencyKeys
from pipeline.log.segments import unseal
from tests.soak import examples
from tests.support.logs import Clock, occurrences

DAY = 24 * HOUR


def files(data: Path) -> list[Path]:
    return sorted((data / KEYS_FOLDER).iterdir())


def test_no_key_is_forgotten_early_so_one_too_many_is_refused_to_its_stream_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency_keys, "KEYS", 2)
    clock = Clock(100 * DAY)
    for restart in range(2):
        with LogWriter(tmp_path, clock) as log:
            first, _ = (log.append_events("s", occurrences(1), key) for key in "ab")
            with pytest.raises(Overloaded, match="the stream 's' has 2 idempotency keys"):
                log.append_events("s", occurrences(2), "c")
            assert log.append_events("s", occurrences(2), "a") == first
            assert log.append_events("t", occurrences(2), f"c{restart}").offset == 3 + restart
    clock.now += DAY + 1
    with LogWriter(tmp_path, clock) as log:
        assert log.append_events("s", occurrences(2), "c").offset == 5


def test_a_save_writes_only_the_keys_that_are_new(tmp_path: Path) -> None:
    """So it costs the same whatever is remembered."""
    clock, sizes = Clock(100 * DAY), []
    for number, keys in enumerate((300, 1, 1)):
        with LogWriter(tmp_path, clock) as log:
            acks = [log.submit("s", occurrences(1), f"{number}-{k}") for k in range(keys)]
        assert len({ack.result().offset for ack in acks}) == keys
        sizes.append((tmp_path / "catalogue.json").stat().st_size)
    assert max(sizes) < 1_000
    assert [path.stat().st_size for path in files(tmp_path)] == [300 * 56, 2 * 56]


def test_keys_that_the_catalogue_held_are_read(tmp_path: Path) -> None:
    """The catalogue holds the keys as version 0.1.0 kept them."""
    clock = Clock(100 * DAY)
    with LogWriter(tmp_path, clock) as log:
        ack = log.append_events("s", occurrences(5), "k")
    for file in files(tmp_path):
        file.unlink()
    path = tmp_path / "catalogue.json"
    state = msgspec.json.decode(unseal(path.read_bytes()) or b"")
    del state["keyed"]
    path.write_bytes(msgspec.json.encode(state | {"keys": [["s", "k", clock.now, {"offset": 1, "accepted": 1, "late": 0}], ["s", "gone", 0, ack]]}))
    for _ in range(2):
        with LogWriter(tmp_path, clock) as log:
            assert log.append_events("s", occurrences(5), "k") == ack == Ack(1, 1, 0)
    assert msgspec.json.decode(unseal(path.read_bytes()) or b"")["keys"] == []


def test_keys_of_a_clock_that_was_ahead_go_too(tmp_path: Path) -> None:
    clock = Clock(100 * DAY)
    with LogWriter(tmp_path, clock) as log:
        log.append_events("s", occurrences(1), "before")
        clock.now += 1_000 * DAY
        ack = log.append_events("s", occurrences(1), "ahead")
        clock.now -= 1_000 * DAY
        log.append_events("s", occurrences(1), "after")
        assert log.append_events("s", occurrences(1), "ahead") == ack
    with LogWriter(tmp_path, clock) as log:
        assert log.append_events("s", occurrences(1), "ahead") == ack
    clock.now += DAY + 1
    with LogWriter(tmp_path, clock) as log:
        assert log.append_events("s", occurrences(1), "ahead").offset == 4
    assert [int(path.name[:20]) for path in files(tmp_path)] == [3], "the older files are gone"


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped", "named otherwise"])
def test_a_file_that_is_lost_is_made_again_from_the_log(damage: str, tmp_path: Path) -> None:
    clock = Clock(100 * DAY)
    for number, keys in enumerate((8, 3, 1)):
        with LogWriter(tmp_path, clock) as log:
            for k in range(keys):
                log.append_events("s", occurrences(1), f"{number}-{k}")
    lost, *others = files(tmp_path)
    assert others
    data = lost.read_bytes()
    match damage:
        case "cut":
            lost.write_bytes(data[:-1])
        case "flipped":
            lost.write_bytes(data[:9] + bytes([data[9] ^ 1]) + data[10:])
        case "named otherwise":
            lost.rename(lost.with_name("copy.keys"))
        case _:
            lost.unlink()
    for _ in range(2):
        with LogWriter(tmp_path, clock) as log:
            acks = [log.append_events("s", occurrences(1), f"{number}-{k}") for number, keys in enumerate((8, 3, 1)) for k in range(keys)]
        assert [ack.offset for ack in acks] == list(range(1, 13))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("key"), st.sampled_from("st"), st.integers(0, 40)),
        st.tuples(st.just("wait"), st.integers(1, 10 * HOUR)),
        st.tuples(st.just("save")),
        st.tuples(st.just("restart")),
    ),
    max_size=60,
)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_a_key_is_known_for_a_day_and_no_longer(steps: list[tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("keys") / KEYS_FOLDER
    now, head, model = 100 * DAY, 0, dict[tuple[str, str], tuple[int, Ack]]()
    keys = IdempotencyKeys(directory, head, now)
    for step in steps:
        match step:
            case ("key", str(stream), int(key)):
                keys.expire_keys(now)
                at, ack = model.get((stream, str(key)), (0, None))
                known = ack if at > now - REMEMBERED else None
                assert keys.find_ack(stream, str(key), now) == known
                if known is None:
                    head += 1
                    model[stream, str(key)] = now, Ack(head, key, 0)
                    keys.remember(stream, str(key), now, Ack(head, key, 0))
                if keys.is_due():
                    keys.save()
            case ("wait", int(time)):
                now += time
            case ("save",):
                keys.save()
            case _:
                keys.save()
                keys = IdempotencyKeys(directory, head, now)
        kept = [newest for _, _, newest in keys.saved]
        assert len(kept) <= 60
    keys.expire_keys(now)
    assert all(newest > now - REMEMBERED for *_, newest in keys.saved)
