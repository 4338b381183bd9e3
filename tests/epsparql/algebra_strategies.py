"""Hypothesis strategies: algebra of every kind that parse can give, up to the names of hidden variables."""

from functools import reduce
from itertools import count
from typing import Any

from hypothesis import strategies as st

from epsparql import algebra as a
from epsparql.algebra.in_scope_variables import visible_variables
from epsparql.literals import MAX_MICROS
from epsparql.terms import RDF_LANG_STRING, XSD, BlankNode, Iri, Literal, TermOrVariable, Variable
from epsparql.trees import is_node, list_fields, map_fields, replace_fields

EMPTY = a.Bgp(())
WINDOWS = ("http://e/w1", "rel")

Patterns = st.SearchStrategy[a.Pattern]
Expressions = st.SearchStrategy[a.Expression]

numbering: st.SearchStrategy["count[int]"] = st.shared(st.builds(count), key="numbering")
"""One counter an example, for names that SPARQL forbids to share: blank nodes of each group, assigned variables,
aggregates.
"""
fresh = numbering.map(next)

# ---------------------------------------------------------------- terms
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
iris = st.one_of(
    st.builds(Iri, st.text("abé/#:.-_~%1?&=", max_size=8).map("http://e/".__add__)), st.builds(Iri, st.sampled_from(["rel", "a/../b", ""]))
)
variables = st.sampled_from(["x", "y", "z", "é1", "_"]).map(Variable)
_TYPED = [
    ("1", "integer"), ("+2", "integer"), ("-3", "integer"), ("0.5", "decimal"), ("-.5", "decimal"), ("1.", "decimal"), ("1e3", "double"),
    ("-1.E-3", "double"), ("INF", "double"), ("true", "boolean"), ("1", "boolean"), ("one", "integer"), ("PT1S", "duration"),
    ("2026-01-01T00:00:00Z", "dateTime"),
]  # fmt: skip
literals = st.one_of(
    st.sampled_from(_TYPED).map(lambda pair: Literal(pair[0], XSD + pair[1])),
    st.builds(Literal, text),
    st.builds(Literal, text, st.just(RDF_LANG_STRING), st.sampled_from(["en", "de-at-1996"])),
    st.builds(Literal, text, iris.map(lambda iri: iri.value)),
)
constants: st.SearchStrategy[Iri | Literal] = st.one_of(iris, literals)
micros = st.one_of(st.integers(1, 10**9), st.integers(1, 10**6).map((10**6).__mul__), st.just(MAX_MICROS))


# ---------------------------------------------------------------- triples and paths
def _longer(inner: st.SearchStrategy[a.PropertyPath]) -> st.SearchStrategy[a.PropertyPath]:
    return st.one_of(
        st.builds(a.Inverse, inner), st.builds(a.Sequence, inner, inner), st.builds(a.Alternative, inner, inner), st.builds(a.ZeroOrOne, inner),
        st.builds(a.ZeroOrMore, inner), st.builds(a.OneOrMore, inner),
    )  # fmt: skip


_links = st.lists(iris, min_size=1, max_size=2).map(tuple)
_negated = st.one_of(
    st.builds(a.Negated, _links, st.one_of(st.none(), _links)), st.builds(a.Negated, st.none(), _links), st.just(a.Negated((), None))
)
paths = st.recursive(st.one_of(st.builds(a.Link, iris), _negated), _longer, max_leaves=5)
whole_paths = paths.filter(lambda path: not isinstance(path, a.Link | a.Inverse | a.Sequence))


@st.composite
def blocks(draw: st.DrawFn, *, shortest: int = 0) -> a.Pattern:
    """Triples and paths in their order, with a blank node of their own."""
    nodes = st.one_of(variables, constants, st.just(Variable(f"_:b{draw(fresh)}")))
    triples = st.builds(a.TriplePattern, nodes, st.one_of(variables, iris), nodes)
    pattern: a.Pattern = a.Bgp(tuple(draw(st.lists(triples, min_size=shortest, max_size=3))))
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
        pattern = joined(pattern, draw(st.builds(a.Path, nodes, whole_paths, nodes)))
    return pattern


def joined(left: a.Pattern, right: a.Pattern) -> a.Pattern:
    """SPARQL 18.2.2.8: the empty group is the neutral element."""
    if left == EMPTY:
        return right
    return left if right == EMPTY else a.Join(left, right)


@st.composite
def values(draw: st.DrawFn) -> a.Values:
    names = tuple(draw(st.lists(variables, unique=True, max_size=3)))
    row = st.tuples(*(st.one_of(st.none(), constants) for _ in names))
    return a.Values(names, tuple(draw(st.lists(row, max_size=3))))


# ---------------------------------------------------------------- expressions
def _calls(inner: Expressions) -> Expressions:
    many = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        st.builds(a.Or, inner, inner),
        st.builds(a.And, inner, inner),
        st.builds(a.Not, inner),
        st.builds(a.Negate, inner),
        st.builds(a.Compare, st.sampled_from(a.Comparison), inner, inner),
        st.builds(a.Arithmetic, st.sampled_from(a.Operator), inner, inner),
        st.builds(a.In, inner, many),
        st.builds(a.If, inner, inner, inner),
        st.builds(a.Coalesce, many),
        st.builds(a.Call, st.just("CONCAT"), many),
        st.builds(a.Call, st.sampled_from(("STRLEN", "IRI", "BNODE")), st.tuples(inner)),
        st.builds(a.Call, st.sampled_from(("RAND", "NOW", "UUID", "BNODE")), st.just(())),
        st.builds(a.Call, iris.map(str), many),
    )


_plain: Expressions = st.one_of(st.builds(a.Constant, constants), st.builds(a.Time, st.sampled_from(a.TimeFunction)))
_simple: Expressions = st.one_of(st.builds(a.Var, variables), st.builds(a.Bound, variables), _plain)
_exists: Expressions = blocks().map(a.Exists)
expressions = st.recursive(st.one_of(_simple, _exists, st.builds(a.Not, _exists)), _calls, max_leaves=6)
arguments = st.recursive(_simple, _calls, max_leaves=3)


@st.composite
def aggregates(draw: st.DrawFn) -> a.Aggregate:
    function = draw(st.sampled_from(a.AggregateFunction))
    distinct = draw(st.booleans())
    if function is a.AggregateFunction.COUNT and draw(st.booleans()):
        return a.Aggregate(function, None, distinct)
    if function in (a.AggregateFunction.FIRST, a.AggregateFunction.LAST):
        return a.Aggregate(function, draw(arguments))
    separator = draw(text) if function is a.AggregateFunction.GROUP_CONCAT else " "
    return a.Aggregate(function, draw(arguments), distinct, separator)


@st.composite
def runs(draw: st.DrawFn) -> a.RunWindow:
    """A run whose WHILE compares each PREV and each aggregate with something."""
    previous = draw(st.lists(arguments, max_size=2, unique=True))
    functions = st.sampled_from([a.AggregateFunction[name] for name in ("COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST")])
    growing = draw(st.lists(st.builds(a.Aggregate, functions, arguments), max_size=2, unique=True))
    before = tuple((Variable(f"_:prev#{draw(fresh)}"), value) for value in previous)
    totals = tuple((Variable(f"_:run#{draw(fresh)}"), aggregate) for aggregate in growing)
    compared: list[a.Expression] = [
        a.Compare(draw(st.sampled_from(a.Comparison)), a.Var(variable), draw(arguments)) for variable, _ in (*before, *totals)
    ]
    condition = reduce(a.And, compared) if compared else draw(st.one_of(st.none(), arguments))
    gap, within, until = draw(st.one_of(st.none(), micros)), draw(st.one_of(st.just(0), micros)), draw(st.one_of(st.none(), blocks()))
    return a.RunWindow(condition, before, totals, gap, until, within, draw(st.sampled_from(a.RunReport)))


# ---------------------------------------------------------------- patterns
def _combined(inner: Patterns) -> Patterns:
    full = inner.filter(lambda pattern: pattern != EMPTY)
    optional = st.one_of(st.none(), expressions)
    new = fresh.map(lambda number: Variable(f"new{number}"))
    return st.one_of(
        st.builds(a.Join, full, full, st.booleans()),
        st.builds(a.Union, inner, inner),
        st.builds(a.SeqJoin, inner, inner),
        st.builds(a.EqJoin, inner, inner),
        st.builds(a.RelationJoin, st.sampled_from(a.Relation), inner, inner),
        st.builds(a.LeftJoin, inner, inner, optional),
        st.builds(a.SeqRightJoin, inner, inner, optional),
        st.builds(a.EqLeftJoin, inner, inner, optional),
        st.builds(a.Minus, inner, inner),
        st.builds(a.SeqWithout, inner, inner, inner, st.one_of(st.none(), micros)),
        st.builds(a.JoinWithout, inner, inner, inner, st.one_of(st.none(), micros)),
        st.builds(a.WithoutFor, inner, inner, micros),
        st.builds(a.Within, inner, st.one_of(st.just(0), micros)),
        st.builds(a.Filter, expressions, inner),
        st.builds(a.Extend, inner, new, expressions),
        st.builds(a.Graph, st.one_of(iris, variables), inner),
        subselects(inner),
    )


@st.composite
def selections(draw: st.DrawFn, inner: Patterns) -> tuple[a.Pattern, tuple[Variable, ...], a.Modifiers]:
    """A SELECT's pattern with all that its clauses put around it, its projection and its modifiers."""
    pattern = draw(inner)
    grouped = draw(st.booleans())
    names = draw(_groups(pattern)) if grouped else None
    if names is None:
        scope, terms = [variable for variable in visible_variables(pattern) if not variable.hidden], expressions
        scope_terms = _simple if not scope else st.one_of(_simple, st.sampled_from(scope).map(a.Var))
        terms = st.one_of(expressions, scope_terms)
    else:
        pattern, scope, terms = names
    if draw(st.integers(0, 4)) == 0:
        pattern = joined(pattern, draw(values()))
        scope = scope if grouped else [variable for variable in visible_variables(pattern) if not variable.hidden]
    computed = [Variable(f"new{draw(fresh)}") for _ in range(draw(st.integers(1 if grouped and not scope else 0, 2)))]
    chosen = draw(st.lists(st.sampled_from(scope), unique=True, max_size=3)) if scope else []
    projection = draw(st.permutations([*chosen, *computed]))
    for variable in projection:
        if variable in computed:
            pattern = a.Extend(pattern, variable, draw(terms))
    if not projection:
        projection = scope  # SELECT *, or every key
    order = tuple(draw(st.lists(st.builds(a.OrderKey, terms, st.booleans()), max_size=2)))
    modifiers = a.Modifiers(order, draw(st.sampled_from((0, 0, 3))), draw(st.sampled_from((None, None, 0, 5))))
    return used_aggregates(pattern, modifiers), tuple(projection), modifiers


@st.composite
def _groups(draw: st.DrawFn, pattern: a.Pattern) -> tuple[a.Pattern, list[Variable], Expressions]:
    """A Group, with HAVING or not; its visible keys; and what may be said of a group."""
    visible = [variable for variable in visible_variables(pattern) if not variable.hidden]
    keys = draw(st.lists(st.sampled_from(visible), unique=True, max_size=2)) if visible else []
    for kind in draw(st.lists(st.sampled_from(("_:key#", "key")), max_size=2)):
        keys.append(Variable(f"{kind}{draw(fresh)}"))
        pattern = a.Extend(pattern, keys[-1], draw(arguments.filter(lambda key: not isinstance(key, a.Var))))
    found = draw(st.lists(aggregates(), min_size=1, max_size=2, unique=True))
    named = tuple((Variable(f"_:agg#{draw(fresh)}"), aggregate) for aggregate in found)
    range_ = st.builds(a.RangeWindow, micros, st.one_of(st.none(), micros))
    window = draw(st.one_of(st.none(), range_, st.builds(a.RowsWindow, st.integers(1, 100)), runs()))
    scope = [key for key in keys if not key.hidden]
    leaves = st.one_of(_plain, st.sampled_from([*scope, *(name for name, _ in named)]).map(a.Var))
    terms = st.recursive(leaves, _calls, max_leaves=3)
    group: a.Pattern = a.Group(pattern, tuple(keys), named, window)
    needed = a.Compare(a.Comparison.EQUAL, a.Var(named[0][0]), draw(leaves))  # without keys, one aggregate makes it a group
    if not keys or draw(st.booleans()):
        group = a.Filter(needed, group)
    return group, scope, terms


def used_aggregates(pattern: a.Pattern, modifiers: a.Modifiers) -> a.Pattern:
    """`pattern`, its Group with those aggregates only that HAVING, SELECT or ORDER BY asks for."""
    used = set(_asked(modifiers))
    layers: list[a.Pattern] = []
    node = pattern
    while not isinstance(node, a.Group):
        match node:
            case a.Extend(inner, _, expression) | a.Filter(expression, inner):
                used |= set(_asked(expression))
            case a.Join(inner, a.Values()):
                pass
            case _:
                return pattern
        layers.append(node)
        node = inner
    node = replace_fields(node, aggregates=tuple(pair for pair in node.aggregates if pair[0] in used))
    for layer in reversed(layers):
        node = _over(layer, node)
    return node


def _over(layer: Any, pattern: a.Pattern) -> Any:
    return replace_fields(layer, left=pattern) if isinstance(layer, a.Join) else replace_fields(layer, pattern=pattern)


def _asked(node: Any) -> list[Variable]:
    if isinstance(node, a.Var):
        return [node.variable]
    parts = node if isinstance(node, tuple) else [getattr(node, name) for name in list_fields(type(node)) or ()]
    return [variable for part in parts for variable in _asked(part)]


@st.composite
def subselects(draw: st.DrawFn, inner: Patterns) -> a.SubSelect:
    pattern, projection, modifiers = draw(selections(inner))
    return a.SubSelect(pattern, projection, draw(st.booleans()), modifiers)


_leaves: Patterns = st.one_of(blocks(), blocks(), values())
patterns: Patterns = st.recursive(_leaves, _combined, max_leaves=7)


# ---------------------------------------------------------------- queries
@st.composite
def sources(draw: st.DrawFn) -> dict[str, Any]:
    """The fields of a query that say what it reads."""
    dataset = None
    if draw(st.booleans()):
        graphs = st.lists(iris.map(lambda iri: iri.value), max_size=2, unique=True).map(tuple)
        dataset = draw(st.builds(a.Dataset, graphs, graphs).filter(lambda found: found != a.Dataset()))
    names = st.sampled_from(["default", "http://e/s", "a", "../b"])
    if draw(st.integers(0, 3)):
        return {"streams": tuple(draw(st.lists(names, min_size=1, unique=True))), "sources": a.Sources(dataset)}
    windows = tuple(a.NamedWindow(name, draw(names), draw(micros), draw(micros)) for name in WINDOWS)
    streams = tuple(dict.fromkeys(window.stream for window in windows))
    return {"streams": streams, "sources": a.Sources(dataset, windows, draw(st.sampled_from(a.Report)))}


@st.composite
def bodies(draw: st.DrawFn) -> tuple[Patterns, dict[str, Any]]:
    """Draw the patterns that a query may be made of, and the sources that it reads.

    Parts stand in windows only where the query has windows.
    """
    read = draw(sources())
    if not read["sources"].windows:
        return patterns, read
    return st.one_of(patterns, st.builds(a.Join, st.builds(a.InWindow, st.sampled_from(WINDOWS), patterns), blocks(shortest=1))), read


@st.composite
def selects(draw: st.DrawFn) -> a.Query:
    inner, read = draw(bodies())
    pattern, projection, modifiers = draw(selections(inner))
    return a.Select(pattern, projection, draw(st.booleans()), modifiers=modifiers, **read)


@st.composite
def others(draw: st.DrawFn) -> a.Query:
    inner, read = draw(bodies())
    pattern = draw(inner)
    kind = draw(st.sampled_from((a.Construct, a.Ask, a.Describe)))
    if draw(st.booleans()):
        grouped, _, terms = draw(_groups(pattern))
        order = () if kind is a.Ask else tuple(draw(st.lists(st.builds(a.OrderKey, terms), max_size=1)))
        modifiers = a.Modifiers(order, draw(st.sampled_from((0, 3))), draw(st.sampled_from((None, 5))))
        pattern = used_aggregates(grouped, modifiers)
        if modifiers != a.PLAIN:
            visible = tuple(variable for variable in visible_variables(pattern) if not variable.hidden)
            pattern = a.SubSelect(pattern, visible, False, modifiers)
    if kind is a.Ask:
        return a.Ask(pattern, **read)
    if kind is a.Describe:
        return a.Describe(tuple(draw(st.lists(st.one_of(iris, variables), unique=True, min_size=1, max_size=3))), pattern, **read)
    into = draw(st.sampled_from(["default", "http://e/out"]))
    nodes: st.SearchStrategy[TermOrVariable] = st.one_of(variables, constants, st.just(BlankNode("t")))
    template = draw(st.lists(st.builds(a.TriplePattern, nodes, st.one_of(variables, iris), nodes), max_size=3))
    if not read["sources"].windows and draw(st.booleans()):
        return a.BackgroundRule(tuple(template), pattern, "http://e/out", (), read["sources"])
    return a.Construct(tuple(template), pattern, into=into, **read)


def _settled(query: a.Query, base: str | None) -> Any:
    """The query under a BASE, which IRI() sees; and where it has named windows, no group has a window of its own."""
    return _changed(query, None if base is None else a.Constant(Iri(base)), bool(query.sources.windows))


def _changed(node: Any, base: a.Constant | None, windows: bool) -> Any:
    if isinstance(node, tuple):
        return tuple(_changed(part, base, windows) for part in node)
    if not is_node(node):
        return node
    changed = map_fields(node, lambda part: _changed(part, base, windows))
    if isinstance(changed, a.Call) and changed.function == "IRI" and base is not None:
        return a.Call("IRI", (*changed.arguments, base))
    return replace_fields(changed, window=None) if isinstance(changed, a.Group) and windows else changed


queries: st.SearchStrategy[a.Query] = st.builds(_settled, st.one_of(selects(), others()), st.sampled_from((None, "http://b/c/d", "rel/base")))


# ---------------------------------------------------------------- comparison
def canonical(node: Any, names: dict[Variable, Variable] | None = None) -> Any:
    """`node` with its hidden aggregates and keys named in order of the tree, and the aggregates of a group in order
    of their text.
    """
    names = {} if names is None else names
    if isinstance(node, tuple):
        return tuple(canonical(part, names) for part in node)
    if isinstance(node, Variable) and "#" in node.name:
        return names.setdefault(node, Variable(f"{node.name.split('#')[0]}#{len(names)}"))
    if not is_node(node):
        return node
    if isinstance(node, a.Group):
        node = replace_fields(node, aggregates=tuple(sorted(node.aggregates, key=lambda pair: repr(pair[1]))))
    return map_fields(node, lambda part: canonical(part, names))
