"""This module decides filters by CONTAINS, STRSTARTS and STRENDS for many terms at once
(docs/decisions/0035-folders-by-subject.md).

The definition is the host's, which answers for each term that is more than a string without escapes.
"""

import numpy as np
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.physical_plan.plan import Inquiry
from epsparql import algebra as a
from epsparql.terms import XSD_STRING, Literal

Ints = NDArray[np.int64]
_TESTS = {"CONTAINS": ("match_substring", "{}"), "STRSTARTS": ("starts_with", '"{}'), "STRENDS": ("ends_with", '{}"')}
"""Arrow's functions look into the N-Triples texts of strings, whose quotation marks stand at their ends alone."""


def decide_strings(inquiry: Inquiry, numbers: Ints, terms: TermTable) -> Ints | None:
    """Return the verdicts for terms of the filter's one variable, TRUE, FALSE or OPEN_QUESTION; None for any other
    filter.
    """
    match inquiry.condition:
        case a.Call(function, (a.Var(variable), a.Constant(Literal(part, datatype, None)))) if function in _TESTS and datatype == XSD_STRING:
            if inquiry.variables != (variable,) or str(Literal(part)) != f'"{part}"':
                return None
        case _:
            return None
    import pyarrow.compute as pc  # it takes 0.1 s to load, so only where many texts are searched

    (name, form), texts = _TESTS[function], terms.text_array(numbers)
    plain = pc.and_(pc.and_(pc.starts_with(texts, '"'), pc.ends_with(texts, '"')), pc.invert(pc.match_substring(texts, "\\")))
    verdicts = np.where(getattr(pc, name)(texts, form.replace("{}", part)).fill_null(False).to_numpy(False), c.TRUE, c.FALSE)
    return np.where(plain.fill_null(False).to_numpy(False), verdicts, c.OPEN_QUESTION)
