/* A sweep runs through many instants of one node: solutions come and leave, and groups report (semantics.md section 7). */

/* ---------------------------------------------------------------- reports */
/* Reports a group on an interval; there is room. */
static void report_group(const Tables *t, i64 g, i64 key_n, const Reports *out, i64 entry, i64 start, i64 now) {
  i64 *cells = out->cells + t->at->found++ * out->width;
  *(ReportRecord *)cells = (ReportRecord){.entry = entry, .start = start, .end = now};
  memcpy(cells + R_KEY, key_at(t, g), (size_t)key_n * sizeof(i64));
  ResultRecord *given = (ResultRecord *)(cells + R_KEY + key_n);
  for (i64 a = 0; a < t->held; a++, given++) {
    const void *state = state_at(t, g, t->program[a].in_group);
    given->of = group_at(t, g)->n;
    i64 op = t->program[a].op, counts = op == COUNT || op == COUNT_TOTAL;
    if (op == SUM || adds_totals(op)) {
      if (op == SUM)
        report_sum(t, state, given);
      else
        report_total(t, state, op, given);
      continue;
    }
    given->high = 0;
    given->code = counts ? AN_INTEGER : A_TERM;
    if (counts)
      given->result = *(const i64 *)state;
    else if (t->at->window == EVER)
      given->result = ((const ValueRecord *)state)->term;
    else {
      i64 best = ((const ChainRecord *)state)->first;
      given->result = best == NONE ? 0 : extreme_at(t, best, t->program[a].in_solution)->term;
    }
  }
}

static void report_all(const Tables *t, i64 key_n, const Reports *out, i64 entry, i64 now) {
  for (i64 g = 0; g < t->at->groups_top; g++)
    if (group_at(t, g)->n > 0) report_group(t, g, key_n, out, entry, now - t->at->length, now);
}

/* Lets the one implicit group report when it comes into being, though it be empty. */
static void report_implicit(const Tables *t, const i64 *key, i64 key_n, const Reports *out, i64 entry, i64 now) {
  i64 g = find_group(t, key, key_n);
  if (g != NONE && group_at(t, g)->stamp == t->at->stamped) return;
  int new = g == NONE;
  if (new) g = make_group(t, key, key_n);
  const GroupRecord *group = group_at(t, g);
  i64 least = group->start_first == NONE ? group->least : solution_at(t, group->start_first)->start;
  report_group(t, g, key_n, out, entry, lesser(least, now), now);
  if (new) free_group(t, key_n, g);
}

/* ---------------------------------------------------------------- solutions */
/* Lets solution i come to its group; of the last so many, the oldest leaves. */
static void take_solution(const Tables *t, i64 g, const Moments *came, i64 i) {
  GroupRecord *group = group_at(t, g);
  AtRecord *at = t->at;
  if (at->window == EVER) {
    absorb_solution(t, g, came, i, came->moments[i].start);
    return;
  }
  i64 s = enter_window(t, g, came, i);
  if (at->window == RANGE) {
    if (at->last_in == NONE)
      at->first_out = s;
    else
      solution_at(t, at->last_in)->next = s;
    at->last_in = s;
    return;
  }
  if (group->newest == NONE)
    group->oldest = s;
  else
    solution_at(t, group->newest)->next = s;
  group->newest = s;
  if (group->n > at->length) {
    i64 oldest = group->oldest;
    group->oldest = solution_at(t, oldest)->next;
    leave_window(t, oldest);
  }
}

/* Drops solutions that have left a RANGE window, and groups that have none. */
static void expire_solutions(const Tables *t, i64 key_n, i64 until) {
  AtRecord *at = t->at;
  while (at->first_out != NONE && solution_at(t, at->first_out)->end <= until) {
    i64 s = at->first_out, g = solution_at(t, s)->group;
    at->first_out = solution_at(t, s)->next;
    leave_window(t, s);
    if (group_at(t, g)->n == 0) free_group(t, key_n, g);
  }
  if (at->first_out == NONE) at->last_in = NONE;
}

/* ---------------------------------------------------------------- instants */
/* Returns whether there is room for n moments of an instant. They may bring as many new solutions and groups, and a report for each group that
 * then is. */
static int has_room(const Tables *t, const Reports *out, i64 n) {
  AtRecord *at = t->at;
  at->need = at->step > 0 ? n + at->live : n;
  return at->found + at->need <= out->room && at->groups_top + n <= t->group_room && at->limbs_top + n * t->held <= t->limb_room &&
         (at->window == EVER || at->solutions_top + n <= t->solution_room);
}

/* Takes in the moments of an instant; `gained` gets the groups with a new solution. Returns how many these are; `woken` is the last WAKE, or NONE. */
static i64 take_instant(const Tables *t, const Moments *came, i64 *gained, i64 first, i64 after, i64 *woken) {
  i64 n = 0, now = came->moments[first].now;
  *woken = NONE;
  for (i64 i = first; i < after; i++) {
    if (i % TOGETHER == 0) fetch_groups(t, NULL, 0, came, i);
    if (came->moments[i].side == WAKE) *woken = i;
    if (came->moments[i].side != SOLUTION) continue;
    i64 g = find_group(t, moment_key(came, i), came->key_n);
    if (g == NONE) g = make_group(t, moment_key(came, i), came->key_n);
    take_solution(t, g, came, i);
    if (group_at(t, g)->stamp != t->at->stamped) {
      group_at(t, g)->stamp = t->at->stamped;
      gained[n++] = g;
    }
    if (now <= t->at->horizon) t->at->latest = now;
  }
  return n;
}

static void sweep_instant(const Tables *t, const Moments *came, i64 *gained, const Reports *out, i64 first, i64 after) {
  AtRecord *at = t->at;
  i64 now = came->moments[first].now, entry = came->moments[first].entry, woken;
  at->stamped++;
  i64 n = take_instant(t, came, gained, first, after, &woken);
  if (at->window == RANGE) expire_solutions(t, came->key_n, now - at->length);
  if (at->step > 0) {
    if (now % at->step == 0 && at->latest > now - at->length) report_all(t, came->key_n, out, entry, now);
    return;
  }
  for (i64 k = 0; k < n; k++) {
    const GroupRecord *group = group_at(t, gained[k]);
    i64 least = at->window == EVER ? group->least : solution_at(t, group->start_first)->start;
    report_group(t, gained[k], came->key_n, out, entry, lesser(least, now), now);
  }
  if (woken != NONE) report_implicit(t, moment_key(came, woken), came->key_n, out, entry, now);
}

/* Takes in the moments from at->moment on, and returns DONE, or ROOM where an instant may need more room than there is. */
static i64 sweep_moments(const Tables *t, const Moments *came, i64 *gained, const Reports *out) {
  i64 i = t->at->moment;
  while (i < came->count) {
    i64 after = i + 1;
    while (after < came->count && came->moments[after].now == came->moments[i].now) after++;
    if (!has_room(t, out, after - i)) return ROOM;
    sweep_instant(t, came, gained, out, i, after);
    t->at->moment = i = after;
  }
  return DONE;
}

/* tables; moments, keys, values; gained: room for a group a moment; out: at->found reports. Gives DONE, or ROOM and in at->need what is needed. */
static int sweep(const Argument *in, i64 *out) {
  const Argument *rest = in + TABLE_ARGUMENTS + MOMENT_ARGUMENTS;
  Tables t;
  Moments came;
  Reports reports;
  if (!take_tables(in, &t) || !take_moments(in + TABLE_ARGUMENTS, &t, &came) || !take_reports(rest[1].view, &t, came.key_n, &reports))
    return OUT_OF_BOUNDS;
  if (t.at->moment < 0 || rest[0].view.count < came.count) return OUT_OF_BOUNDS;
  out[0] = sweep_moments(&t, &came, rest[0].view.at, &reports);
  return FINE;
}
