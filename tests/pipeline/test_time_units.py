"""Times in another unit are told by the pair of units that explains them, the likeliest first."""

import pytest

from pipeline.time_units import describe_wrong_unit

NOW = 1_796_000_000_000_000


@pytest.mark.parametrize(
    ("at", "unit", "taken", "formats"),
    [
        (NOW // 1_000, "seconds", "milliseconds", ["epoch_s", "epoch_ms", "epoch_us"]),
        (NOW // 1_000_000, "seconds", "microseconds", ["epoch_s", "epoch_ms"]),
        (NOW // 1_000_000_000, "seconds", "nanoseconds", ["epoch_s"]),
        (NOW * 1_000, "milliseconds", "seconds", ["epoch_ms", "epoch_us", "epoch_ns"]),
        (NOW * 1_000_000, "microseconds", "seconds", ["epoch_us", "epoch_ns"]),
        (NOW * 1_000_000_000, "nanoseconds", "seconds", ["epoch_ns"]),
    ],
)
def test_the_units_are_named(at: int, unit: str, taken: str, formats: list[str]) -> None:
    found = describe_wrong_unit(at, NOW)
    assert found is not None
    assert f"look like {unit} that were read as {taken}, of 2026-11-30" in found
    assert [word.strip("(,") for word in found.split() if "epoch_" in word] == formats


def test_a_time_of_today_is_told_of_nothing() -> None:
    assert describe_wrong_unit(NOW, NOW) is None
