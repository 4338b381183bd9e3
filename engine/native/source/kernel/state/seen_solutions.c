/* An instant's solutions are a set: here it is told which of them have been met before. */

/* Returns a term of a solution, whose terms are `wide` in `out` and short in rows. */
static inline i64 term_in(const void *terms, int wide, i64 v) { return wide ? ((const i64 *)terms)[v] : ((const int32_t *)terms)[v]; }

static inline int is_same_solution(Net net, i64 known, i64 start, const void *terms, int wide) {
  const i64 *others = seen_terms(net, known);
  if (seen_at(net, known)->start != start) return 0;
  for (i64 v = 0; v < net->width; v++)
    if (others[v] != term_in(terms, wide, v)) return 0;
  return 1;
}

/* The hash is a sum, since its multiplications overlap. */
static inline i64 hash_solution(Net net, i64 tag, i64 start, i64 report, const void *terms, int wide) {
  i64 hash = ((tag * SALT) ^ (start * MIX)) + report * (SALT - 2);
  for (int v = 0; v < LEAST_WIDTH; v++) hash += term_in(terms, wide, v) * (SALT + 2 * v);
  for (i64 v = LEAST_WIDTH; v < net->width; v++) hash += term_in(terms, wide, v) * (SALT + 2 * v);
  return mix_hash(hash, 0);
}

/* Does as `meet_first` does for the terms of any table. Entries of earlier instants have lower numbers, so nothing needs clearing. */
static inline int meet_first_in(Net net, i64 tag, i64 start, const void *terms, int wide) {
  AtRecord *at = net->at;
  i64 report = at->reports > 0 ? at->now : -BIG, earliest = at->seen_first;
  i64 hash = hash_solution(net, tag, start, report, terms, wide);
  for (i64 entry = net->seen_heads.at[hash & net->seen_heads.mask]; entry >= earliest;) {
    const SeenRecord *known = seen_at(net, entry - earliest);
    if (known->hash == hash && known->tag == tag && known->report == report && is_same_solution(net, entry - earliest, start, terms, wide)) return 0;
    entry = known->next;
  }
  i64 number = at->seen_n++, *copies = seen_terms(net, number);
  SeenRecord *fresh = seen_at(net, number);
  fresh->hash = hash;
  fresh->tag = tag;
  fresh->start = start;
  fresh->report = report;
  for (i64 v = 0; v < net->width; v++) copies[v] = term_in(terms, wide, v);
  enter_item(net->seen_heads, (Item *)fresh, earliest + number);
  return 1;
}

/* Returns whether this instant meets this solution (or, under tags below zero, triple) for the first time at `tag`. */
static int meet_first(Net net, i64 tag, const Row *row) { return meet_first_in(net, tag, row->start, row->terms, 0); }

/* the handle; heads: a larger table for what this instant has met */
static int spread_seen(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  (void)out;
  spread_items(buckets_in(in[1].view), tables.seen, SEEN_VAR + tables.width, tables.at->seen_n, tables.at->seen_first);
  return FINE;
}
