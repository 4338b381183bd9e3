"""This module makes RDF/XML safe for a parser of RDF: expat reads it and judges declarations and depth, and it is
written anew without a DTD.
"""

import re
from xml.parsers import expat

from pipeline.errors import FormatError
from pipeline.formats.batches.expansion_budget import ExpansionBudget, size_of
from pipeline.formats.rdf.rdf import place_of

MAX_DEPTH = 512
"""Elements may be nested this deep. A parser of RDF takes time that grows with the square of the depth."""
_AMPLIFIED = 43
"""This is the code of expat's own bound on entities. Source: expat.h, XML_ERROR_AMPLIFICATION_LIMIT_BREACH."""
_QUOTED = re.compile(r"'([^']+)'")


def plain_xml(body: bytes, budget: ExpansionBudget) -> bytes:
    """Return the document in UTF-8 without its DTD, comments and instructions; entities that stand for plain text are
    written out.

    Raises: FormatError with its place for what is not well-formed, for any other declaration, for too much depth, and
    beyond the budget.
    """
    copy = _Copy(budget)
    try:
        copy.parser.Parse(body, True)
    except expat.ExpatError as fault:
        if fault.code == _AMPLIFIED:
            raise budget.fault(fault.lineno, fault.offset + 1) from None
        raise FormatError("rdf", f"the XML is not well-formed: {expat.ErrorString(fault.code)}", fault.lineno, fault.offset + 1) from None
    except (LookupError, ValueError) as fault:  # an encoding that nobody knows, or of several bytes
        raise FormatError("rdf", f"this XML cannot be read: {fault}", 1, 1, "UTF-8") from None
    return bytes(copy.text)


def placed(fault: FormatError, body: bytes) -> FormatError:
    """Return the fault with a place, which the parser of RDF/XML does not tell: the place of the text that the fault
    names.
    """
    if fault.line is not None:
        return fault
    culprit = _QUOTED.search(fault.message)
    return FormatError(fault.code, fault.message, *place_of(body, culprit[1] if culprit else "\0"), fault.expected)


class _Copy:
    """Writes what expat tells of a document as text again."""

    def __init__(self, budget: ExpansionBudget) -> None:
        from xml.sax.saxutils import escape, quoteattr  # it loads an HTTP client, so only where there is XML

        self.text, self._quote = bytearray(), quoteattr
        self._budget, self._depth, self._longest = budget, 0, 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = self.parser.specified_attributes = True  # defaults of a DTD are not filled in
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._entity
        self.parser.SkippedEntityHandler = lambda name, _parameter: self._refuse_entity(name)
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end_element
        self.parser.CharacterDataHandler = lambda text: self._add_text(escape(text))

    def _add_text(self, text: str) -> None:
        self._budget.spend(size_of(text))
        self.text += text.encode()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FormatError("too-deep", f"elements are nested deeper than {MAX_DEPTH}", *self._place)
        self._longest = max(self._longest, len(name), *map(len, attributes.values()))
        if self._depth * self._longest > self._budget.most:  # each open element has a name written out
            raise self._budget.fault(*self._place)
        written = "".join(f" {key}={self._quote(value)}" for key, value in attributes.items())
        self._add_text(f"<{name}{written}>")

    def _end_element(self, name: str) -> None:
        self._depth -= 1
        self._add_text(f"</{name}>")

    def _doctype(self, _name: str, system: str | None, public: str | None, _internal: int) -> None:
        if system is not None or public is not None:
            raise FormatError("entity", "the DTD stands in a file of its own, and nothing is fetched", *self._place, "a document without it")

    def _entity(self, name: str, parameter: int, value: str | None, *_elsewhere: str | None) -> None:
        if parameter or value is None or {"&", "%", "<"} & {*value}:
            self._refuse_entity(name)

    def _refuse_entity(self, name: str) -> None:
        what = f"the entity {name[:64]!r} stands for more than text, and nothing is fetched or expanded twice"
        raise FormatError("entity", what, *self._place, "entities with plain text in quotes")

    @property
    def _place(self) -> tuple[int, int]:
        return self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
