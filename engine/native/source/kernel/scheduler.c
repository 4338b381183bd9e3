/* The loop goes instant by instant in order of end; inside one, it runs the fixpoint, then the waiting strata from the lowest. */

/* Returns how much a pool has room for beyond the first n. */
static inline i64 room_in(Net net, i64 table, i64 n) { return height_of(net, table) - n; }

/* Gives credit for steps: each is sure to find room for what it adds, at most `margin` to a pool, so none breaks off. */
static i64 grant_credit(Net net) {
  AtRecord *at = net->at;
  i64 unanswered = at->asked - at->answered;
  if (at->endless != NONE) return EXCEEDED;
  if (unanswered >= MOST_OPEN) return HOST;
  i64 spare = room_in(net, TABLE_ROWS, at->used) + at->free;
  spare = lesser(spare, room_in(net, TABLE_OUT, at->found));
  spare = lesser(spare, room_in(net, TABLE_STACK, at->depth));
  spare = lesser(spare, room_in(net, TABLE_PARKED, at->parked));
  spare = lesser(spare, room_in(net, TABLE_WAITING, at->waiting));
  spare = lesser(spare, room_in(net, TABLE_GATHERED, at->gathered));
  spare = lesser(spare, room_in(net, TABLE_SEEN, at->seen_n) - MOST_FEW); /* for those that enter when the kernel returns */
  spare = lesser(spare, room_in(net, TABLE_QUESTIONS, at->asked));
  spare = lesser(spare, room_in(net, TABLE_DEFERRED, at->deferred_n));
  at->credit = lesser(divide_down(spare, at->margin), 1 + divide_down(MOST_OPEN - unanswered, at->margin));
  return at->credit > 0 ? DONE : GROW;
}

/* Takes another step of a row that had more results than a chunk. */
static void go_on(Net net, i64 node, i64 task, i64 x, i64 goal) {
  count_made(net, node, 1);
  if (node_at(net, node)->kind == JOIN) go_on_join(net, node, side_of(task), x, goal, goes_on_stored(task));
  else go_on_negative(net, node, side_of(task), x, goal);
}

/* Frees what a row of a query that has left was to do. */
static void drop_work(Net net, i64 task, i64 x, i64 goal) {
  if (task == FIND_ON && goal != NONE) free_found_rows(net, x, goal);
  if (!holds_goal(task)) free_row(net, x);
}

/* Takes in a row at a node whose kind has no tasks of its own. */
static void arrive_by_kind(Net net, i64 node, i64 task, i64 x) {
  const NodesRecord *here = node_at(net, node);
  switch (here->kind) {
  case OUT: write_solution(net, node, x); return;
  case PASS:
    if (row_at(net, x)->start < net->at->now - here->span) free_row(net, x);
    else emit_elsewhere(net, node, x);
    return;
  case EXTEND: bind_answer(net, node, x); return;
  case MOVE: project_row(net, node, x); return;
  case COLLECT: arrive_collect(net, node, task, x); return;
  case MARK: arrive_mark(net, node, x); return;
  case FIRST: emit_first_of_key(net, node, x); return;
  case EARLIEST: emit_earliest(net, node, x); return;
  case LATEST: arrive_latest(net, node, x); return;
  default: arrive_negative(net, node, task, x);
  }
}

/* Takes one step for one solution at one node, off the hottest path, which is in `work`. */
static void arrive_elsewhere(Net net, i64 node, i64 task, i64 x, i64 goal) {
  i64 kind = node_at(net, node)->kind;
  if (kind == DROPPED) drop_work(net, task, x, goal);
  else if (task == EMIT) emit_elsewhere(net, node, x);
  else if (task == FAN) fan_out_row(net, node, x);
  else if (task == FIND_ON) emit_looked_up(net, node, x, goal);
  else if (kind == INSTANCES) join_instances(net, node, x, task == LOOK_ON ? goal : NONE);
  else if (task == LOOK_ON || task == LOOK_ON_STORED) join_background(net, node, task, x, goal);
  else if (kind == RECENT || kind == CHRONOLOGICAL) arrive_policy(net, node, task, x, goal);
  else if (kind == ONCE) do_once_task(net, node, task, x);
  else if (decides(task)) decide(net, node, side_of(task), x);
  else if (goes_on(task)) go_on(net, node, task, x, goal);
  else arrive_by_kind(net, node, task, x);
}

/* Returns when waiting work is called: by its stratum, and of a policy's node by its phase. */
static inline i64 turn_of(Net net, i64 k) {
  return TASKS_OF_CLOSE * node_at(net, waiting_at(net, k)->node)->stratum + phase_of(waiting_at(net, k)->task);
}

/* Returns whether waiting work is decided at the end of its entry, though the instant may go on. */
static inline int waits_for_entry(Net net, i64 k) {
  const Frame *frame = waiting_at(net, k);
  i64 kind = node_at(net, frame->node)->kind;
  if (frame->task == RIGHT_CHOICE) return kind == CHRONOLOGICAL && chooses_early(net, frame->node);
  return frame->task == DECIDE_LEFT && (kind == ONCE || is_local(net, frame->node, frame->row));
}

/* Returns whether waiting work is decided at the end of the star. */
static inline int waits_for_star(Net net, i64 k) {
  const Frame *frame = waiting_at(net, k);
  return frame->task == DECIDE_LEFT && is_of_star(net, node_at(net, frame->node), row_at(net, frame->row));
}

/* Returns whether waiting work is decided at the close of the instant, as all is by then. */
static inline int waits_for_instant(Net net, i64 k) {
  (void)net;
  (void)k;
  return 1;
}

typedef int Waits(Net net, i64 k);

/* Moves the waiting work whose turn is next to the stack, of the places from `first` on for which `waits` holds. The stack takes then what no step
 * adds. Returns whether there is any. */
static inline int call_next(Net net, i64 first, Waits *waits) {
  AtRecord *at = net->at;
  i64 kept = first, lowest = BIG;
  for (i64 k = first; k < at->waiting; k++)
    if (waits(net, k)) lowest = lesser(lowest, turn_of(net, k));
  if (lowest == BIG) return 0;
  for (i64 k = first; k < at->waiting; k++) {
    const Frame *frame = waiting_at(net, k);
    if (turn_of(net, k) == lowest && waits(net, k)) push_frame(net, frame->node, frame->task, frame->row);
    else *waiting_at(net, kept++) = *frame;
  }
  at->waiting = kept;
  at->credit = 0;
  return 1;
}

/* Begins another instant. Nothing is parked between instants, so all answers may go. */
static void open_instant(Net net, i64 now) {
  AtRecord *at = net->at;
  at->now = now;
  at->seen_first += at->seen_n;
  at->seen_most = greater(at->seen_most, at->seen_n);
  at->seen_n = 0;
  at->few_from = at->found;
  at->most_now = at->most_made;
  if (at->asked > at->memo_limit && at->answered == at->asked) {
    for (i64 head = 0; head <= net->question_heads.mask; head++) net->question_heads.at[head] = NONE;
    at->asked = at->answered = 0;
  }
}

/* Does one part of closing what lies before `until`: timers due, then the lowest waiting stratum. Returns 0 when all is closed. */
static int close_part(Net net, i64 until, i64 entry) {
  AtRecord *at = net->at;
  i64 due = find_next_due(net);
  if (due < until && (due <= at->now || at->waiting == 0)) {
    if (due > at->now && due != AT_END) open_instant(net, due);
    at->entry = entry;
    call_timer(net);
    return 1;
  }
  if (at->waiting == 0) return 0;
  at->entry = entry;
  return call_next(net, 0, waits_for_instant);
}

/* Takes in one column of the feed, at its instant. A stream may be fed after its readers' time has passed without it. */
static inline void take_in_event(Net net, i64 i) {
  AtRecord *at = net->at;
  i64 end = fed(net, IN_END, i);
  at->event = i + 1;
  at->entry = fed(net, IN_ENTRY, i);
  if (fed(net, IN_KIND, i) == OPENING) open_query(net, fed(net, IN_S, i));
  else if (end < at->now) at->late++;
  else {
    at->most_now += at->most_each;
    i64 stream = fed(net, IN_STREAM, i), since = fed(net, IN_SINCE, i);
    TimedTriple occurrence = {fed(net, IN_S, i), fed(net, IN_P, i), fed(net, IN_O, i), fed(net, IN_G, i), fed(net, IN_START, i), end};
    if (fed(net, IN_KIND, i) == WHOLE && at->star_subject == UNBOUND) open_star(net, stream, occurrence.s);
    int alone = at->fed_alone != 0 && 0 < i && i < at->events - 1 && fed(net, IN_END, i + 1) != end && fed(net, IN_END, i - 1) != end;
    if (alone || enter_occurrence(net, stream, &occurrence, since)) scan_occurrence(net, stream, &occurrence, since);
  }
}

/* Takes in one column of the feed, or does a part of closing what lies before it. */
static i64 pass_column(Net net, i64 i) {
  AtRecord *at = net->at;
  i64 end = fed(net, IN_END, i), kind = fed(net, IN_KIND, i);
  if (kind == LAST) {
    at->horizon = end;
    at->event = i + 1;
    return ONWARD;
  }
  if (end > at->now) {
    if (at->now > -BIG && close_part(net, end, fed(net, IN_ENTRY, i))) return ONWARD;
    if (kind != TICK) open_instant(net, end);
  }
  if (kind == TICK) at->event = i + 1;
  else take_in_event(net, i);
  return ONWARD;
}

/* Returns whether column i of the feed belongs to the star of the one before it. */
static inline int goes_on_star(Net net, i64 i) {
  const AtRecord *at = net->at;
  return i < at->events && fed(net, IN_KIND, i) == WHOLE && fed(net, IN_S, i) == at->star_subject && fed(net, IN_END, i) == at->now &&
         fed(net, IN_STREAM, i) == at->star_stream && fed(net, IN_SINCE, i) == fed(net, IN_SINCE, i - 1);
}

/* Goes on where nothing is on the stack; returns ONWARD, or why the kernel returns.
 * Every instant closes before a later one opens or time passes it. */
static i64 advance_feed(Net net) {
  AtRecord *at = net->at;
  i64 i = at->event;
  if (at->star_subject != UNBOUND && !goes_on_star(net, i)) {
    if (at->waiting > height_of(net, TABLE_STACK)) return GROW;
    if (call_next(net, at->star_waiting, waits_for_star)) return ONWARD;
    close_star(net);
  }
  if (at->choices != 0 && (i == at->events || fed(net, IN_ENTRY, i) != at->entry)) {
    if (at->waiting > height_of(net, TABLE_STACK)) return GROW;
    at->choices = call_next(net, 0, waits_for_entry); /* stratum by stratum */
    return ONWARD;
  }
  if (at->reports == 0 && at->deferred_n > (i < at->events ? MOST_DEFERRED : 0)) return DECISION;
  if (at->reports == 0 && i == at->events) {
    if (at->endless != NONE) return EXCEEDED;
    sweep_stores_in_turn(net);
    return DONE;
  }
  if (at->credit == 0) {
    i64 code = grant_credit(net);
    if (code != DONE) return code;
  }
  at->credit--;
  if (at->reports > 0) {
    emit_report(net);
    return ONWARD;
  }
  return at->waiting > height_of(net, TABLE_STACK) ? GROW : pass_column(net, i);
}

/* Takes the next step: what is on the stack comes first, which is the positive fixpoint of the instant; only then is there more of the feed. */
static inline i64 take_step(Net net) {
  AtRecord *at = net->at;
  if (at->depth == 0) return at->parked > 0 ? HOST : at->gathered > 0 ? COLLECTION : advance_feed(net);
  if (at->credit == 0) {
    i64 code = grant_credit(net);
    if (code != DONE) return code;
  }
  at->credit--;
  const Frame frame = *frame_at(net, --at->depth);
  i64 kind = node_at(net, frame.node)->kind;
  if (frame.task <= BLOCKER) store_at(net, SIDES * frame.node + frame.task)->taken++;
  if (kind == JOIN && frame.task <= RIGHT) arrive_join(net, frame.node, frame.task, frame.row);
  else if (kind == WITHOUT && frame.task <= BLOCKER) arrive_without(net, frame.node, frame.task, frame.row);
  else arrive_elsewhere(net, frame.node, frame.task, frame.row, frame.goal);
  return ONWARD;
}

/* Works until the feed is done or the host is needed. The host may have filled pools before, and may take solutions while the instant goes on. */
static i64 work(Net net) {
  i64 code = ONWARD;
  net->at->credit = 0;
  enter_timers(net);
  while (code == ONWARD) code = take_step(net);
  remember_few(net, net->at->found);
  return code;
}

/* the handle. Works until the feed is done or the host is needed; gives which of both, by a code. */
static int run(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  out[0] = work(&tables);
  return FINE;
}
