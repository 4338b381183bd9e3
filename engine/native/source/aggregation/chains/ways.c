/* The matches of a chain, one by one: where an event lasts, or where a label of four or more operands repeats.
 *
 * Matches are one solution if all their labels agree, and the start of the first event and the end of the last one. So of equal sequences of labels
 * one way counts: that in which each event is the first to end of those that follow the one before it. If any way leads on, this one does.
 * With WITHOUT, another way has other blockers. So of equal sequences that one counts which has the newest events, among the ways that there are. */

typedef struct {
  const Chains *c;
  i64 k, start, horizon;   /* the key; when the last event starts; before which no first event may start */
  i64 at[MOST_STEPS];      /* the event of each operand */
  i64 next[MOST_STEPS];    /* where each operand goes on */
} Ways;

/* Returns whether an event of the first operand is the first to end of those with its label and start. */
static int is_first_to_end(const Chains *c, i64 e) {
  i64 start = event_at(c, e)->start;
  for (i64 other = event_at(c, e)->same; other != NONE && is_live(c, other) && event_at(c, other)->end >= start; other = event_at(c, other)->same)
    if (event_at(c, other)->start == start) return 0;
  return 1;
}

/* Returns whether e follows an event that ended then, and no other one with its label does so and ends before e. */
static int is_first_to_follow(const Chains *c, i64 e, i64 end) {
  if (event_at(c, e)->start <= end) return 0;
  for (i64 other = event_at(c, e)->same; other != NONE && is_live(c, other) && event_at(c, other)->end > end; other = event_at(c, other)->same)
    if (event_at(c, other)->start > end) return 0;
  return 1;
}

/* Returns whether a gap of a key has a blocker that starts after one instant and ends before another one. */
static int is_cut(const Chains *c, i64 k, i64 gap, i64 after, i64 before) {
  i64 owner = owner_of(c, k, gap), z = owner == NONE ? NONE : *blocker_at(c, owner, gap);
  for (; z != NONE && is_live(c, z) && event_at(c, z)->end > after; z = event_at(c, z)->same)
    if (event_at(c, z)->end < before && event_at(c, z)->start > after) return 1;
  return 0;
}

/* Returns whether event e of an operand may follow those of the operands before it on a way between blockers. */
static int follows_uncut(const Ways *way, const i64 *before, i64 step, i64 e) {
  const Chains *c = way->c;
  const EventRecord *event = event_at(c, e);
  if (event->end >= way->start) return 0;
  if (step == 0 ? event->start < way->horizon : event->start <= event_at(c, before[step - 1])->end) return 0;
  if (step > 0 && is_cut(c, way->k, step - 1, event_at(c, before[step - 1])->end, event->start)) return 0;
  return step < c->at->steps - 2 || !is_cut(c, way->k, step, event->end, way->start);
}

/* Finds the newest events with the labels of a way, and the start of its first event, that are a way to a last event themselves; those of the
 * operands before `step` are chosen. */
static int choose_newest(const Ways *way, i64 *chosen, i64 step) {
  const Chains *c = way->c;
  if (step >= MOST_STEPS - 1 || step >= c->at->steps - 1) return 1;
  for (i64 e = find_label(c, way->at[step]); e != NONE && is_live(c, e); e = event_at(c, e)->same) {
    if (step == 0 && event_at(c, e)->start != event_at(c, way->at[0])->start) continue;
    if (!follows_uncut(way, chosen, step, e)) continue;
    chosen[step] = e;
    if (choose_newest(way, chosen, step + 1)) return 1;
  }
  return 0;
}

/* Returns whether a way between blockers is the one that counts of those that are the same solution. */
static int is_newest_way(const Ways *way) {
  i64 chosen[MOST_STEPS];
  return choose_newest(way, chosen, 0) && memcmp(chosen, way->at, (size_t)(way->c->at->steps - 1) * sizeof(i64)) == 0;
}

/* Returns the first event of an operand that may follow event e of the operand before. */
static i64 first_after(const Chains *c, i64 k, i64 e, i64 step) {
  i64 later = event_at(c, e)->later;
  return later != NONE && is_live(c, later) ? event_at(c, later)->newer : *oldest_of(c, k, step);
}

/* Finds the next event of an operand that goes on with the way. */
static int advance(Ways *way, i64 step) {
  const Chains *c = way->c;
  for (i64 e = way->next[step]; e != NONE && event_at(c, e)->end < way->start; e = event_at(c, e)->newer) {
    int fits = c->cuts    ? follows_uncut(way, way->at, step, e)
               : step > 0 ? is_first_to_follow(c, e, event_at(c, way->at[step - 1])->end)
                          : event_at(c, e)->start >= way->horizon && is_first_to_end(c, e);
    if (!fits) continue;
    way->at[step] = e;
    way->next[step] = event_at(c, e)->newer;
    return 1;
  }
  return 0;
}

/* Begins with the ways of a key to a last event that starts then. */
static Ways begin_ways(const Chains *c, i64 k, i64 start, i64 horizon, i64 *step) {
  Ways way = {.c = c, .k = k, .start = start, .horizon = horizon};
  way.next[0] = *oldest_of(c, k, 0);
  *step = 0;
  return way;
}

/* Finds the next way; `step` is the operand that goes on. Returns whether there is one. */
static int next_way(Ways *way, i64 *step) {
  i64 last = way->c->at->steps - 2;
  while (*step >= 0) {
    if (!advance(way, *step)) {
      --*step;
      continue;
    }
    if (*step == last) return 1;
    ++*step;
    way->next[*step] = first_after(way->c, way->k, way->at[*step - 1], *step);
  }
  return 0;
}
