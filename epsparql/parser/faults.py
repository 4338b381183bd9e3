"""This module words the fault of a text that is not in the grammar: the lexeme at the furthest place, and what was
expected there.
"""

from collections.abc import Callable

from epsparql.errors import Edit, QueryError, Span, SyntaxFault, Unsupported
from epsparql.parser.elements import QueryText
from epsparql.parser.keywords import AGGREGATES, BUILT_INS, KEYWORDS, MODIFIERS, OPERATOR_NAMES, SEQOPTIONAL
from epsparql.parser.slips import bare_names, broken_terms, foreign_words, missing_brackets, pasted_signs, select_items
from epsparql.parser.slips.stops import LEXEME, Slip, Stop, last_lexeme, quote_sign

_AFTER_GROUPS = dict.fromkeys(OPERATOR_NAMES, "{ ... }") | {"WITHIN": "10", "WITHOUT": '{ ... } FOR "PT1H"^^xsd:duration'}
"""These keywords stand after a group in braces; the value is what follows the keyword in turn."""
_APPLIED = ("FILTER", "BIND", "OPTIONAL", "MINUS")
_MISPLACED = {
    "SELECT": ("a triple pattern", "a SELECT inside a group stands alone in braces of its own: { SELECT ... }"),
    "FROM": ("the end of the query", "FROM comes too late: what a query reads is said before WHERE"),
    "INTO": ("the end of the query", "INTO STREAM and INTO BACKGROUND are allowed only in a CONSTRUCT, after its template"),
}
"""These keywords are known by what was expected in their place."""
_PATTERN_WORDS = ("FILTER", "BIND", "OPTIONAL", "MINUS", "GRAPH", "VALUES", "UNION")

_SLIPS: tuple[Callable[[Stop], Slip | None], ...] = (
    pasted_signs.remove_line_numbers,
    pasted_signs.replace_sign,
    bare_names.complete_variable,
    bare_names.join_name,
    foreign_words.join_operator,
    foreign_words.suggest_operator,
    foreign_words.recognise_foreign_word,
    foreign_words.recognise_negation,
    foreign_words.recognise_lone_exists,
    foreign_words.recognise_unit,
    foreign_words.recognise_bare_duration,
    pasted_signs.remove_number,
    select_items.name_expression,
    foreign_words.recognise_bare_iri,
    pasted_signs.join_iri,
    broken_terms.explain_string,
    broken_terms.explain_iri,
    foreign_words.follow_pattern,
    pasted_signs.remove_heading,
    bare_names.name_stream,
    bare_names.complete_prefix,
    bare_names.prefix_name,
    missing_brackets.enclose_group,
    missing_brackets.enclose_left_group,
    missing_brackets.enclose_condition,
    missing_brackets.complete_call,
    missing_brackets.close_bracket,
    missing_brackets.separate_triples,
)
"""These recognise slips; the first that does explains the fault. What is sure, whatever stands around it, comes first."""


def explain_fault(source: QueryText) -> QueryError:
    """Return the fault at the furthest place: the lexeme found there, and what was expected instead."""
    at = source.furthest
    found = LEXEME.match(source, at)
    lexeme = found[0] if found else ""
    span = Span(at, at + len(lexeme))
    if lexeme.upper() == "SEQOPTIONAL":  # also without the braces that an operator needs, as the paper prints it
        return Unsupported(SEQOPTIONAL, span, source.text, edits=(Edit(span.start, span.end, "OPTIONALSEQ"),))
    stop = Stop(source, at, lexeme, source.expected, (*BUILT_INS, *AGGREGATES), (*_AFTER_GROUPS, *_APPLIED), KEYWORDS)
    slip = next((slip for find in _SLIPS if (slip := find(stop)) is not None), None)
    near = foreign_words.find_near_keyword(lexeme, KEYWORDS) if slip is None else None
    return _word_slip(stop, source, slip or Slip(() if near is None else (Edit(span.start, span.end, near),)))


def _word_slip(stop: Stop, source: QueryText, slip: Slip) -> SyntaxFault:
    """Return the fault of a slip.

    What it does not say itself is said in the grammar's words, with the remedy after them.
    """
    expected = slip.expected or ("" if slip.message else _expectation(source, stop.at, stop.lexeme))
    if slip.remedy and slip.remedy != expected:
        expected = f"{expected}; write {slip.remedy}" if expected else slip.remedy
    span = Span(stop.at if slip.start is None else slip.start, stop.end if slip.end is None else slip.end)
    return SyntaxFault(slip.message or _message(source, stop.at, stop.lexeme), span, source.text, expected, slip.edits)


def _message(source: QueryText, at: int, lexeme: str) -> str:
    if not lexeme:
        return "the query ends too early"
    if lexeme in ('"', "'"):
        return "a string that does not end, or with a bad escape, starts here"
    if lexeme == "<" and "an operator" not in source.expected:
        return "an IRI that does not end, or with a character that no IRI has, starts here"
    if lexeme[0] == "<" and "an operator" in source.expected:
        return f"{lexeme} reads as an IRI here, since the longest token counts; a comparison needs a blank after '<'"
    misplaced = _misplaced(source, lexeme.upper())
    if misplaced is not None:
        return misplaced
    if _is_in_template(source, lexeme.upper()):
        return f"{lexeme} stands in a template, which has triples alone"
    if lexeme.upper() in _AFTER_GROUPS:
        return f"{lexeme} has no group in braces directly on its left"
    near = foreign_words.find_near_keyword(lexeme, KEYWORDS)
    if near is not None:
        return f"unexpected {lexeme}; was {near} meant?"
    if not lexeme.isprintable():
        return f"unexpected character U+{ord(lexeme[0]):04X}"
    return f"unexpected {quote_sign(lexeme if len(lexeme) <= 40 else lexeme[:40] + '...')}"


def _misplaced(source: QueryText, word: str) -> str | None:
    """Return what is said of a keyword that has its place elsewhere."""
    if word in MODIFIERS and "VALUES" in source.expected:
        return f"{word} comes too late or twice: the order is GROUP BY, HAVING, WINDOW, ONCE PER, ORDER BY, LIMIT and OFFSET"
    expected, message = _MISPLACED.get(word, ("", None))
    return message if expected in source.expected else None


def _is_in_template(source: QueryText, word: str) -> bool:
    return word in _PATTERN_WORDS and {"'.'", "'}'"} <= {*source.expected} and "FILTER" not in source.expected


def _expectation(source: QueryText, at: int, lexeme: str) -> str:
    """Return what was expected, in human words.

    After a keyword the keyword is named, since that is what the writer sees.
    """
    expected = list(source.expected)
    if len(expected) > 1 and lexeme.upper() in _AFTER_GROUPS:
        return f"{{ ... }} {lexeme.upper()} {_AFTER_GROUPS[lexeme.upper()]}"
    if _misplaced(source, lexeme.upper()) is not None:
        return ""
    if _is_in_template(source, lexeme.upper()):
        return f"it in the WHERE of CONSTRUCT {{ ... }} WHERE {{ ... {lexeme.upper()} ... }}"
    before = last_lexeme(source, at)
    if len(expected) == 1 and before is not None and before[0].upper() in (*KEYWORDS, *BUILT_INS):
        return f"{expected[0]} after {before[0]}"
    if len(expected) < 2:
        return "".join(expected)
    return f"{', '.join(expected[:-1])} or {expected[-1]}"
