"""Every natural mistake that silences a working set-up is named by its cause: by a diagnosis, a warning or a refusal."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pipeline.diagnosis.mutations import input_mutations, query_mutations
from tests.pipeline.diagnosis.mutations.setups import SETUPS, Setup, answer_setup
from tests.soak import is_full

MUTATIONS = (*query_mutations.MUTATIONS, *input_mutations.MUTATIONS)
MOST_EACH, MISTAKES = (5, 230) if is_full() else (2, 110)
"""A mistake is made in so many set-ups at most, since more of them say the same; and so many must hide something."""


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_a_set_up_without_a_mistake_finds_something(setup: Setup, tmp_path: Path) -> None:
    answer = answer_setup(setup, tmp_path)
    assert answer.solutions
    assert answer.told == ""


@pytest.mark.slow  # `make soak` makes two hundred replays, and other runs half of them
def test_mistakes_are_named(tmp_path: Path) -> None:
    count, unnamed = 0, list[str]()
    for name, mistaken, words in _list_mistakes():
        answer = answer_setup(mistaken, tmp_path)
        if answer.solutions:
            continue  # the mistake hides nothing here
        count += 1
        if missing := [word for word in words if word not in answer.told]:
            unnamed.append(f"{name} should name {missing}: {answer.told}")
    assert not unnamed, "\n".join(unnamed)
    assert count >= MISTAKES


def _list_mistakes() -> Iterator[tuple[str, Setup, query_mutations.Words]]:
    for mutate in MUTATIONS:
        made = [(setup.name, mutated) for setup in SETUPS if (mutated := mutate(setup)) is not None]
        step = max(len(made) // MOST_EACH, 1)
        for name, (mistaken, words) in made[::step][:MOST_EACH]:
            yield f"{name}: {mutate.__name__}", mistaken, words
