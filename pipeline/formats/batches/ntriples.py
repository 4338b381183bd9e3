"""This module validates single terms in N-Triples syntax and brings them to their one canonical text."""

import re

import pyoxigraph as ox

from pipeline.errors import FormatError

MAX_TERM = 1 << 18
CACHED = 200_000
NO_DIRECTIONS = "base directions (RDF 1.2) are not supported"
PLAIN_TAG = "a plain language tag such as @en"

_ONE_TERM = '<iri>, "literal" or _:label'
_UCHAR = r"\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"
_IRI = rf'<(?:[^\x00-\x20<>"{{}}|^`\\]|{_UCHAR})*>'
_STRING = rf'"(?:[^"\\\n\r]|\\[tbnrf"\'\\]|{_UCHAR})*"'
_LABEL = r"_:[\w](?:[\w.·‿⁀̀-ͯ-]*[\w·‿⁀̀-ͯ-])?"
_TERM = re.compile(rf"{_IRI}|{_LABEL}|{_STRING}(?:\^\^{_IRI}|@[A-Za-z0-9-]+)?")
# The parser would give these terms back unchanged, so most terms need no parser.
_PLAIN_IRI = (
    r"[A-Za-z][A-Za-z0-9+.-]*:(?://[A-Za-z0-9._-]+(?::[0-9]{1,5})?(?:/[A-Za-z0-9/_.~-]*)?|[A-Za-z0-9_.~][A-Za-z0-9/_.~:-]*)(?:#[A-Za-z0-9/_.~-]*)?"
)
_XSD = r"http://www\.w3\.org/2001/XMLSchema#(?!string>)[A-Za-z]+"
_PLAIN = re.compile(rf'<{_PLAIN_IRI}>|"[^"\\\x00-\x1f\x7f\ufffe\uffff\ud800-\udfff]*"(?:\^\^<{_XSD}>|@[a-z]{{2,3}})?')


def canonical(text: str) -> str:
    """Return the term's canonical N-Triples text. Blank nodes keep their label. Raises: FormatError with the column within the term."""
    if _PLAIN.fullmatch(text) and len(text) <= MAX_TERM:
        return text
    if len(text) > MAX_TERM:
        raise FormatError("term", f"a term of {len(text)} characters; the limit is {MAX_TERM}", 1, 1)
    if text.startswith("<<"):
        raise FormatError("term", "triple terms are not supported", 1, 1)
    if "<<" in text and not _TERM.fullmatch(text):  # the parser would go as deep as triple terms do
        raise FormatError("term", f"{text[:64]!r} is not one term in N-Triples syntax", 1, 1, _ONE_TERM)
    line = f"<x:s> <x:p> {text} ."
    try:
        parsed = list(ox.parse(line.encode("utf-8", "surrogatepass"), ox.RdfFormat.N_TRIPLES))
    except (SyntaxError, ValueError) as fault:
        raise _fault(fault, text) from None
    if len(parsed) != 1 or not _TERM.fullmatch(text):
        raise FormatError("term", f"{text[:64]!r} is not one term in N-Triples syntax", 1, 1, _ONE_TERM)
    term = parsed[0].object
    if isinstance(term, ox.Literal) and term.direction is not None:
        raise FormatError("term", NO_DIRECTIONS, 1, text.rindex("--") + 1, PLAIN_TAG)
    return str(term)


def _fault(fault: Exception, text: str) -> FormatError:
    column = 1
    if isinstance(fault, SyntaxError) and fault.offset is not None and fault.lineno == 1:
        column = min(max(fault.offset - len("<x:s> <x:p> "), 1), len(text) + 1)
    reason = fault.msg.partition(": ")[2].replace(" (line 1)", "") if isinstance(fault, SyntaxError) else str(fault)
    return FormatError("term", f"{text[:64]!r} is no term in N-Triples syntax: {reason}", 1, column, _ONE_TERM)


class CanonicalTerms(dict[str, str]):
    """Maps texts to canonical texts, each validated once; blank nodes keep their label, which their message then changes.

    `kinds` is what may stand at the place: `<` IRIs, `"` literals, `_` blank nodes.
    """

    def __init__(self, kinds: str, place: str) -> None:
        super().__init__()
        self.kinds, self.place = kinds, place

    def __missing__(self, text: str) -> str:
        term = self.checked(text)
        if len(self) >= CACHED:
            self.clear()
        self[text] = term
        return term

    def checked(self, text: str) -> str:
        """Return the `canonical` text of a term that may stand here. Raises: FormatError."""
        term = canonical(text)
        if term[0] not in self.kinds:
            what = {"<": "an IRI", '"': "a literal", "_": "a blank node"}[term[0]]
            allowed = " or ".join({"<": "<iri>", '"': '"literal"', "_": "_:label"}[kind] for kind in self.kinds)
            raise FormatError("term", f"{what} cannot be the {self.place}", 1, 1, allowed)
        return term


SUBJECTS, PREDICATES, OBJECTS, GRAPHS = (
    CanonicalTerms("<_", "subject"),
    CanonicalTerms("<", "predicate"),
    CanonicalTerms('<"_', "object"),
    CanonicalTerms("<_", "graph"),
)
"""All bodies share these maps, for their content is a function of the text alone."""
