"""Mutants: the code with one operator, condition or number changed. Tests that pass over a mutant say nothing of what was changed.

A process collects the tests once. Each mutant is a forked child, in which the code of one function is replaced: nothing is imported or compiled anew.
So compiled functions, and what runs while a module is imported, are not mutated. The report has each mutant that no test noticed.
"""

import ast
import inspect
import os
import random
import resource
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from engine.warmup import compile_engine

ROOT = Path(__file__).parents[2]
SCOPE = ("engine/planner", "engine/rewrite", "engine/network", "engine/runtime")
TESTS = (
    "tests/engine/semantics/test_conformance.py",
    "tests/engine/planner",
    "tests/engine/semantics/test_operators.py",
    "tests/engine/semantics/test_extensions.py",
    "tests/engine/semantics/test_policies.py",
    "tests/engine/background/test_background_update.py",
    "tests/engine/runtime",
)
"""These run in this order until one fails; the first ones notice most."""
_SLACK = 4
"""A mutant may take so many times the CPU time of the code as it is. Then it counts as noticed."""
_OTHERS: dict[type[ast.AST], type[ast.AST]] = {
    a: b
    for pair in (
        (ast.Lt, ast.LtE),
        (ast.Gt, ast.GtE),
        (ast.Eq, ast.NotEq),
        (ast.Is, ast.IsNot),
        (ast.In, ast.NotIn),
        (ast.And, ast.Or),
        (ast.Add, ast.Sub),
        (ast.BitOr, ast.BitAnd),
        (ast.Mult, ast.FloorDiv),
    )
    for a, b in (pair, pair[::-1])
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """Represents a changed place in a function; `source` is the text of the whole file with the change."""

    path: Path
    line: int
    function: str
    before: str
    after: str
    source: bytes

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} {self.function}: {self.before} -> {self.after}"


def find_mutants(path: Path) -> Iterator[Mutant]:
    """Yield all mutants of a file's functions and methods."""
    text = path.read_bytes()
    begins = [0]
    for line in text.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for name, function in _functions(ast.parse(text).body):
        for node in (node for statement in function.body for node in _nodes(statement)):
            found = _changed(node)
            if found is not None:
                begin, end = begins[node.lineno - 1] + node.col_offset, begins[node.end_lineno - 1] + node.end_col_offset
                changed = ast.unparse(found)
                source = text[:begin] + f"({changed})".encode() + text[end:]
                yield Mutant(path, node.lineno, name, ast.unparse(node), changed, source)


def _functions(body: Sequence[ast.stmt], within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            yield within + statement.name, statement
        elif isinstance(statement, ast.ClassDef):
            yield from _functions(statement.body, f"{within}{statement.name}.")


def _nodes(node: ast.AST) -> Iterator[Any]:
    """Yield a node and those below it, but for annotations and what an error says."""
    yield node
    for field, value in ast.iter_fields(node):
        if field != "annotation" and not isinstance(node, ast.Raise):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST):
                    yield from _nodes(each)


def _changed(node: ast.AST) -> ast.expr | None:
    """Return an expression changed in one place; None where there is nothing to change."""
    match node:
        case ast.Compare(left, [op], right) if type(op) in _OTHERS:
            return ast.Compare(left, [_OTHERS[type(op)]()], right)  # type: ignore[list-item]
        case ast.BoolOp(op, values):
            return ast.BoolOp(_OTHERS[type(op)](), values)  # type: ignore[arg-type]
        case ast.BinOp(left, op, right) if type(op) in _OTHERS:
            return ast.BinOp(left, _OTHERS[type(op)](), right)  # type: ignore[arg-type]
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Constant(bool(value)):
            return ast.Constant(not value)
        case ast.Constant(int(value)):
            return ast.Constant(value + 1)
    return None


# ---------------------------------------------------------------- running them
def _function_of(mutant: Mutant) -> FunctionType | None:
    """Return the function that a mutant changes; None for one that is compiled, or wrapped beyond recognition."""
    found: Any = import_module(".".join(mutant.path.relative_to(ROOT).with_suffix("").parts))
    for name in mutant.function.split("."):
        found = vars(found).get(name)
        found = found.fget if isinstance(found, property) else found.func if isinstance(found, cached_property) else found
        found = found.__func__ if isinstance(found, staticmethod | classmethod) else found
    found = inspect.unwrap(found) if callable(found) else None
    return found if isinstance(found, FunctionType) and found.__qualname__ == mutant.function else None


def _put_in_place(mutant: Mutant) -> None:
    code = compile(mutant.source, str(mutant.path), "exec")
    for name in mutant.function.split("."):
        code = next(each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name)
    function = _function_of(mutant)
    assert function is not None
    function.__code__ = code


class Mutation:
    """Runs the collected tests over mutants, each in a process of its own, in place of running them once."""

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self._mutants = mutants

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        compile_engine()
        passed, spent_s = self._run(session, None, resource.RLIM_INFINITY)
        assert passed, "the tests fail without a mutant"
        print(f"\n{len(session.items)} tests take {spent_s:.0f} s of CPU", flush=True)
        survived = 0
        by_folder = Counter[str]()
        for number, mutant in enumerate(self._mutants, 1):
            passed, took_s = self._run(session, mutant, int(_SLACK * spent_s) + 10)
            survived += passed
            by_folder[f"{mutant.path.parent.relative_to(ROOT)} {'survived' if passed else 'noticed'}"] += 1
            print(f"{number} {'SURVIVED' if passed else 'noticed'} {took_s:.0f} s {mutant}", flush=True)
        print(f"{len(self._mutants)} mutants, {survived} survived; {dict(sorted(by_folder.items()))}", flush=True)
        return True

    def _run(self, session: pytest.Session, mutant: Mutant | None, most_s: int) -> tuple[bool, float]:
        """Return whether all tests pass, and the CPU time in seconds."""
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (most_s, most_s))
            code = 1
            try:
                if mutant is not None:
                    _put_in_place(mutant)
                for item, following in zip(session.items, [*session.items[1:], None], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    if session.testsfailed:
                        break
                else:
                    code = 0
            finally:
                os._exit(code)
        _, status, used = os.wait4(pid, 0)
        return status == 0, used.ru_utime + used.ru_stime


def main(count: int, seed: int) -> int:
    """Run a sample of the mutants, and print what became of each."""
    files = sorted(path for folder in SCOPE for path in (ROOT / folder).rglob("*.py"))
    known = [mutant for path in files for mutant in find_mutants(path) if _function_of(mutant) is not None]
    chosen = random.Random(seed).sample(known, min(count, len(known)))
    print(f"{len(known)} mutants, seed {seed}", flush=True)
    options = ["-q", "-s", "-p", "no:cacheprovider", "-n", "0", "-m", "not slow and not soak", "-k", "not oracle"]
    return pytest.main([*options, *(str(ROOT / each) for each in TESTS)], plugins=[Mutation(chosen)])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
