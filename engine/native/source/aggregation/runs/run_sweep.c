/* A sweep links the elements of many instants to runs, and ends runs.
 *
 * element y of the group ── links to the open run ──▶ the run grows ─────────────┐
 *                  └─────── does not ──▶ the run is over (a), y begins another ──┴▶ EACH: runs that grew report
 * UNTIL's z after the last element (c), the deadline (b), the last instant (d) ──▶ the run is over ──▶ CLOSED: it reports */

typedef struct { /* what a sweep works on; `gained` has the groups that the instant has brought elements to */
  Tables t;
  Runs runs;
  Elements came;
  i64 *gained;
  Reports out;
} RunSweep;

/* ---------------------------------------------------------------- before the sweep */
/* tables; runs; elements. Gives each element its group, which is made if there is none, and what PREV is at it. There is room for a group an
 * element. */
static int place_elements(const Argument *in, i64 *out) {
  Tables t;
  Runs runs;
  Elements came;
  (void)out;
  if (!take_tables(in, &t) || !take_runs(in + TABLE_ARGUMENTS, t.group_room, &runs)) return OUT_OF_BOUNDS;
  if (!take_elements(in + TABLE_ARGUMENTS + RUN_ARGUMENTS, &t, &came) || runs.links_width < PREVIOUS + came.previous_n) return OUT_OF_BOUNDS;
  for (i64 i = 0; i < came.moments.count; i++) {
    const i64 *key = moment_key(&came.moments, i);
    if (i % TOGETHER == 0) fetch_groups(&t, runs.links, runs.links_width, &came.moments, i);
    if (came.moments.moments[i].side != SOLUTION) continue;
    i64 g = find_group(&t, key, came.moments.key_n);
    if (g == NONE) {
      if (t.at->free_group == NONE && t.at->groups_top == t.group_room) return OUT_OF_BOUNDS;
      g = make_group(&t, key, came.moments.key_n);
      memset(links_at(&runs, g), 0, (size_t)runs.links_width * sizeof(i64));
      links_at(&runs, g)->place = NONE;
    }
    came.group[i] = g;
    links_at(&runs, g)->coming++;
    memcpy(came.row + i * came.row_width, previous_at(&runs, g), (size_t)came.previous_n * sizeof(i64));
    memcpy(previous_at(&runs, g), came.previous + i * came.previous_n, (size_t)came.previous_n * sizeof(i64));
  }
  return FINE;
}

/* tables; elements. Says in `linked` what WHILE says of each element, where nothing in it depends on the run. */
static int judge_elements(const Argument *in, i64 *out) {
  Tables t;
  Elements came;
  (void)out;
  if (!take_tables(in, &t) || !take_elements(in + TABLE_ARGUMENTS, &t, &came) || !is_code(&t, &came)) return OUT_OF_BOUNDS;
  for (i64 i = 0; i < came.moments.count; i++)
    if (came.linked[i] == UNSURE) came.linked[i] = came.code_n > 0 ? judge_link(&t, &came, 0, i) : TRUE;
  return FINE;
}

/* ---------------------------------------------------------------- the ends of runs */
/* Ends the runs whose deadlines come before `until`, each at its own; returns whether there was room for their reports. */
static int expire_runs(const RunSweep *all, i64 until) {
  AtRecord *at = all->t.at;
  i64 key_n = all->came.moments.key_n;
  for (Deadline next = next_deadline(&all->runs, at->horizon); next.group != NONE && next.due < until;
       next = next_deadline(&all->runs, at->horizon)) {
    if (all->runs.clock->closing != 0) {
      if (at->found == all->out.room) {
        at->need = at->live;
        return 0;
      }
      report_run(&all->t, &all->runs, next.group, key_n, &all->out, NONE, next.due);
    }
    close_run(&all->t, &all->runs, next.group, key_n);
  }
  return 1;
}

static void break_run(const RunSweep *all, i64 g, i64 i) {
  const MomentRecord *moment = &all->came.moments.moments[i];
  i64 key_n = all->came.moments.key_n;
  if (all->runs.clock->closing != 0) report_run(&all->t, &all->runs, g, key_n, &all->out, moment->entry, moment->now);
  close_run(&all->t, &all->runs, g, key_n);
}

/* Returns whether a group's key agrees with another; an unbound part agrees with all. */
static inline int agrees(const i64 *mine, const i64 *theirs, i64 key_n) {
  for (i64 k = 0; k < key_n; k++)
    if (mine[k] != 0 && theirs[k] != 0 && mine[k] != theirs[k]) return 0;
  return 1;
}

static inline int is_bound(const i64 *key, i64 key_n) {
  for (i64 k = 0; k < key_n; k++)
    if (key[k] == 0) return 0;
  return 1;
}

/* Ends the runs of groups that agree with UNTIL's solution i whose last elements end before it starts. */
static void break_links(const RunSweep *all, i64 i) {
  const Tables *t = &all->t;
  const Runs *runs = &all->runs;
  const i64 *key = moment_key(&all->came.moments, i);
  i64 start = all->came.moments.moments[i].start, key_n = all->came.moments.key_n;
  if (runs->clock->certain != 0 && is_bound(key, key_n)) {
    i64 g = find_group(t, key, key_n);
    if (g != NONE && group_at(t, g)->n > 0 && links_at(runs, g)->last_end < start) break_run(all, g, i);
    return;
  }
  i64 g = runs->clock->oldest_run;
  while (g != NONE && links_at(runs, g)->last_end < start) {
    i64 newer = links_at(runs, g)->newer_run;
    if (agrees(key_at(t, g), key, key_n)) break_run(all, g, i);
    g = newer;
  }
}

/* ---------------------------------------------------------------- elements */
/* Returns whether element i continues the open run of its group. */
static inline i64 judge_element(const RunSweep *all, i64 g, i64 i) {
  const MomentRecord *moment = &all->came.moments.moments[i];
  const ClockRecord *clock = all->runs.clock;
  i64 least = lesser(group_at(&all->t, g)->least, moment->start);
  if (moment->end - links_at(&all->runs, g)->last_end > clock->gap || moment->end - least > clock->within) return FALSE;
  return all->came.linked[i] == UNSURE ? judge_link(&all->t, &all->came, g, i) : all->came.linked[i];
}

/* Lets element i continue the open run of its group, or begin one; returns whether it could: else the host has to decide that. */
static int take_element(const RunSweep *all, i64 i) {
  const Tables *t = &all->t;
  const Runs *runs = &all->runs;
  const MomentRecord *moment = &all->came.moments.moments[i];
  i64 g = all->came.group[i], key_n = all->came.moments.key_n;
  if (group_at(t, g)->n > 0) {
    i64 verdict = judge_element(all, g, i);
    if (verdict == UNSURE) return 0;
    unlink_run(runs, g);
    if (verdict != TRUE) {
      int reports = runs->clock->closing != 0 || group_at(t, g)->stamp == t->at->stamped;
      if (reports) report_run(t, runs, g, key_n, &all->out, moment->entry, moment->now);
      empty_group(t, key_n, g);
    }
  }
  absorb_solution(t, g, &all->came.moments, i, moment->start);
  append_run(runs, g);
  links_at(runs, g)->last_end = moment->end;
  links_at(runs, g)->coming--;
  if (runs->clock->within < FOREVER) set_due(t, runs, g);
  if (group_at(t, g)->stamp != t->at->stamped) {
    group_at(t, g)->stamp = t->at->stamped;
    all->gained[all->came.begun->gained++] = g;
  }
  return 1;
}

/* Lets the cache fetch the groups and links of TOGETHER moments from `first` on, since those of a whole feed do not stay in it. */
static inline void fetch_runs(const RunSweep *all, i64 first) {
  for (i64 i = first; i < lesser(first + TOGETHER, all->came.moments.count); i++) {
    fetch_row(all->t.groups, all->t.group_width, all->came.group[i]);
    fetch_row(all->runs.links, all->runs.links_width, all->came.group[i]);
  }
}

/* ---------------------------------------------------------------- instants */
/* Begins the instant of at->moment; returns whether there is room for its reports. */
static int begin_instant(const RunSweep *all, i64 now) {
  const Moments *came = &all->came.moments;
  AtRecord *at = all->t.at;
  i64 after = at->moment;
  int wakes = 0;
  if (!expire_runs(all, now)) return 0;
  for (; after < came->count && came->moments[after].now == now; after++) wakes |= came->moments[after].side == WAKE;
  at->need = after - at->moment + (wakes ? at->live : 0);
  if (at->found + at->need > all->out.room) return 0;
  at->stamped++;
  *all->came.begun = (BegunRecord){.first_moment = at->moment, .gained = 0};
  return 1;
}

/* Lets UNTIL's solutions break links, and with EACH the runs that grew report. */
static void end_instant(const RunSweep *all, i64 now) {
  const MomentRecord *moments = all->came.moments.moments;
  BegunRecord *begun = all->came.begun;
  for (i64 i = begun->first_moment; i < all->t.at->moment; i++)
    if (moments[i].side == WAKE) break_links(all, i);
  if (all->runs.clock->closing == 0)
    for (i64 k = 0; k < begun->gained; k++)
      report_run(&all->t, &all->runs, all->gained[k], all->came.moments.key_n, &all->out, moments[begun->first_moment].entry, now);
  begun->first_moment = NONE;
}

/* Takes in the moments from at->moment on, then ends all runs whose deadlines come before the clock's limit. Returns DONE; ROOM where at->need more
 * reports may be than there is room for; or UNDECIDED, where the host has to decide the link of at->moment. */
static i64 sweep_elements(const RunSweep *all) {
  const Moments *came = &all->came.moments;
  AtRecord *at = all->t.at;
  while (at->moment < came->count) {
    i64 now = came->moments[at->moment].now;
    if (all->came.begun->first_moment == NONE && !begin_instant(all, now)) return ROOM;
    for (; at->moment < came->count && came->moments[at->moment].now == now; at->moment++) {
      if (at->moment % TOGETHER == 0) fetch_runs(all, at->moment);
      if (came->moments[at->moment].side == SOLUTION && !take_element(all, at->moment)) return UNDECIDED;
    }
    end_instant(all, now);
  }
  return expire_runs(all, all->runs.clock->limit) ? DONE : ROOM;
}

/* Returns whether each element has a group, as `place_elements` gives them, and those that begin a run have room in the heap. */
static int has_groups(const RunSweep *all) {
  const Elements *came = &all->came;
  for (i64 i = all->t.at->moment; i < came->moments.count; i++)
    if (came->moments.moments[i].side == SOLUTION && (came->group[i] < 0 || came->group[i] >= all->t.at->groups_top)) return 0;
  return all->runs.clock->within >= FOREVER || all->runs.heap_room >= all->t.at->groups_top;
}

/* tables; runs; elements; gained: room for a group a moment; out: at->found reports. A report of a deadline has no entry (NONE). */
static int sweep_runs(const Argument *in, i64 *out) {
  const Argument *elements = in + TABLE_ARGUMENTS + RUN_ARGUMENTS, *rest = elements + ELEMENT_ARGUMENTS;
  RunSweep all;
  all.gained = rest[0].view.at;
  if (!take_tables(in, &all.t) || !take_runs(in + TABLE_ARGUMENTS, all.t.at->groups_top, &all.runs)) return OUT_OF_BOUNDS;
  if (!take_elements(elements, &all.t, &all.came) || !is_code(&all.t, &all.came)) return OUT_OF_BOUNDS;
  if (!take_reports(rest[1].view, &all.t, all.came.moments.key_n, &all.out) || rest[0].view.count < all.came.moments.count) return OUT_OF_BOUNDS;
  if (all.t.at->moment < 0 || !has_groups(&all)) return OUT_OF_BOUNDS;
  out[0] = sweep_elements(&all);
  return FINE;
}
