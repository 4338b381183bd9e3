"""This module makes mutants of functions in C: each is a build of the module, whose functions take the place of those
that are loaded.
"""

import ast
import gc
import random
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import CDLL, c_ubyte
from dataclasses import dataclass, field
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import BuiltinFunctionType, ModuleType
from typing import Any

from engine.native import entries
from engine.native.headers import write_headers
from tests.mutation.native_changes import list_changes, list_functions
from tests.mutation.trials import ROOT, Mutant, Place

NATIVE = Path("engine/native/source")
FLAGS = ["-O1", "-w", "-DCHECKED", "-DMODULE=_mutant"]
MARKS = "reached_by_a_test"


def constants_of_setup() -> dict[str, list[str]]:
    """Return the lists of setup.py, which cannot be imported."""
    tree = ast.parse((ROOT / "setup.py").read_text())
    lists = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)]
    return {ast.unparse(node.targets[0]): ast.literal_eval(node.value) for node in lists if ast.unparse(node.targets[0]) in ("COMMON", "UNITS")}


def unit_of(file: str) -> str:
    """Return the unit that a file is a part of."""
    return Path(file).relative_to(ROOT / NATIVE).with_suffix("").parts[0]


def load_module(library: Path) -> ModuleType:
    spec = spec_from_loader("_mutant", ExtensionFileLoader("_mutant", str(library)))
    assert spec is not None
    return module_from_spec(spec)


def find_holders(functions: Mapping[str, object]) -> list[tuple[dict[str, Any], str, str]]:
    """Return where this process has these functions: a dictionary, a key, and the function's name."""
    names = {id(function): name for name, function in functions.items()}
    tables = [each for each in gc.get_objects() if type(each) is dict]
    return [(table, key, names[id(value)]) for table in tables for key, value in list(table.items()) if id(value) in names and table is not functions]


@dataclass
class NativeFunctions:
    """Gives mutants of the functions of some files; if a file comes with lines, the changes are in these."""

    files: Mapping[Path, Collection[int]]
    _own: dict[str, object] = field(default_factory=dict)
    _held: list[tuple[dict[str, Any], str, str]] = field(default_factory=list)
    _directory: TemporaryDirectory[str] = field(default_factory=lambda: TemporaryDirectory(prefix="epsparql-mutants-"))

    def __post_init__(self) -> None:
        self._place = Path(self._directory.name)
        self._settings = constants_of_setup()

    def load(self) -> None:
        """Build what no mutant changes, and look for what is to be replaced."""
        shutil.copytree(ROOT / NATIVE, self._place / "source")
        (self._place / "headers").mkdir()
        write_headers(self._place / "headers")
        for unit in self._settings["UNITS"]:
            self._compile(self._place / "source", unit, self._place)
        self._own = {name: value for name, value in vars(entries).items() if isinstance(value, BuiltinFunctionType)}
        self._held = find_holders(self._own)

    def draw_mutants(self, number: int, seed: int) -> list[Mutant]:
        """Draw so many mutants that compile; fewer if there are not as many."""
        texts = {file: file.read_text() for file in self.files}
        every = [(file, each) for file, text in texts.items() for each in list_changes(text) if not self.files[file] or each.line in self.files[file]]
        random.Random(seed).shuffle(every)
        starts = {(file, name): text.count("\n", 0, first) + 1 for file, text in texts.items() for name, first, _ in list_functions(text)}
        drawn: list[Mutant] = []
        for file, change in every:
            if len(drawn) == number:
                break
            mutant = Mutant(len(drawn) + 1, str(file), change, (str(file), starts[file, change.function], 0), change.made_in(texts[file]))
            if self._compiles(mutant):
                drawn.append(mutant)
        return drawn

    @contextmanager
    def marked(self, mutants: Sequence[Mutant]) -> Iterator[Callable[[], set[Place]]]:
        """Let each function with a mutant say that it is reached, in a module that has a mark for each."""
        places = sorted({each.place for each in mutants})
        changed = dict[str, str]()
        for file in {place[0] for place in places}:
            text, lines = Path(file).read_text(), {place[1]: k for k, place in enumerate(places) if place[0] == file}
            for _, first, _ in sorted(list_functions(text), key=lambda each: -each[1]):
                if (mark := lines.get(text.count("\n", 0, first) + 1)) is not None:
                    text = f"{text[:first]} {MARKS}[{mark}] = 1; {text[first:]}"
            changed[file] = text
        common, module = ((ROOT / NATIVE / name).read_text() for name in ("entry.h", "module.c"))
        changed[str(ROOT / NATIVE / "entry.h")] = f"{common}\nextern unsigned char {MARKS}[];\n"
        changed[str(ROOT / NATIVE / "module.c")] = f"{module}\nEXPORTED unsigned char {MARKS}[{len(places) or 1}];\n"
        library = self._build("marked", changed, self._settings["UNITS"])
        marks = (c_ubyte * len(places)).in_dll(CDLL(str(library)), MARKS)

        def take_all() -> set[Place]:
            found = {place for place, mark in zip(places, marks, strict=True) if mark}
            marks[:] = [0] * len(places)
            return found

        self._replace(vars(load_module(library)))
        try:
            yield take_all
        finally:
            self._replace(self._own)

    def install(self, mutant: Mutant) -> None:
        """Build the mutant, and let its functions take the place of those that are loaded."""
        self._replace(vars(load_module(self._build(str(mutant.number), {mutant.file: mutant.made}, [unit_of(mutant.file)]))))

    # ------------------------------------------------------------ builds
    def _build(self, name: str, texts: Mapping[str, str], units: Sequence[str]) -> Path:
        """Return a build in which some files have other texts; these units are compiled anew."""
        place = self._place / name
        shutil.copytree(self._place / "source", place / "source")
        for file, text in texts.items():
            (place / "source" / Path(file).relative_to(ROOT / NATIVE)).write_text(text)
        for unit in units:
            self._compile(place / "source", unit, place)
        objects = [(place if unit in units else self._place) / f"{unit}.o" for unit in self._settings["UNITS"]]
        subprocess.run(["cc", "-shared", *map(str, objects), "-o", str(place / "_mutant.so"), "-lm"], check=True)
        return place / "_mutant.so"

    def _compile(self, source: Path, unit: str, place: Path, *more: str) -> None:
        flags = [*self._settings["COMMON"], *FLAGS, f"-I{source}", f"-I{self._place / 'headers'}", *more]
        subprocess.run(["cc", *flags, "-c", str(source / f"{unit}.c"), "-o", str(place / f"{unit}.o")], check=True)

    def _compiles(self, mutant: Mutant) -> bool:
        """Return whether a mutant is a program."""
        file = self._place / "source" / Path(mutant.file).relative_to(ROOT / NATIVE)
        before = file.read_text()
        file.write_text(mutant.made)
        try:
            self._compile(self._place / "source", unit_of(mutant.file), self._place, "-fsyntax-only")
        except subprocess.CalledProcessError:
            return False
        finally:
            file.write_text(before)
        return True

    def _replace(self, functions: Mapping[str, object]) -> None:
        for table, key, name in self._held:
            table[key] = functions[name]
