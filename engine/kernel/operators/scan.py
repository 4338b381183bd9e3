"""Scans make rows of the triples of occurrences, and of the facts that a query takes in when it opens."""

from typing import NamedTuple

from engine.kernel import inlined, jit
from engine.kernel.state.alpha_index import find_list
from engine.kernel.state.layout import (
    ALPHA_AT_WIDTH,
    ALPHA_FIRST,
    ALPHA_KEYED,
    ALPHA_LIST,
    ALPHA_N,
    ALPHA_SEEN,
    BIG,
    F_VAR,
    LITERAL_KIND,
    MOST_STREAMS,
    NAMED,
    NONE,
    OTHER_END,
    UNBOUND,
    VAR,
)
from engine.kernel.state.rows import free_row, make_row, take_row
from engine.kernel.state.seen_solutions import meet_first
from engine.kernel.state.work_queues import push_frame


class TimedTriple(NamedTuple):
    """Represents a triple in a graph, or in none (UNBOUND), on an interval. The terms are numbers, and the instants are in µs."""

    s: int
    p: int
    o: int
    g: int
    start: int
    end: int


@jit
def enter_occurrence(net, stream, occurrence, since):
    """Return whether this instant has not had this occurrence yet, as a stream is a set.

    It is new again if it is sent again after a query has come, to which it is. What the others make of it, they have found already.
    """
    number = make_row(net, occurrence.start, occurrence.end)
    net.rows[number, VAR], net.rows[number, VAR + 1] = occurrence.s, occurrence.p
    net.rows[number, VAR + 2], net.rows[number, VAR + 3] = occurrence.o, occurrence.g
    is_new = meet_first(net, -1 - stream - MOST_STREAMS * min(since, net.at.latest_from), number)
    free_row(net, number)
    return is_new


@inlined
def scan_occurrence(net, stream, occurrence, since):
    """Give one occurrence, and what it entails, to the scans that want them."""
    if net.streams[stream].pending > 0:
        open_readers(net, stream, since)
    scan_as(net, 0, stream, occurrence, since)
    if ALPHA_AT_WIDTH * occurrence.p < len(net.alpha_at):
        scan_as(net, occurrence.p, stream, occurrence, since)


@inlined
def scan_as(net, predicate, stream, occurrence, since):
    """Give an occurrence to the scans as one of its own predicate, or of any (0)."""
    alpha_at, at = net.alpha_at, ALPHA_AT_WIDTH * predicate
    alpha_at[at + ALPHA_SEEN] += 1
    scan_rows(net, alpha_at[at + ALPHA_FIRST], alpha_at[at + ALPHA_N], stream, occurrence, since)
    if alpha_at[at + ALPHA_LIST] != 0:
        scan_entailed(net, alpha_at[at + ALPHA_LIST], stream, occurrence, since)
    if alpha_at[at + ALPHA_KEYED] != 0:
        listed = find_list(net.posted, predicate, occurrence.o)
        if listed != 0:
            scan_entailed(net, listed, stream, occurrence, since)


@inlined
def is_in_graph(wanted, g):
    return wanted == NONE or (g != UNBOUND if wanted == NAMED else g == wanted)


@inlined
def scan_rows(net, first, n, stream, occurrence, since):
    """Give an occurrence to the scans in `n` rows of alpha, which are in order of the subjects they want: NONE, for any, comes first."""
    a, after = first, first + n
    while a < after:
        scan = net.alpha[a]
        if scan.s != NONE and scan.s != occurrence.s:
            if scan.s > occurrence.s:
                break
            a = find_subject(net, a, after, occurrence.s)
            continue
        query = net.queries[scan.query]
        if scan.stream != stream or query.open == 0 or since <= query.from_:
            a += 1
            continue
        if scan.plain != 0:
            number = make_row(net, occurrence.start, occurrence.end)
            net.rows[number, scan.svar], net.rows[number, scan.ovar] = occurrence.s, occurrence.o
            push_frame(net, scan.node, scan.side, number)
        else:
            scan_closely(net, a, occurrence)
        a += 1


@jit
def find_subject(net, a, after, s):
    """Return the first of the rows [a, after) of alpha that wants the subject `s` or a greater one."""
    while a < after:
        middle = (a + after) // 2
        if net.alpha[middle].s < s:
            a = middle + 1
        else:
            after = middle
    return a


@jit
def scan_entailed(net, listed, stream, occurrence, since):
    """Give what an occurrence is taken as to the scans that want it."""
    first = net.lists[listed].first
    for k in range(first, first + net.lists[listed].n):
        posting, s, p, o = net.postings[k], occurrence.s, occurrence.p, occurrence.o
        if posting.resource != 0 and net.kinds[o] >= LITERAL_KIND:
            continue
        if posting.of != NONE and posting.of != s:
            continue
        subject = s if posting.as_s == NONE else o if posting.as_s == OTHER_END else posting.as_s
        verb = p if posting.as_p == NONE else posting.as_p
        value = o if posting.as_o == NONE else s if posting.as_o == OTHER_END else posting.as_o
        want = net.wants[posting.want]
        entailed = TimedTriple(subject, verb, value, occurrence.g, occurrence.start, occurrence.end)
        scan_rows(net, want.first, want.n, stream, entailed, since)


@jit
def scan_closely(net, a, occurrence):
    """Give an occurrence to a scan that looks for certain terms, graphs or equal parts."""
    scan, rows, s, p, o = net.alpha[a], net.rows, occurrence.s, occurrence.p, occurrence.o
    if (scan.o != NONE and scan.o != o) or not is_in_graph(scan.graph, occurrence.g):
        return
    if scan.svar != NONE and ((scan.svar == scan.ovar and s != o) or (scan.svar == scan.pvar and s != p)):
        return
    if scan.pvar != NONE and scan.pvar == scan.ovar and p != o:
        return
    number = make_row(net, occurrence.start, occurrence.end)
    if scan.svar != NONE:
        rows[number, scan.svar] = s
    if scan.pvar != NONE:
        rows[number, scan.pvar] = p
    if scan.ovar != NONE:
        rows[number, scan.ovar] = o
    if scan.gvar != NONE:
        rows[number, scan.gvar] = occurrence.g
    push_frame(net, scan.node, scan.side, number)


# ---------------------------------------------------------------- queries that open
@jit
def open_readers(net, stream, since):
    """Open the queries for which this is the first occurrence that they read, and hand readers the facts they await."""
    read = net.streams[stream].reads
    while read != NONE:
        number = net.reads[read].query
        query = net.queries[number]
        if since > query.from_ and net.at.now > query.after:
            open_query(net, number)
        read = net.reads[read].next


@jit
def open_query(net, number):
    """Open a query at its t0, or at the instant from which changed facts hold: its facts enter as timeless rows."""
    query = net.queries[number]
    if query.open != 0 and query.facts_n == 0:
        return
    for stream in range(len(net.streams)):
        read = net.streams[stream].reads
        while read != NONE:
            if net.reads[read].query == number:
                net.streams[stream].pending -= 1
            read = net.reads[read].next
    if query.open == 0:
        query.open, query.t0 = 1, net.at.now
    net.at.most_now += net.at.most_each * query.facts_n
    for f in range(query.facts_at, query.facts_at + query.facts_n):
        row = take_row(net)
        net.rows[row].start, net.rows[row].end = BIG, -BIG
        for v in range(VAR, net.rows.shape[1]):
            net.rows[row, v] = net.facts[f, F_VAR + v - VAR]
        push_frame(net, net.facts[f].node, net.facts[f].side, row)
    query.facts_n = 0
