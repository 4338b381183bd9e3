"""One wheel for all tests here, which are in one process: building it takes some twenty seconds.

Outside of `make soak` it has one build of the compiled code: the checkout's own installation makes both.
"""

from pathlib import Path

import pytest

from tests.soak import is_full
from tests.support.wheels import build_wheel


@pytest.fixture(scope="package")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), EPSPARQL_BUILDS="portable avx2" if is_full() else "portable")
