/* Temporal relations and compatibility; x is left, y is right. */

/* Returns whether x and y stand in a relation (semantics.md, section 3); a timeless operand satisfies every relation. */
static inline int holds_relation(i64 relation, const Row *x, const Row *y) {
  if (relation == SEQ) return x->end < y->start; /* strict; [BIG, -BIG] satisfies it by its numbers */
  if (relation == ANY || is_timeless(x) || is_timeless(y)) return 1;
  switch (relation) {
  case EQUALS: return x->start == y->start && x->end == y->end;
  case MEETS: return x->end == y->start;
  case DURING: return y->start < x->start && x->end < y->end;
  case STARTS: return x->start == y->start && x->end < y->end;
  case FINISHES: return x->end == y->end && x->start > y->start;
  case OVERLAPS: return x->start < y->start && y->start < x->end && x->end < y->end;
  default: return greater(x->start, y->start) < lesser(x->end, y->end); /* PAR */
  }
}

static inline int has_same_key(Net net, const Row *x, const Row *y, i64 key_at, i64 key_n) {
  for (i64 k = key_at; k < key_at + key_n; k++)
    if (term_of(net, x, slot_at(net, k)) != term_of(net, y, slot_at(net, k))) return 0;
  return 1;
}

/* Returns whether x and y are compatible in the residual variables, which may be unbound on a side. */
static inline int is_compatible(Net net, const Row *x, const Row *y, i64 at, i64 n) {
  for (i64 k = at; k < at + n; k++) {
    i64 a = term_of(net, x, slot_at(net, k)), b = term_of(net, y, slot_at(net, k));
    if (a != b && a != UNBOUND && b != UNBOUND) return 0;
  }
  return 1;
}

static int shares_variable(Net net, const Row *x, const Row *y, i64 at, i64 n) {
  for (i64 k = at; k < at + n; k++)
    if (term_of(net, x, slot_at(net, k)) != UNBOUND && term_of(net, y, slot_at(net, k)) != UNBOUND) return 1;
  return 0;
}

/* Makes z the union of the bindings (equal or UNBOUND = 0, so OR) and the hull of the intervals. */
static inline void merge_rows(Net net, Row *z, const Row *x, const Row *y) {
  z->start = lesser(x->start, y->start);
  z->end = greater(x->end, y->end);
  for (int v = 0; v < LEAST_WIDTH; v++) z->terms[v] = x->terms[v] | y->terms[v];
  for (i64 v = LEAST_WIDTH; v < net->width; v++) z->terms[v] = x->terms[v] | y->terms[v];
}
