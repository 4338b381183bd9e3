r"""This module parses regular expressions of XPath, and names the remedy for what other languages write and XPath does not have.

Source: XPath and XQuery Functions and Operators 3.1, 5.6.1 and 5.6.2; XML Schema 1.1 part 2, appendix G.
"""

from difflib import get_close_matches
from functools import lru_cache

from epsparql.regex.blocks import list_blocks
from epsparql.regex.character_sets import CATEGORIES, LAST, list_variants
from epsparql.regex.pattern_size import MOST_CHARACTERS, MOST_REPEATED, check_size
from epsparql.regex.remedies import LETTERS, QUESTIONS
from epsparql.regex.syntax import (
    Alternation,
    Anchor,
    CharacterClass,
    CharacterProperty,
    Concatenation,
    Node,
    Parentheses,
    Pattern,
    PatternFault,
    Range,
    Reference,
    Repeat,
)

MOST_NESTED = 50
FLAGS = "smixq"
_SPACE = frozenset("\t\n\r ")
_SPECIAL = frozenset(r".\?*+{}()|[]^$")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", **{char: char for char in r"\|.?*+(){}-[]^$"}}
_CLASSES = frozenset("sSiIcCdDwW")
_QUANTIFIERS = frozenset("?*+{")


@lru_cache(maxsize=1 << 10)
def parse_pattern(pattern: str, flags: str = "") -> Pattern:
    """Return the tree of a pattern under some of the flags s, m, i, x and q. Raises: PatternFault."""
    for flag in flags:
        if flag not in FLAGS:
            raise PatternFault(f"{flag!r} is no flag of a regular expression: they are s, m, i, x and q")
    if len(pattern) > MOST_CHARACTERS:
        raise PatternFault(f"the pattern has {len(pattern):,} characters; a pattern has at most {MOST_CHARACTERS:,}")
    parser = _Parser(pattern, flags)
    root = parser.parse_text() if "q" in flags else parser.parse_all()
    check_size(root)
    return Pattern(root, parser.groups)


def _find_places(pattern: str, flags: str) -> list[int]:
    """Return the places of the characters that count: with the flag x, white space outside of classes does not."""
    if "x" not in flags or "q" in flags:
        return list(range(len(pattern)))
    found, depth, escaped = list[int](), 0, False
    for place, char in enumerate(pattern):
        if char in _SPACE and not depth:
            continue
        found.append(place)
        if not escaped:
            depth += (char == "[") - (char == "]" and depth > 0)
        escaped = char == "\\" and not escaped
    return found


class _Parser:
    """Reads a pattern from left to right. `groups` counts the capturing groups so far."""

    def __init__(self, pattern: str, flags: str) -> None:
        self._places = _find_places(pattern, flags)
        self._text = "".join(pattern[place] for place in self._places)
        self._flags = flags
        self._at = self._depth = self.groups = 0
        self._closed = set[int]()

    # ------------------------------------------------ the whole
    def parse_text(self) -> Node:
        """Take the pattern as plain text."""
        return Concatenation(tuple(self._class_of((Range(ord(char), ord(char)),)) for char in self._text))

    def parse_all(self) -> Node:
        found = self._parse_alternation()
        if self._at < len(self._text):
            raise self._fault(r"this ) closes no group; \) is the character itself")
        return found

    def _parse_alternation(self) -> Node:
        branches = [self._parse_sequence()]
        while self._accept("|"):
            branches.append(self._parse_sequence())
        return branches[0] if len(branches) == 1 else Alternation(tuple(branches))

    def _parse_sequence(self) -> Node:
        parts = list[Node]()
        while self._peek() not in ("", "|", ")"):
            parts.append(self._parse_piece())
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    # ------------------------------------------------ repetitions
    def _parse_piece(self) -> Node:
        atom = self._parse_atom()
        if self._peek() not in _QUANTIFIERS or not self._peek():
            return atom
        least, most = self._parse_quantifier()
        lazy = self._accept("?")
        if self._peek() == "+":
            raise self._fault("XPath has no possessive repetition; leave out this +")
        if self._peek() and self._peek() in _QUANTIFIERS:
            raise self._fault("a repetition cannot follow another; put what is repeated first in (?:...)")
        return Repeat(atom, least, most, lazy)

    def _parse_quantifier(self) -> tuple[int, int | None]:
        start = self._at
        match self._next():
            case "?":
                return 0, 1
            case "*":
                return 0, None
            case "+":
                return 1, None
        if self._peek() == ",":
            raise self._fault("a repetition needs its least number: {0,3} instead of {,3}", start)
        least = self._parse_number(start)
        most: int | None = least
        if self._accept(","):
            most = None if self._peek() == "}" else self._parse_number(start)
        if not self._accept("}"):
            raise self._fault(r"a repetition is {2}, {2,} or {2,5}; \{ is the character itself", start)
        if most is not None and most < least:
            raise self._fault(f"the repetition {{{least},{most}}} has its numbers in the wrong order", start)
        if max(least, most or 0) > MOST_REPEATED:
            raise self._fault(f"a part is repeated at most {MOST_REPEATED:,} times by number", start)
        return least, most

    def _parse_number(self, start: int) -> int:
        begin = self._at
        while self._peek() and self._peek() in "0123456789":
            self._at += 1
        digits = self._text[begin : self._at]
        if not digits:
            raise self._fault(r"a repetition is {2}, {2,} or {2,5}; \{ is the character itself", start)
        return int(digits[:9])

    # ------------------------------------------------ atoms
    def _parse_atom(self) -> Node:
        start, char = self._at, self._next()
        match char:
            case "(":
                return self._parse_group(start)
            case "[":
                return self._parse_class(start)
            case ".":
                return CharacterClass((Range(0, LAST),)) if "s" in self._flags else CharacterClass((Range(10, 10), Range(13, 13)), negated=True)
            case "^":
                return Anchor.LINE_START if "m" in self._flags else Anchor.START
            case "$":
                return Anchor.LINE_END if "m" in self._flags else Anchor.END
            case "\\":
                return self._parse_escape(start)
            case "?" | "*" | "+":
                raise self._fault(rf"there is nothing before this {char} that it could repeat; \{char} is the character itself", start)
            case "{" | "}" | "]":
                raise self._fault(rf"the character {char} is written \{char}", start)
        return self._character(char)

    def _parse_group(self, start: int) -> Node:
        number = None
        if self._accept("?"):
            if not self._accept(":"):
                raise self._fault(self._explain_question(), start)
        else:
            self.groups += 1
            number = self.groups
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise self._fault(f"groups are nested at most {MOST_NESTED} deep", start)
        inner = self._parse_alternation()
        if not self._accept(")"):
            raise self._fault(r"this ( has no ); \( is the character itself", start)
        self._depth -= 1
        if number is not None:
            self._closed.add(number)
        return Parentheses(inner, number)

    def _explain_question(self) -> str:
        rest = self._text[self._at :]
        written, remedy = next(((written, remedy) for written, remedy in QUESTIONS if rest.startswith(written)), ("", ""))
        if written:
            return f"(?{written} is not in XPath's regular expressions; {remedy}"
        letters = rest[: next((at for at, char in enumerate(rest) if not (char.isascii() and char.isalpha()) and char != "-"), len(rest))]
        known = "".join(sorted({letter for letter in letters.partition("-")[0] if letter in FLAGS}))
        remedy = f'write the flags as the last argument of the function: "{known}"' if known else "a group begins with ( or (?:"
        return f"(?{letters or rest[:1]} is not in XPath's regular expressions; {remedy}"

    def _parse_escape(self, start: int) -> Node:
        char = self._next_escaped(start)
        if char.isascii() and char.isdigit():
            return self._parse_reference(char, start)
        if char in _ESCAPED:
            return self._character(_ESCAPED[char])
        return CharacterClass((self._parse_property(char, start),))

    def _parse_reference(self, digits: str, start: int) -> Node:
        """Take as many digits as name a group that was opened before, but always one."""
        while self._peek() and self._peek() in "0123456789" and int(digits + self._peek()) <= self.groups:
            digits += self._next()
        number = int(digits)
        if number not in self._closed:
            why = (
                "there is no group 0"
                if not number
                else f"group {number} does not end before it"
                if number <= self.groups
                else f"there is no group {number} before it"
            )
            raise self._fault(f"\\{digits} refers to a group, and {why}", start)
        return Reference(number, "i" in self._flags)

    def _parse_property(self, char: str, start: int) -> CharacterProperty:
        """Return what an escape of many characters stands for, after its letter."""
        if char in _CLASSES:
            return CharacterProperty(char.lower(), char.isupper())
        if char not in ("p", "P"):
            raise self._fault(f"\\{char} is not in XPath's regular expressions; {_find_remedy(char)}", start)
        end = self._text.find("}", self._at)
        if self._peek() != "{" or end < 0:
            raise self._fault(rf"a property is written in braces, such as \{char}{{L}}", start)
        name, self._at = self._text[self._at + 1 : end], end + 1
        if name not in CATEGORIES and name.removeprefix("Is") not in (list_blocks() if name.startswith("Is") else ()):
            raise self._fault(_explain_property(name), start)
        return CharacterProperty(name, char == "P")

    def _next_escaped(self, start: int) -> str:
        if self._at == len(self._text):
            raise self._fault(r"the pattern ends after its \; \\ is the character itself", start)
        return self._next()

    # ------------------------------------------------ character classes
    def _parse_class(self, start: int) -> CharacterClass:
        negated = self._accept("^")
        items, subtracted = list[Range | CharacterProperty](), None
        while self._peek() != "]":
            if not self._peek():
                raise self._fault(r"this [ has no ]; \[ is the character itself", start)
            if self._text.startswith("-[", self._at) and items:
                self._at += 2
                subtracted = self._parse_subtracted()
                break
            items.append(self._parse_item())
        if not items:
            raise self._fault(r"a class needs a character; the character ] is written \] in it", start)
        if not self._accept("]"):
            raise self._fault("a class ends after what is subtracted from it; write ] here")
        return self._class_of(tuple(items), negated=negated, subtracted=subtracted)

    def _parse_subtracted(self) -> CharacterClass:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise self._fault(f"classes are nested at most {MOST_NESTED} deep", self._at - 1)
        found = self._parse_class(self._at - 1)
        self._depth -= 1
        return found

    def _parse_item(self) -> Range | CharacterProperty:
        start = self._at
        first = self._parse_member()
        if isinstance(first, CharacterProperty) or self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("", "]", "["):
            return first if isinstance(first, CharacterProperty) else Range(first, first)
        self._at += 1
        last = self._parse_member()
        if isinstance(last, CharacterProperty):
            raise self._fault(r"a range ends with a character; the character - is written \-", start)
        if last < first:
            raise self._fault(rf"the range {chr(first)}-{chr(last)} has its ends in the wrong order; the character - is written \-", start)
        return Range(first, last)

    def _parse_member(self) -> int | CharacterProperty:
        """Take a character, or an escape, within a class."""
        start, char = self._at, self._next()
        if char == "[":
            posix = self._peek() in (":", ".", "=")
            remedy = r"; a property is written \p{L}" if posix else ""
            raise self._fault(rf"the character [ is written \[ in a class{remedy}", start)
        if char != "\\":
            return ord(char)
        char = self._next_escaped(start)
        if char.isascii() and char.isdigit():
            raise self._fault(f"\\{char} refers to a group, which a class cannot", start)
        return ord(_ESCAPED[char]) if char in _ESCAPED else self._parse_property(char, start)

    def _character(self, char: str) -> CharacterClass:
        return self._class_of((Range(ord(char), ord(char)),))

    def _class_of(
        self, items: tuple[Range | CharacterProperty, ...], *, negated: bool = False, subtracted: CharacterClass | None = None
    ) -> CharacterClass:  # fmt: skip
        """Return a class; with the flag i, its characters and ranges also have all variants of case, but its
        properties have not.
        """
        if "i" in self._flags:
            variants = {code for item in items if isinstance(item, Range) for code in list_variants(item.first, item.last)}
            items += tuple(
                Range(code, code)
                for code in sorted(variants)
                if not any(isinstance(item, Range) and item.first <= code <= item.last for item in items)
            )
        return CharacterClass(items, negated, subtracted)

    # ------------------------------------------------ the text
    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._text[self._at]
        self._at += 1
        return char

    def _accept(self, char: str) -> bool:
        found = self._peek() == char
        self._at += found
        return found

    def _fault(self, message: str, at: int | None = None) -> PatternFault:
        at = self._at if at is None else at
        return PatternFault(message, self._places[at] + 1 if at < len(self._places) else None)


def _find_remedy(char: str) -> str:
    if char in LETTERS:
        return LETTERS[char]
    return f"write {char} alone" if not char.isalnum() and char.isprintable() else r"the character \ is written \\"


def _explain_property(name: str) -> str:
    if name.startswith("Is"):
        near = get_close_matches(name.removeprefix("Is"), list(list_blocks()), 1)
        return f"there is no block {name}" + (f"; the nearest is Is{near[0]}" if near else "; a block is a name of Unicode, such as IsGreekandCoptic")
    near = get_close_matches(f"Is{name}", [f"Is{block}" for block in list_blocks()], 1, 0.7)
    hint = f"; a block is written {near[0]}" if near else "; a category is one or two letters, such as L or Nd, and a block IsCyrillic"
    return f"there is no property {name}{hint}"
