"""The one way in which Python calls the compiled code: names, arguments and faults."""

import ast
import os
import re
import subprocess
import sys
import zlib
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from engine.native import entries

NATIVE = Path(entries.__file__).parent
UNITS = ("common", "formats", "dictionary", "aggregation", "kernel")
ENTRY = re.compile(r'\{"(\w+)", "(\w*)", (\d), \w+\}')
ASKED = "from engine.native.entries import join_crcs; print(join_crcs(0x352441C2, 0x99C4F4DE, 4))"


def entries_of_c() -> list[tuple[str, str, int]]:
    found = [match for unit in UNITS for match in ENTRY.findall((NATIVE / "source" / f"{unit}.c").read_text())]
    return [(name, takes, int(gives)) for name, takes, gives in found]


def test_each_entry_has_one_name_and_a_type_for_python() -> None:
    """An entry would silently replace another one of the same name."""
    names = Counter(name for name, _, _ in entries_of_c())
    assert [name for name, count in names.items() if count > 1] == []
    stubs = {node.name: node for node in ast.parse((NATIVE / "entries.pyi").read_text()).body if isinstance(node, ast.FunctionDef)}
    assert stubs.keys() == names.keys() <= vars(entries).keys()
    most_taken, most_given = map(int, re.findall(r"MOST_ARGUMENTS = (\d+), MOST_RESULTS = (\d+)", (NATIVE / "source" / "entry.h").read_text())[0])
    for name, takes, gives in entries_of_c():
        assert len(takes) <= most_taken, name
        assert gives <= most_given, name
        stub = stubs[name]
        assert len(stub.args.posonlyargs) == len(takes) or stub.args.vararg is not None, name
        assert (ast.unparse(stub.returns or ast.Constant(None)) == "None") == (gives == 0), name
        assert ast.get_docstring(stub), name


@pytest.mark.parametrize(
    ("arguments", "fault", "words"),
    [
        ((1, 2), TypeError, "join_crcs takes 3 arguments, and was given 2"),
        ((1, 2, "x"), TypeError, "integer"),
        ((1, 2, 1 << 64), OverflowError, "too (big|large)"),
    ],
)
def test_numbers_that_are_wrong_are_faults(arguments: tuple[object, ...], fault: type[Exception], words: str) -> None:
    with pytest.raises(fault, match=words):
        entries.join_crcs(*arguments)  # type: ignore[arg-type]  # what is tried


def test_arrays_that_are_wrong_are_faults() -> None:
    rows, columns = np.zeros((4, 3), np.int64), np.zeros((3, 1), np.int64)
    with pytest.raises(TypeError, match="add_to_heap: argument 1 has items of 4 bytes, and needs 8"):
        entries.add_to_heap(rows.astype(np.int32), 0, columns, 1, 2, 0)
    with pytest.raises(IndexError, match="add_to_heap: an array is too short"):
        entries.add_to_heap(rows, 4, columns, 1, 2, 0)
    with pytest.raises(ValueError, match="contiguous"):
        entries.add_to_heap(rows[:, ::2], 0, columns, 1, 2, 0)
    rows.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        entries.add_to_heap(rows, 0, columns, 1, 2, 0)


@pytest.mark.parametrize(
    "build", ["portable", pytest.param("avx2", marks=pytest.mark.skipif(not entries.has_avx2(), reason="the processor has no AVX2"))]
)
def test_a_build_may_be_named(build: str) -> None:
    found = subprocess.run([sys.executable, "-c", ASKED], env=os.environ | {"EPSPARQL_NATIVE": build}, capture_output=True, text=True, check=True)
    assert int(found.stdout) == entries.join_crcs(zlib.crc32(b"abc"), 0x99C4F4DE, 4)


def test_an_unknown_build_is_a_fault() -> None:
    found = subprocess.run([sys.executable, "-c", ASKED], env=os.environ | {"EPSPARQL_NATIVE": "fast"}, capture_output=True, text=True, check=False)
    assert "EPSPARQL_NATIVE is 'fast', which is no build; leave it out, or say avx2, portable or checked" in found.stderr


def test_a_build_older_than_its_source_is_refused(tmp_path: Path) -> None:
    """Its tables may have other columns than those of the modules in Python."""
    old = tmp_path / "_portable.abi3.so"
    old.touch()
    os.utime(old, (0, 0))
    with pytest.raises(ImportError, match=r"_portable\.abi3\.so is older than engine/native/.+; build it with `make native`"):
        vars(entries)["_check_age"](SimpleNamespace(__file__=str(old)))
