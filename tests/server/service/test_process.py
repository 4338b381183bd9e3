"""These tests check which packages a server's process does without."""

import subprocess
import sys

_PROGRAM = """
import sys
from server.process import leave_out_pandas
leave_out_pandas()
import server.cli.serve
import pyarrow as pa
assert pa.array([1, None]).to_pylist() == [1, None]
print("pandas" in sys.modules)
"""


def test_pandas_is_left_out_where_it_is_installed() -> None:
    assert subprocess.run([sys.executable, "-c", "import pandas"], check=False).returncode == 0, "the tests have it installed"
    assert subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True).stdout == "False\n"
