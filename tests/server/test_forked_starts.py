"""When tests start a server as a fork; kills and refused starts of test_restart.py show that it is as by exec."""

import os
from contextlib import closing

import pytest

from tests.server.conftest import until
from tests.server.forked_starts import ForkedStarts

pytestmark = pytest.mark.slow


def test_what_is_read_while_a_server_loads_needs_a_new_process() -> None:
    here = dict(os.environ)
    with closing(ForkedStarts()) as starts:  # another test may have changed the environment since that of the session began
        until(lambda: starts.may_fork(here | {"OMP_NUM_THREADS": "1"}), "the process that forks has loaded all")
        for name in ("EPSPARQL_FUNCTIONS", "NUMBA_BOUNDSCHECK", "HOME"):
            assert not starts.may_fork(here | {name: "another"})
