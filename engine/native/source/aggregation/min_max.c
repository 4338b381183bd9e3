/* MIN, MAX, FIRST and LAST keep the best so far without window; in one, the values that may yet be it, oldest first, none better than the one
 * before. */

/* Returns whether a value is better than another; an equal one is not. The first value is better than all others, or the last one is. */
static inline int beats(i64 op, const ValueRecord *value, const ValueRecord *other) {
  if (op >= FIRST_VALUE) return op == LAST_VALUE;
  if (value->kind != other->kind) return (value->kind < other->kind) == (op == MIN);
  if (value->value != other->value) return (value->value < other->value) == (op == MIN);
  return value->low != other->low && (value->low < other->low) == (op == MIN);
}

static inline const ValueRecord *value_of(const ExtremeRecord *held) { return (const ValueRecord *)held; }

/* Takes a value in without window, if it is better. */
static inline void keep_better(ValueRecord *best, i64 op, const ValueRecord *value) {
  if (best->term == 0 || beats(op, value, best)) *best = *value;
}

/* Makes solution s, with its value at column k, the last that may yet be the answer. */
static inline void append_value(const Tables *t, ChainRecord *chain, i64 op, i64 s, i64 k) {
  ExtremeRecord *new = extreme_at(t, s, k);
  i64 last = chain->last;
  while (last != NONE && beats(op, value_of(new), value_of(extreme_at(t, last, k)))) last = extreme_at(t, last, k)->older;
  new->older = last;
  new->newer = NONE;
  if (last == NONE)
    chain->first = s;
  else
    extreme_at(t, last, k)->newer = s;
  chain->last = s;
}

/* Lets the oldest solution leave. */
static inline void remove_value(const Tables *t, ChainRecord *chain, i64 s, i64 k) {
  if (chain->first != s) return;
  chain->first = extreme_at(t, s, k)->newer;
  if (chain->first == NONE)
    chain->last = NONE;
  else
    extreme_at(t, chain->first, k)->older = NONE;
}

/* Appends a solution, as `append_value` does, for the least start. */
static inline void append_start(const Tables *t, GroupRecord *group, i64 s) {
  SolutionRecord *new = solution_at(t, s);
  i64 last = group->start_last;
  while (last != NONE && new->start < solution_at(t, last)->start) last = solution_at(t, last)->start_older;
  new->start_older = last;
  new->start_newer = NONE;
  if (last == NONE)
    group->start_first = s;
  else
    solution_at(t, last)->start_newer = s;
  group->start_last = s;
}

/* Lets the oldest solution leave, as `remove_value` does, for the least start. */
static inline void remove_start(const Tables *t, GroupRecord *group, i64 s) {
  if (group->start_first != s) return;
  group->start_first = solution_at(t, s)->start_newer;
  if (group->start_first == NONE)
    group->start_last = NONE;
  else
    solution_at(t, group->start_first)->start_older = NONE;
}
