/* Groups are found by their key, and hold the solutions of their windows. */

static const i64 MIX = -7046029254386353131, FAR = (i64)1 << 62;
enum { TOGETHER = 32, LINE = 8 }; /* so many moments fetch their groups at the same time; words of a line of the cache */

static inline i64 head_of(const Tables *t, const i64 *key, i64 key_n) {
  i64 hash = 0;
  for (i64 k = 0; k < key_n; k++) {
    hash = (hash ^ key[k]) * MIX;
    hash ^= hash >> 29 & 0x7FFFFFFFF;
  }
  return hash & t->head_mask;
}

/* groups, how many rows of it are in use, keys, heads: enters the groups into this larger table of heads. */
static int spread_groups(const Argument *in, i64 *out) {
  Tables t = {.groups = in[0].view.at, .group_width = in[0].view.width, .heads = in[3].view.at, .head_mask = in[3].view.count - 1};
  i64 top = in[1].number, key_n = in[2].number;
  (void)out;
  if (top > rows_of(in[0].view) || key_n < 0 || KEY + key_n > t.group_width) return OUT_OF_BOUNDS;
  if (in[3].view.count < 1 || in[3].view.count & t.head_mask) return OUT_OF_BOUNDS;
  for (i64 g = 0; g < top; g++)
    if (group_at(&t, g)->n > 0) {
      i64 head = head_of(&t, key_at(&t, g), key_n);
      group_at(&t, g)->chained = t.heads[head];
      t.heads[head] = g;
    }
  return FINE;
}

/* Lets the cache fetch a row of a table, wherever in a line of the cache it begins. */
static inline void fetch_row(const i64 *table, i64 width, i64 row) {
  for (i64 column = 0; column < width; column += LINE) __builtin_prefetch(table + row * width + column);
  __builtin_prefetch(table + row * width + width - 1);
}

/* Lets the cache fetch the groups of TOGETHER moments from `first` on, and their rows of the table `beside`, or NULL.
 * Tables of many groups are in no cache. So the moments wait for memory at the same time, first for all heads and then for all rows. */
static void fetch_groups(const Tables *t, const i64 *beside, i64 width, const Moments *came, i64 first) {
  i64 after = lesser(first + TOGETHER, came->count), heads[TOGETHER];
  for (i64 i = first; i < after; i++) {
    heads[i - first] = head_of(t, moment_key(came, i), came->key_n);
    __builtin_prefetch(t->heads + heads[i - first]);
  }
  for (i64 i = first; i < after; i++) {
    i64 g = t->heads[heads[i - first]];
    if (g == NONE) continue;
    fetch_row(t->groups, t->group_width, g);
    if (beside != NULL) fetch_row(beside, width, g);
  }
  for (i64 i = first; i < after; i++) {
    i64 g = t->heads[heads[i - first]];
    if (g == NONE || group_at(t, g)->chained == NONE || came->key_n == 0 || key_at(t, g)[0] == moment_key(came, i)[0]) continue;
    fetch_row(t->groups, t->group_width, group_at(t, g)->chained);
    if (beside != NULL) fetch_row(beside, width, group_at(t, g)->chained);
  }
}

static inline int has_key(const Tables *t, i64 g, const i64 *key, i64 key_n) {
  for (i64 k = 0; k < key_n; k++)
    if (key_at(t, g)[k] != key[k]) return 0;
  return 1;
}

/* Returns the group of a key, NONE if there is none. */
static inline i64 find_group(const Tables *t, const i64 *key, i64 key_n) {
  i64 g = t->heads[head_of(t, key, key_n)];
  while (g != NONE && !has_key(t, g, key, key_n)) g = group_at(t, g)->chained;
  return g;
}

/* Makes a new group, for which there is room. */
static i64 make_group(const Tables *t, const i64 *key, i64 key_n) {
  i64 g = t->at->free_group, head = head_of(t, key, key_n);
  if (g == NONE)
    g = t->at->groups_top++;
  else
    t->at->free_group = group_at(t, g)->chained;
  GroupRecord *group = group_at(t, g);
  memset(group, 0, (size_t)t->group_width * sizeof(i64));
  memcpy(key_at(t, g), key, (size_t)key_n * sizeof(i64));
  group->oldest = group->newest = group->start_first = group->start_last = NONE;
  group->least = FAR;
  for (i64 a = 0; a < t->held; a++) {
    i64 column = t->program[a].in_group;
    if (t->program[a].op == SUM)
      ((SumRecord *)state_at(t, g, column))->limbs = NONE; /* until a double comes */
    else if (t->program[a].op >= MIN && t->program[a].op <= LAST_VALUE && t->at->window != EVER)
      *(ChainRecord *)state_at(t, g, column) = (ChainRecord){NONE, NONE};
  }
  group->chained = t->heads[head];
  t->heads[head] = g;
  t->at->live++;
  return g;
}

static inline void free_sums(const Tables *t, i64 g) {
  for (i64 a = 0; a < t->held; a++)
    if (t->program[a].op == SUM) free_limbs(t, ((SumRecord *)state_at(t, g, t->program[a].in_group))->limbs);
}

/* Brings a group without window to where it has no solution. */
static void empty_group(const Tables *t, i64 key_n, i64 g) {
  free_sums(t, g);
  group_at(t, g)->n = 0;
  group_at(t, g)->least = FAR;
  memset(key_at(t, g) + key_n, 0, (size_t)(t->group_width - KEY - key_n) * sizeof(i64));
  for (i64 a = 0; a < t->held; a++)
    if (t->program[a].op == SUM) ((SumRecord *)state_at(t, g, t->program[a].in_group))->limbs = NONE;
}

/* Frees an empty group. */
static void free_group(const Tables *t, i64 key_n, i64 g) {
  i64 *link = &t->heads[head_of(t, key_at(t, g), key_n)];
  while (*link != g) link = &group_at(t, *link)->chained;
  *link = group_at(t, g)->chained;
  free_sums(t, g);
  group_at(t, g)->n = 0;
  group_at(t, g)->chained = t->at->free_group;
  t->at->free_group = g;
  t->at->live--;
}

/* ---------------------------------------------------------------- solutions */
/* Takes the values of solution i into a group without window. */
static inline void absorb_solution(const Tables *t, i64 g, const Moments *came, i64 i, i64 start) {
  GroupRecord *group = group_at(t, g);
  group->n++;
  group->least = lesser(group->least, start);
  for (i64 a = 0; a < t->held; a++) {
    const ValueRecord *value = value_at(came, i, a);
    void *state = state_at(t, g, t->program[a].in_group);
    if (t->program[a].op == COUNT)
      *(i64 *)state += value->term != 0;
    else if (t->program[a].op == SUM)
      add_value(t, state, value->kind, value->value, 1);
    else if (t->program[a].op >= COUNT_TOTAL)
      add_total(t, state, t->program[a].op, (const TotalRecord *)value, 1);
    else if (value->term != 0)
      keep_better(state, t->program[a].op, value);
  }
}

/* Takes solution i into a window. */
static i64 enter_window(const Tables *t, i64 g, const Moments *came, i64 i) {
  const MomentRecord *moment = &came->moments[i];
  i64 s = t->at->free_solution;
  if (s == NONE)
    s = t->at->solutions_top++;
  else
    t->at->free_solution = solution_at(t, s)->next;
  SolutionRecord *solution = solution_at(t, s);
  solution->start = moment->start, solution->end = moment->end, solution->group = g, solution->next = NONE;
  group_at(t, g)->n++;
  append_start(t, group_at(t, g), s);
  for (i64 a = 0; a < t->held; a++) {
    const ValueRecord *value = value_at(came, i, a);
    i64 op = t->program[a].op, column = t->program[a].in_solution;
    void *state = state_at(t, g, t->program[a].in_group);
    extreme_at(t, s, column)->term = value->term;
    if (op == COUNT) {
      *(i64 *)state += value->term != 0;
      continue;
    }
    if (op == COUNT_TOTAL) {
      add_total(t, state, op, (const TotalRecord *)value, 1);
      continue;
    }
    *(ValueRecord *)extreme_at(t, s, column) = *value;
    if (op == SUM)
      add_value(t, state, value->kind, value->value, 1);
    else if (adds_totals(op))
      add_total(t, state, op, (const TotalRecord *)value, 1);
    else if (value->term != 0)
      append_value(t, state, op, s, column);
  }
  return s;
}

/* Lets the oldest solution of its group leave the window. */
static void leave_window(const Tables *t, i64 s) {
  SolutionRecord *solution = solution_at(t, s);
  i64 g = solution->group;
  group_at(t, g)->n--;
  remove_start(t, group_at(t, g), s);
  for (i64 a = 0; a < t->held; a++) {
    const ExtremeRecord *held = extreme_at(t, s, t->program[a].in_solution);
    void *state = state_at(t, g, t->program[a].in_group);
    if (t->program[a].op == COUNT)
      *(i64 *)state -= held->term != 0;
    else if (t->program[a].op == SUM)
      add_value(t, state, held->kind, held->value, -1);
    else if (t->program[a].op >= COUNT_TOTAL)
      add_total(t, state, t->program[a].op, (const TotalRecord *)held, -1);
    else
      remove_value(t, state, s, t->program[a].in_solution);
  }
  solution->next = t->at->free_solution;
  t->at->free_solution = s;
}
