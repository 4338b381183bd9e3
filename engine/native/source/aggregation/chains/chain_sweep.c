/* Aggregates over all matches of a chain A1 SEQ ... SEQ Ak WITHIN d, without making the matches (docs/decisions/0136-sums-over-chains.md).
 *
 * State j says that the first j operands are done, so j = 0 to k - 1: the last operand is never stored, it asks. A stretch of time is an upper
 * triangular matrix M over weights. M[i][j] weighs the ways from state i before it to state j after it by its events:
 *
 *            1  w1  0          where w1 and w2 weigh the events of this one instant. It is not the product of their matrices,
 *     N + 1 = 0  1  w2         so two events of one instant never follow each other.
 *            0  0  1
 *
 * The matrices of all live instants, in their order, multiply to P, and a last event asks P[0][k - 1].
 * 1. An instant comes: P becomes P (N + 1). In the order of falling j, column j + 1 gets column j times w.
 * 2. The oldest instant leaves: P = (N + 1) P', so in the order of falling i, row i loses w times row i + 1. The ring has what it needs, the inverse.
 * 3. A label of the middle operand of three repeats: the older event takes back what it gave, which is all live first events before it, times w.
 * Each is at most k products of weights, however many matches there are.
 *
 * P is wrong while an event lasts, or while a label of a middle operand of four or five repeats. Then ways are listed (ways.c), and P is made anew
 * from the live events afterwards. Extremes, and chains with WITHOUT, have stacks in its place (stacks.c). */

/* ---------------------------------------------------------------- products */
static Weight event_weight(const Chains *c, i64 e) {
  Weight weight;
  weight.part[0] = 1;
  for (i64 p = 1; p < c->parts; p++) weight.part[p] = read_wide(event_values(c, e) + 2 * (p - 1));
  return weight;
}

/* Adds (`by` 1) or takes away (-1) the product of weights. */
static void add_product(const Chains *c, i64 *cells, const Weight *a, const Weight *b, i64 by) {
  Weight product = multiply_weights(a, b, c->parts, &c->at->fault);
  add_weight(cells, &product, by, c->parts, &c->at->fault);
}

/* Lets event e multiply P from the right. */
static void multiply_in(const Chains *c, i64 k, i64 e) {
  i64 step = event_at(c, e)->step;
  Weight weight = event_weight(c, e);
  for (i64 from = 0; from < step; from++) {
    Weight before = read_weight(product_at(c, k, from, step), c->parts);
    add_product(c, product_at(c, k, from, step + 1), &before, &weight, 1);
  }
  add_weight(product_at(c, k, step, step + 1), &weight, 1, c->parts, &c->at->fault);
  if (c->at->steps != 3 || step != 1) return;
  memcpy(event_prefix(c, e), product_at(c, k, 0, 1), (size_t)(2 * c->parts) * sizeof(i64));
  Weight gone = read_weight(gone_at(c, k), c->parts);
  add_weight(event_prefix(c, e), &gone, 1, c->parts, &c->at->fault);
}

/* Lets the oldest event leave P, on the left. */
static void divide_out(const Chains *c, i64 k, i64 e) {
  i64 step = event_at(c, e)->step, last = c->at->steps - 1;
  Weight weight = event_weight(c, e);
  for (i64 to = step + 2; to <= last; to++) {
    Weight after = read_weight(product_at(c, k, step + 1, to), c->parts);
    add_product(c, product_at(c, k, step, to), &weight, &after, -1);
  }
  add_weight(product_at(c, k, step, step + 1), &weight, -1, c->parts, &c->at->fault);
  if (step == 0 && c->at->steps == 3) add_weight(gone_at(c, k), &weight, 1, c->parts, &c->at->fault);
}

/* Lets the middle event of three operands leave P, because one with its label has come. */
static void take_back(const Chains *c, i64 k, i64 e) {
  Weight weight = event_weight(c, e), before = read_weight(event_prefix(c, e), c->parts), gone = read_weight(gone_at(c, k), c->parts);
  for (i64 p = 0; p < c->parts; p++) before.part[p] -= gone.part[p];
  add_product(c, product_at(c, k, 0, 2), &before, &weight, -1);
  add_weight(product_at(c, k, 1, 2), &weight, -1, c->parts, &c->at->fault);
}

/* Makes P anew from the live events of a key, instant by instant, and of each the later operands first. */
static void make_products(const Chains *c, i64 k) {
  i64 next[MOST_STEPS], stored = c->at->steps - 1;
  memset(gone_at(c, k), 0, (size_t)(c->stacks - c->gone) * sizeof(i64));
  for (i64 step = 0; step < stored; step++) next[step] = *oldest_of(c, k, step);
  for (;;) {
    i64 now = FAR;
    for (i64 step = 0; step < stored; step++)
      if (next[step] != NONE) now = lesser(now, event_at(c, next[step])->end);
    if (now == FAR) break;
    for (i64 step = stored - 1; step >= 0; step--)
      for (; next[step] != NONE && event_at(c, next[step])->end == now; next[step] = event_at(c, next[step])->newer)
        if (!(stored == 2 && step == 1 && event_at(c, next[step])->repeated)) multiply_in(c, k, next[step]);
  }
  chain_key_at(c, k)->stale = 0;
}

/* ---------------------------------------------------------------- events come and leave */
static inline int lasts(const Chains *c, i64 e) { return event_at(c, e)->start < event_at(c, e)->end; }

/* Returns whether sums cannot tell a repeated label of this operand. */
static inline int confuses(const Chains *c, i64 step) { return step > 0 && c->at->counts && (c->at->steps > 3 || (c->cuts && c->at->steps == 3)); }

/* Returns whether an older event of a repeated label takes back what it gave to P. */
static inline int gives_back(const Chains *c, i64 step) { return c->has_ring && c->at->steps == 3 && step == 1; }

/* Counts what makes P of a key wrong. */
static void count_trouble(const Chains *c, i64 k, i64 by) {
  chain_key_at(c, k)->trouble += by;
  chain_key_at(c, k)->stale = 1;
}

/* Lets an older event of the label of e, if there is one, know that it is not the newest any more. */
static void repeat_label(const Chains *c, i64 k, i64 e) {
  i64 other = find_label(c, e);
  event_at(c, e)->same = other;
  if (other == NONE) return;
  remove_label(c, other);
  event_at(c, other)->repeated = 1;
  i64 step = event_at(c, e)->step;
  if (confuses(c, step))
    count_trouble(c, k, 1);
  else if (gives_back(c, step) && !chain_key_at(c, k)->stale)
    take_back(c, k, other);
}

/* Stores blocker i of a gap of a key. */
static void store_blocker(const Chains *c, const ChainInput *came, i64 i, i64 k) {
  i64 e = c->at->next_event++, gap = came->steps[i] - c->at->steps;
  *event_at(c, e) = (EventRecord){
      .start = came->moments[i].start, .end = came->moments[i].end, .step = came->steps[i], .owner = k, .newer = NONE, .later = NONE,
      .same = *blocker_at(c, k, gap), .repeated = 0, .bucket = NONE,
  };
  memset(event_values(c, e), 0, (size_t)(c->event_width - EVENT_WIDTH) * sizeof(i64));
  *blocker_at(c, k, gap) = e;
  if (c->at->cuts_all >> gap & 1) c->at->common_key = k;
  chain_key_at(c, k)->events++;
  if (lasts(c, e)) count_trouble(c, k, 1);
}

/* Stores event i of an operand but the last, or a blocker. */
static void store_event(const Chains *c, const ChainInput *came, i64 i) {
  const i64 *row = came->rows + i * c->cell_n;
  i64 k = find_chain(c, row), step = came->steps[i];
  if (k == NONE) k = make_chain(c, row);
  if (is_blocker(c, step)) {
    store_blocker(c, came, i, k);
    return;
  }
  ChainKeyRecord *key = chain_key_at(c, k);
  i64 e = c->at->next_event++, newest = *newest_of(c, k, step);
  *event_at(c, e) = (EventRecord){
      .start = came->moments[i].start, .end = came->moments[i].end, .step = step, .owner = k, .newer = NONE,
      .later = step + 2 < c->at->steps ? *newest_of(c, k, step + 1) : NONE, .same = NONE, .repeated = 0, .bucket = NONE,
  };
  memcpy(event_values(c, e), came->values + i * values_of(c), (size_t)values_of(c) * sizeof(i64));
  memcpy(event_cells(c, e), row, (size_t)c->cell_n * sizeof(i64));
  if (newest == NONE)
    *oldest_of(c, k, step) = e;
  else
    event_at(c, newest)->newer = e;
  *newest_of(c, k, step) = e;
  key->events++;
  if (lasts(c, e)) count_trouble(c, k, 1);
  repeat_label(c, k, e);
  enter_label(c, e);
  if (c->has_ring && !key->stale) multiply_in(c, k, e);
  if (!c->has_stacks) return;
  apply_blockers(c, k);
  push_event(c, k, e);
}

/* Lets the oldest event leave, which is a blocker. */
static void drop_blocker(const Chains *c, i64 e, i64 k, i64 gap) {
  if (lasts(c, e)) count_trouble(c, k, -1);
  if (*blocker_at(c, k, gap) == e) *blocker_at(c, k, gap) = NONE;
  if (--chain_key_at(c, k)->events == 0) free_chain(c, k);
}

/* Lets the oldest event leave. */
static void drop_event(const Chains *c) {
  i64 e = c->at->oldest_event++, k = event_at(c, e)->owner, step = event_at(c, e)->step;
  if (is_blocker(c, step)) {
    drop_blocker(c, e, k, step - c->at->steps);
    return;
  }
  ChainKeyRecord *key = chain_key_at(c, k);
  int repeated = event_at(c, e)->repeated != 0;
  if (!repeated) remove_label(c, e);
  if (lasts(c, e)) count_trouble(c, k, -1);
  if (repeated && confuses(c, step)) count_trouble(c, k, -1);
  if (c->has_ring && !key->stale && !(repeated && gives_back(c, step))) divide_out(c, k, e);
  if (c->has_stacks) pop_event(c, k, e);
  *oldest_of(c, k, step) = event_at(c, e)->newer;
  if (event_at(c, e)->newer == NONE) *newest_of(c, k, step) = NONE;
  if (--key->events == 0) free_chain(c, k);
}

/* ---------------------------------------------------------------- solutions */
/* Gives the next row of the output, with its moment. */
static i64 give_moment(const Chains *c, const ChainOutput *out, const MomentRecord *came, i64 start) {
  i64 row = c->at->given++;
  *(MomentRecord *)(out->moments + row * MOMENT_WIDTH) =
      (MomentRecord){.now = came->now, .entry = came->entry, .side = came->side, .start = start, .end = came->end};
  return row;
}

/* What set functions say of many matches. */
typedef struct {
  Weight sums;
  ValueRecord best[MOST_EXTREMES]; /* without a term if no match has a value */
  i64 start;
} Answer;

/* Returns what set functions say of the last event of a chain, moment i. */
static Answer answer_of(const Chains *c, const ChainInput *came, i64 i) {
  Answer answer;
  const i64 *values = came->values + i * values_of(c);
  answer.start = FAR;
  answer.sums.part[0] = 1;
  for (i64 p = 1; p < c->parts; p++) answer.sums.part[p] = read_wide(values + 2 * (p - 1));
  memcpy(answer.best, values + 2 * (c->parts - 1), (size_t)(c->at->extremes * VALUE_WIDTH) * sizeof(i64));
  return answer;
}

/* Lets the extreme of an answer be the value of an event, which may be NONE, if that is better. */
static inline void improve(const Chains *c, Answer *answer, i64 x, i64 e) {
  if (e != NONE && event_extreme(c, e, x)->term != 0) keep_better(&answer->best[x], c->extreme_ops[x], event_extreme(c, e, x));
}

/* Gives what set functions say of all matches that end with moment i. */
static void give_answer(const Chains *c, const ChainInput *came, i64 i, const Answer *all, const ChainOutput *out) {
  i64 row = give_moment(c, out, &came->moments[i], all->start);
  for (i64 n = 0; n < c->group_n; n++) out->keys[row * out->key_n + n] = came->rows[i * c->cell_n + c->group_columns[n]];
  if (c->at->counts && all->sums.part[0] >= FAR) c->at->fault = TOO_LARGE;
  i64 *values = out->values + row * out->value_width;
  for (i64 a = 0; a < c->held; a++, values += VALUE_WIDTH) {
    const LinkRecord *link = &c->links[a];
    if (link->op == MIN || link->op == MAX) {
      *(ValueRecord *)values = all->best[link->part];
      continue;
    }
    values[0] = (i64)all->sums.part[link->op == COUNT_TOTAL ? link->part : 0];
    if (link->op == COUNT_TOTAL) continue;
    values[1] = (i64)all->sums.part[link->wide];
    write_wide(values + 2, all->sums.part[link->part]);
  }
}

/* Gives one match, if there is room for it, and counts it. */
static void give_match(const Chains *c, const ChainInput *came, i64 i, const Ways *way, const ChainOutput *out) {
  if (c->at->given >= out->room) {
    c->at->given++;
    return;
  }
  i64 row = give_moment(c, out, &came->moments[i], event_at(c, way->at[0])->start), *cells = out->keys + row * out->key_n;
  memcpy(cells, came->rows + i * c->cell_n, (size_t)c->cell_n * sizeof(i64));
  for (i64 step = 0; step < c->at->steps - 1; step++)
    for (i64 n = 0; n < c->cell_n; n++)
      if (cells[n] == 0) cells[n] = event_cells(c, way->at[step])[n];
}

/* Returns whether a way leads to another last event of the instant with the same label, which comes before moment i: that one has the solution. */
static int is_given(const Chains *c, const ChainInput *came, i64 i, const Ways *way) {
  i64 chosen[MOST_STEPS];
  for (i64 other = i - 1; other >= 0 && came->moments[other].now == came->moments[i].now; other--) {
    if (came->moments[other].side != SOLUTION || came->steps[other] != c->at->steps - 1) continue;
    if (memcmp(came->rows + other * c->cell_n, came->rows + i * c->cell_n, (size_t)c->cell_n * sizeof(i64)) != 0) continue;
    Ways same = *way;
    same.start = came->moments[other].start;
    if (choose_newest(&same, chosen, 0)) return 1;
  }
  return 0;
}

/* Adds one match to what set functions say of others; `last` is what they say of its last event. */
static void add_match(const Chains *c, Answer *all, const Ways *way, const Answer *last) {
  all->start = lesser(all->start, event_at(c, way->at[0])->start);
  all->sums.part[0]++;
  for (i64 p = 1; p < c->parts; p++) {
    i128 sum = last->sums.part[p];
    for (i64 s = 0; s < c->at->steps - 1; s++) sum += read_wide(event_values(c, way->at[s]) + 2 * (p - 1));
    all->sums.part[p] = add(all->sums.part[p], sum, &c->at->fault);
  }
  for (i64 x = 0; x < c->at->extremes; x++)
    for (i64 s = 0; s < c->at->steps - 1; s++) improve(c, all, x, way->at[s]);
}

/* Lists all matches that end with moment i: gives each, or what set functions say of them. */
static void list_ways(const Chains *c, const ChainInput *came, i64 i, i64 k, const ChainOutput *out) {
  i64 step, now = came->moments[i].now;
  Answer last = answer_of(c, came, i), all = last;
  memset(&all.sums, 0, sizeof all.sums);
  Ways way = begin_ways(c, k, came->moments[i].start, now - c->at->span, &step);
  while (next_way(&way, &step)) {
    if (++c->at->made > c->at->most_made) {
      c->at->fault = TOO_MANY;
      return;
    }
    if (c->cuts && (!is_newest_way(&way) || is_given(c, came, i, &way))) continue;
    if (out->sums)
      add_match(c, &all, &way, &last);
    else
      give_match(c, came, i, &way, out);
  }
  if (all.sums.part[0] > 0) give_answer(c, came, i, &all, out);
}

/* Answers by products and stacks for the last event of a chain, moment i. */
static void sum_ways(const Chains *c, const ChainInput *came, i64 i, i64 k, const ChainOutput *out) {
  Answer all = answer_of(c, came, i);
  Weight before = {{1}};
  i64 first = *oldest_of(c, k, 0);
  if (c->has_ring) {
    if (chain_key_at(c, k)->stale) make_products(c, k);
    before = read_weight(product_at(c, k, 0, c->at->steps - 1), c->parts);
  }
  if (c->has_stacks && before.part[0] != 0) {
    StackEntry found = ask_stacks(c, k);
    if (!c->has_ring) before = found.sums;
    if (c->cuts) first = found.best[c->at->extremes];
    for (i64 x = 0; x < c->at->extremes; x++) improve(c, &all, x, found.best[x]);
  }
  if (before.part[0] == 0) return;
  all.sums = multiply_weights(&before, &all.sums, c->parts, &c->at->fault);
  all.start = event_at(c, first)->start;
  give_answer(c, came, i, &all, out);
}

/* Returns whether sums of a key are wrong now. */
static inline int is_troubled(const Chains *c, i64 k) {
  i64 common = c->at->common_key;
  return chain_key_at(c, k)->trouble > 0 || (common != NONE && chain_key_at(c, common)->trouble > 0);
}

/* Asks for all matches that end with moment i, an event of the last operand; `listed` says that sums are wrong at this instant. */
static void ask_matches(const Chains *c, const ChainInput *came, i64 i, int listed, const ChainOutput *out) {
  i64 k = find_chain(c, came->rows + i * c->cell_n);
  if (k == NONE) return;
  if (c->has_stacks) apply_blockers(c, k);
  if (!out->sums || listed || is_troubled(c, k) || came->moments[i].start < came->moments[i].end) {
    c->at->enumerated++;
    list_ways(c, came, i, k, out);
    return;
  }
  c->at->summed++;
  sum_ways(c, came, i, k, out);
}

/* ---------------------------------------------------------------- the sweep */
/* Hands on what is no event: that the group without keys comes into being. */
static void give_wake(const Chains *c, const ChainInput *came, i64 i, const ChainOutput *out) {
  if (c->at->given >= out->room) {
    c->at->given++;
    return;
  }
  i64 row = give_moment(c, out, &came->moments[i], came->moments[i].start);
  memset(out->keys + row * out->key_n, 0, (size_t)out->key_n * sizeof(i64));
  if (out->sums) memset(out->values + row * out->value_width, 0, (size_t)out->value_width * sizeof(i64));
}

/* Takes an instant in: first the last operand asks, then the others are stored. Returns whether there was room for what it gives; if not, the
 * instant may be taken in again. */
static int sweep_instant_of_chain(const Chains *c, const ChainInput *came, const ChainOutput *out, i64 first, i64 after) {
  i64 given = c->at->given, last = c->at->steps - 1;
  int listed = 0;
  c->at->wanted = after - first;
  if (given + c->at->wanted > out->room) return 0;
  while (c->at->oldest_event < c->at->next_event && event_at(c, c->at->oldest_event)->end < came->moments[first].now - c->at->span) drop_event(c);
  c->at->made = 0;
  for (i64 i = first; i < after && c->cuts; i++) /* with WITHOUT, last events of one label that start at other times may have matches in common */
    listed |= came->moments[i].side == SOLUTION && came->steps[i] == last && came->moments[i].start < came->moments[i].end;
  for (i64 i = first; i < after; i++) {
    if (came->moments[i].side != SOLUTION)
      give_wake(c, came, i, out);
    else if (came->steps[i] == last)
      ask_matches(c, came, i, listed, out);
  }
  if (c->at->given > out->room) {
    c->at->wanted = c->at->given - given;
    c->at->given = given;
    return 0;
  }
  for (i64 i = first; i < after; i++)
    if (came->moments[i].side == SOLUTION && came->steps[i] != last) store_event(c, came, i);
  return 1;
}

/* tables; moments, steps, values, rows; moments, keys and values of what it gives. Gives DONE; ROOM, and in at->wanted for how much; or the fault. */
static int sweep_chains(const Argument *in, i64 *out) {
  Chains c;
  ChainInput came;
  ChainOutput given;
  if (!take_chains(in, &c) || !take_chain_input(in + CHAIN_TABLE_ARGUMENTS, &c, &came)) return OUT_OF_BOUNDS;
  if (!take_chain_output(in + CHAIN_TABLE_ARGUMENTS + CHAIN_INPUT_ARGUMENTS, &c, &given)) return OUT_OF_BOUNDS;
  i64 i = c.at->moment;
  out[0] = DONE;
  while (i < came.count && c.at->fault == 0) {
    i64 after = i + 1;
    while (after < came.count && came.moments[after].now == came.moments[i].now) after++;
    if (!sweep_instant_of_chain(&c, &came, &given, i, after)) {
      out[0] = ROOM;
      return FINE;
    }
    c.at->moment = i = after;
  }
  return FINE;
}
