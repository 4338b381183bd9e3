/* Scans make rows of the triples of occurrences, and of the facts that a query takes in when it opens. */

typedef struct { /* a triple in a graph, or in none (UNBOUND), on an interval; the terms are numbers, and the instants are in µs */
  i64 s, p, o, g, start, end;
} TimedTriple;

/* Returns the last change of instances before an entry, as a term. Few occurrences have waited since an earlier one. */
static inline i64 find_moment(Net net, i64 since) {
  i64 k = height_of(net, TABLE_MOMENTS) - 1;
  while (k > 0 && moment_at(net, k)->entry >= since) k--;
  return moment_at(net, k)->term;
}

/* Returns whether this instant has not had this occurrence yet, as a stream is a set.
 * It is new again if it is sent again after a query has come, to which it is. What the others make of it, they have found already. */
static int enter_occurrence(Net net, i64 stream, const TimedTriple *occurrence, i64 since) {
  i64 number = make_row(net, occurrence->start, occurrence->end);
  Row *row = row_at(net, number);
  row->terms[0] = (int32_t)occurrence->s;
  row->terms[1] = (int32_t)occurrence->p;
  row->terms[2] = (int32_t)occurrence->o;
  row->terms[3] = (int32_t)occurrence->g;
  int is_new = meet_first(net, -1 - stream - MOST_STREAMS * lesser(since, net->at->latest_from), row);
  free_row(net, number);
  return is_new;
}

static inline int is_in_graph(i64 wanted, i64 g) { return wanted == NONE || (wanted == NAMED ? g != UNBOUND : g == wanted); }

/* Returns the first of the rows [a, after) of alpha that wants the subject `s` or a greater one. */
static i64 find_subject(Net net, i64 a, i64 after, i64 s) {
  while (a < after) {
    i64 middle = (a + after) / 2;
    if (alpha_at(net, middle)->s < s) a = middle + 1;
    else after = middle;
  }
  return a;
}

/* Gives an occurrence to a scan that looks for certain terms, graphs or equal parts. */
static void scan_closely(Net net, const AlphaRecord *scan, const TimedTriple *occurrence, i64 since) {
  i64 s = occurrence->s, p = occurrence->p, o = occurrence->o;
  if ((scan->o != NONE && scan->o != o) || !is_in_graph(scan->graph, occurrence->g)) return;
  if (scan->svar != NONE && ((scan->svar == scan->ovar && s != o) || (scan->svar == scan->pvar && s != p))) return;
  if (scan->pvar != NONE && scan->pvar == scan->ovar && p != o) return;
  i64 number = make_row(net, occurrence->start, occurrence->end);
  Row *row = row_at(net, number);
  if (scan->svar != NONE) *term_at(net, row, scan->svar) = (int32_t)s;
  if (scan->pvar != NONE) *term_at(net, row, scan->pvar) = (int32_t)p;
  if (scan->ovar != NONE) *term_at(net, row, scan->ovar) = (int32_t)o;
  if (scan->gvar != NONE) *term_at(net, row, scan->gvar) = (int32_t)occurrence->g;
  if (scan->moment != NONE) *term_at(net, row, scan->moment) = (int32_t)find_moment(net, since);
  push_frame(net, scan->node, scan->side, number);
}

/* Gives an occurrence to a scan for which any triple of its stream and predicate will do. */
static inline void scan_plainly(Net net, const AlphaRecord *scan, const TimedTriple *occurrence) {
  i64 number = make_row(net, occurrence->start, occurrence->end);
  Row *row = row_at(net, number);
  *term_at(net, row, scan->svar) = (int32_t)occurrence->s;
  *term_at(net, row, scan->ovar) = (int32_t)occurrence->o;
  push_frame(net, scan->node, scan->side, number);
}

/* Gives an occurrence to the scans in `n` rows of alpha, which are in order of the subjects they want: NONE, for any, comes first. */
static inline void scan_rows(Net net, i64 first, i64 n, i64 stream, const TimedTriple *occurrence, i64 since) {
  i64 a = first, after = first + n;
  while (a < after) {
    const AlphaRecord *scan = alpha_at(net, a);
    if (scan->s != NONE && scan->s != occurrence->s) {
      if (scan->s > occurrence->s) break;
      a = find_subject(net, a, after, occurrence->s);
      continue;
    }
    const QueriesRecord *query = query_at(net, scan->query);
    a++;
    if (scan->stream != stream || query->open == 0 || since <= query->from_) continue;
    if (scan->plain != 0) scan_plainly(net, scan, occurrence);
    else scan_closely(net, scan, occurrence, since);
  }
}

/* Returns a part of what an occurrence is taken as: its own, the other end of the triple, or another term. */
static inline i64 part_as(i64 wanted, i64 own, i64 other) { return wanted == NONE ? own : wanted == OTHER_END ? other : wanted; }

/* Gives what an occurrence is taken as to the scans that want it. */
static void scan_entailed(Net net, i64 listed, i64 stream, const TimedTriple *occurrence, i64 since) {
  const ListsRecord *list = list_at(net, listed);
  i64 s = occurrence->s, p = occurrence->p, o = occurrence->o;
  for (i64 k = list->first; k < list->first + list->n; k++) {
    const PostingsRecord *posting = posting_at(net, k);
    if (posting->resource != 0 && kind_at(net, o) >= LITERAL_KIND) continue;
    if (posting->of != NONE && posting->of != s) continue;
    const WantsRecord *want = want_at(net, posting->want);
    TimedTriple entailed = *occurrence;
    entailed.s = part_as(posting->as_s, s, o);
    entailed.p = posting->as_p == NONE ? p : posting->as_p;
    entailed.o = part_as(posting->as_o, o, s);
    scan_rows(net, want->first, want->n, stream, &entailed, since);
  }
}

/* Gives an occurrence to the scans as one of its own predicate, or of any (0). */
static inline void scan_as(Net net, i64 predicate, i64 stream, const TimedTriple *occurrence, i64 since) {
  AlphaAtRecord *scans = predicate_at(net, predicate);
  scans->seen++;
  scan_rows(net, scans->first, scans->n, stream, occurrence, since);
  if (scans->list != 0) scan_entailed(net, scans->list, stream, occurrence, since);
  if (scans->keyed != 0) {
    i64 listed = find_list(net->posted, height_of(net, TABLE_POSTED) - 1, predicate, occurrence->o);
    if (listed != 0) scan_entailed(net, listed, stream, occurrence, since);
  }
}

/* ---------------------------------------------------------------- queries that open */
/* Counts a query out of those of each stream that have facts to take in. */
static void end_wait_for_facts(Net net, i64 number) {
  for (i64 stream = 0; stream < height_of(net, TABLE_STREAMS); stream++)
    for (i64 read = stream_at(net, stream)->reads; read != NONE; read = read_at(net, read)->next)
      if (read_at(net, read)->query == number) stream_at(net, stream)->pending--;
}

/* Opens a query at its t0, or at the instant from which changed facts hold: its facts enter as timeless rows. */
static void open_query(Net net, i64 number) {
  QueriesRecord *query = query_at(net, number);
  if (query->open != 0 && query->facts_n == 0) return;
  end_wait_for_facts(net, number);
  if (query->open == 0) {
    query->open = 1;
    query->t0 = net->at->now;
  }
  net->at->most_now += net->at->most_each * query->facts_n;
  for (i64 f = query->facts_at; f < query->facts_at + query->facts_n; f++)
    push_frame(net, fact_at(net, f)->node, fact_at(net, f)->side, take_row_with(net, BIG, -BIG, fact_terms(net, f)));
  query->facts_n = 0;
}

/* Opens the queries for which this is the first occurrence that they read, and hands readers the facts they await. */
static void open_readers(Net net, i64 stream, i64 since) {
  for (i64 read = stream_at(net, stream)->reads; read != NONE; read = read_at(net, read)->next) {
    const QueriesRecord *query = query_at(net, read_at(net, read)->query);
    if (since > query->from_ && net->at->now > query->after) open_query(net, read_at(net, read)->query);
  }
}

/* Gives one occurrence, and what it entails, to the scans that want them. */
static inline void scan_occurrence(Net net, i64 stream, const TimedTriple *occurrence, i64 since) {
  if (stream_at(net, stream)->pending > 0) open_readers(net, stream, since);
  scan_as(net, 0, stream, occurrence, since);
  if (ALPHA_AT_WIDTH * occurrence->p < height_of(net, TABLE_ALPHA_AT)) scan_as(net, occurrence->p, stream, occurrence, since);
}
