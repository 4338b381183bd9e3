"""Defines mistakes in events, mappings and backgrounds.

Each function returns a set-up with one mistake and the words that name its cause, or None.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from tests.pipeline.diagnosis.mutations.query_mutations import Mutated, list_predicates
from tests.pipeline.diagnosis.mutations.setups import EX, Setup

_TYPED = '\\"^^<http://www.w3.org/2001/XMLSchema#decimal>'


def _mutate_lines(setup: Setup, change: Callable[[str], str], *words: str) -> Mutated:
    """Change each line of ndjson."""
    if setup.mapping:
        return None
    bodies = tuple((name, "".join(map(change, body.splitlines(keepends=True)))) for name, body in setup.bodies)
    return (replace(setup, bodies=bodies), words) if bodies != setup.bodies else None


def _mutate_mapping(setup: Setup, old: str, new: str, *words: str) -> Mutated:
    mapping = setup.mapping.replace(old, new)
    return (replace(setup, mapping=mapping), words) if mapping != setup.mapping else None


def _mutate_table(setup: Setup, old: str, new: str, *words: str) -> Mutated:
    if not setup.mapping:
        return None
    return replace(setup, bodies=tuple((name, re.sub(old, new, body)) for name, body in setup.bodies)), words


def send_texts_for_numbers(setup: Setup) -> Mutated:
    if not re.search(r"\?\w+ [<>]=? \d", setup.query):
        return None
    return _mutate_lines(setup, lambda line: line.replace(_TYPED, '\\"'), "was compared with a number", "was a text", "as a number")


def send_decimal_commas(setup: Setup) -> Mutated:
    if not re.search(r"\?t [<>]=? \d", setup.query):
        return None
    return _mutate_lines(setup, lambda line: re.sub(r'\\"(\d+)(\.\d+)?\\"\^\^<[^>]*>', r'\\"\1,5\\"', line), "decimal comma")


def send_thousandths(setup: Setup) -> Mutated:
    if not re.search(r"\?[txhv] >=? \d", setup.query):
        return None
    return _mutate_lines(
        setup, lambda line: re.sub(r'\\"([\d.]+)(?=\\"\^)', lambda m: f'\\"{float(m[1]) / 1000}', line), "the closest value of", "another unit"
    )


def rename_predicate_in_events(setup: Setup) -> Mutated:
    names = list_predicates(setup)
    if not names:
        return None
    words = ("predicate", "never seen", f"<{EX}{names[0]}>", f"<{EX}{names[0]}s>")
    return _mutate_lines(setup, lambda line: line.replace(f"{EX}{names[0]}>", f"{EX}{names[0]}s>"), *words)


def name_other_space_in_events(setup: Setup) -> Mutated:
    return _mutate_lines(setup, lambda line: line.replace(EX, "http://example.net/ns#"), "never seen", "http://example.net/ns#", "namespace")


def _shift(line: str, delta: timedelta) -> str:
    match = re.search(r'"at": "([^"]*)Z"', line)
    assert match is not None
    return line.replace(match[1], (datetime.fromisoformat(match[1]) + delta).isoformat())


def _shift_one_side(setup: Setup, delta: timedelta, *words: str) -> Mutated:
    names = list_predicates(setup)
    if "SEQ" not in setup.query or len(names) < 2:
        return None
    return _mutate_lines(setup, lambda line: _shift(line, delta) if f"{EX}{names[-1]}>" in line else line, *words)


def send_one_side_in_local_time(setup: Setup) -> Mutated:
    return _shift_one_side(setup, timedelta(hours=5), "apart by about 5 h", "zone")


def send_one_side_in_western_time(setup: Setup) -> Mutated:
    return _shift_one_side(setup, timedelta(hours=-7), "apart by about 7 h", "zone")


def send_one_time_for_all(setup: Setup) -> Mutated:
    if "SEQ" not in setup.query:
        return None
    return _mutate_lines(setup, lambda line: re.sub(r'"at": "[^"]*"', '"at": "2026-01-01T00:00:00Z"', line), "at the same instant", "own time")


def send_slowly(setup: Setup) -> Mutated:
    if "WITHIN" not in setup.query:
        return None

    def stretch(line: str) -> str:
        match = re.search(r'"at": "([^"]*)Z"', line)
        assert match is not None
        start = datetime(2026, 1, 1)  # noqa: DTZ001 - the texts are taken without their zone
        return line.replace(match[1], (start + 1000 * (datetime.fromisoformat(match[1]) - start)).isoformat())

    return _mutate_lines(setup, stretch, "WITHIN is", "the closest solution lasts", "unit")


def write_values_of_keys_as_texts(setup: Setup) -> Mutated:
    if not re.search(r"(\?[pn]) \}.*\1 \}", setup.query):
        return None
    name = list_predicates(setup)[-1]
    words = ("never has one value on both sides", "one is an IRI, the other a text")
    return _mutate_lines(setup, lambda line: re.sub(rf'"o": "<{EX}(\w+)>"', r'"o": "\\"\1\\""', line) if f"{EX}{name}>" in line else line, *words)


def _change_key(setup: Setup, change: str, *words: str) -> Mutated:
    names = list_predicates(setup)
    if "SEQ" not in setup.query or len(names) < 2:
        return None
    change_subject = lambda line: re.sub(rf'"s": "<{EX}(\w+)>"', change, line) if f"{EX}{names[-1]}>" in line else line  # noqa: E731 - one line
    return _mutate_lines(setup, change_subject, "never has one value on both sides", *words)


def write_keys_in_upper_case(setup: Setup) -> Mutated:
    names = list_predicates(setup)
    if "SEQ" not in setup.query or len(names) < 2:
        return None

    def change(line: str) -> str:
        return re.sub(rf'"s": "<{EX}(\w+)>"', lambda m: f'"s": "<{EX}{m[1].upper()}>"', line) if f"{EX}{names[-1]}>" in line else line

    return _mutate_lines(setup, change, "never has one value on both sides", "upper and lower case")


def write_keys_as_urns(setup: Setup) -> Mutated:
    return _change_key(setup, r'"s": "<urn:\1>"', "<urn:")


def number_keys(setup: Setup) -> Mutated:
    return _change_key(setup, rf'"s": "<{EX}device/000\1>"', "device/000")


def send_an_empty_file(setup: Setup) -> Mutated:
    return (replace(setup, bodies=tuple((name, "") for name, _ in setup.bodies)), ("no events",)) if not setup.mapping else None


def send_a_subclass(setup: Setup) -> Mutated:
    return _mutate_lines(
        setup, lambda line: line.replace(f"{EX}Vehicle>", f"{EX}ElectricVehicle>"), "class", "never seen", "ElectricVehicle", "background"
    )


def leave_graphs_out(setup: Setup) -> Mutated:
    return _mutate_lines(setup, lambda line: re.sub(r', "g": "[^"]*"', "", line), "graph", "no named graph")


def send_spaces(setup: Setup) -> Mutated:
    return _mutate_lines(setup, lambda line: re.sub(r"(running|stopped)", r" \1", line), "spaces")


# ---------------------------------------------------------------- mappings
def read_milliseconds_as_seconds(setup: Setup) -> Mutated:
    return _mutate_mapping(setup, "epoch_ms", "epoch_s", "milliseconds", "epoch_ms")


def read_milliseconds_as_microseconds(setup: Setup) -> Mutated:
    if "FILTER" not in setup.query:
        return None
    return _mutate_mapping(setup, "epoch_ms", "epoch_us", "epoch_ms")


def read_iso(setup: Setup) -> Mutated:
    return _mutate_mapping(setup, "epoch_ms", "iso", "field ts", "1767225600000")


def map_numbers_to_texts(setup: Setup) -> Mutated:
    return _mutate_mapping(setup, "xsd:decimal", "xsd:string", "was a text", "compared with a number") if "FILTER" in setup.query else None


def map_other_predicates(setup: Setup) -> Mutated:
    return _mutate_mapping(setup, ":temperature", ":temprature", "predicate", "never seen", f"<{EX}temprature>")


def map_other_base(setup: Setup) -> Mutated:
    return _mutate_mapping(setup, EX, "http://sensors.example/", "never seen", "http://sensors.example/", "namespace")


def map_other_subjects(setup: Setup) -> Mutated:
    if not setup.background:
        return None
    return _mutate_mapping(setup, "{sensor}", "sensor/{sensor}", "never has one value on both sides", f"<{EX}sensor/m1>", f"<{EX}m1>")


def name_other_time_field(setup: Setup) -> Mutated:
    return _mutate_mapping(setup, '"ts"', '"timestamp"', "timestamp")


def name_other_field(setup: Setup) -> Mutated:
    return _mutate_mapping(setup, '"temp"', '"temperature"', "temperature", "temp")


def name_other_subject_field(setup: Setup) -> Mutated:
    return _mutate_mapping(setup, "{sensor}", "{device}", "device")


def write_decimal_commas_in_table(setup: Setup) -> Mutated:
    return _mutate_table(setup, r",(\d+)\.(\d),", r',"\1,\2",', "35,5", "decimal")


def write_units_in_table(setup: Setup) -> Mutated:
    return _mutate_table(setup, r"m1,(\d+)", r"m1,\1 C", "20 C", "decimal")


def rename_background(setup: Setup) -> Mutated:
    if not setup.background:
        return None
    return replace(setup, background=setup.background.replace(":inRoom", ":room")), ("predicate", f"<{EX}inRoom>")


def key_background_otherwise(setup: Setup) -> Mutated:
    if not setup.background:
        return None
    return replace(setup, background=setup.background.replace(":m", ":sensor-m")), ("never has one value on both sides", "sensor-m1")


MUTATIONS = tuple(function for name, function in list(globals().items()) if callable(function) and getattr(function, "__module__", "") == __name__
                  and not name.startswith("_"))  # fmt: skip
