"""The stream of a query's own rules gets a name that no other registration has."""

from dataclasses import replace

from engine.rewrite.transform import replace_patterns
from epsparql import algebra as a
from epsparql.recursion import deep_stack


def name_own_stream(query: a.Query, registered: int) -> a.Query:
    """Return the query with the stream of its rules, if it has any, named after its registration too."""
    if not isinstance(query, a.Select) or not query.rules:
        return query
    own = {rule.into for rule in query.rules}

    def rename(pattern: a.Pattern) -> a.Pattern:
        below = replace_patterns(pattern, rename)
        return replace(below, name=f"{below.name}{registered}") if isinstance(below, a.InWindow) and below.name in own else below

    with deep_stack():
        rules = tuple(replace(replace_patterns(rule, rename), into=f"{rule.into}{registered}") for rule in query.rules)
        return replace(replace_patterns(query, rename), rules=rules)
