"""This module recognises what comes along when a text is pasted from a page: typographic signs, numbers of lines and
equations, captions.
"""

import re
from itertools import pairwise

from epsparql.errors import Edit
from epsparql.parser.slips.stops import Slip, Stop

_BLANK_SIGNS = re.compile("[\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
_INVISIBLE_SIGNS = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]+")
_QUOTED = re.compile("(?:[\u201c-\u201f\u00ab\u00bb\u2033\uff02\"]|[\u2018-\u201b\u2032`'\u00b4]{2})"
                     "([^\"\u201c-\u201f\u00ab\u00bb\u2033\r\n'`\u00b4\u2019]*)"
                     "(?:[\u201c-\u201f\u00ab\u00bb\u2033\uff02\"]|[\u2018-\u201b\u2032'`\u00b4]{2})")  # fmt: skip
_QUOTED_ONCE = re.compile("[\u2018-\u201b\u2032`\u00b4']([^\"'\u2018-\u201b\u2032`\u00b4\r\n]*)[\u2018-\u201b\u2032`\u00b4']")
_SIGNS = dict(
    zip(
        "\u02c6\u2303\u02dc\u223c\uff1f\uff1a\uff1b\uff0c\uff0e\u2217\u2022\uff08\uff09\uff5b\uff5d\u2774\u2775\u00ac\u27e8\u2329\u3008\u27e9\u232a\u3009\u2236",
        "^^~~?:;,.**(){}{}!<<<>>>:",
        strict=True,
    )
)
"""Each sign of a page has the sign that was meant."""
_RUN = re.compile(f"[{''.join(_SIGNS)}]+")
_HYPHENS = "\u2010\u2011\u2012\u2013"
_ENTITY = re.compile("&(lt|gt|amp|quot|apos|nbsp|#39|#34);")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "nbsp": " ", "#39": "'", "#34": '"'}
_LINE_NUMBER = re.compile(r"[ \t]*[\[(]?0*([0-9]{1,4})[\])]?[.:|)]?(?=[ \t]|$)[ \t]?", re.M)
_NUMBER_OF_EQUATION = re.compile(r"(?<![ \t])[ \t]*+(\([0-9]{1,3}[a-z]?\)|\[[0-9]{1,3}\])[.,]?[ \t]*$", re.M)
_FORM = re.compile(r"(?i)(?<![\w:?$])(?:PREFIX|BASE|SELECT|CONSTRUCT|ASK|DESCRIBE|REGISTER)\b")
_HEADING = re.compile(r"[^{}?$<]{1,200}\Z")
_TRAILER = re.compile(r"(?:[.;,\s\]|`)0-9]|\([0-9]+[a-z]?\))*+(?:(?:Listing|Query|Figure|Fig|Table|Example)\b[^{}]{0,300})?\Z", re.I)
_BROKEN_IRI = re.compile(r'<[^<>"{}|^`\\]{1,300}>')
_QUOTED_IRI = re.compile(r"""["']([a-z][a-z0-9+.-]*:[^\s"'<>]*)["']""", re.I)


def remove_line_numbers(stop: Stop) -> Slip | None:
    """Recognise a text in which each line begins with its number."""
    lines = [(at.start(), at[0]) for at in re.finditer(r"(?m)^[^\r\n]*\S[^\r\n]*$", stop.text)]
    found = [_LINE_NUMBER.match(stop.text, start) for start, _ in lines]
    numbers = [int(each[1]) for each in found if each is not None]
    if len(lines) < 2 or len(numbers) != len(lines) or any(b - a != 1 for a, b in pairwise(numbers)):
        return None
    edits = tuple(Edit(each.start(), each.end(), "") for each in found if each is not None)
    return Slip(edits, "", "each line begins with its number", "the text without numbers of lines", edits[0].start, edits[0].end)


def remove_number(stop: Stop) -> Slip | None:
    """Recognise the number of a line before a line, or of an equation after it."""
    start = stop.text.rfind("\n", 0, stop.at) + 1
    end = stop.text.find("\n", stop.at)
    end = len(stop.text) if end < 0 else end
    number = _LINE_NUMBER.match(stop.text, start, end)
    if number is not None and number.start() <= stop.at < number.end() and stop.text[start : stop.at].strip(" \t([") == "":
        return _remove(stop, number.start(), number.end(), "a number stands before the line")
    before = stop.text[: stop.at].rstrip().rfind("\n") + 1
    for first, last in ((start, end), (before, start - 1)):
        after = next(iter(_NUMBER_OF_EQUATION.finditer(stop.text, first, max(first, last))), None)
        if after is not None and after.start(1) <= stop.at and (first == start or stop.text[after.end() : stop.at].strip() == ""):
            return _remove(stop, after.start(), after.end(), f"{after[1]} stands after the line, as the number of an equation")
    return None


def _remove(stop: Stop, start: int, end: int, message: str) -> Slip:
    first = start + len(stop.text[start:end]) - len(stop.text[start:end].lstrip())
    return Slip((Edit(start, end, ""),), "", message, "the line alone", first, end)


def replace_sign(stop: Stop) -> Slip | None:
    """Recognise a sign of printing: typographic quotation marks and blanks, hyphens that are not shown, entities of
    HTML.
    """
    text, at = stop.text, stop.at
    if blank := _BLANK_SIGNS.match(text, at):
        return Slip((Edit(at, blank.end(), " "),), "a blank")
    if invisible := _INVISIBLE_SIGNS.match(text, at):
        return Slip((Edit(at, invisible.end(), ""),))
    if entity := _ENTITY.match(text, at):
        return stop.write_instead(_ENTITIES[entity[1]], end=entity.end())
    if quoted := _find_quoted(stop):
        return quoted
    if signs := _RUN.match(text, at):
        return stop.write_instead("".join(map(_SIGNS.__getitem__, signs[0])), end=signs.end())
    if text[at : at + 1] in _HYPHENS and text[at - 1 : at].isalnum() and text[at + 1 : at + 2].isalnum() and "an operator" not in stop.expected:
        return stop.write_instead("-", end=at + 1)
    if stop.lexeme == "^" and ("an operator" in stop.expected or text[at - 1 : at] in ('"', "'")):
        return stop.write_instead("^^", end=at + 1)
    if text.startswith(",", at) and text[at - 1 : at].isdigit() and text[at + 1 : at + 2].isdigit():
        return stop.write_instead(".", end=at + 1)
    return None


def _find_quoted(stop: Stop) -> Slip | None:
    text, at = stop.text, stop.at
    if text[max(0, at - 2) : at] in ("''", '""') and (doubled := _QUOTED.match(text, at - 2)):  # two single signs, which read as an empty string
        return stop.write_instead(f'"{doubled[1]}"', at - 2, doubled.end())
    if text.startswith("```", at):
        return None
    double = _QUOTED.match(text, at)
    if double is not None and double[0] != f'"{double[1]}"':
        return stop.write_instead(f'"{double[1]}"', end=double.end())
    single = _QUOTED_ONCE.match(text, at)
    if single is not None and single[0] != f"'{single[1]}'":
        return stop.write_instead(f"'{single[1]}'", end=single.end())
    return None


def remove_heading(stop: Stop) -> Slip | None:
    """Recognise a caption before the query, and a sign or a caption after it."""
    if "the end of the query" in stop.expected and stop.lexeme and _TRAILER.match(stop.text, stop.at):
        return Slip((Edit(stop.at, len(stop.text.rstrip()), ""),))
    if "SELECT" not in stop.expected or not stop.lexeme:
        return None
    if stop.word in ("@PREFIX", "@BASE"):
        return stop.write_instead(stop.lexeme[1:].upper())
    if stop.lexeme in ".;" and stop.text[: stop.at].rstrip().endswith(">"):
        return Slip((Edit(stop.at, stop.end, ""),))
    form = _FORM.search(stop.text, stop.end, stop.end + 250)
    if form is None or not _HEADING.match(stop.text[stop.at : form.start()]):
        return None
    return Slip((Edit(stop.at, form.start(), ""),), form[0])


def join_iri(stop: Stop) -> Slip | None:
    """Recognise an IRI that is broken at the end of a line, or that stands in quotation marks."""
    if "an IRI in '<' and '>'" in stop.expected and (quoted := _QUOTED_IRI.match(stop.text, stop.at)):
        return stop.write_instead(f"<{quoted[1]}>", end=quoted.end())
    iri = _BROKEN_IRI.match(stop.text, stop.at) if stop.lexeme == "<" and "an operator" not in stop.expected else None
    if iri is None or ":" not in iri[0] or " " in re.sub(r"\s*\n\s*", "", iri[0][1:-1].strip()):
        return None
    return stop.write_instead("".join(iri[0].split()), end=iri.end())
