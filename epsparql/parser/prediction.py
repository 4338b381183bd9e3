"""This module makes pyparsing predict: a choice, an option or a repetition looks at the next token before it tries
what cannot match.

pyparsing raises an exception for each alternative that fails, and a query of 40 tokens has some 200 of them. A
terminal is a regular expression, so those that an alternative can begin with (its FIRST set) are one, too. One match
of all of them, a group each, finds the alternative.

Alternatives are passed over only if their first terminal would fail, so the language and the trees stay the same. A
parse that explains a fault does not predict, because each terminal that fails then is to be noted.

`parseImpl` is pyparsing's hook for kinds of elements: it gets the text, a place and whether actions are run, and
returns the next place with what was found. Its documentation does not promise it;
`tests/epsparql/parser/test_grammar.py` fails if a version calls something else.
"""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import cast

from pyparsing import And, MatchFirst, Opt, ParseElementEnhance, ParseException, ParserElement, ParseResults, ZeroOrMore

from epsparql.parser.elements import Find, QueryText, Result, Terminal

Parse = Callable[..., Result]


def predict(grammar: ParserElement) -> ParserElement:
    """Streamline a grammar, and let its choices, options and repetitions predict."""
    grammar.streamline()
    elements: list[ParserElement] = list(grammar.visit_all())  # type: ignore[no-untyped-call]  # pyparsing lacks the types
    for element in elements:
        element.callPreparse = False  # terminals pass over blanks
        match element:
            case MatchFirst():
                element.parseImpl = _choose(element)  # type: ignore[method-assign]  # as pyparsing's Regex does for its variants
            case Opt():
                element.parseImpl = _match_once(element)  # type: ignore[method-assign]  # as above
            case ZeroOrMore():
                element.parseImpl = _match_often(element)  # type: ignore[method-assign]  # as above
    return grammar


class _Lookahead:
    """Tells which alternative may match at a place.

    Its pattern is compiled when it is first asked, since a query visits few of the choices.
    """

    def __init__(self, alternatives: Sequence[ParserElement]) -> None:
        self.alternatives = alternatives

    @cached_property
    def find(self) -> Find:
        """This searches for the first alternative that has a terminal here: its number is `lastindex`."""
        patterns = [first_patterns(each) for each in self.alternatives]
        compiled = re.compile("|".join(f"({'|'.join(dict.fromkeys(each))})" for each in patterns))
        assert compiled.groups == len(patterns), "a terminal has a group of its own"
        return compiled.match

    @cached_property
    def try_from(self) -> list[Parse]:
        """These try an alternative and those after it, by the alternative's number."""
        return [MatchFirst(self.alternatives[k:]).parseImpl for k in range(len(self.alternatives))]


def _choose(choice: MatchFirst) -> Parse:
    """Return the `parseImpl` of a choice: it tries the first alternative that may match here, and then those after it."""
    ahead, try_all = _Lookahead(choice.exprs), choice.parseImpl

    def parse(instring: str, loc: int, do_actions: bool = True) -> Result:
        if cast(QueryText, instring).explains:
            return try_all(instring, loc, do_actions)
        found = ahead.find(instring, loc)
        if found is None:
            raise ParseException(instring, loc, choice.errmsg, choice)
        assert found.lastindex is not None, "each alternative is a group"
        return ahead.try_from[found.lastindex - 1](instring, loc, do_actions)

    return parse


def _match_once(option: Opt) -> Parse:
    ahead, try_it = _Lookahead([option.expr]), option.parseImpl

    def parse(instring: str, loc: int, do_actions: bool = True) -> Result:
        if ahead.find(instring, loc) is None and not cast(QueryText, instring).explains:
            return loc, []
        return try_it(instring, loc, do_actions)

    return parse


def _match_often(repetition: ZeroOrMore) -> Parse:
    ahead, try_all = _Lookahead([repetition.expr]), repetition.parseImpl
    try_one: Parse = ParseElementEnhance(repetition.expr).parseImpl

    def parse(instring: str, loc: int, do_actions: bool = True) -> Result:
        if cast(QueryText, instring).explains:
            return try_all(instring, loc, do_actions)
        found = ParseResults([])
        while ahead.find(instring, loc) is not None:
            try:
                loc, more = try_one(instring, loc, do_actions)
            except ParseException:
                break
            found += more
        return loc, found

    return parse


def first_patterns(element: ParserElement) -> list[str]:
    """Return the patterns of the terminals that an element can begin with; "", which matches everywhere, is the last
    where the element may be empty.
    """
    match element:
        case Terminal():
            return [element.first]
        case MatchFirst():
            found = [pattern for each in element.exprs for pattern in first_patterns(each)]
            return [pattern for pattern in found if pattern] + [""] * ("" in found)
        case And():
            return _first_of_sequence(element)
        case Opt() | ZeroOrMore():
            return [pattern for pattern in first_patterns(element.expr) if pattern] + [""]
        case ParseElementEnhance():
            return first_patterns(element.expr)
    raise AssertionError(f"{element} is of a kind that the grammar does not use")


def _first_of_sequence(sequence: And) -> list[str]:
    found: list[str] = []
    for part in sequence.exprs:
        patterns = first_patterns(part)
        found += [pattern for pattern in patterns if pattern]
        if "" not in patterns:
            return found
    return [*found, ""]
