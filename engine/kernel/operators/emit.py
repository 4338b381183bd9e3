"""This module lets a solution leave a node: through its filter, to readers, as output, as derived occurrences."""

from engine.kernel import inlined, jit
from engine.kernel.operators.alpha_index import list_of
from engine.kernel.operators.filter import ask, judge
from engine.kernel.state.goal_store import (
    count_for,
    first_time,
    first_time_of,
    is_timeless,
    key_hash,
    newest_timeless,
    push,
    release,
    stands_already,
    store_goal,
    store_of,
    take,
)
from engine.kernel.state.layout import *
from engine.kernel.state.temporal_relations import same_key, unite


@jit
def park(net, node, side, row):
    """Sets work aside until the host has answered."""
    n = net.at[PARKED]
    net.parked[n, FRAME_NODE], net.parked[n, FRAME_SIDE], net.parked[n, FRAME_ROW] = node, side, row
    net.at[PARKED] = n + 1
    if side >= DECIDE:
        net.at[SPENT] = 0  # all of it is done, and counted, once more


@jit
def wait(net, node, side, row):
    """Sets work aside until the instant closes."""
    n = net.at[WAITING]
    net.waiting[n, FRAME_NODE], net.waiting[n, FRAME_SIDE], net.waiting[n, FRAME_ROW] = node, side, row
    net.at[WAITING] = n + 1
    count_made(net, node, 1)


@jit
def count_made(net, node, n):
    """Count n more that a query makes at one instant: goals, solutions, what waits for the close, and the work on the way.

    A query that makes more at one instant than any may is marked as endless.
    """
    count_for(net, node, n)


@jit
def count_looks(net, node, looks):
    """Count `looks`, and what else the step has spent, as `count_made` does: LOOKS of them count as one row made."""
    looks += net.at[SPENT]
    net.at[SPENT] = 0
    if looks >= LOOKS:
        count_made(net, node, looks // LOOKS)


@inlined
def emit(net, node, z):
    """Hand on row z, which the caller owned."""
    filter_ = net.nodes[node, FILTER]
    if filter_ == NONE or (filter_ == TIMED_ONLY and not is_timeless(net, z)) or passes(net, node, z):
        forward(net, node, z)


@jit
def hand_on(net, node, z):
    """Do as `emit` does, off the hot path: one copy of its code serves all callers."""
    emit(net, node, z)


@jit
def passes(net, node, z):
    """Return whether z is to go on now; if not, it has been parked or freed."""
    filter_ = net.nodes[node, FILTER]
    verdict = judge(net, filter_, z) if filter_ >= 0 else TRUE if is_timeless(net, z) == (filter_ == TIMELESS_ONLY) else FALSE
    if net.at[SPENT] > 0:
        count_looks(net, node, 0)
    if verdict == TRUE:
        return True
    if verdict == PENDING:
        park(net, node, EMIT, z)
    else:
        release(net, z)
    return False


@inlined
def forward(net, node, z):
    edge = net.nodes[node, EDGE_AT]
    if net.nodes[node, EDGE_N] != 1:
        push(net, node, FAN, z)
        return
    push(net, net.edges[edge, 0], net.edges[edge, 1], z)


@inlined
def copied(net, x):
    y = take(net)
    for column in range(net.rows.shape[1]):
        net.rows[y, column] = net.rows[x, column]
    return y


@jit
def fan_out(net, node, z):
    """Push one copy of z for each reader of `node`; the room for them was checked."""
    for e in range(net.nodes[node, EDGE_AT], net.nodes[node, EDGE_AT] + net.nodes[node, EDGE_N]):
        push(net, net.edges[e, 0], net.edges[e, 1], copied(net, z))
    release(net, z)


@inlined
def blank(net, x):
    """Return a row on x's interval with nothing bound."""
    return bare(net, net.rows[x, START], net.rows[x, END])


@inlined
def bare(net, start, end):
    """Return a row on this interval with nothing bound."""
    row, rows = take(net), net.rows
    rows[row, START], rows[row, END] = start, end
    rows[row, VAR], rows[row, VAR + 1], rows[row, VAR + 2], rows[row, VAR + 3] = UNBOUND, UNBOUND, UNBOUND, UNBOUND
    for v in range(VAR + LEAST_WIDTH, rows.shape[1]):
        rows[row, v] = UNBOUND
    return row


@jit
def move(net, node, x):
    """Hand on x with its columns moved, if they are what they must be.

    Of equal rows of this instant only the first goes on where the node says so.
    """
    nodes, moves, fits = net.nodes, net.moves, True
    z = copied(net, x) if nodes[node, KEEP] != 0 else blank(net, x)
    for m in range(nodes[node, MOVE_AT], nodes[node, MOVE_AT] + nodes[node, MOVE_N]):
        source, target = moves[m, M_SOURCE], moves[m, M_TARGET]
        term = net.rows[x, source] if source >= 0 else -source
        if term == UNBOUND:
            continue
        if target < 0:
            fits = fits and term == -target
        elif net.rows[z, target] == UNBOUND:
            net.rows[z, target] = term
        else:
            fits = fits and net.rows[z, target] == term
    release(net, x)
    if fits and (nodes[node, ONCE_ONLY] == 0 or first_here(net, node, z)):
        hand_on(net, node, z)
    else:
        release(net, z)


@inlined
def first_here(net, node, x):
    """Return whether a node meets x for the first time: at this instant, or ever if x is timeless.

    A timeless x exists from the instant that brought it.
    """
    return not stands_already(net, node, x) if is_timeless(net, x) else first_time(net, node, x)


@jit
def first(net, node, x):
    """Hand on x, as a timeless row, if none with its key came before, at whatever instant."""
    key_at, key_n = net.nodes[node, KEY_AT], net.nodes[node, KEY_N]
    hash_ = key_hash(net, store_of(node, LEFT), x, key_at, key_n)
    goal = newest_timeless(net, hash_)
    while goal != NONE:
        if net.rows[goal, HASH] == hash_ and same_key(net, goal, x, key_at, key_n):
            release(net, x)
            return
        goal = net.rows[goal, OLDER]
    net.rows[x, START], net.rows[x, END] = BIG, -BIG
    store_goal(net, store_of(node, LEFT), hash_, copied(net, x), FOREVER)
    hand_on(net, node, x)


@jit
def arrive_collect(net, node, side, x):
    """Let a solution, once for an instant, or a wake of a collector wait for the close of the instant."""
    if side == LEFT and not first_here(net, node, x):
        release(net, x)
    else:
        wait(net, node, side, x)


@jit
def gather(net, node, side, x):
    """Sets x aside for the host's collector."""
    n = net.at[GATHERED]
    net.gathered[n, FRAME_NODE], net.gathered[n, FRAME_SIDE], net.gathered[n, FRAME_ROW] = node, side, x
    net.at[GATHERED] = n + 1


@jit
def extend(net, node, x):
    """Write the host's answer to a BIND, UNBOUND for an error, to the node's column."""
    answer = net.questions[ask(net, net.nodes[node, ASK], x), ASK_ANSWER]
    if answer == OPEN_QUESTION:
        park(net, node, LEFT, x)
        return
    count_looks(net, node, ANSWER_COST)
    net.rows[x, net.nodes[node, COLUMN]] = answer
    hand_on(net, node, x)


@jit
def write(net, node, z):
    """Write a solution of a query; the instant's duplicates end here, whatever is hidden apart."""
    rows, nodes = net.rows, net.nodes
    for k in range(nodes[node, HIDE_AT], nodes[node, HIDE_AT] + nodes[node, HIDE_N]):
        rows[z, net.slots[k]] = UNBOUND
    if nodes[node, TEMPLATE_N] > 0:
        hide_left_out(net, node, z)
    if is_timeless(net, z):  # it stands at the instant at which its query opened, or its facts came
        if stands_already(net, node, z):
            release(net, z)
            return
        rows[z, START], rows[z, END] = net.at[NOW], net.at[NOW]
    count_made(net, node, 1)
    if write_union(net, node, z, z) and nodes[node, TEMPLATE_N] > 0:
        derive(net, node, z)
    release(net, z)


@inlined
def write_union(net, node, x, y):
    """Write the join of x and y as a solution of the OUT `node`, and return whether the solution is new at this instant."""
    rows, out, k = net.rows, net.out, net.at[FOUND]
    out[k, OUT_START], out[k, OUT_END] = min(rows[x, START], rows[y, START]), max(rows[x, END], rows[y, END])
    out[k, OUT_NODE], out[k, OUT_ENTRY] = node, net.at[ENTRY]
    unite(out, k, OUT_VAR, rows, x, y)
    if net.nodes[node, APART] != 0:
        remember_few(net, k)  # so that they stay few
        is_new = True
    else:
        is_new = first_in_out(net, node, k)
    net.at[FOUND] = k + is_new
    return is_new


@inlined
def first_in_out(net, node, k):
    """Return whether row k of `out` is the first of its kind at this instant.

    The first few of an instant are looked through; more have a table of hashes.
    """
    out, first = net.out, net.at[FEW_FROM]
    if first == NONE:
        return first_in_seen(net, node, k)
    for r in range(first, k):
        if out[r, OUT_START] == out[k, OUT_START] and out[r, OUT_NODE] == node and same_values(net, r, k):
            return False
    if k - first == MOST_FEW:
        remember_few(net, k + 1)
    return True


@inlined
def same_values(net, r, k):
    for v in range(OUT_VAR, OUT_VAR + net.rows.shape[1] - VAR):
        if net.out[r, v] != net.out[k, v]:
            return False
    return True


@jit
def first_in_seen(net, node, k):
    return first_time_of(net, node, net.out, k, OUT_START, OUT_VAR)


@jit
def remember_few(net, after):
    """Enter this instant's rows of `out` before `after` into what it has met, for they are too many, or about to be taken."""
    if net.at[FEW_FROM] != NONE:
        for k in range(net.at[FEW_FROM], after):
            first_in_seen(net, net.out[k, OUT_NODE], k)
    net.at[FEW_FROM] = NONE


@inlined
def plain_out(net, node):
    """Return the OUT that alone reads what `node` joins and takes all of it as it is, or NONE. Such joins need no row of their own."""
    nodes = net.nodes
    if nodes[node, EDGE_N] != 1 or nodes[node, TIMELESS] != 0 or (nodes[node, FILTER] != NONE and nodes[node, FILTER] != TIMED_ONLY):
        return NONE
    reader = net.edges[nodes[node, EDGE_AT], 0]
    is_plain = nodes[reader, KIND] == OUT and nodes[reader, TEMPLATE_N] == 0 and nodes[reader, HIDE_N] == 0
    return reader if is_plain else NONE


@inlined
def resolved(net, x, row):
    return x if x >= 0 else net.rows[row, -x]


@jit
def is_triple(net, t, x):
    """Return whether a template triple is a triple under x: all its terms are bound, and each stands where RDF allows it.

    Else it is left out alone, as in SPARQL.
    """
    s, p, o = resolved(net, net.templates[t, T_S], x), resolved(net, net.templates[t, T_P], x), resolved(net, net.templates[t, T_O], x)
    return s != UNBOUND and p != UNBOUND and o != UNBOUND and net.kinds[s] <= BLANK_KIND and net.kinds[p] == IRI_KIND


@jit
def hide_left_out(net, node, x):
    """Unbind the variables of x that only left-out triples would show, since they distinguish no solutions of a rule."""
    templates, first, after = net.templates, net.nodes[node, TEMPLATE_AT], net.nodes[node, TEMPLATE_AT] + net.nodes[node, TEMPLATE_N]
    left_out = False
    for t in range(first, after):
        left_out = left_out or not is_triple(net, t, x)
    if not left_out:
        return
    net.shown[:] = 0
    for t in range(first, after):
        if is_triple(net, t, x):
            for part in range(T_S, T_O + 1):
                if templates[t, part] < 0:
                    net.shown[-templates[t, part]] = 1
    for v in range(VAR, net.rows.shape[1]):
        if net.shown[v] == 0:
            net.rows[x, v] = UNBOUND


@jit
def derive(net, node, x):
    """Add a rule's triples, with its solution's interval, to the stream that the rule writes."""
    templates = net.templates
    for t in range(net.nodes[node, TEMPLATE_AT], net.nodes[node, TEMPLATE_AT] + net.nodes[node, TEMPLATE_N]):
        if not is_triple(net, t, x):
            continue
        s, p, o = resolved(net, templates[t, T_S], x), resolved(net, templates[t, T_P], x), resolved(net, templates[t, T_O], x)
        stream, start, end = templates[t, T_STREAM], net.rows[x, START], net.rows[x, END]
        if new_occurrence(net, stream, s, p, o, UNBOUND, start, end, net.at[ENTRY]):
            count_derived(net, net.nodes[node, QUERY], s, p, o)
            occur(net, stream, s, p, o, UNBOUND, start, end, net.at[ENTRY])


@inlined
def count_derived(net, query, s, p, o):
    """Count a triple that a rule derives; a rule that derives more at one instant than its bound allows is marked as endless.

    Long texts count as several triples, so that the bound is one of bytes too.
    """
    queries = net.queries
    if queries[query, Q_INSTANT] != net.at[NOW]:
        queries[query, Q_INSTANT], queries[query, Q_DERIVED] = net.at[NOW], 0
    size = net.terms[s, TERM_LENGTH] + net.terms[p, TERM_LENGTH] + net.terms[o, TERM_LENGTH]
    queries[query, Q_DERIVED] += 1 + size // LONG
    if queries[query, Q_DERIVED] > queries[query, Q_BOUND]:
        net.at[ENDLESS], net.at[CREDIT] = query, 0


@jit
def new_occurrence(net, stream, s, p, o, g, start, end, since):
    """Return whether this instant has not had this occurrence yet, as a stream is a set.

    It is new again if it is sent again after a query has come, to which it is. What the others make of it, they have found already.
    """
    row = bare(net, start, end)
    net.rows[row, VAR], net.rows[row, VAR + 1], net.rows[row, VAR + 2], net.rows[row, VAR + 3] = s, p, o, g
    is_new = first_time(net, -1 - stream - MOST_STREAMS * min(since, net.at[LATEST_FROM]), row)
    release(net, row)
    return is_new


@inlined
def occur(net, stream, s, p, o, g, start, end, since):
    """Give one occurrence, and what it entails, to the scans that want them."""
    if net.streams[stream, S_PENDING] > 0:
        open_readers(net, stream, since)
    occur_as(net, 0, stream, s, p, o, g, start, end, since)
    if ALPHA_AT_WIDTH * p < len(net.alpha_at):
        occur_as(net, p, stream, s, p, o, g, start, end, since)


@inlined
def occur_as(net, which, stream, s, p, o, g, start, end, since):
    """Give an occurrence to the scans as one of its own predicate, or of any (0)."""
    alpha_at, at = net.alpha_at, ALPHA_AT_WIDTH * which
    alpha_at[at + ALPHA_SEEN] += 1
    scan(net, alpha_at[at + ALPHA_FIRST], alpha_at[at + ALPHA_N], stream, s, p, o, g, start, end, since)
    if alpha_at[at + ALPHA_LIST] != 0:
        scan_listed(net, alpha_at[at + ALPHA_LIST], stream, s, p, o, g, start, end, since)
    if alpha_at[at + ALPHA_KEYED] != 0:
        listed = list_of(net.posted, which, o)
        if listed != 0:
            scan_listed(net, listed, stream, s, p, o, g, start, end, since)


@inlined
def in_graph(wanted, g):
    return wanted == NONE or (g != UNBOUND if wanted == NAMED else g == wanted)


@inlined
def scan(net, first, n, stream, s, p, o, g, start, end, since):
    """Give a triple to the scans in `n` rows of alpha."""
    alpha, queries = net.alpha, net.queries
    for a in range(first, first + n):
        query = alpha[a, A_QUERY]
        if alpha[a, A_STREAM] != stream or queries[query, Q_OPEN] == 0 or since <= queries[query, Q_FROM]:
            continue
        if alpha[a, A_PLAIN] != 0:
            row = bare(net, start, end)
            net.rows[row, alpha[a, A_SVAR]], net.rows[row, alpha[a, A_OVAR]] = s, o
            push(net, alpha[a, A_NODE], alpha[a, A_SIDE], row)
        else:
            scan_closely(net, a, s, p, o, g, start, end)


@jit
def scan_listed(net, listed, stream, s, p, o, g, start, end, since):
    """Give what an occurrence is taken as to the scans that want it."""
    postings, first = net.postings, net.lists[listed, LIST_FIRST]
    for k in range(first, first + net.lists[listed, LIST_N]):
        if postings[k, P_RESOURCE] != 0 and net.kinds[o] >= LITERAL_KIND:
            continue
        if postings[k, P_OF] != NONE and postings[k, P_OF] != s:
            continue
        as_s, as_p, as_o = postings[k, P_AS_S], postings[k, P_AS_P], postings[k, P_AS_O]
        subject = s if as_s == NONE else o if as_s == OTHER_END else as_s
        verb = p if as_p == NONE else as_p
        value = o if as_o == NONE else s if as_o == OTHER_END else as_o
        want = postings[k, P_WANT]
        scan(net, net.wants[want, WANT_FIRST], net.wants[want, WANT_N], stream, subject, verb, value, g, start, end, since)


@jit
def scan_closely(net, a, s, p, o, g, start, end):
    """Give a triple to a scan that looks for certain terms, graphs or equal parts."""
    alpha, rows = net.alpha, net.rows
    if (alpha[a, A_S] != NONE and alpha[a, A_S] != s) or (alpha[a, A_O] != NONE and alpha[a, A_O] != o) or not in_graph(alpha[a, A_GRAPH], g):
        return
    s_var, p_var, o_var = alpha[a, A_SVAR], alpha[a, A_PVAR], alpha[a, A_OVAR]
    if s_var != NONE and ((s_var == o_var and s != o) or (s_var == p_var and s != p)):
        return
    if p_var != NONE and p_var == o_var and p != o:
        return
    row = bare(net, start, end)
    if s_var != NONE:
        rows[row, s_var] = s
    if p_var != NONE:
        rows[row, p_var] = p
    if o_var != NONE:
        rows[row, o_var] = o
    if alpha[a, A_GVAR] != NONE:
        rows[row, alpha[a, A_GVAR]] = g
    push(net, alpha[a, A_NODE], alpha[a, A_SIDE], row)


@jit
def open_readers(net, stream, since):
    """Open the queries for which this is the first occurrence that they read, and hand readers the facts they await."""
    read = net.streams[stream, S_READS]
    while read != NONE:
        query = net.reads[read, R_QUERY]
        if since > net.queries[query, Q_FROM] and net.at[NOW] > net.queries[query, Q_AFTER]:
            open_query(net, query)
        read = net.reads[read, R_NEXT]


@jit
def open_query(net, query):
    """Open a query at its t0, or at the instant from which changed facts hold: its facts enter as timeless rows."""
    queries, facts = net.queries, net.facts
    if queries[query, Q_OPEN] != 0 and queries[query, Q_FACTS_N] == 0:
        return
    for stream in range(len(net.streams)):
        read = net.streams[stream, S_READS]
        while read != NONE:
            if net.reads[read, R_QUERY] == query:
                net.streams[stream, S_PENDING] -= 1
            read = net.reads[read, R_NEXT]
    if queries[query, Q_OPEN] == 0:
        queries[query, Q_OPEN], queries[query, Q_T0] = 1, net.at[NOW]
    net.at[MOST_NOW] += net.at[MOST_EACH] * queries[query, Q_FACTS_N]
    for f in range(queries[query, Q_FACTS_AT], queries[query, Q_FACTS_AT] + queries[query, Q_FACTS_N]):
        row = take(net)
        net.rows[row, START], net.rows[row, END] = BIG, -BIG
        for v in range(VAR, net.rows.shape[1]):
            net.rows[row, v] = facts[f, F_VAR + v - VAR]
        push(net, facts[f, F_NODE], facts[f, F_SIDE], row)
    queries[query, Q_FACTS_N] = 0
