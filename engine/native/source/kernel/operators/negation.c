/* These operators decide on absence: OPTIONAL, OPTIONALSEQ, EQUALSOPTIONAL, MINUS, EXISTS, WITHOUT in both forms.
 *
 * The decided side waits until its stratum's turn at the close of its instant; then all that can count against it is stored. If that all describes a
 * node that is local, the end of the entry is enough. The store of that side has no partners. It keeps the timeless rows that were not handed on by
 * themselves (docs/decisions/0036-what-a-window-let-go.md). */

enum { ROOM_TO_ASK = 4, CARRY_ON = -1, DESCEND = -2 };
/* ROOM_TO_ASK: left in the memo, or a step that asks for many goals waits for answers first. CARRY_ON, DESCEND: beside verdicts. */

static inline i64 decided_side(i64 kind) { return kind == OPTIONALSEQ ? RIGHT : LEFT; }

static inline int lacks_room_to_ask(Net net) { return height_of(net, TABLE_QUESTIONS) - net->at->asked < ROOM_TO_ASK; }

/* Returns whether x alone is short enough to be joined. */
static inline int is_in_span(Net net, i64 node, i64 x) { return row_at(net, x)->start >= net->at->now - node_at(net, node)->span; }

/* Returns whether a WITHOUT discards the goals that its blockers have passed. */
static inline int is_passing(const NodesRecord *here) { return here->kind == WITHOUT && here->passing != NOT_PASSING; }

static void store_side(Net net, i64 node, i64 side, i64 x) {
  const NodesRecord *here = node_at(net, node);
  i64 store = store_of(node, side), at = side == BLOCKER ? here->key2_at : here->key_at, n = side == BLOCKER ? here->key2_n : here->key_n;
  i64 life = life_of(here, side);
  count_made(net, node, 1);
  if (is_of_star(net, here, row_at(net, x))) {
    store_in_star(net, store, hash_stored_key(net, store, row_at(net, x), at, n), x);
    return;
  }
  if (is_passing(here)) {
    if (side == BLOCKER) life = FOREVER; /* they leave by retire_blockers */
    else link_before(net, store, x);
  }
  store_goal(net, store, hash_stored_key(net, store, row_at(net, x), at, n), x, life);
}

/* Returns the newest goal of the chain that holds what may join x. */
static i64 find_newest_partner(Net net, i64 node, i64 side, i64 x, int timeless) {
  if (is_of_star(net, node_at(net, node), row_at(net, x))) return store_at(net, store_of(node, opposite_of(side)))->star_head;
  i64 hash = hash_in_store(store_of(node, opposite_of(side)), hash_join_key(net, node, x));
  return timeless ? find_newest_timeless(net, hash) : find_newest(net, hash);
}

/* ---------------------------------------------------------------- MINUS, EXISTS and NOT EXISTS */
/* Begins to look through the goals of a node for those that join x. */
static void enter_level(Net net, i64 level, i64 node, i64 x, i64 until) {
  NestsRecord *nest = nest_at(net, level);
  const NodesRecord *here = node_at(net, node);
  i64 hash = hash_stored_key(net, store_of(node, RIGHT), row_at(net, x), here->key_at, here->key_n);
  nest->node = node;
  nest->row = x;
  nest->until = until;
  nest->hash = hash;
  nest->goal = is_of_star(net, here, row_at(net, x)) ? store_at(net, store_of(node, RIGHT))->star_head : find_newest(net, hash);
  nest->timeless = TIMED;
  nest->mark = NONE;
  nest->pending = 0;
}

/* Frees the row that the level stands at, where the row has been looked up. */
static inline void leave_level(Net net, const NestsRecord *nest) {
  if (nest->timeless == LOOKED_UP && nest->goal != NONE) free_found_rows(net, nest->row, nest->goal);
}

/* Begins with the EXISTS that the level above has come to, for the goal that it has joined. */
static void enter_marked_level(Net net, i64 level) {
  const NestsRecord *above = nest_at(net, level - 1);
  const NodesRecord *node = node_at(net, above->node);
  i64 other = edge_at(net, node->mark_at + above->mark)->node;
  i64 latest = above->timeless != TIMED ? query_at(net, node->query)->t0 : row_at(net, above->goal)->end;
  enter_level(net, level, other, above->joined, latest);
}

/* Returns whether x and a right goal are compatible; for MINUS they must also share a variable. */
static inline int is_counted_match(Net net, i64 node, const Row *x, const Row *goal) {
  const NodesRecord *here = node_at(net, node);
  return has_same_key(net, x, goal, here->key_at, here->key_n) && is_compatible(net, x, goal, here->rest_at, here->rest_n) &&
         (here->kind != MINUS || here->by_right != 0 || shares_variable(net, x, goal, here->rest_at, here->rest_n));
}

/* Returns the goal of the level's chain, from the one that it stands at on, that joins its row, or NONE. */
static i64 find_match_in_chain(Net net, const NestsRecord *nest) {
  const Row *row = row_at(net, nest->row);
  for (i64 goal = nest->goal; goal != NONE; goal = row_at(net, goal)->older) {
    const Row *other = row_at(net, goal);
    net->at->spent += other->hash == nest->hash;
    int in_time = nest->timeless != TIMED || other->end <= nest->until;
    if (in_time && other->hash == nest->hash && is_counted_match(net, nest->node, row, other)) return goal;
  }
  return NONE;
}

/* Returns the level's goal, or the next one, that joins its row; timeless goals come after the timed ones, and then what is looked up. */
static i64 find_next_match(Net net, NestsRecord *nest) {
  while (nest->timeless != LOOKED_UP) {
    i64 goal = find_match_in_chain(net, nest);
    if (goal != NONE) return nest->goal = goal;
    if (node_at(net, nest->node)->timeless == 0) return NONE;
    if (nest->timeless == TIMED) {
      nest->timeless = TIMELESS_TOO;
      nest->goal = find_newest_timeless(net, nest->hash);
    } else if (!has_finds(net, nest->node)) return NONE;
    else {
      nest->timeless = LOOKED_UP;
      nest->goal = find_first_row(net, nest->node, nest->row);
    }
  }
  return nest->goal;
}

/* Returns the level's row joined with its goal, or with what it has looked up. */
static i64 join_at_level(Net net, const NestsRecord *nest) {
  if (nest->timeless == LOOKED_UP) return copy_row(net, nest->goal);
  return join_rows(net, row_at(net, nest->row), row_at(net, nest->goal));
}

/* Goes on to the goal after the one that the level has judged. */
static void leave_goal(Net net, NestsRecord *nest) {
  nest->mark = NONE;
  nest->goal = nest->timeless == LOOKED_UP ? find_next_row(net, nest->row, nest->goal) : row_at(net, nest->goal)->older;
}

/* Looks at one goal, or at one EXISTS of its condition. Returns the level's verdict, CARRY_ON, or DESCEND to the EXISTS whose turn it is. */
static i64 step_level(Net net, i64 level) {
  NestsRecord *nest = nest_at(net, level);
  const NodesRecord *here = node_at(net, nest->node);
  if (nest->mark == NONE) {
    if (find_next_match(net, nest) == NONE) return nest->pending != 0 ? PENDING : FALSE;
    if (here->condition == NONE) return TRUE;
    if (lacks_room_to_ask(net)) return PENDING;
    nest->joined = join_at_level(net, nest);
    nest->mark = nest->unmarked = 0;
    net->at->spent += JOIN_COST;
  }
  if (nest->mark < here->mark_n) return DESCEND;
  i64 verdict = nest->unmarked != 0 ? PENDING : judge_filter(net, here->condition, row_at(net, nest->joined));
  free_row(net, nest->joined);
  if (verdict == TRUE) return TRUE;
  if (verdict == PENDING) nest->pending = 1;
  leave_goal(net, nest);
  return CARRY_ON;
}

/* Writes into a row what an EXISTS says of it. */
static inline void mark_row(Net net, i64 x, i64 exists, i64 verdict) {
  i64 mark = verdict == TRUE ? net->at->true_term : net->at->false_term;
  *term_at(net, row_at(net, x), node_at(net, exists)->column) = (int32_t)mark;
}

/* Returns whether a goal of the right side that ends by `until` is compatible with x and, joined with it, satisfies the node's condition.
 * TRUE, FALSE or PENDING. What an EXISTS in the condition looks at ends by the goal's end, since it is the goal that it decides on. Levels of
 * EXISTS in EXISTS are rows of `nests`, so that their number has a bound. */
static i64 judge_exists(Net net, i64 node, i64 x, i64 until) {
  i64 level = 0;
  enter_level(net, level, node, x, until);
  for (;;) {
    i64 verdict = step_level(net, level);
    if (verdict == DESCEND) {
      level++;
      enter_marked_level(net, level);
    } else if (verdict != CARRY_ON) {
      leave_level(net, nest_at(net, level));
      if (level == 0) return verdict;
      NestsRecord *above = nest_at(net, --level);
      mark_row(net, above->joined, edge_at(net, node_at(net, above->node)->mark_at + above->mark)->node, verdict);
      if (verdict == PENDING) above->unmarked = 1;
      above->mark++;
    }
  }
}

static void decide_minus(Net net, i64 node, i64 x) {
  i64 verdict = judge_exists(net, node, x, BIG);
  if (verdict == PENDING) park_frame(net, node, DECIDE_LEFT, x);
  else if ((verdict == TRUE) == (node_at(net, node)->kind == EXISTS)) emit_elsewhere(net, node, x);
  else if (is_timeless(row_at(net, x))) store_side(net, node, LEFT, x);
  else free_row(net, x);
}

/* Writes into the row whether each EXISTS that the node's condition asks of has a solution for it. Returns TRUE when done, or PENDING. */
static i64 set_marks(Net net, i64 node, i64 x) {
  const NodesRecord *here = node_at(net, node);
  for (i64 k = here->mark_at; k < here->mark_at + here->mark_n; k++) {
    i64 exists = edge_at(net, k)->node, verdict = judge_exists(net, exists, x, BIG);
    if (verdict == PENDING) return PENDING;
    mark_row(net, x, exists, verdict);
  }
  return TRUE;
}

static void arrive_mark(Net net, i64 node, i64 x) { wait_for_close(net, node, DECIDE_LEFT, x); }

static void decide_mark(Net net, i64 node, i64 x) {
  if (set_marks(net, node, x) == PENDING) {
    park_frame(net, node, DECIDE_LEFT, x);
    return;
  }
  if (is_timeless(row_at(net, x))) store_side(net, node, LEFT, copy_row(net, x));
  emit_elsewhere(net, node, x);
}

/* ---------------------------------------------------------------- OPTIONAL */
/* Returns whether a join satisfies the condition of the optional part: TRUE, FALSE or PENDING. */
static i64 judge_join(Net net, i64 node, i64 z) {
  i64 condition = node_at(net, node)->condition;
  if (condition == NONE) return TRUE;
  return set_marks(net, node, z) == PENDING ? PENDING : judge_filter(net, condition, row_at(net, z));
}

static i64 judge_joins_in(Net net, i64 node, i64 side, i64 x, i64 goal) {
  const Terms terms = read_terms(net, node, side, hash_join_key(net, node, x));
  const Row *row = row_at(net, x);
  i64 found = FALSE, until = goal != NONE && is_timeless(row_at(net, goal)) ? -BIG : terms.until;
  for (; goal != NONE && row_at(net, goal)->end >= until; goal = row_at(net, goal)->older) {
    const Row *other = row_at(net, goal), *left = side == RIGHT ? other : row, *right = side == RIGHT ? row : other;
    if (other->hash != terms.hash) continue;
    net->at->spent++;
    if (!is_joinable(net, &terms, left, right)) continue;
    if (node_at(net, node)->condition == NONE) return TRUE;
    net->at->spent += JOIN_COST;
    if (lacks_room_to_ask(net)) return PENDING;
    i64 z = join_rows(net, left, right);
    found = greater(found, judge_join(net, node, z));
    free_row(net, z);
  }
  return found;
}

/* Returns what `judge_joins` does, for what the background has for x. */
static i64 judge_background(Net net, i64 node, i64 x) {
  i64 z = is_in_span(net, node, x) ? find_first_row(net, node, x) : NONE, found = FALSE;
  while (z != NONE) {
    int unconditional = node_at(net, node)->condition == NONE;
    if (unconditional || lacks_room_to_ask(net)) {
      free_found_rows(net, x, z);
      return unconditional ? TRUE : PENDING;
    }
    found = greater(found, judge_join(net, node, z));
    z = find_next_row(net, x, z);
  }
  return found;
}

/* Returns whether a goal joins x: TRUE, FALSE or PENDING, which outdoes TRUE. */
static i64 judge_joins(Net net, i64 node, i64 side, i64 x) {
  i64 verdict = judge_joins_in(net, node, side, x, find_newest_partner(net, node, side, x, 0));
  if (verdict == PENDING || node_at(net, node)->timeless == 0) return verdict;
  verdict = greater(verdict, judge_joins_in(net, node, side, x, find_newest_partner(net, node, side, x, 1)));
  if (verdict == PENDING || !has_finds(net, node)) return verdict;
  return greater(verdict, judge_background(net, node, x));
}

/* Hands on the join of x with a goal if the condition holds of it.
 * A join of a timeless x ends where its timed goal does. If that was before now, it goes on only as a mark, in nodes with a column for it. */
static void emit_join(Net net, i64 node, i64 z, int is_past) {
  if (judge_join(net, node, z) != TRUE) {
    free_row(net, z);
    return;
  }
  if (is_past) {
    Row *joined = row_at(net, z);
    joined->start = BIG;
    joined->end = -BIG;
    *term_at(net, joined, node_at(net, node)->column) = (int32_t)net->at->true_term;
  }
  emit_elsewhere(net, node, z);
}

/* Hands on the joins of x from `goal` on, whose verdicts are all known; timeless goals come after the timed ones. */
static void emit_joins(Net net, i64 node, i64 side, i64 x, i64 goal) {
  const Terms terms = read_terms(net, node, side, hash_join_key(net, node, x));
  const Row *row = row_at(net, x);
  i64 depth = net->at->depth, made = 0, past = node_at(net, node)->column;
  int timeless = goal != NONE && is_timeless(row_at(net, goal));
  i64 until = is_timeless(row) && past == 0 ? net->at->now : terms.until;
  for (;;) {
    for (; goal != NONE && (timeless || row_at(net, goal)->end >= until); goal = row_at(net, goal)->older) {
      const Row *other = row_at(net, goal), *left = side == RIGHT ? other : row, *right = side == RIGHT ? row : other;
      if (other->hash != terms.hash || !is_joinable(net, &terms, left, right)) continue;
      if (made == CHUNK) {
        push_frame_below(net, depth, node, task_to_go_on(side, 0), x, goal);
        return;
      }
      made++;
      emit_join(net, node, join_rows(net, left, right), past != 0 && is_timeless(row) && !timeless && other->end < net->at->now);
    }
    if (timeless || node_at(net, node)->timeless == 0) break;
    timeless = 1;
    goal = find_newest_partner(net, node, side, x, 1);
  }
  if (has_finds(net, node) && is_in_span(net, node, x)) push_frame_below(net, net->at->depth, node, FIND_ON, x, NONE); /* another step's results */
  else free_row(net, x);
}

/* Hands on the joins of x with what the background has for it, from z on. Their verdicts are all known. */
static void emit_looked_up(Net net, i64 node, i64 x, i64 z) {
  i64 depth = net->at->depth, made = 0;
  if (z == NONE) z = find_first_row(net, node, x);
  while (z != NONE) {
    if (made == CHUNK) {
      push_frame_below(net, depth, node, FIND_ON, x, z);
      return;
    }
    made++;
    if (judge_join(net, node, z) == TRUE) emit_elsewhere(net, node, copy_row(net, z));
    z = find_next_row(net, x, z);
  }
  free_row(net, x);
}

/* Hands on the joins of x where the condition holds, or x alone. Nothing leaves before every verdict is known. */
static void decide_optional(Net net, i64 node, i64 side, i64 x) {
  i64 verdict = judge_joins(net, node, side, x);
  if (verdict == PENDING) park_frame(net, node, task_to_decide(side), x);
  else if (verdict == FALSE) emit_elsewhere(net, node, x);
  else {
    if (is_timeless(row_at(net, x))) store_side(net, node, side, copy_row(net, x));
    i64 goal = find_newest_partner(net, node, side, x, 0);
    emit_joins(net, node, side, x, goal != NONE ? goal : find_newest_partner(net, node, side, x, 1));
  }
}

/* ---------------------------------------------------------------- WITHOUT */
/* Returns whether a goal of a chain of blockers that starts after `after` and ends at `until` at the latest is compatible with a row.
 * The chain falls in end, and what ended before began before. */
static int is_blocked_by(Net net, i64 node, const Row *row, i64 after, i64 until, i64 blocker, i64 hash) {
  const NodesRecord *here = node_at(net, node);
  while (blocker != NONE) {
    const Row *other = row_at(net, blocker);
    if (!(other->end > after || is_timeless(other))) return 0;
    if (other->hash == hash) {
      net->at->spent++;
      if (after < other->start && other->end <= until && has_same_key(net, other, row, here->key2_at, here->key2_n) &&
          is_compatible(net, other, row, here->rest2_at, here->rest2_n))
        return 1;
    }
    blocker = other->older;
  }
  return 0;
}

/* Returns whether a compatible blocker starts after `after` and ends at `until` at the latest. A compatible timeless blocker counts too. */
static int is_blocked(Net net, i64 node, i64 z, i64 after, i64 until) {
  const NodesRecord *here = node_at(net, node);
  const Row *row = row_at(net, z);
  i64 hash = hash_stored_key(net, store_of(node, BLOCKER), row, here->key2_at, here->key2_n);
  if (is_blocked_by(net, node, row, after, until, find_newest(net, hash), hash)) return 1;
  return here->timeless != 0 && is_blocked_by(net, node, row, after, until, find_newest_timeless(net, hash), hash);
}

/* Returns the greatest start of a blocker that ends before y starts. A left goal is free of blockers iff it does not end before that.
 * Since start <= end, nothing older can raise it. */
static i64 find_latest_blocker(Net net, i64 node, const Row *y) {
  const NodesRecord *here = node_at(net, node);
  i64 hash = hash_stored_key(net, store_of(node, BLOCKER), y, here->key2_at, here->key2_n), last = -BIG;
  for (i64 goal = find_newest(net, hash); goal != NONE && row_at(net, goal)->end > last; goal = row_at(net, goal)->older) {
    const Row *blocker = row_at(net, goal);
    if (blocker->hash == hash && blocker->end < y->start && blocker->start > last && has_same_key(net, blocker, y, here->key2_at, here->key2_n))
      last = blocker->start;
  }
  return last;
}

/* ---------------------------------------------------------------- what blockers have passed */
/* What comes at a passing node from now on starts no more than `life_blocker` before now. A blocker that ended before that is *due*: it lies before
 * all that is to come, so it blocks each pair of a compatible goal that ended before the blocker began. These goals are dead. Once they are gone,
 * the blocker is needed no more: what is stored from now on ends after it. Rows that came at this instant are never dead, nor is any blocker of this
 * instant due, so no step under way stands at what is discarded by key. A sweep takes place only where no step is under way. */

enum { LEAST_SWEPT = 16 }; /* goals and blockers that a sweep is worth */

/* Discards the goals of a side that a blocker has passed, where all three sides have one key. */
static void discard_passed(Net net, i64 node, i64 side, const Row *blocker) {
  const NodesRecord *here = node_at(net, node);
  i64 store = store_of(node, side), hash = hash_stored_key(net, store, blocker, here->key_at, here->key_n);
  for (i64 goal = find_newest(net, hash), older; goal != NONE; goal = older) {
    const Row *row = row_at(net, goal);
    older = row->older;
    int is_dead = row->hash == hash && row->end < blocker->start && has_same_key(net, row, blocker, here->key_at, here->key_n);
    if (is_dead) discard_goal(net, store, goal);
  }
}

/* Returns whether a blocker that ended before `horizon` has passed a goal. */
static int is_passed(Net net, i64 node, const Row *row, i64 horizon) {
  const NodesRecord *here = node_at(net, node);
  i64 hash = hash_stored_key(net, store_of(node, BLOCKER), row, here->key2_at, here->key2_n);
  for (i64 blocker = find_newest(net, hash); blocker != NONE && row_at(net, blocker)->end > row->end; blocker = row_at(net, blocker)->older) {
    const Row *other = row_at(net, blocker);
    int lies_between = other->end < horizon && row->end < other->start;
    if (lies_between && other->hash == hash && has_same_key(net, row, other, here->key2_at, here->key2_n)) return 1;
  }
  return 0;
}

/* Discards the goals of a side that due blockers have passed, whatever their keys. */
static void sweep_passed(Net net, i64 node, i64 side, i64 horizon) {
  i64 store = store_of(node, side);
  for (i64 goal = store_at(net, store)->head, after; goal != NONE; goal = after) {
    after = row_at(net, goal)->queue;
    if (is_passed(net, node, row_at(net, goal), horizon)) discard_goal(net, store, goal);
  }
}

/* Discards due blockers, and the goals that they have passed. Sweeps wait until the node keeps twice what the last one spared. */
static void retire_blockers(Net net, i64 node) {
  NodesRecord *here = node_at(net, node);
  i64 store = store_of(node, BLOCKER), horizon = net->at->now - here->life_blocker, due = store_at(net, store)->head;
  i64 sides = here->relation == ANY ? BLOCKER : RIGHT; /* only AND keeps goals on its right side */
  if (due == NONE || row_at(net, due)->end >= horizon) return;
  if (here->passing == PASSING_BY_SWEEP) {
    i64 kept = store_at(net, store)->count;
    for (i64 side = LEFT; side < sides; side++) kept += store_at(net, store_of(node, side))->count;
    if (net->at->depth > 0 || net->at->parked > 0 || kept < 2 * here->spared + LEAST_SWEPT) return;
    for (i64 side = LEFT; side < sides; side++) sweep_passed(net, node, side, horizon);
  } else
    for (; due != NONE && row_at(net, due)->end < horizon; due = row_at(net, due)->queue)
      for (i64 side = LEFT; side < sides; side++) discard_passed(net, node, side, row_at(net, due));
  expire_goals(net, store, horizon);
  here->spared = store_at(net, store)->count;
  for (i64 side = LEFT; side < sides; side++) here->spared += store_at(net, store_of(node, side))->count;
}

static void emit_unblocked(Net net, i64 node, const Row *x, const Row *y) {
  i64 z = join_rows(net, x, y), after = x->end, until = y->start;
  int unordered = node_at(net, node)->relation == ANY;
  if (unordered && !is_timeless(x)) {
    until = is_timeless(y) ? x->start : greater(x->start, until);
    after = is_timeless(y) ? after : lesser(after, y->end);
  } else if (unordered && !is_timeless(y)) after = y->end;
  if (is_blocked(net, node, z, after, until - 1)) free_row(net, z);
  else emit_elsewhere(net, node, z);
}

/* Hands on a pair of x, on `side`, with a goal. Where blockers go by the right side, pairs that they block have been left out before. */
static inline void emit_without(Net net, i64 node, i64 out, const Row *left, const Row *right) {
  if (node_at(net, node)->by_right == 0) emit_unblocked(net, node, left, right);
  else if (out != NONE) {
    write_joined(net, out, left, right);
    count_given(net, node, out, 1);
  } else emit_elsewhere(net, node, join_rows(net, left, right));
}

/* Hands on the pairs of x from `goal` on; timeless goals come after the timed ones. */
static void pair_without(Net net, i64 node, i64 side, i64 x, i64 goal, i64 key) {
  const NodesRecord *here = node_at(net, node);
  const Terms terms = read_terms(net, node, side, key);
  const Row *row = row_at(net, x);
  i64 out = find_plain_out(net, node), depth = net->at->depth, made = 0, cost = here->by_right != 0 && out != NONE ? LOOKS : JOIN_COST;
  int timeless = goal != NONE && is_timeless(row_at(net, goal));
  i64 until = is_timeless(row) ? net->at->now : terms.until;
  if (here->by_right != 0 && goal != NONE) until = greater(until, find_latest_blocker(net, node, row));
  for (;;) {
    for (; goal != NONE && (timeless || row_at(net, goal)->end >= until); goal = row_at(net, goal)->older) {
      const Row *other = row_at(net, goal), *left = side == RIGHT ? other : row, *right = side == RIGHT ? row : other;
      if (other->hash != terms.hash || !is_joinable(net, &terms, left, right)) continue;
      if (made == CHUNK) {
        push_frame_below(net, depth, node, task_to_go_on(side, 0), x, goal);
        count_looks(net, node, made * cost);
        return;
      }
      made++;
      emit_without(net, node, out, left, right);
    }
    if (timeless || here->timeless == 0) break;
    timeless = 1;
    goal = find_newest_partner(net, node, side, x, 1);
  }
  count_looks(net, node, made * cost);
  if (side == RIGHT && is_timeless(row) && here->relation != ANY) store_side(net, node, side, x);
  else free_row(net, x);
}

/* Pairs right x with its left goals that have no blocker between, or left x (a copy) with its timeless right goals.
 * Under AND either side is kept and meets all goals of the other one that were kept before it, so each pair meets once. */
static void decide_without(Net net, i64 node, i64 side, i64 x) {
  i64 key = hash_join_key(net, node, x), goal = NONE;
  int unordered = node_at(net, node)->relation == ANY;
  if (unordered) {
    i64 kept = x;
    x = copy_row(net, x);
    store_side(net, node, side, kept);
  }
  if (side == RIGHT || unordered) goal = find_newest(net, hash_in_store(store_of(node, opposite_of(side)), key));
  if (goal == NONE && node_at(net, node)->timeless != 0) goal = find_newest_partner(net, node, side, x, 1);
  pair_without(net, node, side, x, goal, key);
}

/* A row is decided at once where all that counts ended before this instant; a left one is paired at the close with timeless right goals. */
static void arrive_without(Net net, i64 node, i64 side, i64 x) {
  const NodesRecord *here = node_at(net, node);
  if (is_passing(here)) retire_blockers(net, node);
  if (side == BLOCKER || (side == LEFT && here->relation != ANY)) {
    if (side == LEFT && here->timeless != 0) wait_for_close(net, node, DECIDE_LEFT, copy_row(net, x));
    store_side(net, node, side, x);
  } else if (here->timeless == 0) decide_without(net, node, side, x);
  else wait_for_close(net, node, task_to_decide(side), x);
}

/* ---------------------------------------------------------------- WITHOUT ... FOR */
/* Hands on x, if nothing compatible came after it in time, on [its start, its end + duration]. */
static void decide_timer(Net net, i64 node, i64 x) {
  Row *row = row_at(net, x);
  if (is_blocked(net, node, x, row->end, net->at->now)) {
    free_row(net, x);
    return;
  }
  row->end = net->at->now;
  emit_elsewhere(net, node, x);
}

/* ---------------------------------------------------------------- all of them */
/* A decision of another kind than WITHOUT's may ask as much as there is room for. */
static void decide_by_kind(Net net, i64 node, i64 side, i64 x) {
  const NodesRecord *here = node_at(net, node);
  if (here->kind != WITHOUT) net->at->credit = 0;
  switch (here->kind) {
  case MINUS:
  case EXISTS:
  case NOTEXISTS: decide_minus(net, node, x); return;
  case MARK: decide_mark(net, node, x); return;
  case COLLECT:
    if (here->deferred != 0) defer_row(net, node, side, x);
    else gather_row(net, node, side, x);
    return;
  case WITHOUT: decide_without(net, node, side, x); return;
  case WITHOUTFOR: decide_timer(net, node, x); return;
  case LATEST: decide_latest(net, node, x); return;
  default: decide_optional(net, node, side, x);
  }
}

/* Decides on x, and counts what the decision took. */
static void decide(Net net, i64 node, i64 side, i64 x) {
  decide_by_kind(net, node, side, x);
  count_looks(net, node, 0);
}

/* Takes in a row of an operator other than WITHOUT. All that counts for an OPTIONALSEQ may have ended before this instant. */
static void arrive_negative(Net net, i64 node, i64 side, i64 x) {
  const NodesRecord *here = node_at(net, node);
  if (here->kind == WITHOUTFOR && side == LEFT) start_timer(net, node, x);
  else if (side != decided_side(here->kind)) store_side(net, node, side, x);
  else if (here->kind == OPTIONALSEQ && here->timeless == 0 && here->mark_n == 0) decide(net, node, side, x);
  else {
    if (!is_of_star(net, here, row_at(net, x)) && is_local(net, node, x)) net->at->choices = 1;
    wait_for_close(net, node, task_to_decide(side), x);
  }
}

static void go_on_negative(Net net, i64 node, i64 side, i64 x, i64 goal) {
  if (node_at(net, node)->kind == WITHOUT) pair_without(net, node, side, x, goal, hash_join_key(net, node, x));
  else emit_joins(net, node, side, x, goal);
}
