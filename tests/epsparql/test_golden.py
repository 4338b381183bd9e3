"""Each message as the user reads it, word for word: tests/golden/*.txt, which `python -m tests.epsparql.golden`
writes anew.
"""

import pytest

from epsparql import errors
from tests.epsparql.golden import Block, blocks, error, warnings

ERRORS, WARNINGS = blocks("errors.txt"), blocks("warnings.txt")


def titled(found: list[Block]) -> list[object]:
    return [pytest.param(block, id=block.title) for block in found]


@pytest.mark.parametrize("block", titled(ERRORS))
def test_error(block: Block) -> None:
    assert error(block.query) == block.answer


@pytest.mark.parametrize("block", titled(WARNINGS))
def test_warnings(block: Block) -> None:
    assert warnings(block.query) == block.answer


def test_every_kind_of_error_is_shown() -> None:
    shown = {block.answer.partition(":")[0] for block in ERRORS}
    kinds: list[type[errors.QueryError]] = [errors.QueryError, *errors.QueryError.__subclasses__()]
    assert shown == {kind.code for kind in kinds}


def test_titles_are_unique() -> None:
    titles = [block.title for block in (*ERRORS, *WARNINGS)]
    assert len(set(titles)) == len(titles)
