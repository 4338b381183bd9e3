"""This module infers the kinds of values that an expression may have, whatever its variables are bound to.

So a condition that cannot be true is found before it runs.

An answer may be too wide, never too narrow. Source of the operators: SPARQL 1.1, 17.2 to 17.4; semantics.md section 4.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import Flag, auto
from typing import assert_never

from epsparql.deferred_methods import dataclass
from epsparql.iris import Names
from epsparql.literals import literal_fault
from epsparql.parser import ast as s
from epsparql.terms import RDF_DIR_LANG_STRING, RDF_LANG_STRING, XSD, XSD_STRING, Literal


class Kind(Flag):
    """Represents a set of kinds. The empty set is an expression that is always an error."""

    IRI = auto()
    BLANK = auto()
    NUMBER = auto()
    TEXT = auto()
    TAGGED = auto()
    TRUE = auto()
    FALSE = auto()
    INSTANT = auto()
    DAY = auto()
    DURATION = auto()
    TRIPLE = auto()
    OTHER = auto()


ERROR = Kind(0)
ANY = ~ERROR
FLAG = Kind.TRUE | Kind.FALSE
STRING = Kind.TEXT | Kind.TAGGED
LITERAL = ANY & ~(Kind.IRI | Kind.BLANK | Kind.TRIPLE)
ORDERED = (Kind.NUMBER, Kind.TEXT, FLAG, Kind.INSTANT, Kind.DAY, Kind.DURATION)
"""Only values of one of these kinds compare with < and >."""

INTEGERS = (
    "integer", "nonPositiveInteger", "negativeInteger", "nonNegativeInteger", "positiveInteger", "long", "int", "short", "byte",
    "unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte",
)  # fmt: skip
_DATATYPES = {
    XSD_STRING: Kind.TEXT,
    **dict.fromkeys((XSD + name for name in ("integer", "decimal", "double", "float")), Kind.NUMBER),
    XSD + "boolean": FLAG,
    XSD + "dateTime": Kind.INSTANT,
    XSD + "date": Kind.DAY,
    XSD + "duration": Kind.DURATION,
}


def kind_of_datatype(datatype: str) -> Kind:
    """Return the kinds that a literal of a datatype may have, whatever its form."""
    if datatype in (RDF_LANG_STRING, RDF_DIR_LANG_STRING):
        return Kind.TAGGED | Kind.OTHER
    known = Kind.NUMBER if datatype.removeprefix(XSD) in INTEGERS else _DATATYPES.get(datatype)
    if known is None:
        return LITERAL if datatype.startswith(XSD) else Kind.OTHER
    return known if known == Kind.TEXT else known | Kind.OTHER


_DATED = Kind.INSTANT | Kind.DAY
_CALLS: dict[str, tuple[Kind, Kind]] = {
    "STR": (~(Kind.BLANK | Kind.TRIPLE), Kind.TEXT),
    "LANG": (LITERAL, Kind.TEXT),
    "DATATYPE": (LITERAL, Kind.IRI),
    "IRI": (Kind.IRI | Kind.TEXT, Kind.IRI),
    "URI": (Kind.IRI | Kind.TEXT, Kind.IRI),
    "BNODE": (STRING, Kind.BLANK),
    "RAND": (ANY, Kind.NUMBER),
    "NOW": (ANY, Kind.INSTANT),
    "UUID": (ANY, Kind.IRI),
    "STRUUID": (ANY, Kind.TEXT),
    **dict.fromkeys(("ABS", "CEIL", "FLOOR", "ROUND"), (Kind.NUMBER, Kind.NUMBER)),
    **dict.fromkeys(("CONCAT", "UCASE", "LCASE", "STRBEFORE", "STRAFTER"), (STRING, STRING)),
    **dict.fromkeys(("SUBSTR", "REPLACE"), (STRING | Kind.NUMBER, STRING)),
    **dict.fromkeys(("CONTAINS", "STRSTARTS", "STRENDS", "LANGMATCHES", "REGEX"), (STRING, FLAG)),
    **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA384", "SHA512", "ENCODE_FOR_URI"), (STRING, Kind.TEXT)),
    "STRLEN": (STRING, Kind.NUMBER),
    "STRLANG": (STRING, Kind.TAGGED),
    "STRLANGDIR": (STRING, Kind.TAGGED),
    "LANGDIR": (LITERAL, Kind.TEXT),
    **dict.fromkeys(("HASLANG", "HASLANGDIR"), (ANY, FLAG)),
    "TRIPLE": (ANY, Kind.TRIPLE),
    **dict.fromkeys(("SUBJECT", "OBJECT"), (Kind.TRIPLE, ANY)),
    "PREDICATE": (Kind.TRIPLE, Kind.IRI),
    "STRDT": (STRING | Kind.IRI, LITERAL),
    **dict.fromkeys(("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"), (_DATED, Kind.NUMBER)),
    "TIMEZONE": (_DATED, Kind.DURATION),
    "TZ": (_DATED, Kind.TEXT),
    "GETDURATION": (ANY, Kind.DURATION),
    "GETSTARTTIME": (ANY, Kind.INSTANT),
    "GETENDTIME": (ANY, Kind.INSTANT),
}
"""The pairs hold the kinds that every argument must match, and the kinds of the result."""
_AGGREGATES = {"COUNT": Kind.NUMBER, "GROUP_CONCAT": STRING}
TESTS = {
    "ISIRI": Kind.IRI,
    "ISURI": Kind.IRI,
    "ISBLANK": Kind.BLANK,
    "ISTRIPLE": Kind.TRIPLE,
    "ISLITERAL": LITERAL,
    "ISNUMERIC": Kind.NUMBER | Kind.OTHER,
}
COMPARED = {operator for operator in s.BinaryOperator if operator.symbol in ("<", "<=", ">", ">=")}


def truth(kind: Kind) -> Kind:
    """Return the effective boolean values of a value of that kind; ERROR where it has none."""
    found = kind & FLAG
    if kind & (Kind.NUMBER | STRING):
        found |= FLAG
    return found | Kind.FALSE if kind & Kind.OTHER else found


def negated(flags: Kind) -> Kind:
    return (Kind.FALSE if Kind.TRUE in flags else ERROR) | (Kind.TRUE if Kind.FALSE in flags else ERROR)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Infers the kinds of expressions; `known` are the kinds of variables that only one BIND can bind."""

    names: Names
    known: Mapping[str, Kind]
    _found: dict[int, Kind] = field(default_factory=dict)  # by the node's identity, since each is asked for at every level above it

    def infer_kind(self, node: s.Expression) -> Kind:
        found = self._found.get(id(node))
        if found is None:
            found = self._found[id(node)] = self._of(node)
        return found

    def _of(self, node: s.Expression) -> Kind:
        match node:
            case s.VariableName(name, _):
                return self.known.get(name, ANY)
            case s.IriRef() | s.PrefixedName() | s.TypeVerb():
                return Kind.IRI
            case s.NumericLiteral():
                return Kind.NUMBER
            case s.BooleanLiteral(text, _):
                return Kind.TRUE if text == "true" else Kind.FALSE
            case s.StringLiteral():
                return self._literal(node)
            case s.Unary():
                return self._unary(node)
            case s.Binary():
                return self._binary(node)
            case s.ExistsCall():
                return FLAG
            case s.BuiltInCall():
                return self._built_in(node)
            case s.AggregateCall("SUM" | "AVG", _, argument, _, _) if argument is not None:
                return Kind.NUMBER | self.infer_kind(argument) & Kind.DURATION  # of nothing they are 0
            case s.AggregateCall(name, _, argument, _, _):
                return _AGGREGATES.get(name) or (ANY if argument is None else self.infer_kind(argument) or ANY)
            case s.PreviousCall(argument, _):
                return self.infer_kind(argument)
            case s.FunctionCall(function, arguments, _):
                failed = any(self.infer_kind(argument) == ERROR for argument in arguments)
                return ERROR if failed else _DATATYPES.get(self.names.iri(function), ANY)
            case s.ExpressionList():
                return ANY
        assert_never(node)

    def _literal(self, node: s.StringLiteral) -> Kind:
        if node.language is not None:
            return Kind.TAGGED
        if node.datatype is None:
            return Kind.TEXT
        datatype = self.names.iri(node.datatype)
        kind = _DATATYPES.get(datatype)
        if kind is None:
            return LITERAL if datatype.startswith(XSD) else Kind.OTHER
        return kind | Kind.OTHER if kind == Kind.DAY or literal_fault(Literal(node.lexical, datatype)) else kind

    def _unary(self, node: s.Unary) -> Kind:
        operand = self.infer_kind(node.operand)
        return negated(truth(operand)) if node.operator is s.UnaryOperator.NOT else operand & Kind.NUMBER

    def _binary(self, node: s.Binary) -> Kind:
        """Return the kinds of a binary expression.

        Chains of one operator lean left, so the left side is walked, not recursed into.
        """
        pending = [node]
        while isinstance(pending[-1].left, s.Binary):
            pending.append(pending[-1].left)
        found = self.infer_kind(pending[-1].left)
        for binary in reversed(pending):
            found = self._found[id(binary)] = self._operation(binary, found)
        return found

    def _operation(self, node: s.Binary, left: Kind) -> Kind:
        operator = node.operator
        if isinstance(node.right, s.ExpressionList):
            found = self._membership(left, node.right.members)
            return negated(found) if operator is s.BinaryOperator.NOT_IN else found
        right = self.infer_kind(node.right)
        if operator is s.BinaryOperator.OR:
            return negated(_both(negated(truth(left)), negated(truth(right))))
        if operator is s.BinaryOperator.AND:
            return _both(truth(left), truth(right))
        if ERROR in (left, right) and not (left and right):
            return ERROR
        if operator in COMPARED:
            return FLAG if any(left & kind and right & kind for kind in ORDERED) else ERROR
        if operator is s.BinaryOperator.EQUAL:
            return FLAG if left & right else Kind.FALSE
        if operator is s.BinaryOperator.UNEQUAL:
            return FLAG if left & right else Kind.TRUE
        return calculated(operator, left, right)

    def _membership(self, left: Kind, members: tuple[s.Expression, ...]) -> Kind:
        if not left:
            return ERROR if members else Kind.FALSE
        return FLAG if any(left & self.infer_kind(member) for member in members) else Kind.FALSE

    def _built_in(self, call: s.BuiltInCall) -> Kind:
        if call.name == "BOUND":
            return FLAG
        arguments = [self.infer_kind(argument) for argument in call.arguments]
        if call.name == "COALESCE":
            return _any(arguments)
        if call.name == "IF":
            chosen = truth(arguments[0])
            return (arguments[1] if Kind.TRUE in chosen else ERROR) | (arguments[2] if Kind.FALSE in chosen else ERROR)
        if not all(arguments):
            return ERROR
        if call.name in TESTS:
            test = TESTS[call.name]
            return (Kind.TRUE if arguments[0] & test else ERROR) | (Kind.FALSE if arguments[0] & ~test or Kind.OTHER in test else ERROR)
        if call.name == "SAMETERM":
            return FLAG if arguments[0] & arguments[1] else Kind.FALSE
        needed, result = _CALLS.get(call.name, (ANY, ANY))
        return result if all(argument & needed for argument in arguments) else ERROR


def calculated(operator: s.BinaryOperator, left: Kind, right: Kind) -> Kind:
    """Return the kinds of an arithmetic result: numbers or durations with both, and an instant with an instant or a
    duration.
    """
    found = left & right & Kind.NUMBER
    if operator in (s.BinaryOperator.ADD, s.BinaryOperator.SUBTRACT):
        found |= left & right & Kind.DURATION
    elif right & Kind.NUMBER:
        found |= left & Kind.DURATION
    if operator is s.BinaryOperator.MULTIPLY and left & Kind.NUMBER:
        found |= right & Kind.DURATION
    if operator is s.BinaryOperator.DIVIDE and left & right & Kind.DURATION:
        found |= Kind.NUMBER
    instants, durations = (left & Kind.INSTANT, right & Kind.INSTANT), (left & Kind.DURATION, right & Kind.DURATION)
    if operator is s.BinaryOperator.SUBTRACT and all(instants):
        found |= Kind.DURATION
    if instants[0] and durations[1] and operator in (s.BinaryOperator.ADD, s.BinaryOperator.SUBTRACT):
        found |= Kind.INSTANT
    if durations[0] and instants[1] and operator is s.BinaryOperator.ADD:
        found |= Kind.INSTANT
    return found


def _both(left: Kind, right: Kind) -> Kind:
    """Return `&&` of truths: true where both may be true, false where either may be false; otherwise an error."""
    return (left & right & Kind.TRUE) | ((left | right) & Kind.FALSE)


def _any(kinds: list[Kind]) -> Kind:
    found = ERROR
    for kind in kinds:
        found |= kind
    return found
