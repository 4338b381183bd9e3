"""This module is the grammar of the ETALIS Language for Events, in pyparsing.

Each production has the name that the language's description gives it, from small ones to large ones: terms, goals,
patterns, clauses. `+` is a sequence, `|` the first alternative that matches, `[...]` a repetition and `Opt` an
option. `node` names the function of nodes.py that makes the production's node. Operators stand between their operands
here; nodes.py folds them by their precedences, as Prolog does.

A condition takes everything up to the closing parenthesis or the end of the clause; an event operator in it is
refused there.
"""

from functools import lru_cache
from typing import NoReturn, cast

from pyparsing import Forward, Opt, ParseElementEnhance, ParserElement, autoname_elements

from epsparql.errors import Span, Warning_
from epsparql.etalis.parser import nodes
from epsparql.etalis.parser.faults import AMOUNT, CLOSES_CLAUSE, CLOSES_PARENTHESIS, TERM, check_size, check_tokens, explain_fault
from epsparql.etalis.parser.keywords import AMOUNTS, CONDITIONS, CONNECTIVES, EVENT_WORDS, EVENTS, GOAL_NAMES, GOALS
from epsparql.etalis.parser.lexemes import END, NUMBER, SKIP, content_of
from epsparql.etalis.parser.syntax import EleRefused, Name, ParsedClause, Term, refuse
from epsparql.etalis.parser.terminals import (
    ATOM,
    STRING,
    TOKEN,
    VARIABLE,
    ProgramText,
    constant,
    event_word,
    functor,
    goal_functor,
    make_sign_named,
    number_with_unit,
    operator,
    operator_pattern,
    plain_arguments,
    sign,
    span_after,
    string,
    terminal,
    variable,
    word_pattern,
)  # fmt: skip
from epsparql.parser.elements import MAX_DEPTH, Nested, QueryText, Result, node, parse_text
from epsparql.parser.prediction import predict
from epsparql.recursion import deep_stack


class Bracketed(Nested):
    """Counts how deep brackets stand in one another."""

    def refuse_depth(self, source: QueryText, at: int) -> None:
        refuse(f"more than {MAX_DEPTH} brackets are open", span_after(source, at), source.text, "rules for parts of the pattern")


class Goals(Bracketed):
    """Counts the operators, too, whose operands stand in one another here and around."""

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        source = cast(ProgramText, instring)
        around = source.operators
        source.count_operator(loc)
        try:
            return super().parseImpl(instring, loc, do_actions)
        finally:
            source.operators = around


class DeepClause(ParseElementEnhance):
    """Makes room on the stack for one clause, so that a long text does not keep others waiting for it."""

    def parseImpl(self, instring: str, loc: int, do_actions: bool = True) -> Result:
        with deep_stack():
            return cast(Result, super().parseImpl(instring, loc, do_actions))  # type: ignore[no-untyped-call]  # pyparsing lacks the types


open_paren, close_paren, comma, close_list = sign("("), sign(")"), sign(","), sign("]")
next_argument = sign(",", expected=",")

# ---------------------------------------------------------------- terms
argument, goals = Forward(), Forward()
arguments = Opt(argument + (next_argument + argument)[...])
compound = node(functor + (plain_arguments | arguments) + close_paren, nodes.build_compound)  # Atom with arguments
goal_compound = node(goal_functor + Opt(goals + (next_argument + goals)[...]) + close_paren, nodes.build_compound)  # prolog(Goals), not(Goals)
items = Opt(argument + (next_argument + argument)[...] + (sign("|") + argument | Opt(comma)))
list_ = node(sign("[") + (plain_arguments | items) + close_list, nodes.build_list)
parenthesis = node(open_paren + goals + sign(")", expected=CLOSES_PARENTHESIS), nodes.take_inner)
cut = terminal("!", lambda source, value, span: Name("!", span))
term = number_with_unit() | string | goal_compound | compound | constant | variable(TERM) | parenthesis | list_ | cut

# ---------------------------------------------------------------- goals
NO_GOAL = f"(?!{operator_pattern(name for name in GOALS if name.isalpha())})(?!{word_pattern(EVENT_WORDS - GOAL_NAMES)})"
cut_before_goal = terminal(rf"!(?={SKIP}{NO_GOAL}(?![a-z]\w*+:[A-Za-z_'])[A-Za-z_'])", nodes.warn_of_cut("after", place_after=True))
cut_after_goal = terminal("!", nodes.warn_of_cut("before", place_after=False))
before_operand = (sign("\\+", "-", "+") | cut_before_goal)[...]


def refuse_event_operator(source: QueryText, value: str, span: Span) -> NoReturn:
    message = f"the event operator '{content_of(value)}' stands inside a condition"
    refuse(message, span, source.text, "parentheses around the pattern before where")


event_operator = terminal(word_pattern(EVENT_WORDS - GOAL_NAMES), refuse_event_operator)
operand = before_operand + term
below_1000, to_1000, any_operator = operator(*(GOALS.keys() - CONNECTIVES)), operator(*(GOALS.keys() - {"->", ";"})), operator(*GOALS)
argument <<= Goals(node(operand + (below_1000 + operand | event_operator)[...], nodes.fold_goals))  # Term, up to 999
condition = Goals(node(operand + (any_operator + operand | cut_after_goal | event_operator)[...], nodes.fold_goals))  # Goals
dynamic = terminal(r"dynamic(?!\w|:[A-Za-z_'])", make_sign_named("dynamic"))
goals <<= Goals(node(dynamic - operand + (to_1000 + operand | event_operator)[...], nodes.fold_goals)) | condition

# ---------------------------------------------------------------- patterns
pattern = Forward()
arrow = sign("<-", "←")
exact_close = sign(")", expected=")")
pattern_in_parentheses = node(  # (Pattern), (Atom <- Pattern), (Pattern).5
    open_paren
    + pattern
    + Opt(arrow + pattern)
    + sign(")", expected=CLOSES_PARENTHESIS)
    + Opt(terminal(r"\.(?=\d)", make_sign_named(".")) + number_with_unit()),
    nodes.build_parenthesis,
)
dot = terminal(rf"(?!{END})\.", make_sign_named("."))
not_between = node(  # NOT(C).[A, B]
    terminal(rf"NOT(?={SKIP}\()", make_sign_named("NOT"))
    + open_paren
    + pattern
    + exact_close
    + Opt(dot)
    + sign("[", expected="[")
    + pattern
    + next_argument
    + pattern
    + sign("]", expected="]"),
    nodes.build_not,
)
aggregate = node(  # aggregate(Function, Pattern, Term, Options)
    terminal(r"aggregate\(", make_sign_named("aggregate"))
    + argument
    + next_argument
    + pattern
    + next_argument
    + argument
    + (next_argument + argument)[...]
    + close_paren,
    nodes.build_aggregate,
)
event = (
    number_with_unit() | string | aggregate | goal_compound | compound | constant | not_between | variable("an event") | pattern_in_parentheses | cut
)
star_times = event_word("star_times")[...]
missing_comma = terminal("(?![,}])", nodes.warn_of_comma)
braces = node(sign("{") + argument + ((comma | missing_comma) + argument)[...] + sign("}"), nodes.build_braces)
infix = event_word(*(name for name in EVENTS if name not in (*CONDITIONS, *AMOUNTS)))
pattern <<= Bracketed(  # Pattern
    node(
        event
        + star_times
        + (infix + event + star_times | event_word(*CONDITIONS) + (braces | condition) | event_word(*AMOUNTS) + number_with_unit(AMOUNT))[...],
        nodes.fold_pattern,
    )
)

# ---------------------------------------------------------------- clauses
head = node(Bracketed(term), nodes.check_head)  # Head
do = event_word("do")
actions = node(do + condition, nodes.build_actions)
body = pattern + Opt(actions)
NECK = rf":-|:(?={SKIP}-(?!>)){SKIP}-"
PLAIN = rf"(?!{END})(?>{ATOM}|{VARIABLE}|{NUMBER}(?:[A-Za-z_]\w*+)?|{STRING}|[)\].])"
OPERATOR_AHEAD = rf"{PLAIN}{SKIP}(?:{word_pattern(EVENT_WORDS)})|NOT{SKIP}\("
neck_of_events = terminal(  # an event rule that is written with `:-` has an event operator between its parts
    rf"(?:{NECK})(?={SKIP}(?:(?!{OPERATOR_AHEAD})(?!{END})(?>{TOKEN}){SKIP})*+(?:{OPERATOR_AHEAD}))", make_sign_named("<-")
)
neck = terminal(NECK, make_sign_named("neck"))
tail = (arrow | event_word("iff")) + body | neck_of_events - body | neck + goals | actions + sign("<-", "←", expected="<-") + body
rule = Forward()
wrapper = terminal(rf"(?:db|static|prolog){SKIP}\(", make_sign_named("("))
wrapped = node(wrapper - rule + exact_close, nodes.take_inner)  # db(Clause), static(Clause), prolog(Clause)
label_end = terminal(rf":(?!-)(?!{SKIP}-(?!>))|'rule:'(?!')", make_sign_named(":"))
plain_rule = (head + Opt(tail)).set_parse_action(lambda source, at, found: nodes.build_rule(source, at, list(found)))
labelled_rule = (head + Opt(label_end + rule | tail)).set_parse_action(lambda source, at, found: nodes.build_rule(source, at, list(found)))
rule <<= wrapped | plain_rule
directive = node(sign(":-") + goals, nodes.build_directive)
clause = (directive | wrapped | labelled_rule) + terminal(END, make_sign_named("."), CLOSES_CLAUSE)  # Clause
start, end = terminal("", make_sign_named("")), terminal("\\Z", make_sign_named(""))
program = node(start + DeepClause(clause)[...] + end, nodes.build_program).parse_with_tabs()  # Program
lone_term = node(start + DeepClause(argument) + terminal(END, make_sign_named("."), "the end of the term"), nodes.take_inner).parse_with_tabs()
autoname_elements()
predict(program)
predict(lone_term)


def parse_clauses(text: str, *, bounded: bool = True) -> tuple[list[ParsedClause], list[Warning_]]:
    """Return the clauses of a text, and warnings. A program is `bounded`. Raises EleRefused."""
    if bounded:
        check_size(text)
    return cast(tuple[list[ParsedClause], list[Warning_]], _parse_with(program, text))


@lru_cache(maxsize=1 << 12)
def read_one_term(text: str) -> Term:
    """Return the one term that a text is. Raises EleRefused."""
    return cast(Term, _parse_with(lone_term, text + " ."))


def _parse_with(rule: ParserElement, text: str) -> object:
    try:
        return parse_text(rule, text, explain_fault, ProgramText)
    except EleRefused:
        check_tokens(text)  # what is no token at all is the first fault
        raise
