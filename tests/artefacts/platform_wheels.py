"""Builds a wheel for each platform from this machine, by zig's compiler, and inspects the compiled modules in it.

    python -m tests.artefacts.platform_wheels DIRECTORY

`make wheels` runs it. Those for other platforms than this one are not run: it looks at the kind of file, and at what
a module takes from elsewhere.
"""

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import lief

from tests.support.wheels import ROOT, call_uv, copy_sources

TARGETS = {
    "manylinux_2_28_x86_64": "x86_64-linux-gnu.2.28",
    "manylinux_2_28_aarch64": "aarch64-linux-gnu.2.28",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
    "win_amd64": "x86_64-windows-gnu",
}
"""The platform as wheels name it, and as zig does."""
GLIBC = (2, 28)
"""The tag manylinux_2_28 promises no later version."""
KINDS = {"linux": lief.Binary.FORMATS.ELF, "macos": lief.Binary.FORMATS.MACHO, "windows": lief.Binary.FORMATS.PE}
PROMISED = frozenset(re.findall(r"\b_?Py\w+", (ROOT / "engine/native/source/stable_abi.h").read_text(encoding="utf-8")))
"""The names of Python's stable ABI that the module declares."""


def build_wheels(directory: Path) -> dict[str, Path]:
    """Build a wheel for each platform into a directory, and return them by platform."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="epsparql-wheels-") as place:
        python = Path(place, "venv", "bin", "python")
        call_uv("venv", "--quiet", "--python", sys.executable, str(python.parents[1]))
        zig = re.findall(r'"(ziglang==[\d.]+)"', (ROOT / "setup.py").read_text(encoding="utf-8"))
        call_uv("pip", "install", "--quiet", "--python", str(python), "setuptools>=77", *zig)
        for platform, target in TARGETS.items():
            source = copy_sources(Path(place, platform))
            command = [str(python), "setup.py", "--quiet", "bdist_wheel", "--plat-name", platform, "--dist-dir", str(directory.resolve())]
            subprocess.run(command, cwd=source, env=os.environ | {"EPSPARQL_TARGET": target}, check=True)
            (found[platform],) = directory.glob(f"*{platform}.whl")
            print(found[platform].name, flush=True)
    return found


def modules_of(wheel: Path) -> Iterator[tuple[str, lief.Binary]]:
    """Yield the compiled modules of a wheel, with their names."""
    with zipfile.ZipFile(wheel) as content:
        for name in content.namelist():
            if name.endswith((".so", ".pyd")):
                binary = lief.parse(content.read(name))
                assert isinstance(binary, lief.Binary), name
                yield name, binary


def inspect_wheel(wheel: Path, target: str) -> None:
    """Check the tags of a wheel, the kind of its modules, their entry, and that they ask Python for nothing beyond
    the stable ABI.
    """
    assert "-cp311-abi3-" in wheel.name
    found = dict(modules_of(wheel))
    builds = {Path(name).name.split(".")[0] for name in found}
    assert builds == ({"_portable", "_avx2"} if target.startswith("x86_64") else {"_portable"}), builds
    for name, binary in found.items():
        assert binary.format == KINDS[target.split("-")[1].split(".")[0]], name
        exported = {str(symbol.name).removeprefix("_Py").removeprefix("Py") for symbol in binary.exported_functions}
        assert f"Init_{Path(name).name.split('.')[0]}" in exported, exported
        asked = {name.lstrip("_") for name in _list_imports(binary) if re.match(r"_*Py", name)}
        assert asked, name
        assert asked <= {name.lstrip("_") for name in PROMISED}, asked
        if isinstance(binary, lief.ELF.Binary):
            _inspect_c_library(binary, target)


def _list_imports(binary: lief.Binary) -> list[str]:
    """Return the names that a module takes from elsewhere.

    Those of Python have no type in ELF, because no library of Python is linked.
    """
    if isinstance(binary, lief.ELF.Binary):
        return [str(symbol.name) for symbol in binary.dynamic_symbols if symbol.shndx == 0]
    return [str(each.name) for each in binary.imported_functions]


def _inspect_c_library(binary: lief.ELF.Binary, target: str) -> None:
    """Check that a module for Linux needs the C library of its target alone, and of glibc no later version than the
    tag promises.
    """
    assert {str(name) for name in binary.libraries} <= ({"libc.so"} if "musl" in target else {"libc.so.6", "libm.so.6"})
    names = [str(each.name) for needed in binary.symbols_version_requirement for each in needed.get_auxiliary_symbols()]
    versions = [tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in names]
    assert all(version <= GLIBC for version in versions), names


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    for platform, wheel in build_wheels(place).items():
        inspect_wheel(wheel, TARGETS[platform])
