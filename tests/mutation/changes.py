"""Small changes of a function, as mistakes are made: each leaves a program that runs, and does something else.

What only people or mypy read is left as it is: annotations, docstrings, messages, assertions and the arms that no
value reaches.
"""

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True, eq=False)
class SourceChange:
    """Represents one change of a function: the child of `parent` in a field, or in a place of its list, becomes `new`.

    `statement` is the innermost one that the change is in: a test that does not reach it cannot notice.
    """

    function: str
    first_line: int
    statement: ast.stmt
    parent: ast.AST
    field: str
    place: int | None
    new: ast.AST

    @property
    def old(self) -> ast.AST:
        child = getattr(self.parent, self.field)
        old: ast.AST = child if self.place is None else child[self.place]
        return old

    @property
    def line(self) -> int:
        return next(node.lineno for node in ast.walk(self.old) if isinstance(node, ast.expr | ast.stmt | ast.pattern))

    def __str__(self) -> str:
        return f"{_show(self.old)}  ->  {_show(self.new)}"

    @contextmanager
    def made(self) -> Iterator[None]:
        """SourceChange the tree for a while."""
        old = self.old
        self._put(self.new)
        try:
            yield
        finally:
            self._put(old)

    def _put(self, node: ast.AST) -> None:
        if self.place is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.place] = node


def _show(node: ast.AST) -> str:
    """Return the first line of a node's text; of an arm, its pattern."""
    match node:
        case ast.match_case():
            return f"case {ast.unparse(node.pattern)}" + (f" if {ast.unparse(node.guard)}" if node.guard else "")
    return ast.unparse(node).strip().partition("\n")[0]


def list_functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield the functions of a module and the methods of its classes with their qualified names; what is nested in
    them is theirs.
    """
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{each.name}", each) for each in node.body if isinstance(each, Function))


def first_line_of(function: Function) -> int:
    """Return the line by which Python knows a function: that of its first decorator."""
    return min(node.lineno for node in (function, *function.decorator_list))


def list_changes(tree: ast.Module) -> Iterator[SourceChange]:
    """Yield the changes of the functions of a module."""
    for name, function in list_functions(tree):
        for place, statement in enumerate(function.body):
            for found in _walk(statement, statement, function, "body", place):
                yield SourceChange(name, first_line_of(function), *found)


def _walk(
    node: ast.AST, statement: ast.stmt, parent: ast.AST, field: str, place: int | None
) -> Iterator[tuple[ast.stmt, ast.AST, str, int | None, ast.AST]]:
    """Yield the changes of a node and of what is below it, as the last fields of `SourceChange`."""
    if isinstance(node, ast.stmt):
        statement = node
    for new in list_alternatives(node):
        yield statement, parent, field, place, ast.fix_missing_locations(ast.copy_location(new, node))
    for name in _read_fields(node):
        match getattr(node, name):
            case ast.AST() as child:
                yield from _walk(child, statement, node, name, None)
            case list() as children:
                for k, child in enumerate(children):
                    if isinstance(child, ast.AST):
                        yield from _walk(child, statement, node, name, k)


def _read_fields(node: ast.AST) -> tuple[str, ...]:
    """Return the fields of a node that decide what the program does."""
    match node:
        case ast.AnnAssign():
            return ("value",)
        case ast.Assert() | ast.Raise() | ast.JoinedStr() | ast.keyword("strict"):
            return ()
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return ("body",)
    return node._fields


def list_alternatives(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in place of a node."""
    match node:
        case ast.Compare():
            for k, operator in enumerate(node.ops):
                yield ast.Compare(node.left, [*node.ops[:k], COMPARISONS[type(operator)](), *node.ops[k + 1 :]], node.comparators)
        case ast.BoolOp():
            for k in range(len(node.values)):
                rest = [*node.values[:k], *node.values[k + 1 :]]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.BinOp() if type(node.op) in OPERATORS and not _is_text(node.left) and not _is_text(node.right):
            yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        case ast.Constant(bool(flag)):
            yield ast.Constant(not flag)
        case ast.Constant(int(number)):
            yield ast.Constant(number + 1)
        case ast.Call(ast.Name(name)) if name in NAMES:
            yield ast.Call(ast.Name(NAMES[name], ast.Load()), node.args, node.keywords)
        case ast.comprehension():
            for k in range(len(node.ifs)):
                yield ast.comprehension(node.target, node.iter, [*node.ifs[:k], *node.ifs[k + 1 :]], node.is_async)
        case ast.match_case() if not (_is_unreachable(node.body[0]) or _is_last_resort(node)):
            yield ast.match_case(node.pattern, ast.Constant(False), node.body)
            if node.guard is not None:
                yield ast.match_case(node.pattern, None, node.body)
        case ast.If() | ast.IfExp() | ast.While():
            for verdict in (False,) if isinstance(node, ast.While) else (False, True):
                changed = copy(node)
                changed.test = ast.copy_location(ast.Constant(verdict), node.test)
                yield changed
        case ast.AugAssign():
            yield ast.Pass()
            if type(node.op) in OPERATORS:
                yield ast.AugAssign(node.target, OPERATORS[type(node.op)](), node.value)
        case ast.Assign() if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            yield ast.Pass()
        case ast.Expr(ast.Call()) if not _is_unreachable(node):
            yield ast.Pass()
        case ast.Break() | ast.Continue() | ast.Delete():
            yield ast.Pass()


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _is_last_resort(arm: ast.match_case) -> bool:
    """Return whether an arm for all else does nothing, or returns nothing or False.

    Without it a function does the same, and the type checker complains.
    """
    match arm:
        case ast.match_case(ast.MatchAs(None), None, [ast.Pass() | ast.Return(None | ast.Constant(None | False))]):
            return True
        case _:
            return False


def _is_unreachable(node: ast.stmt) -> bool:
    """Return whether a statement says that it is not reached."""
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and ast.unparse(node).startswith("assert_never("))
