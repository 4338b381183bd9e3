"""This module parses clauses: patterns and goals are operator terms, as in Prolog, with the precedences of the ETALIS Language for Events.

A higher number binds more weakly. Event operators associate to the left. The goals of a condition take everything up to the closing parenthesis
or the end of the clause; an event operator among them is refused there. The names of event operators begin with a colon, which no event's does.
"""

from dataclasses import dataclass, field
from decimal import Decimal

from epsparql.errors import Span, Warning_
from epsparql.etalis.parser.lexer import END, Lexeme, read_tokens, refuse
from epsparql.etalis.parser.syntax import ListTerm, Name, Num, Str, Struct, Term, VariableTerm, as_struct, list_conjuncts

OUTPUT = frozenset({"write", "nl", "print", "writeln", "format", "tab"})
"""These goals write text; they are ignored with a warning."""
MAX_DEPTH = 100
"""At most this many brackets are open at one place."""
MOST_OPERATORS = 200
"""One pattern or condition has at most so many operators in a row."""
CONDITIONS = ("where", "check", "timestamp", "event_multiply")
EVENTS = {
    "seq": 1025, "*": 1025, "forall_seq": 1025, "equals": 1025, "meets": 1025, "during": 1025, "starts": 1025, "finishes": 1025, "ntimes": 1025,
    "cnot": 1031, "fnot": 1031, "and": 1040, "/\\": 1040, "par": 1045, "#": 1045, "check": 1050, "timestamp": 1050, "event_multiply": 1050,
    "or": 1053, "\\/": 1053, "within": 1055, "where": 1060,
}  # fmt: skip
SYNONYMS = {"*": "seq", "/\\": "and", "#": "par", "\\/": "or"}
GOALS = {
    "->": (1050, 1049, 1050), ";": (1100, 1099, 1100), ",": (1000, 999, 1000),
    **dict.fromkeys(("<", ">", "=<", ">=", "=:=", "=\\=", "=", "\\=", "==", "\\==", "=..", "is"), (700, 699, 699)),
    "+": (500, 500, 499), "-": (500, 500, 499), "*": (400, 400, 399), "/": (400, 400, 399), "//": (400, 400, 399), "mod": (400, 400, 399),
    "rem": (400, 400, 399), "**": (200, 199, 199), "^": (200, 199, 200),
}  # fmt: skip
"""Operators in arguments and conditions: precedence, and the greatest precedence of the left and of the right operand."""
_WORDS = {word for word in EVENTS if word.isalpha() or "_" in word} | {"star_times"}
UNITS = {
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), 1_000_000), "ms": 1_000, **dict.fromkeys(("min", "mins", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000), **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
}  # fmt: skip
"""Microseconds of each unit."""


@dataclass(frozen=True, slots=True)
class ParsedClause:
    """Represents a clause: `kind` is fact, static, event or directive; `body` is what stands behind the arrow, `label` what stands before the head."""

    kind: str
    head: Term
    body: Term | None
    span: Span
    label: Term | None = None


@dataclass(slots=True)
class Reader:
    """Parses the clauses of one text."""

    text: str
    warnings: list[Warning_] = field(default_factory=list)
    _tokens: list[Lexeme] = field(default_factory=list)
    _at: int = 0
    _depth: int = 0
    _fresh: int = 0
    _inside: int = 0  # goals that are being read, one in another

    def read_clauses(self, *, bounded: bool = True) -> list[ParsedClause]:
        """Return the clauses. Raises EleRefused."""
        self._tokens = read_tokens(self.text, bounded=bounded)
        found = []
        while self._at < len(self._tokens) and self._peek().kind != "eof":
            found.append(self._read_clause())
        return found

    def read_term(self) -> Term:
        """Return the one term that the text is. Raises EleRefused."""
        self._tokens = read_tokens(self.text)
        found = self._read_goals(999)
        if self._peek().kind != END:
            self._unexpected("the end of the term")
        return found

    # ------------------------------------------------------------ tokens
    def _peek(self, ahead: int = 0) -> Lexeme:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _next(self) -> Lexeme:
        token = self._peek()
        self._at += 1
        return token

    def _is_sign(self, *signs: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token.kind == "sign" and token.text in signs

    def _expect(self, sign: str) -> Lexeme:
        if not self._is_sign(sign):
            self._unexpected(sign)
        return self._next()

    def _unexpected(self, expected: str) -> None:
        token = self._peek()
        what = "the end of the clause" if token.kind == END else token.text if token.kind == "eof" else f"'{token.text}'"
        refuse(f"unexpected {what}", token.span, self.text, expected)

    # ------------------------------------------------------------ clauses
    def _read_clause(self) -> ParsedClause:
        first = self._peek()
        if self._is_sign(":-"):
            self._next()
            return self._close(ParsedClause("directive", self._read_goals(1199), None, first.span))
        label = self._read_label()
        clause = self._read_rule(label)
        return self._close(clause)

    def _close(self, clause: ParsedClause) -> ParsedClause:
        if self._peek().kind != END:
            self._unexpected("an operator, or a dot that closes the clause")
        self._next()
        return clause

    def _read_label(self) -> Term | None:
        """Return the label before a rule, if there is one: it is told by the word behind it."""
        before = self._at
        if self._peek().kind not in ("name", "quoted"):
            return None
        label = self._read_primary(patterns=False)
        if (self._peek().kind == "quoted" and self._peek().text == "rule:") or (self._is_sign(":") and not self._is_arrow()):
            self._next()
            return label
        self._at = before
        return None

    def _is_arrow(self) -> bool:
        """Return whether `:-` comes, or the paper's `: -`."""
        return self._is_sign(":-") or (self._is_sign(":") and self._is_sign("-", ahead=1))

    def _read_rule(self, label: Term | None, closing: str = "") -> ParsedClause:
        first = self._peek()
        if first.kind == "name" and first.text in ("db", "static", "prolog") and self._is_sign("(", ahead=1):
            self._at += 2
            clause = self._read_rule(label, ")")
            self._expect(")")
            return clause
        head = self._read_head(label)
        if self._peek().operator_word == "do":
            self._read_actions()
            if not self._is_sign("<-", "←"):
                self._unexpected("<-")
        if self._is_sign("<-", "←") or self._peek().operator_word == "iff":
            self._next()
            return self._read_event_rule(head, first, label)
        if self._is_arrow():
            self._at += 1 if self._is_sign(":-") else 2
            if self._has_event_operator():
                return self._read_event_rule(head, first, label)
            return ParsedClause("static", head, self._read_goals(1199), first.span, label)
        return ParsedClause("fact", head, None, first.span, label)

    def _read_head(self, label: Term | None) -> Term:
        head = self._read_primary(patterns=False)
        if not isinstance(head, Name | Struct):
            refuse("a clause begins with an atom", head.span, self.text, "a name, with or without arguments")
        return head

    def _read_event_rule(self, head: Term, first: Lexeme, label: Term | None) -> ParsedClause:
        body = self._read_pattern(1123)
        if self._peek().operator_word == "do":
            self._read_actions()
        return ParsedClause("event", head, body, first.span, label)

    def _read_actions(self) -> None:
        """Take the goals of `do`; only output is allowed, and ignored."""
        do = self._next()
        goals = self._read_goals(1123)
        for goal in list_conjuncts(goals):
            atom = as_struct(goal)
            if atom is None or atom.name not in OUTPUT:
                name = "this" if atom is None else atom.name
                refuse(f"actions are not run; subscribe to the events instead: {name}", goal.span, self.text, "a rule without 'do'")
        self.warnings.append(Warning_("ignored", "output is not written; what follows 'do' is ignored", do.span))

    def _has_event_operator(self) -> bool:
        """Return whether the rest of the clause has an event operator between its parts, as in the paper's event rules with `:-`."""
        for k in range(self._at, len(self._tokens)):
            token, before = self._tokens[k], self._tokens[k - 1]
            if token.kind == END:
                return False
            infix = before.kind not in ("sign", END) or before.text in (")", "]")
            if (token.operator_word in _WORDS and infix) or (token.kind == "variable" and token.text == "NOT" and self._tokens[k + 1].text == "("):
                return True
        return False

    # ------------------------------------------------------------ patterns
    def _read_pattern(self, most: int) -> Term:
        left = self._read_primary(patterns=True)
        for _ in range(MOST_OPERATORS):
            token = self._peek()
            word = token.operator_word or (token.text if token.kind == "sign" else "")
            if word not in EVENTS or EVENTS[word] > most:
                return left
            self._next()
            left = self._read_right(left, SYNONYMS.get(word, word), token, EVENTS[word])
        return refuse(f"more than {MOST_OPERATORS} operators in a row", self._peek().span, self.text, "rules for parts of the pattern")

    def _read_right(self, left: Term, word: str, token: Lexeme, level: int) -> Term:
        if word in CONDITIONS:
            return Struct(":where", (left, self._read_condition(token)), token.span)
        if word in ("within", "ntimes"):
            amount = self._next()
            if amount.kind != "number":
                refuse(f"'{token.text}' without a number", amount.span, self.text, "a number")
            return Struct(f":{word}", (left, self._read_number(amount)), token.span)
        return Struct(f":{word}", (left, self._read_pattern(level - 1)), token.span)

    def _read_condition(self, token: Lexeme) -> Term:
        if not self._is_sign("{"):
            return self._read_goals(1123)
        self._next()
        goals = [self._read_goals(999)]
        while not self._is_sign("}"):
            if self._is_sign(","):
                self._next()
            else:
                self.warnings.append(Warning_("misprint", "a comma is missing between two goals", self._peek().span))
            goals.append(self._read_goals(999))
        self._next()
        whole = goals[0]
        for goal in goals[1:]:
            whole = Struct(",", (whole, goal), token.span)
        return whole

    # ------------------------------------------------------------ goals and arguments
    def _read_goals(self, most: int) -> Term:
        self._inside += 1
        if self._inside > MOST_OPERATORS:  # those that bind to the right stand in one another
            refuse(f"more than {MOST_OPERATORS} operators in a row", self._peek().span, self.text, "static rules for parts of the condition")
        try:
            return self._read_goals_inside(most)
        finally:
            self._inside -= 1

    def _read_goals_inside(self, most: int) -> Term:
        left, level = self._read_prefix(most)
        for _ in range(MOST_OPERATORS):
            token = self._peek()
            name = token.text if token.kind in ("sign", "name") else ""
            if name == "" or name not in GOALS:
                if token.operator_word in _WORDS and token.operator_word not in ("check", "starts", "meets"):
                    refuse(
                        f"the event operator '{token.text}' stands inside a condition",
                        token.span,
                        self.text,
                        "parentheses around the pattern before where",
                    )
                if isinstance(left, Name) and left.text == "!" and token.kind in ("name", "variable", "quoted"):
                    self.warnings.append(Warning_("misprint", "a comma is missing after '!'", token.span))
                    left, level = Struct(",", (left, self._read_goals(1000)), token.span), 1000
                    continue
                if self._is_sign("!") and most >= 1000:
                    self.warnings.append(Warning_("misprint", "a comma is missing before '!'", self._next().span))
                    left, level = Struct(",", (left, Name("!", token.span)), token.span), 1000
                    continue
                return left
            own, most_left, most_right = GOALS[name]
            if own > most or level > most_left:
                return left
            self._next()
            left, level = Struct(name, (left, self._read_goals(most_right)), token.span), own
        return refuse(f"more than {MOST_OPERATORS} operators in a row", self._peek().span, self.text, "static rules for parts of the condition")

    def _read_prefix(self, most: int) -> tuple[Term, int]:
        token = self._peek()
        if self._is_sign("\\+") and most >= 900:
            self._next()
            return Struct("\\+", (self._read_nested(900),), token.span), 900
        if self._is_sign("-", "+"):
            self._next()
            operand = self._read_nested(200)
            if isinstance(operand, Num) and token.text == "-":
                return Num(-operand.value, operand.unit, Span(token.span.start, operand.span.end)), 0
            return Struct(token.text, (operand,), token.span), 200
        if token.kind == "name" and token.text == "dynamic" and most >= 1150:
            self._next()
            return Struct("dynamic", (self._read_goals(1000),), token.span), 1150
        return self._read_primary(patterns=False), 0

    def _read_nested(self, most: int) -> Term:
        self._enter()
        found = self._read_goals(most)
        self._depth -= 1
        return found

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            refuse(f"more than {MAX_DEPTH} brackets are open", self._peek().span, self.text, "rules for parts of the pattern")

    # ------------------------------------------------------------ what stands between operators
    def _read_primary(self, *, patterns: bool) -> Term:
        self._enter()
        found = self._read_part(patterns)
        self._depth -= 1
        while patterns and self._peek().operator_word == "star_times":
            found = Struct(":star_times", (found,), self._next().span)
        return found

    def _read_part(self, patterns: bool) -> Term:
        token = self._next()
        if token.kind == "number":
            return self._read_number(token)
        if token.kind == "string":
            return Str(token.text, token.span)
        if token.kind == "variable":
            if token.text == "NOT" and patterns and self._is_sign("("):
                return self._read_not(token)
            self._fresh += token.text == "_"
            return VariableTerm(f"_{self._fresh}" if token.text == "_" else token.text, token.span)
        if token.kind in ("name", "quoted", "local"):
            return self._read_atom(token)
        if token.kind == "sign" and token.text == "(":
            return self._read_parenthesis(token, patterns)
        if token.kind == "sign" and token.text == "[" and not patterns:
            return self._read_list(token)
        if token.kind == "sign" and token.text == "!":
            return Name("!", token.span)
        self._at -= 1
        self._unexpected("an event" if patterns else "a term")
        raise AssertionError(token)

    def _read_atom(self, token: Lexeme) -> Term:
        is_iri = token.kind == "local"
        if not (self._is_sign("(") and self._peek().glued):
            return Name(token.text, token.span, is_iri)
        self._next()
        args: list[Term] = []
        if self._is_sign(")"):
            self._next()
            return Name(token.text, token.span, is_iri)
        while True:
            args.append(self._read_argument(token))
            if self._is_sign(")"):
                self._next()
                return Struct(token.text, tuple(args), token.span, is_iri)
            self._expect(",")

    def _read_argument(self, token: Lexeme) -> Term:
        if self._peek().kind == END or self._peek().kind == "eof":
            refuse("this parenthesis is not closed", token.span, self.text, ")")
        return self._read_goals(1199 if token.text in ("prolog", "not") else 999)

    def _read_parenthesis(self, opening: Lexeme, patterns: bool) -> Term:
        found = self._read_pattern(1199) if patterns else self._read_goals(1199)
        if patterns and self._is_sign("<-", "←"):
            arrow = self._next()
            found = Struct(":<-", (found, self._read_pattern(1199)), arrow.span)
        if not self._is_sign(")"):
            if self._peek().kind in (END, "eof"):
                refuse("this parenthesis is not closed", opening.span, self.text, ")")
            self._unexpected(")")
        self._next()
        if patterns and self._peek().kind == "dot" and self._peek(1).kind == "number":
            self._next()
            amount = self._next()
            return Struct(":within", (found, self._read_number(amount)), amount.span)
        return found

    def _read_not(self, token: Lexeme) -> Term:
        """Parse NOT(C).[A, B]."""
        self._expect("(")
        absent = self._read_pattern(1199)
        self._expect(")")
        if self._peek().kind == "dot":
            self._next()
        self._expect("[")
        left = self._read_pattern(1199)
        self._expect(",")
        right = self._read_pattern(1199)
        self._expect("]")
        return Struct(":cnot", (Struct(":seq", (left, right), token.span), absent), token.span)

    def _read_list(self, opening: Lexeme) -> Term:
        items: list[Term] = []
        while not self._is_sign("]"):
            items.append(self._read_goals(999))
            if self._is_sign("|"):
                refuse("'|' in a list: lists have a fixed length", self._peek().span, self.text, "all items, with commas between them")
            if not self._is_sign("]"):
                self._expect(",")
        self._next()
        return ListTerm(tuple(items), opening.span)

    def _read_number(self, token: Lexeme) -> Num:
        if token.unit not in UNITS:
            refuse(f"'{token.unit}' is no unit of time", token.span, self.text, "ms, s, sec, min, h, hour or day")
        return Num(Decimal(token.text), token.unit, token.span)


def read_one_term(text: str) -> Term:
    """Parse one term. Raises EleRefused."""
    return Reader(text + " .").read_term()
