"""These tests check what a server's process does without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_PROGRAM = """
import sys
from pathlib import Path
from server.process import defer_validators, leave_out_unused
leave_out_unused()
defer_validators()
import server.cli.serve
import pyarrow as pa
from fastapi.openapi.models import OpenAPI
from server.routes.queries import QueryWish
assert not OpenAPI.__pydantic_complete__ and not QueryWish.__pydantic_complete__
assert QueryWish.model_validate({"query": "ASK {}"}).query == "ASK {}"
assert pa.array([1, None]).to_pylist() == [1, None]
left_out = {"pandas", "pydantic.v1", "connectors.worker", "jwt", "cryptography", "pipeline.diagnosis.live", "pipeline.proposals.proposal"}
print("server.app" in sys.modules, *sorted(left_out & sys.modules.keys()))
"""


def test_a_server_leaves_out_what_it_does_not_start_with() -> None:
    """Pandas and the first version of pydantic are installed, and libraries load them if they can."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", "import pandas, pydantic.v1"], check=True)
    assert subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True).stdout == "True\n"


def test_functions_of_users_may_want_pandas() -> None:
    program = "from server.process import leave_out_unused\nleave_out_unused()\nimport pandas"
    for functions, code in (({}, 1), ({"EPSPARQL_FUNCTIONS": "mine"}, 0)):
        assert subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, env=os.environ | functions).returncode == code


_ENDING = """
import gc
import sys
from server.cli.commands import main
sys.argv = ["epsparql", "check", sys.argv[1]]
code = main()
ended = gc.get_freeze_count()
gc.unfreeze()
code += main(sys.argv[1:])
print(code, ended > 50_000, gc.get_freeze_count(), *sorted({"httpx._main", "pandas"} & sys.modules.keys()))
"""


def test_a_command_does_not_look_at_all_objects_when_it_ends(tmp_path: Path) -> None:
    """Nor does it load what it has no use for."""
    (tmp_path / "q.rq").write_text("SELECT * WHERE { ?s ?p ?o }")
    found = subprocess.run([sys.executable, "-c", _ENDING, str(tmp_path / "q.rq")], capture_output=True, text=True, check=True)
    assert found.stdout == "0 True 0\n"


def test_numpy_starts_no_threads_that_wait() -> None:
    program = "from server.process import leave_out_unused\nleave_out_unused()\nimport os, numpy\nprint(len(os.listdir('/proc/self/task')))"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    for functions, threads in (({}, 1), ({"EPSPARQL_FUNCTIONS": "mine"}, os.cpu_count())):
        found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=environment | functions)
        assert int(found.stdout) == threads


_FREED = """
from pathlib import Path
from server.process import give_back_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 // 1024

blocks = [bytes(5000) for _ in range(20_000)]
last = bytes(5000)  # nothing below it is given back by itself
del blocks
before = resident()
give_back_memory()
print(before - resident())
"""


def test_freed_memory_goes_back_to_the_system() -> None:
    found = subprocess.run([sys.executable, "-c", _FREED], capture_output=True, text=True, check=True)
    assert int(found.stdout) > 80, "megabytes of the hundred that were freed"


_AGAIN = """
import resource
import numpy as np
from server.process import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

keep_freed_memory()
np.ones(20 << 20, np.int8)
before = faults()
for _ in range(20):
    np.ones(20 << 20, np.int8)
print(faults() - before)
"""


def test_freed_memory_is_used_again_for_the_next_block() -> None:
    found = subprocess.run([sys.executable, "-c", _AGAIN], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 5_000, "pages that the system cleared, of 100,000 that were written"


_POOL = """
import sys
from pathlib import Path
from server.cli.commands import main
sys.argv = ["epsparql", "check", sys.argv[1]]
code = main()
import pyarrow
print(code, pyarrow.default_memory_pool().backend_name)
"""


@pytest.mark.parametrize("functions", ["", "users_functions"])
def test_a_command_has_arrow_use_the_heaps_that_are_kept(functions: str, tmp_path: Path) -> None:
    """Arrow chooses its pool when it is imported, which functions of users may do first."""
    (tmp_path / "users_functions.py").write_text("import pyarrow\nFUNCTIONS = {}\n")
    (tmp_path / "q.rq").write_text("SELECT * WHERE { ?s ?p ?o }")
    environment = {name: value for name, value in os.environ.items() if name != "ARROW_DEFAULT_MEMORY_POOL"} | {"PYTHONPATH": str(tmp_path)}
    environment |= {"EPSPARQL_FUNCTIONS": functions} if functions else {}
    command = [sys.executable, "-c", _POOL, str(tmp_path / "q.rq")]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert found.stdout.splitlines()[-1] == "0 system", found.stderr
