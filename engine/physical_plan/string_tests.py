"""This module decides filters by CONTAINS, STRSTARTS and STRENDS for many terms at once (docs/decisions/0048-second-paths-of-the-engine.md).

The definition is the host's, which answers for each term that is more than a string without escapes.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.dictionary.term_dictionary import TermTable
from engine.kernel.state import layout as c
from engine.physical_plan.plan import Inquiry
from epsparql import algebra as a
from epsparql.terms import XSD_STRING, Literal

Ints = NDArray[np.int64]
_TESTS: dict[str, Callable[[pa.StringArray, str], pa.BooleanArray]] = {
    "CONTAINS": lambda texts, part: pc.match_substring(texts, part),
    "STRSTARTS": lambda texts, part: pc.starts_with(texts, f'"{part}'),
    "STRENDS": lambda texts, part: pc.ends_with(texts, f'{part}"'),
}
"""Each looks into the N-Triples texts of strings, whose quotation marks stand at their ends alone."""


def decide_strings(inquiry: Inquiry, numbers: Ints, terms: TermTable) -> Ints | None:
    """Return the verdicts for terms of the filter's one variable, TRUE, FALSE or OPEN_QUESTION; None for any other filter."""
    match inquiry.condition:
        case a.Call(function, (a.Var(variable), a.Constant(Literal(part, datatype, None)))) if function in _TESTS and datatype == XSD_STRING:
            if inquiry.variables != (variable,) or str(Literal(part)) != f'"{part}"':
                return None
        case _:
            return None
    texts = terms.text_array(numbers)
    plain = pc.and_(pc.and_(pc.starts_with(texts, '"'), pc.ends_with(texts, '"')), pc.invert(pc.match_substring(texts, "\\")))
    verdicts = np.where(_TESTS[function](texts, part).fill_null(False).to_numpy(False), c.TRUE, c.FALSE)
    return np.where(plain.fill_null(False).to_numpy(False), verdicts, c.OPEN_QUESTION)
