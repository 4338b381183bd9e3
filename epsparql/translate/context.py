"""This module holds what all parts of a translation share: the query's text and names, its warnings, its constants."""

from collections.abc import Collection
from typing import NoReturn, cast

from epsparql import algebra as a
from epsparql.errors import Edit, InvalidLiteral, QueryError, Span, Warning_
from epsparql.iris import Names
from epsparql.lint.scopes import name_nearest
from epsparql.literals import DURATION_FORM, INSTANT_FORM, MAX_TREE_DEPTH, literal_fault
from epsparql.parser import ast as s
from epsparql.terms import RDF, XSD, Iri, Literal, TripleTerm, Variable
from epsparql.translate.source_map import SourceMap


class Context:
    """Accompanies one query on its way to the algebra."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names = Names(text)
        self.warnings: list[Warning_] = []
        self.places = SourceMap()
        self.windows: tuple[a.NamedWindow, ...] = ()  # which patterns refer to, once the sources are known
        self.parameters: frozenset[Variable] = frozenset()  # those of PARAMETERS, which instances bind
        self._numbers: dict[str, int] = {}

    def fail(self, kind: type[QueryError], message: str, span: Span, expected: str) -> NoReturn:
        raise kind(message, span, self.text, expected)

    def fail_form(self, message: str, span: Span, lexical: str, meant: str) -> NoReturn:
        """Refuse the lexical form of a literal. `meant` replaces it, unless it only describes a form."""
        at = self.text.find(lexical, span.start, span.end)
        edits = () if at < 0 or meant in (DURATION_FORM, INSTANT_FORM) else (Edit(at, at + len(lexical), meant),)
        raise InvalidLiteral(message, span, self.text, meant, edits)

    def fail_depth(self, span: Span) -> NoReturn:
        message = f"the query is more than {MAX_TREE_DEPTH} operators deep"
        self.fail(QueryError, message, span, "fewer of them in a row: parts in braces or brackets of their own, or IN for a list of comparisons")

    def warn(self, code: str, message: str, span: Span | None) -> None:
        self.warnings.append(Warning_(code, message, span))

    def warn_unbound(self, variable: Variable, message: str, span: Span, visible: Collection[Variable]) -> None:
        """Warn of a variable that no pattern binds; the message names the nearest one that is visible."""
        if variable in self.parameters:
            return
        nearest = name_nearest(variable.name, [each.name for each in visible if not each.hidden])
        self.warn("never-bound", f"{variable} {message}{nearest}", span)

    def numbered(self, kind: str) -> Variable:
        """Return the next hidden variable of its kind; no label of a blank node has a '#'."""
        number = self._numbers.get(kind, 0)
        self._numbers[kind] = number + 1
        return Variable(f"_:{kind}#{number}")

    def data_term(self, node: s.DataTerm) -> Iri | Literal | TripleTerm:
        """Return a constant, which may be a triple term.

        Raises InvalidLiteral where a lexical form is not its datatype's.
        """
        if not isinstance(node, s.TripleNode):
            return self.term(node)
        subject, object_ = self.data_term(cast(s.DataTerm, node.subject)), self.data_term(cast(s.DataTerm, node.object))
        assert isinstance(subject, Iri), "the grammar has no other subject here"
        assert not isinstance(node.verb, s.VariableName)
        return TripleTerm(subject, self.predicate(node.verb), object_)

    def predicate(self, verb: s.IriRef | s.PrefixedName | s.TypeVerb) -> Iri:
        return Iri(RDF + "type") if isinstance(verb, s.TypeVerb) else Iri(self.names.iri(verb))

    def term(self, node: s.Constant) -> Iri | Literal:
        """Return a constant. Raises InvalidLiteral where its lexical form is not its datatype's."""
        match node:
            case s.IriRef() | s.PrefixedName():
                return Iri(self.names.iri(node))
            case s.NumericLiteral(text, _):
                return Literal(text, _number_type(text))
            case s.BooleanLiteral(text, _):
                return Literal(text, XSD + "boolean")
            case s.StringLiteral(lexical, str() as language, _, _):
                return Literal.from_tag(lexical, language)
            case s.StringLiteral(lexical, None, None, _):
                return Literal(lexical)
            case s.StringLiteral(lexical, _, datatype, span) if datatype is not None:
                return self._checked(Literal(lexical, self.names.iri(datatype)), span)
        raise AssertionError(node)

    def _checked(self, literal: Literal, span: Span) -> Literal:
        fault = literal_fault(literal)
        if fault is not None and fault.fatal:
            self.fail_form(fault.message, span, literal.lexical, fault.expected)
        if fault is not None:
            self.warn("ill-typed", f"{fault.message}; a legal form is {fault.expected}", span)
        return literal


def _number_type(text: str) -> str:
    if "e" in text or "E" in text:
        return XSD + "double"
    return XSD + ("decimal" if "." in text else "integer")
