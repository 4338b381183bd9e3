"""This module finds the rules that write what a pattern without solutions reads: a stream may have events from rules
alone.
"""

from collections.abc import Iterator, Sequence

import epsparql
from engine.messages import Register
from epsparql import algebra as a
from epsparql.terms import Variable
from epsparql.translate.translator import ParsedQuery
from pipeline.diagnosis.evaluation.sample import Sample

MOST_RULES = 20
"""So many rules are looked at."""


def find_writers(query: a.StreamQuery, pattern: a.Pattern, rules: Sequence[Register], sample: Sample) -> Iterator[tuple[Register, ParsedQuery, str]]:
    """Yield the rules that write what a pattern of a query asks for, each with the stream; none where events that
    were sent have its predicates.
    """
    wanted = {str(each.predicate) for each in pattern.triples if not isinstance(each.predicate, Variable)} if isinstance(pattern, a.Bgp) else set()
    own = sample.of_streams(query.streams)
    if own.any() and all((sample.get_column("p").mark_rows(each) & own).any() for each in wanted):
        return
    for rule in rules[:MOST_RULES]:
        parsed = epsparql.parse(rule.text)
        for writer in a.writing_rules(parsed.query):
            if writer.into in query.streams and wanted <= _list_predicates(writer, wanted):
                yield rule, parsed, writer.into
                break


def _list_predicates(rule: a.Construct, wanted: set[str]) -> set[str]:
    """Return the predicates that a rule writes, which are all that are wanted if one is a variable."""
    if any(isinstance(each.predicate, Variable) for each in rule.template):
        return wanted
    return {str(each.predicate) for each in rule.template}
