"""The templates of a rule make triples of its solutions (CONSTRUCT). They occur in the stream that the rule writes."""

from engine.kernel import inlined, jit
from engine.kernel.operators.scan import TimedTriple, enter_occurrence, scan_occurrence
from engine.kernel.state.layout import BLANK_KIND, FOREVER, IRI_KIND, LONG, T_O, T_S, TERM_LINK_BITS, UNBOUND, VAR


@inlined
def resolve_term(net, x, row):
    """Return the term of a template's part, which is a term or -column."""
    return x if x >= 0 else net.rows[row, -x]


@inlined
def fill_template(net, t, x):
    """Return the triple that a template makes of x, on the interval of x."""
    template, row = net.templates[t], net.rows[x]
    s, p, o = resolve_term(net, template.s, x), resolve_term(net, template.p, x), resolve_term(net, template.o, x)
    return TimedTriple(s, p, o, UNBOUND, row.start, row.end)


@jit
def is_triple(net, node, t, x):
    """Return whether a template triple is a triple under x: all its terms are bound, and each stands where RDF allows it, or the node does.

    Else it is left out alone, as in SPARQL.
    """
    made = fill_template(net, t, x)
    bound = made.s != UNBOUND and made.p != UNBOUND and made.o != UNBOUND
    return bound and (net.kinds[made.s] <= BLANK_KIND or net.nodes[node].any_subject != 0) and net.kinds[made.p] == IRI_KIND


@jit
def hide_left_out(net, node, x):
    """Unbind the variables of x that only left-out triples would show, since they distinguish no solutions of a rule."""
    templates, first, after = net.templates, net.nodes[node].template_at, net.nodes[node].template_at + net.nodes[node].template_n
    left_out = False
    for t in range(first, after):
        left_out = left_out or not is_triple(net, node, t, x)
    if not left_out:
        return
    net.shown[:] = 0
    for t in range(first, after):
        if is_triple(net, node, t, x):
            for part in range(T_S, T_O + 1):
                if templates[t, part] < 0:
                    net.shown[-templates[t, part]] = 1
    for v in range(VAR, net.rows.shape[1]):
        if net.shown[v] == 0:
            net.rows[x, v] = UNBOUND


@jit
def derive_triples(net, node, x):
    """Add a rule's triples, with its solution's interval, to the stream that the rule writes. An outward rule's own query does not read them."""
    first, query = net.nodes[node].template_at, net.queries[net.nodes[node].query]
    reads_after = query.from_
    if net.nodes[node].outward != 0:
        query.from_ = FOREVER
    for t in range(first, first + net.nodes[node].template_n):
        if not is_triple(net, node, t, x):
            continue
        made, stream = fill_template(net, t, x), net.templates[t].stream
        if enter_occurrence(net, stream, made, net.at.entry):
            count_derived(net, net.nodes[node].query, made)
            scan_occurrence(net, stream, made, net.at.entry)
    query.from_ = reads_after


@inlined
def length_of(net, term):
    """Return the bytes of a term's text."""
    return net.terms[term].link >> TERM_LINK_BITS


@inlined
def count_derived(net, number, made):
    """Count a triple that a rule derives; a rule that derives more at one instant than its bound allows is marked as endless.

    Long texts count as several triples, so that the bound is one of bytes too.
    """
    query = net.queries[number]
    if query.instant != net.at.now:
        query.instant, query.derived = net.at.now, 0
    query.derived += 1 + (length_of(net, made.s) + length_of(net, made.p) + length_of(net, made.o)) // LONG
    if query.derived > query.bound:
        net.at.endless, net.at.credit = number, 0
