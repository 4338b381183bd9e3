"""Recipes tell compiled code how to answer the kernel's questions without the host
(docs/decisions/0099-compiled-answers.md).

A question without a recipe, and an answer that compiled code leaves open, are the host's
(`engine/network/host_calls.py`).
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from engine.dictionary import answers_layout as r
from engine.expressions.etalis import CANONICAL, KEY
from engine.expressions.evaluator import parse_number
from engine.expressions.nondeterministic import Naming
from engine.expressions.values import NumericType
from engine.native.entries import answer_address
from engine.native.openssl import find_openssl
from engine.physical_plan.plan import Inquiry
from epsparql import algebra as a
from epsparql.etalis.parser.vocabulary import OWN
from epsparql.terms import Term, Variable

Ints = NDArray[np.int64]
Step = tuple[int, int, int, int]
_OPERATIONS = {a.Operator.ADD: r.ADD, a.Operator.SUBTRACT: r.SUBTRACT, a.Operator.MULTIPLY: r.MULTIPLY}
_LETTERS = {"LCASE": r.SMALL_LETTERS, "UCASE": r.CAPITALS}
_MOST_CONSTANT = 1 << 10  # bytes of a digest's constant parts


class Recipes:
    """Holds the recipes of a network's questions, and the context with which the kernel calls compiled code."""

    def __init__(self, terms: int) -> None:
        """Make a table without recipes, over the term table at an address."""
        self._table: Ints = np.zeros(1, np.int64)
        self._kept: dict[int, Sequence[NDArray[np.int64] | NDArray[np.uint8]]] = {}
        self._openssl = np.array(find_openssl(), np.int64)
        openssl = self._openssl.ctypes.data if len(self._openssl) else 0
        self._context = np.array([terms, 0, openssl], np.int64)
        self._show(self._table)

    @property
    def call(self) -> tuple[int, int]:
        """Return the addresses of the compiled function and of its context."""
        return answer_address(), int(self._context.ctypes.data)

    def _show(self, table: Ints) -> None:
        self._table = table
        self._context[r.RECIPES] = table.ctypes.data

    def put(self, first: int, inquiries: Sequence[Inquiry], naming: Naming) -> None:
        """Set the recipes of a query's questions from number `first` on."""
        if first + len(inquiries) > len(self._table):
            self._show(np.concatenate([self._table, np.zeros(first + len(inquiries), np.int64)]))
        for who, inquiry in enumerate(inquiries, first):
            made = make_recipe(inquiry, naming)
            self._table[who] = made[0].ctypes.data if made else 0
            self._kept[who] = made


def make_recipe(inquiry: Inquiry, naming: Naming) -> Sequence[NDArray[np.int64] | NDArray[np.uint8]]:
    """Return the recipe of a question and the texts that it names, or nothing where the host has to answer."""
    asked = inquiry.expression
    if inquiry.fresh is not None:
        texts = f"{naming.query}\0{inquiry.fresh}", "_:c", ""
        return _make_digest(inquiry, inquiry.variables, texts, separator=0, digits=naming.digits, strict=False)
    if inquiry.condition is not None or asked is None or inquiry.site:
        return ()
    if isinstance(asked, a.Call) and asked.function == KEY:
        keys = [part.variable if isinstance(part, a.Var) else part.term if isinstance(part, a.Constant) else None for part in asked.arguments]
        known = [part for part in keys if part is not None]
        return _make_digest(inquiry, known, ("", f"<{OWN}", ">"), separator=10, digits=32, strict=True) if len(known) == len(keys) else ()
    if isinstance(asked, a.Time) and asked.function is not a.TimeFunction.DURATION:
        return (np.array([r.INSTANT, len(inquiry.variables), asked.function is a.TimeFunction.END], np.int64),)
    steps: list[Step] = []
    places = {v: k for k, v in enumerate(inquiry.variables)}
    if isinstance(asked, a.Call) and asked.function in _LETTERS and isinstance(operand := asked.arguments[0], a.Var) and operand.variable in places:
        return (np.array([_LETTERS[asked.function], places[operand.variable]], np.int64),)
    if isinstance(asked, a.Var | a.Constant) or not _add_steps(asked, places, steps, last=True):
        return ()
    return (np.array([r.ARITHMETIC, len(steps), *(cell for step in steps for cell in step)], np.int64),)


def _make_digest(
    inquiry: Inquiry, parts: Sequence[Variable | Term], texts: tuple[str, str, str], *, separator: int, digits: int, strict: bool
) -> Sequence[NDArray[np.int64] | NDArray[np.uint8]]:
    """Return the recipe of a name: `texts` are what the digest begins with, and what stands before and after its
    digits.
    """
    places = {v: k for k, v in enumerate(inquiry.variables)}
    constants = [*texts, *(str(part) for part in parts if not isinstance(part, Variable))]
    written = [np.frombuffer(text.encode() + b"\0", np.uint8) for text in constants]
    if sum(map(len, written)) > _MOST_CONSTANT or any(isinstance(part, Variable) and part not in places for part in parts):
        return ()
    spans = [(int(text.ctypes.data), len(text) - 1) for text in written]
    cells, rest = [cell for span in spans[:3] for cell in span], iter(spans[3:])
    for part in parts:
        cells += [places[part], 0, 0] if isinstance(part, Variable) else [r.NO_ARGUMENT, *next(rest)]
    timed_at = len(inquiry.variables) if inquiry.fresh is not None else r.NO_ARGUMENT
    head = [r.DIGEST, separator, timed_at, strict, digits]
    return np.array([*head, *cells[:6], len(parts), *cells[6:]], np.int64), *written


def _add_steps(e: a.Expression, places: dict[Variable, int], steps: list[Step], *, last: bool = False) -> bool:
    """Append the steps of an expression and return whether there are any; a division stands last."""
    match e:
        case a.Var(variable) if variable in places:
            steps.append((r.ARGUMENT, places[variable], 0, 0))
        case a.Constant(term):
            return _add_constant(term, steps)
        case a.Arithmetic(operator, left, right) if operator in _OPERATIONS or last:
            steps_of_both = _add_steps(left, places, steps) and _add_steps(right, places, steps)
            steps.append((_OPERATIONS.get(operator, r.DIVIDE), 0, 0, 0))
            return steps_of_both
        case a.Negate(operand):
            steps_of_one = _add_steps(operand, places, steps)
            steps.append((r.NEGATE, 0, 0, 0))
            return steps_of_one
        case a.Call(function, (operand,)) if function == CANONICAL:
            steps_of_one = _add_steps(operand, places, steps)
            steps.append((r.CANONICAL, 0, 0, 0))
            return steps_of_one
        case _:
            return False
    return True


def _add_constant(term: Term, steps: list[Step]) -> bool:
    number = parse_number(term)
    if number is None or number.kind > NumericType.DECIMAL or isinstance(number.value, float):
        return False
    numerator, scale = Fraction(number.value), 0
    while numerator.denominator != 1 and scale <= r.MOST_SCALE:
        numerator, scale = numerator * 10, scale + 1
    if scale > r.MOST_SCALE or abs(numerator) > r.MOST_MANTISSA:
        return False
    steps.append((r.CONSTANT, r.INTEGER if number.kind is NumericType.INTEGER else r.DECIMAL, int(numerator), scale))
    return True
