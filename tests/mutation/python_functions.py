"""This module makes mutants of functions in Python: the code of each is compiled, and put into the live function."""

import ast
import builtins
import gc
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType

from tests.mutation.changes import list_changes
from tests.mutation.trials import ROOT, Mutant, Place

Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Code:
    """Holds the code of a mutant, and what its function is known by."""

    key: Key
    code: CodeType


def codes_of(module: CodeType, file: str) -> dict[Key, CodeType]:
    """Return the code of each function of a compiled module."""
    found, waiting = {}, [module]
    while waiting:
        code = waiting.pop()
        found[file, code.co_qualname, code.co_firstlineno] = code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return found


def live_functions() -> dict[Key, list[FunctionType]]:
    """Return the functions of this process by what they are known by."""
    found = defaultdict[Key, list[FunctionType]](list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            code = each.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
    return found


class _Marks(ast.NodeTransformer):
    """Puts before the statements at some places a call that says that they are reached."""

    def __init__(self, name: str, file: str, places: Collection[Place]) -> None:
        self.name, self.file, self.places = name, file, places

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for body in ("body", "orelse", "finalbody"):
            statements = getattr(node, body, None)
            if isinstance(statements, list) and not isinstance(node, ast.Module | ast.ClassDef):
                setattr(node, body, [marked for statement in statements for marked in self._mark(statement)])
        return node

    def _mark(self, statement: ast.stmt) -> list[ast.stmt]:
        place = self.file, statement.lineno, statement.col_offset
        if place not in self.places:
            return [statement]
        call = ast.Call(ast.Name(self.name, ast.Load()), [ast.Tuple([ast.Constant(part) for part in place], ast.Load())], [])
        return [ast.fix_missing_locations(ast.copy_location(ast.Expr(call), statement)), statement]


def _take_all(reached: set[Place]) -> set[Place]:
    found = set(reached)
    reached.clear()
    return found


@dataclass
class PythonFunctions:
    """Gives mutants of the functions of some files; if a file comes with lines, the changes are in these."""

    files: Mapping[Path, Collection[int]]
    _live: dict[Key, list[FunctionType]] = field(default_factory=dict)

    def load(self) -> None:
        """Load the files as the product does, and look for their functions."""
        for file in self.files:
            if file.is_relative_to(ROOT):
                import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
        self._live = live_functions()

    def draw_mutants(self, number: int, seed: int) -> list[Mutant]:
        """Draw so many mutants; fewer if there are not as many."""
        trees = {str(file): ast.parse(file.read_text(encoding="utf-8")) for file in self.files}
        lines = {str(file): chosen for file, chosen in self.files.items()}
        every = [(file, each) for file, tree in trees.items() for each in list_changes(tree) if not lines[file] or each.line in lines[file]]
        random.Random(seed).shuffle(every)
        before = {file: codes_of(compile(tree, file, "exec"), file) for file, tree in trees.items()}
        drawn: list[Mutant] = []
        for file, change in every:
            if len(drawn) == number:
                break
            with change.made():
                try:
                    code = codes_of(compile(trees[file], file, "exec"), file)[file, change.function, change.first_line]
                except SyntaxError:  # a wildcard before other arms
                    continue
            key = file, change.function, change.first_line
            if code != before[file][key]:
                drawn.append(Mutant(len(drawn) + 1, file, change, (file, change.statement.lineno, change.statement.col_offset), Code(key, code)))
        return drawn

    @contextmanager
    def marked(self, mutants: Sequence[Mutant]) -> Iterator[Callable[[], set[Place]]]:
        """Let each statement with a mutant say that it is reached."""
        reached = set[Place]()
        name, before = "_reached_by_a_test", list[tuple[FunctionType, CodeType]]()
        places = {each.place for each in mutants}
        vars(builtins)[name] = reached.add
        for file in {each.file for each in mutants}:
            tree = _Marks(name, file, places).visit(ast.parse(Path(file).read_text(encoding="utf-8")))
            codes = codes_of(compile(tree, file, "exec"), file)
            for key in {each.made.key for each in mutants if each.file == file}:
                for function in self._live[key]:
                    before.append((function, function.__code__))
                    function.__code__ = codes[key]
        try:
            yield partial(_take_all, reached)
        finally:
            for function, code in before:
                function.__code__ = code
            del vars(builtins)[name]

    def install(self, mutant: Mutant) -> None:
        """Give its code to the function."""
        for function in self._live[mutant.made.key]:
            function.__code__ = mutant.made.code
