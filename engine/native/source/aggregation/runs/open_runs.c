/* Open runs stand in a list by their last elements, which is the order of their ends by GAP, and in a heap by when WITHIN ends them. */

/* ---------------------------------------------------------------- the list */
/* Makes the run of a group, which is in no list, the one with the newest last element. */
static inline void append_run(const Runs *runs, i64 g) {
  i64 last = runs->clock->newest_run;
  links_at(runs, g)->older_run = last;
  links_at(runs, g)->newer_run = NONE;
  if (last == NONE)
    runs->clock->oldest_run = g;
  else
    links_at(runs, last)->newer_run = g;
  runs->clock->newest_run = g;
}

static inline void unlink_run(const Runs *runs, i64 g) {
  i64 older = links_at(runs, g)->older_run, newer = links_at(runs, g)->newer_run;
  if (older == NONE)
    runs->clock->oldest_run = newer;
  else
    links_at(runs, older)->newer_run = newer;
  if (newer == NONE)
    runs->clock->newest_run = older;
  else
    links_at(runs, newer)->older_run = older;
}

/* ---------------------------------------------------------------- the heap */
static inline i64 due_at(const Runs *runs, i64 place) { return links_at(runs, runs->heap[place])->due_at; }

static inline void put_run(const Runs *runs, i64 g, i64 place) {
  runs->heap[place] = g;
  links_at(runs, g)->place = place;
}

/* Puts a group's run at `place` of the heap, which is free or its own, and then up or down to where it belongs. */
static void move_run(const Runs *runs, i64 g, i64 place) {
  i64 due = links_at(runs, g)->due_at, n = runs->clock->heaped;
  for (; place > 0 && due < due_at(runs, (place - 1) / 2); place = (place - 1) / 2) put_run(runs, runs->heap[(place - 1) / 2], place);
  while (2 * place + 1 < n) {
    i64 below = 2 * place + 1;
    if (below + 1 < n && due_at(runs, below + 1) < due_at(runs, below)) below++;
    if (due_at(runs, below) >= due) break;
    put_run(runs, runs->heap[below], place);
    place = below;
  }
  put_run(runs, g, place);
}

/* Enters when WITHIN ends the run of a group. With CLOSED, a run with an element after the last instant of the streams has no deadline. */
static void set_due(const Tables *t, const Runs *runs, i64 g) {
  LinksRecord *links = links_at(runs, g);
  i64 due = greater(links->last_end, group_at(t, g)->least + runs->clock->within);
  if (runs->clock->closing != 0 && links->last_end > t->at->horizon) due = FOREVER;
  if (links->place == NONE) {
    links->due_at = due;
    move_run(runs, g, runs->clock->heaped++);
  } else if (links->due_at != due) {
    links->due_at = due;
    move_run(runs, g, links->place);
  }
}

static inline void unset_due(const Runs *runs, i64 g) {
  i64 place = links_at(runs, g)->place;
  if (place == NONE) return;
  links_at(runs, g)->place = NONE;
  i64 n = --runs->clock->heaped;
  if (place < n) move_run(runs, runs->heap[n], place);
}

/* ---------------------------------------------------------------- deadlines, and the ends of runs */
typedef struct {
  i64 group, due;
} Deadline;

/* Returns the group whose run time ends first, and when; NONE if time ends none. A run without deadline reports, with CLOSED, at the last
 * instant of the streams, once that is known. */
static inline Deadline next_deadline(const Runs *runs, i64 horizon) {
  const ClockRecord *clock = runs->clock;
  Deadline found = {NONE, FOREVER};
  i64 head = clock->oldest_run;
  if (head != NONE && (clock->closing == 0 || links_at(runs, head)->last_end <= horizon)) {
    if (clock->gap < FOREVER)
      found = (Deadline){head, links_at(runs, head)->last_end + clock->gap};
    else if (clock->within == FOREVER && clock->closing != 0 && horizon < FOREVER)
      found = (Deadline){head, horizon};
  }
  if (clock->heaped > 0 && due_at(runs, 0) < found.due) found = (Deadline){runs->heap[0], due_at(runs, 0)};
  return found;
}

/* at; clock, links, heap. Gives when time ends the first run, FOREVER if it ends none. */
static int find_deadline(const Argument *in, i64 *out) {
  const AtRecord *at = in[0].view.at;
  Runs runs;
  if (in[0].view.count < AT_WIDTH || !take_runs(in + 1, at->groups_top, &runs)) return OUT_OF_BOUNDS;
  out[0] = next_deadline(&runs, at->horizon).due;
  return FINE;
}

/* Reports the run of a group, on its least start and this instant. */
static inline void report_run(const Tables *t, const Runs *runs, i64 g, i64 key_n, const Reports *out, i64 entry, i64 now) {
  if (links_at(runs, g)->reported == t->at->stamped) runs->clock->repeated = 1;
  links_at(runs, g)->reported = t->at->stamped;
  report_group(t, g, key_n, out, entry, group_at(t, g)->least, now);
}

/* Takes out the run of a group, and the group too if none of its moments is to come. */
static inline void close_run(const Tables *t, const Runs *runs, i64 g, i64 key_n) {
  unlink_run(runs, g);
  unset_due(runs, g);
  if (links_at(runs, g)->coming == 0)
    free_group(t, key_n, g);
  else
    empty_group(t, key_n, g);
}
