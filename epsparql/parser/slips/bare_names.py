"""This module recognises names as papers print them: without a prefix, with blanks around the colon, or broken at the
end of a line.
"""

import re
import unicodedata

from epsparql.errors import Edit
from epsparql.parser.slips.foreign_words import find_near_keyword
from epsparql.parser.slips.stops import Slip, Stop, list_lexemes, next_lexeme
from epsparql.trees import replace_fields

_PLACES = {
    "a predicate",
    "an object",
    "a subject",
    "a triple pattern",
    "the next part of the path, which is no variable",
    "an IRI",
    "a variable or an IRI",
    "a value (an IRI, a literal or UNDEF)",
    "an expression",
}
"""A prefixed name may stand where one of these is expected."""
_DECLARED = re.compile(r"(?i)(?<![\w:?$])PREFIX\s+([\w.\-]*):")
_KNOWN = ("xsd", "rdf", "rdfs", "owl", "foaf", "sosa", "prov")
"""Papers use these prefixes without declaring them."""
_DATATYPES = ("duration", "dayTimeDuration", "dateTime", "date", "integer", "int", "decimal", "double", "float", "boolean", "string")
_HYPHENS = "\u2010\u2011\u2012\u2013"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_PLAIN = {**dict.fromkeys(map(ord, _INVISIBLE)), **dict.fromkeys(map(ord, _HYPHENS), "-")}
_LIGATURE = re.compile("[\ufb00-\ufb06]")
_NAME = re.compile(rf"[^\W\d](?:[\w\-{_INVISIBLE}]|[{_HYPHENS}](?=\w))*")
_BROKEN_WORD = re.compile(r"[\w]-[ \t]*\r?\n[ \t]*\Z")
_HALF_NAME = re.compile(r"(?<![\w:?$<])([\w.\-]*:)\s+\Z")
_COLON = re.compile(r"\s+:(?=\w)|\s*:\s+(?=\w)")
_DOT_OR_BLANK = re.compile(r"[ \t]+|\.")
_TERM_BEGINS = re.compile(r"[?$<\"'\[(:_/|*+^]|[+-]?\d|\w")
_BREAK = re.compile(r"-[ \t]*\r?\n[ \t]*(?=\w)")
_SIGN_BEFORE = re.compile(r"(?<![^ \t\r\n({.;,])[?$][ \t]+\Z")
_AFTER_SIGN = re.compile(r"[ \t]*(\w+)")
_MOST_BEFORE = 80
"""At most this many characters before a name are looked at."""


def join_name(stop: Stop) -> Slip | None:
    """Recognise a prefixed name with a blank in it, such as `tr: speed`, and a name that is broken at the end of a
    line.
    """
    if not _NAME.match(stop.lexeme):
        return None
    first = max(0, stop.at - _MOST_BEFORE)
    before = stop.text[first : stop.at]
    if broken := _BROKEN_WORD.search(before):
        return _join_halves(stop, first + broken.start() + 1, stop.at)
    if stop.lexeme.endswith("-") and (goes_on := _BREAK.match(stop.text, stop.end - 1)):
        return _join_halves(stop, stop.end - 1, goes_on.end())
    if stop.word in stop.keywords or next_lexeme(stop.text, stop.end) == "(":
        return None
    half = _HALF_NAME.search(before)
    if half is None or before[: half.start()].rstrip()[-6:].upper() == "PREFIX":
        return None
    start = first + half.start(1)
    return _replace_name(stop, half[1] + stop.lexeme, start, stop.end)


def _join_halves(stop: Stop, start: int, end: int) -> Slip:
    """Return the slip of a word that is broken at the end of its line: its hyphen and the blanks after it go."""
    return Slip((Edit(start, end, ""),), "", "a word is broken at the end of its line", "the word in one line", stop.at, stop.end)


def prefix_name(stop: Stop) -> Slip | None:
    """Recognise a name without its prefix, such as `hasStockPrice`."""
    found = _NAME.match(stop.text, stop.at)
    if found is None or (found[0] != stop.lexeme and not set(found[0]) & set(_INVISIBLE + _HYPHENS)):
        return None
    if not _PLACES & set(stop.expected):
        return None
    name = unicodedata.normalize("NFKC", found[0].translate(_PLAIN)).rstrip("-")
    if name in list_prefixes(stop.text) | set(_KNOWN):
        if colon := _COLON.match(stop.text, found.end()):
            return _replace_name(stop, f"{name}:", found.start(), colon.end())
        between = _DOT_OR_BLANK.match(stop.text, found.end())
        if between is not None and _NAME.match(stop.text, between.end()):
            return _replace_name(stop, f"{name}:", found.start(), between.end())
    if _is_something_else(stop, found[0]):
        return None
    if stop.text[: stop.at].rstrip().endswith("^^"):
        return _replace_name(stop, f"xsd:{name}" if name in _DATATYPES else _choose_prefix(stop, name), *found.span())
    if re.search(rf"[?$]{re.escape(name)}(?!\w)", stop.text) and "a predicate" not in stop.expected:
        return _replace_name(stop, f"?{name}", *found.span())
    return _replace_name(stop, _choose_prefix(stop, name), *found.span())


def _is_something_else(stop: Stop, name: str) -> bool:
    """Return whether a word is rather a keyword, a misspelt one, or a function."""
    following = next_lexeme(stop.text, stop.at + len(name))
    if following == "(" and "a predicate" not in stop.expected:
        return True
    if "a predicate" in stop.expected:
        return following in ("{", "(") or (name.isupper() and stop.word in stop.keywords) or not _TERM_BEGINS.match(following)
    if stop.word in stop.keywords or stop.word in stop.functions:
        return not {"an object"} & set(stop.expected) or name.isupper() or following in ("{", "(")
    return following == "{" and find_near_keyword(name, stop.keywords) is not None


def _choose_prefix(stop: Stop, name: str) -> str:
    """Return a name with its prefix: one that the text gives this name elsewhere, the only one of the text's own, or
    the empty one.
    """
    elsewhere = re.search(rf"(?<![\w:?$.\-])([\w.\-]*:){re.escape(name)}(?![\w\-])", stop.text)
    if elsewhere is not None:
        return f"{elsewhere[1]}{name}"
    declared = list_prefixes(stop.text)
    own = declared - set(_KNOWN)
    return f"{next(iter(own))}:{name}" if len(own) == 1 else f":{name}"


def list_prefixes(text: str) -> set[str]:
    """Return the prefixes that a text declares."""
    return set(_DECLARED.findall(text))


def _replace_name(stop: Stop, name: str, start: int, end: int) -> Slip:
    """Return the slip of a name. A ligature in it is mended in all names of the text, so that they stay the same."""
    slip = stop.write_instead(name, start, end)
    if not _LIGATURE.search(stop.text, start, end):
        return slip
    others = [
        Edit(at.start(), at.end(), unicodedata.normalize("NFKC", at[0]))
        for found in list_lexemes(stop.text)
        if not found[0].startswith(('"', "'")) and not start <= found.start() < end
        for at in _LIGATURE.finditer(stop.text, *found.span())
    ]
    return replace_fields(slip, edits=tuple(sorted((*slip.edits, *others), key=lambda edit: edit.start)))


def name_stream(stop: Stop) -> Slip | None:
    """Recognise the name of a stream or a graph without '<' and '>'."""
    if not {"the IRI of a stream", "the IRI of a graph"} & set(stop.expected) or not _NAME.fullmatch(stop.lexeme):
        return None
    following = next_lexeme(stop.text, stop.end)
    before_name = following.startswith("<") or ":" in following  # as in FROM STREEM <x>
    if stop.word in stop.keywords or (before_name and find_near_keyword(stop.lexeme, stop.keywords) is not None):
        return None
    return stop.write_instead(f"<{stop.lexeme}>")


def complete_variable(stop: Stop) -> Slip | None:
    """Recognise a variable with a blank after its sign, or without its sign where only a variable can stand."""
    before = _SIGN_BEFORE.search(stop.text, max(0, stop.at - _MOST_BEFORE), stop.at) if _NAME.fullmatch(stop.lexeme) else None
    if before is not None:
        return stop.write_instead(f"?{stop.lexeme}", before.start(), stop.end)
    if stop.lexeme in ("?", "$") and (name := _AFTER_SIGN.match(stop.text, stop.end)):
        return stop.write_instead(f"?{name[1]}", end=name.end())
    only = {"a variable", "another variable", "variables, '*' or (expression AS ?variable)"} & set(stop.expected)
    if not only or not _NAME.fullmatch(stop.lexeme) or not re.search(rf"[?$]{re.escape(stop.lexeme)}(?!\w)", stop.text):
        return None
    return stop.write_instead(f"?{stop.lexeme}")


def complete_prefix(stop: Stop) -> Slip | None:
    """Recognise a PREFIX line without its colon, or with another sign in its place."""
    if "a prefix such as ex:" in stop.expected and _NAME.fullmatch(stop.lexeme):
        colon = re.compile(r"\s+:").match(stop.text, stop.end)
        return stop.write_instead(f"{stop.lexeme}:", end=stop.end if colon is None else colon.end())
    if "an IRI in '<' and '>'" in stop.expected and stop.lexeme in ("=", "<="):
        return stop.write_instead("")
    return None
