"""One wheel for all tests here, which are in one process: building it takes some twenty seconds."""

from pathlib import Path

import pytest

from tests.support.wheels import build_wheel


@pytest.fixture(scope="package")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))
