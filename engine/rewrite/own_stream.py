"""The stream of a program's own rules gets a name that no other registration has."""

from engine.rewrite.transform import replace_patterns
from epsparql import algebra as a
from epsparql.etalis.parser.vocabulary import OWN
from epsparql.recursion import deep_stack
from epsparql.trees import replace_fields


def name_own_stream(query: a.Query, registered: int) -> a.Query:
    """Return the query with its own stream, if it is a program, named after its registration too."""
    if not isinstance(query, a.Select) or not query.program:
        return query

    def rename(pattern: a.Pattern) -> a.Pattern:
        below = replace_patterns(pattern, rename)
        return replace_fields(below, name=f"{below.name}{registered}") if isinstance(below, a.InWindow) and below.name == OWN else below

    with deep_stack():
        rules = [replace_patterns(rule, rename) for rule in query.rules]
        named = tuple(replace_fields(rule, into=f"{OWN}{registered}") if rule.into == OWN else rule for rule in rules)
        return replace_fields(replace_patterns(query, rename), rules=named)
