"""This module decides filters by CONTAINS, STRSTARTS, STRENDS and REGEX for many terms at once
(docs/decisions/0035-folders-by-subject.md).

The definition is the host's, which answers for each term that is more than a string without escapes.
"""

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.physical_plan.plan import Inquiry
from engine.regex.matching import find_matches
from epsparql import algebra as a
from epsparql.regex.syntax import PatternFault
from epsparql.terms import XSD_STRING, Literal

Ints = NDArray[np.int64]
_TESTS = {"CONTAINS": ("match_substring", "{}"), "STRSTARTS": ("starts_with", '"{}'), "STRENDS": ("ends_with", '{}"')}
"""Arrow's functions look into the N-Triples texts of strings, whose quotation marks stand at their ends alone."""


def decide_strings(inquiry: Inquiry, numbers: Ints, terms: TermTable) -> Ints | None:
    """Return the verdicts for terms of the filter's one variable, TRUE, FALSE or OPEN_QUESTION; None for any other
    filter.
    """
    match inquiry.condition:
        case a.Call(function, (a.Var(variable), *constants)) if function in _TESTS or function == "REGEX":
            parts = [part for each in constants if isinstance(each, a.Constant) and (part := _read_plain(each)) is not None]
        case _:
            return None
    if inquiry.variables != (variable,) or len(parts) != len(constants):
        return None
    import pyarrow.compute as pc  # it takes 0.1 s to load, so only where many texts are searched

    texts = terms.text_array(numbers)
    plain = pc.and_(pc.and_(pc.starts_with(texts, '"'), pc.ends_with(texts, '"')), pc.invert(pc.match_substring(texts, "\\")))
    if function == "REGEX":
        try:
            found = find_matches(pc.utf8_slice_codeunits(texts, 1, -1), parts[0], "".join(parts[1:]))
        except PatternFault:
            return None
        if found is None:
            return None
        plain = pc.and_(plain, found.is_valid())
    else:
        if str(Literal(parts[0])) != f'"{parts[0]}"':  # it has escapes
            return None
        name, form = _TESTS[function]
        found = getattr(pc, name)(texts, form.replace("{}", parts[0]))
    verdicts = np.where(found.fill_null(False).to_numpy(False), c.TRUE, c.FALSE)
    return np.where(plain.fill_null(False).to_numpy(False), verdicts, c.OPEN_QUESTION)


def _read_plain(constant: a.Constant) -> str | None:
    """Return the text of a string constant, None for any other term."""
    match constant.term:
        case Literal(text, datatype, None) if datatype == XSD_STRING:
            return text
        case _:
            return None
