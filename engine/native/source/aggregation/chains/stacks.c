/* MIN and MAX have no inverse, and neither has WITHOUT. So the events of a key stand in two stacks (docs/decisions/0136-sums-over-chains.md):
 *
 *     front: of each event, row 0 of the product from it to the newest one of the front     back: one matrix, the product of what came since
 *
 * An entry weighs a set of ways by their sums and, of each extreme, the event that has the best value, or NONE. Sets add by the better one, and
 * their pairs have the better one of both. Beside WITHOUT, the oldest first event counts as an extreme. A question is row 0 of the oldest live event
 * times the last column of the back.
 * 1. An event comes: column step + 1 of the back gets column step times its weight.
 * 2. The oldest event leaves: if it was in the front, the next one has its own row. If not, the stacks are stale.
 * 3. A question finds the stacks stale: all live events are turned into the front, from the newest one to the oldest, and the back is the identity.
 *    Each event is turned once, and goes before it could be turned again.
 * 4. A blocker of a gap empties state gap + 1: its column in the back, or its row where events are turned. What an instant has comes in falling order
 *    of state, a gap between its operands, so nothing of one instant follows or blocks another. Each event knows the gaps that were cut just before.
 * Where matches are counted without WITHOUT, sums are products with an inverse (chain_sweep.c), and entries only tell whether there are ways. */

typedef struct {
  Weight sums; /* of entry_parts parts, or 0 and 1 if only one part says whether there are ways */
  i64 best[MOST_EXTREMES + 1];
} StackEntry;

/* Returns whether entries count, and do not only tell whether there are ways. */
static inline int counts_ways(const Chains *c) { return c->cuts && c->at->counts; }

static StackEntry constant_entry(const Chains *c, i64 count) {
  StackEntry entry;
  entry.sums.part[0] = count;
  for (i64 p = 1; p < c->entry_parts; p++) entry.sums.part[p] = 0;
  for (i64 x = 0; x < c->bests; x++) entry.best[x] = NONE;
  return entry;
}

static StackEntry read_entry(const Chains *c, const i64 *cells) {
  StackEntry entry;
  entry.sums = read_weight(cells, c->entry_parts);
  memcpy(entry.best, cells + 2 * c->entry_parts, (size_t)c->bests * sizeof(i64));
  return entry;
}

static void write_entry(const Chains *c, i64 *cells, const StackEntry *entry) {
  for (i64 p = 0; p < c->entry_parts; p++) write_wide(cells + 2 * p, entry->sums.part[p]);
  memcpy(cells + 2 * c->entry_parts, entry->best, (size_t)c->bests * sizeof(i64));
}

/* Returns the entry of one event. */
static StackEntry event_entry(const Chains *c, i64 e) {
  StackEntry entry = constant_entry(c, 1);
  for (i64 p = 1; p < c->entry_parts; p++) entry.sums.part[p] = read_wide(event_values(c, e) + 2 * (p - 1));
  for (i64 x = 0; x < c->at->extremes; x++)
    if (event_extreme(c, e, x)->term != 0) entry.best[x] = e;
  if (c->cuts && event_at(c, e)->step == 0) entry.best[c->at->extremes] = e;
  return entry;
}

/* Returns the event that has the better value of two, or that is the older one; each may be NONE. */
static inline i64 better_event(const Chains *c, i64 x, i64 a, i64 b) {
  if (a == NONE || b == NONE) return a == NONE ? b : a;
  if (x == c->at->extremes) return lesser(a, b);
  return beats(c->extreme_ops[x], event_extreme(c, b, x), event_extreme(c, a, x)) ? b : a;
}

/* Adds to `sum` the pairs of ways of a and b. */
static void add_pairs(const Chains *c, StackEntry *sum, const StackEntry *a, const StackEntry *b) {
  if (a->sums.part[0] == 0 || b->sums.part[0] == 0) return;
  if (counts_ways(c)) {
    Weight product = multiply_weights(&a->sums, &b->sums, c->entry_parts, &c->at->fault);
    for (i64 p = 0; p < c->entry_parts; p++) sum->sums.part[p] = add(sum->sums.part[p], product.part[p], &c->at->fault);
  } else
    sum->sums.part[0] = 1;
  for (i64 x = 0; x < c->bests; x++) sum->best[x] = better_event(c, x, sum->best[x], better_event(c, x, a->best[x], b->best[x]));
}

/* Returns the cells of the ways from one state to a later one by the events of the back. */
static inline i64 *back_at(const Chains *c, i64 k, i64 from, i64 to) {
  return (i64 *)stacks_of(c, k) + STACKS_WIDTH + (to * (to - 1) / 2 + from) * c->entry;
}

/* Returns the cells of the ways from state 0 to a later one by an event of the front and those after it there. */
static inline i64 *front_at(const Chains *c, i64 e, i64 to) { return (i64 *)place_of(c, e) + PLACE_WIDTH + (to - 1) * c->entry; }

/* Returns the ways through the back from one state to the same or a later one. */
static StackEntry through_back(const Chains *c, i64 k, i64 from, i64 to) {
  return from == to ? constant_entry(c, stacks_of(c, k)->open >> from & 1) : read_entry(c, back_at(c, k, from, to));
}

/* Empties the states behind these gaps in the back. */
static void cut_back(const Chains *c, i64 k, i64 gaps) {
  StackEntry none = constant_entry(c, 0);
  for (i64 state = 1; state < c->at->steps; state++) {
    if (!(gaps >> (state - 1) & 1)) continue;
    stacks_of(c, k)->open &= ~((i64)1 << state);
    for (i64 from = 0; from < state; from++) write_entry(c, back_at(c, k, from, state), &none);
  }
}

/* Lets blockers that a key has not seen cut its gaps. */
static void apply_blockers(const Chains *c, i64 k) {
  i64 gaps = 0;
  if (!c->cuts) return;
  for (i64 gap = 0; gap < c->at->steps - 1; gap++) {
    i64 owner = owner_of(c, k, gap), newest = owner == NONE ? NONE : *blocker_at(c, owner, gap);
    if (newest == NONE || newest <= *applied_at(c, k, gap)) continue;
    *applied_at(c, k, gap) = newest;
    gaps |= (i64)1 << gap;
  }
  if (gaps == 0) return;
  stacks_of(c, k)->pending |= gaps;
  if (!stacks_of(c, k)->stale) cut_back(c, k, gaps);
}

/* Puts the newest event of its key into the back. */
static void push_event(const Chains *c, i64 k, i64 e) {
  StacksRecord *stacks = stacks_of(c, k);
  *place_of(c, e) = (PlaceRecord){.cut = stacks->pending, .older = stacks->newest};
  stacks->pending = 0;
  stacks->newest = e;
  if (stacks->stale) return;
  i64 step = event_at(c, e)->step;
  StackEntry own = event_entry(c, e);
  for (i64 from = 0; from <= step; from++) {
    StackEntry before = through_back(c, k, from, step), sum = read_entry(c, back_at(c, k, from, step + 1));
    add_pairs(c, &sum, &before, &own);
    write_entry(c, back_at(c, k, from, step + 1), &sum);
  }
}

/* Lets the oldest event of a key leave the stacks. */
static void pop_event(const Chains *c, i64 k, i64 e) {
  StacksRecord *stacks = stacks_of(c, k);
  if (e > stacks->turned) stacks->stale = 1;
  if (e == stacks->newest) stacks->newest = NONE;
}

/* Turns all live events of a key into the front. */
static void turn_stacks(const Chains *c, i64 k) {
  StacksRecord *stacks = stacks_of(c, k);
  StackEntry rows[MOST_STEPS][MOST_STEPS]; /* of the product from an event to the newest one */
  i64 states = c->at->steps;
  for (i64 from = 0; from < states; from++)
    for (i64 to = from; to < states; to++) rows[from][to] = constant_entry(c, from == to);
  for (i64 e = stacks->newest; e != NONE && is_live(c, e); e = place_of(c, e)->older) {
    i64 step = event_at(c, e)->step, cut = place_of(c, e)->cut;
    StackEntry own = event_entry(c, e);
    for (i64 to = step + 1; to < states; to++) add_pairs(c, &rows[step][to], &own, &rows[step + 1][to]);
    for (i64 to = 1; to < states; to++) write_entry(c, front_at(c, e, to), &rows[0][to]);
    for (i64 state = 1; state < states; state++)
      for (i64 to = state; cut >> (state - 1) & 1 && to < states; to++) rows[state][to] = constant_entry(c, 0);
  }
  StackEntry none = constant_entry(c, 0);
  for (i64 to = 1; to < states; to++)
    for (i64 from = 0; from < to; from++) write_entry(c, back_at(c, k, from, to), &none);
  stacks->turned = stacks->newest;
  stacks->open = -1;
  stacks->stale = 0;
  cut_back(c, k, stacks->pending);
}

/* Returns the ways through all operands but the last that the live events of a key have. */
static StackEntry ask_stacks(const Chains *c, i64 k) {
  i64 last = c->at->steps - 1, oldest = FAR;
  if (stacks_of(c, k)->stale) turn_stacks(c, k);
  for (i64 step = 0; step < last; step++)
    if (*oldest_of(c, k, step) != NONE) oldest = lesser(oldest, *oldest_of(c, k, step));
  StackEntry found = through_back(c, k, 0, last);
  if (oldest > stacks_of(c, k)->turned) return found;
  for (i64 state = 1; state <= last; state++) {
    StackEntry before = read_entry(c, front_at(c, oldest, state)), after = through_back(c, k, state, last);
    add_pairs(c, &found, &before, &after);
  }
  return found;
}
