/* Consumption policies: which pairs SEQ, AND, these with WITHOUT, and the interval relations join (semantics.md section 9).
 *
 * Left goals are stored as they come, in their chain by age (end, start, terms). When the instant closes, at its stratum's turn and phase by phase:
 * the host orders those that only their terms tell apart (ORDER); left goals meet right ones that came before them (LEFT_CHOICE, SERVE); right
 * goals choose (RIGHT_CHOICE); what is replaced goes (SETTLE). A pair with a timeless goal is unrestricted. The span and the conditions look at the
 * pair that was chosen, for a goal that is too old must be taken all the same.
 *
 * Under SEQ no left goal of the instant counts, so right goals need not wait for its close. Under `recent` they choose when they come. Under
 * `chronological` they wait for the end of their entry: what one takes is gone for the next one, in the order of start and terms.
 *
 * AND has no sides: its right goals are stored by age too, and are replaced (SETTLE_RIGHT) or consumed as the left ones are. The left goals of an
 * instant come first. They choose among the right goals of before, and the right ones then among all left goals. */

enum { MOST_STEPS = 64 }; /* to the place of a goal among those of its instant; the host sorts larger crowds */

static inline i64 hash_policy_key(Net net, i64 node, i64 side, i64 x) {
  const NodesRecord *here = node_at(net, node);
  return hash_stored_key(net, store_of(node, side), row_at(net, x), here->key_at, here->key_n);
}

/* Returns whether `goal` is of the chain's key that hashes to `hash`; x has that key. */
static inline int has_key(Net net, i64 node, i64 hash, i64 goal, i64 x) {
  const NodesRecord *here = node_at(net, node);
  return row_at(net, goal)->hash == hash && has_same_key(net, row_at(net, goal), row_at(net, x), here->key_at, here->key_n);
}

/* Returns whether a node is an AND: goals of both sides choose and are chosen. */
static inline int chooses_both_ways(Net net, i64 node) { return node_at(net, node)->relation == ANY; }

/* Returns whether right goals of a node choose before the instant closes: all that may count for them has come. */
static inline int chooses_early(Net net, i64 node) { return node_at(net, node)->relation == SEQ && node_at(net, node)->timeless == 0; }

/* ---------------------------------------------------------------- the oldest goal of a key */
/* Returns whether the search on a side of a node goes up from the oldest goal.
 * Under the other relations a goal that is old enough cannot fit, so the search goes down from the youngest. */
static inline int has_oldest(Net net, i64 node, i64 side) {
  int searched = chooses_both_ways(net, node) || (node_at(net, node)->relation == SEQ && side == LEFT);
  return searched && node_at(net, node)->kind == CHRONOLOGICAL;
}

/* Returns the youngest goal of x's key in the chain of this hash. */
static i64 find_youngest(Net net, i64 node, i64 hash, i64 x) {
  i64 goal = find_newest(net, hash);
  while (goal != NONE && !has_key(net, node, hash, goal, x)) goal = row_at(net, goal)->older;
  return goal;
}

static inline i64 neighbour_of(Net net, i64 direction, i64 goal) { return direction == OLDER ? row_at(net, goal)->older : row_at(net, goal)->newer; }

/* Returns the next goal of x's key in its chain, OLDER or NEWER. */
static i64 find_next_of_key(Net net, i64 node, i64 direction, i64 x) {
  i64 goal = neighbour_of(net, direction, x);
  while (goal != NONE && !has_key(net, node, row_at(net, x)->hash, goal, x)) goal = neighbour_of(net, direction, goal);
  return goal;
}

/* Notes the oldest goal of the key after x has entered its chain; the youngest goal of each key knows the oldest. */
static void enter_oldest(Net net, i64 node, i64 x) {
  i64 young = find_youngest(net, node, row_at(net, x)->hash, x);
  if (young == x) {
    i64 older = find_next_of_key(net, node, OLDER, x);
    link_at(net, x)->oldest = older == NONE ? x : link_at(net, older)->oldest;
  } else if (link_at(net, young)->oldest == find_next_of_key(net, node, NEWER, x)) link_at(net, young)->oldest = x;
}

/* Notes the oldest goal of the key before x leaves its chain. */
static void leave_oldest(Net net, i64 node, i64 x) {
  i64 young = find_youngest(net, node, row_at(net, x)->hash, x);
  if (young == x) {
    i64 older = find_next_of_key(net, node, OLDER, x);
    if (older != NONE) link_at(net, older)->oldest = link_at(net, x)->oldest;
  } else if (link_at(net, young)->oldest == x) link_at(net, young)->oldest = find_next_of_key(net, node, NEWER, x);
}

/* ---------------------------------------------------------------- the store of left goals */
/* Returns whether goals leave a store from its middle: a policy chooses among them, UNTIL discards them, or blockers pass them. */
static inline int is_policy_store(Net net, i64 store) {
  const NodesRecord *here = node_at(net, store / SIDES);
  int policy = here->kind == RECENT || here->kind == CHRONOLOGICAL, until = here->kind == ONCE && here->life_left == FOREVER;
  return (policy || until || is_passing(here)) && store % SIDES != BLOCKER;
}

/* Stores a goal with what lets it leave from the middle of its store's queue. */
static void store_policy_goal(Net net, i64 node, i64 side, i64 goal) {
  i64 store = store_of(node, side);
  link_before(net, store, goal);
  link_at(net, goal)->marked = -BIG;
  store_goal(net, store, hash_policy_key(net, node, side, goal), goal, life_of(node_at(net, node), side));
}

/* Stores a goal of another network, or of a snapshot, as the youngest of those of its key and end. */
static void restore_policy_goal(Net net, i64 node, i64 side, i64 goal, i64 marked) {
  i64 store = store_of(node, side);
  link_before(net, store, goal);
  link_at(net, goal)->marked = marked;
  store_goal_in_order(net, store, hash_policy_key(net, node, side, goal), goal);
  if (has_oldest(net, node, side) && !is_timeless(row_at(net, goal))) enter_oldest(net, node, goal);
}

static void link_goal_behind(Net net, i64 younger, i64 x) {
  i64 older = row_at(net, younger)->older;
  row_at(net, x)->older = (int32_t)older;
  row_at(net, x)->newer = (int32_t)younger;
  row_at(net, younger)->older = (int32_t)x;
  if (older != NONE) row_at(net, older)->newer = (int32_t)x;
}

/* Returns whether the goal that starts at `start` is younger than one that starts at `other`, of the same end. */
static inline int is_younger_start(Net net, i64 node, i64 start, i64 other) {
  return node_at(net, node)->choice == LONGEST ? start < other : start > other;
}

/* Returns the youngest of those goals of x's key and instant that are older than x, which has come last, by start, or NONE.
 * If the order depends on their terms, or takes long, the host is to order them. */
static i64 find_younger(Net net, i64 node, i64 x) {
  const Row *row = row_at(net, x);
  i64 younger = NONE, steps = 0;
  for (i64 goal = row->older; goal != NONE && row_at(net, goal)->end == net->at->now; goal = row_at(net, goal)->older) {
    if (has_key(net, node, row->hash, goal, x)) {
      i64 start = row_at(net, goal)->start;
      int by_terms = start == row->start || node_at(net, node)->choice == GREATEST;
      if (by_terms) wait_for_close(net, node, ORDER, x);
      if (by_terms || !is_younger_start(net, node, start, row->start)) return younger;
      younger = goal;
    }
    if (++steps == MOST_STEPS) {
      wait_for_close(net, node, ORDER, x);
      return younger;
    }
  }
  return younger;
}

/* Stores x in its chain behind the younger ones of its instant. */
static void store_left(Net net, i64 node, i64 x) {
  store_policy_goal(net, node, LEFT, x);
  i64 younger = find_younger(net, node, x);
  if (younger != NONE) {
    unlink_goal(net, net->heads, row_at(net, x));
    link_goal_behind(net, younger, x);
  }
  if (has_oldest(net, node, LEFT)) enter_oldest(net, node, x);
}

/* Moves x to the young end of its chain; called for all left goals of an instant and key, in order of age. */
static void make_youngest(Net net, i64 node, i64 x) {
  if (has_oldest(net, node, LEFT)) leave_oldest(net, node, x);
  unlink_goal(net, net->heads, row_at(net, x));
  link_goal(net, net->heads, x);
  if (has_oldest(net, node, LEFT)) enter_oldest(net, node, x);
}

/* ---------------------------------------------------------------- arrival */
static int is_stored_timeless(Net net, i64 node, i64 side, i64 x) {
  i64 hash = hash_policy_key(net, node, side, x);
  for (i64 goal = find_newest_timeless(net, hash); goal != NONE; goal = row_at(net, goal)->older)
    if (row_at(net, goal)->hash == hash && has_same_bindings(net, row_at(net, goal), row_at(net, x))) return 1;
  return 0;
}

/* Returns whether x is new. Goals are a set: none is a goal twice at one instant, nor a timeless one at any. */
static int is_new(Net net, i64 node, i64 side, i64 x) {
  const Row *row = row_at(net, x);
  return meet_first(net, node + (side == RIGHT ? RIGHT_TAG : 0), row) && !(is_timeless(row) && is_stored_timeless(net, node, side, x));
}

/* Lets x wait to be settled at the end of the instant. A goal alone in its chain replaces none; the mark says that it has had its turn. */
static void await_settlement(Net net, i64 node, i64 side, i64 x) {
  if (row_at(net, x)->older == NONE && row_at(net, x)->newer == NONE) link_at(net, x)->marked = net->at->now;
  else wait_for_close(net, node, side == LEFT ? SETTLE : SETTLE_RIGHT, x);
}

/* Stores a new left goal at once; one without a time waits, for it has no place in the order. */
static void arrive_left(Net net, i64 node, i64 x) {
  if (!is_new(net, node, LEFT, x)) free_row(net, x);
  else if (is_timeless(row_at(net, x))) wait_for_close(net, node, DECIDE_LEFT, x);
  else {
    store_left(net, node, x);
    if (store_at(net, store_of(node, RIGHT))->count > 0) wait_for_close(net, node, LEFT_CHOICE, x);
    if (node_at(net, node)->kind == RECENT) await_settlement(net, node, LEFT, x);
  }
}

/* ---------------------------------------------------------------- pairs */
/* Returns whether left x and right y join, however long the joined solution lasts. */
static inline int is_pair(Net net, i64 node, const Row *x, const Row *y) {
  const NodesRecord *here = node_at(net, node);
  return holds_relation(here->relation, x, y) && has_same_key(net, x, y, here->key_at, here->key_n) &&
         is_compatible(net, x, y, here->rest_at, here->rest_n);
}

/* Hands on the pair, if it is not too long and no blocker lies between. */
static void emit_pair(Net net, i64 node, const Row *x, const Row *y) {
  const NodesRecord *here = node_at(net, node);
  if (lesser(x->start, y->start) < net->at->now - here->span) return;
  if (here->life_blocker != NEVER) emit_unblocked(net, node, x, y);
  else emit_elsewhere(net, node, join_rows(net, x, y));
}

/* Returns the end of the oldest goals of a chain that x is given with.
 * A timeless x has the timed goals of this instant, for others are of the past. */
static inline i64 find_oldest_end(Net net, i64 node, i64 side, const Row *row, i64 goal) {
  if (is_timeless(row_at(net, goal))) return -BIG;
  if (is_timeless(row)) return net->at->now;
  return side == LEFT && !chooses_both_ways(net, node) ? row->start : net->at->now - node_at(net, node)->span;
}

/* Gives the pairs of x, on `side`, with the goals of a chain from `goal` on; beyond a chunk a copy of x goes on.
 * Goals leave in later phases alone. */
static void emit_pairs(Net net, i64 node, i64 side, i64 x, i64 goal) {
  if (goal == NONE) return;
  const Row *row = row_at(net, x);
  i64 until = find_oldest_end(net, node, side, row, goal), hash = hash_policy_key(net, node, opposite_of(side), x), depth = net->at->depth, made = 0;
  for (; goal != NONE && row_at(net, goal)->end >= until; goal = row_at(net, goal)->older) {
    const Row *other = row_at(net, goal), *left = side == RIGHT ? other : row, *right = side == RIGHT ? row : other;
    if (other->hash != hash || !is_pair(net, node, left, right)) continue;
    if (made == CHUNK) {
      push_frame_below(net, depth, node, task_to_go_on(side, 0), copy_row(net, x), goal);
      return;
    }
    made++;
    emit_pair(net, node, left, right);
  }
}

/* Gives the pairs of x with the timeless goals of the other side, and those of a timeless x with timed ones. */
static void emit_timeless_pairs(Net net, i64 node, i64 side, i64 x) {
  if (node_at(net, node)->timeless == 0) return;
  i64 hash = hash_policy_key(net, node, opposite_of(side), x);
  emit_pairs(net, node, side, x, find_newest_timeless(net, hash));
  if (is_timeless(row_at(net, x))) emit_pairs(net, node, side, x, find_newest(net, hash));
}

/* Pairs and stores a timeless left goal.
 * Right goals of this instant are stored by now only if it comes so late that they have chosen without it. */
static void pair_timeless_left(Net net, i64 node, i64 x) {
  emit_timeless_pairs(net, node, LEFT, x);
  store_policy_goal(net, node, LEFT, x);
}

/* ---------------------------------------------------------------- consumption */
/* Returns the oldest goal of a side that joins y by SEQ or AND, or NONE. The search goes upwards from the oldest goal of the key.
 * It looks at the right side of an AND alone, where it does not matter which goal is the left one. */
static i64 find_oldest_of_side(Net net, i64 node, i64 side, i64 y) {
  const Row *row = row_at(net, y);
  i64 hash = hash_policy_key(net, node, side, y), young = find_youngest(net, node, hash, y), until = chooses_both_ways(net, node) ? BIG : row->start;
  if (young == NONE) return NONE;
  for (i64 x = link_at(net, young)->oldest; x != NONE && row_at(net, x)->end < until; x = row_at(net, x)->newer)
    if (row_at(net, x)->hash == hash && is_pair(net, node, row_at(net, x), row)) return x;
  return NONE;
}

/* Returns the oldest goal that joins y by an interval relation, or NONE. A goal that ended before y starts cannot fit. */
static i64 oldest_joined(Net net, i64 node, i64 y) {
  const Row *row = row_at(net, y);
  i64 hash = hash_policy_key(net, node, LEFT, y), found = NONE;
  for (i64 x = find_newest(net, hash); x != NONE && row_at(net, x)->end >= row->start; x = row_at(net, x)->older)
    if (row_at(net, x)->hash == hash && is_pair(net, node, row_at(net, x), row)) found = x;
  return found;
}

/* Returns the left goal that y takes: the oldest that it may have, or NONE. */
static i64 find_oldest(Net net, i64 node, i64 y) {
  return has_oldest(net, node, LEFT) ? find_oldest_of_side(net, node, LEFT, y) : oldest_joined(net, node, y);
}

/* Discards a goal that has been taken. */
static void consume_goal(Net net, i64 node, i64 side, i64 x) {
  if (has_oldest(net, node, side)) leave_oldest(net, node, x);
  discard_goal(net, store_of(node, side), x);
}

/* Lets y take the oldest left goal that it may have. Returns whether there is one. */
static int take_oldest(Net net, i64 node, i64 y) {
  i64 x = find_oldest(net, node, y);
  if (x == NONE) return 0;
  emit_pair(net, node, row_at(net, x), row_at(net, y));
  consume_goal(net, node, LEFT, x);
  return 1;
}

/* Returns the oldest of the right goals of PAR or AND that have waited for x, or NONE. They were stored by age. */
static i64 find_waiting(Net net, i64 node, i64 x) {
  if (has_oldest(net, node, RIGHT)) return find_oldest_of_side(net, node, RIGHT, x);
  const Row *row = row_at(net, x);
  i64 hash = hash_policy_key(net, node, RIGHT, x), found = NONE;
  for (i64 y = find_newest(net, hash); y != NONE && row_at(net, y)->end > row->start; y = row_at(net, y)->older)
    if (row_at(net, y)->hash == hash && is_pair(net, node, row, row_at(net, y))) found = y;
  return found;
}

/* Lets a left goal of this instant be taken by a right one that has waited, and then the next younger goal of its key. Both sides prefer what is
 * older, so it is the same to go by the left ones. */
static void serve_waiting(Net net, i64 node, i64 x) {
  i64 younger = find_next_of_key(net, node, NEWER, x), y = find_waiting(net, node, x);
  if (younger != NONE) push_frame(net, node, SERVE, younger);
  if (y == NONE) return;
  emit_pair(net, node, row_at(net, x), row_at(net, y));
  consume_goal(net, node, LEFT, x);
  consume_goal(net, node, RIGHT, y);
}

/* Lets the left goals of x's key and instant be taken by right ones that have waited, the oldest first, unless that has begun. */
static void begin_serving(Net net, i64 node, i64 x) {
  if (link_at(net, x)->marked == net->at->now) return;
  i64 oldest = x;
  for (i64 goal = x; goal != NONE; goal = find_next_of_key(net, node, NEWER, goal)) link_at(net, goal)->marked = net->at->now;
  for (i64 goal = x; goal != NONE && row_at(net, goal)->end == net->at->now; goal = find_next_of_key(net, node, OLDER, goal)) {
    link_at(net, goal)->marked = net->at->now;
    oldest = goal;
  }
  wait_for_close(net, node, SERVE, oldest);
}

/* Returns whether right goals of a node may join left ones that come later. */
static inline int waits_for_left(Net net, i64 node) { return node_at(net, node)->relation == PAR || chooses_both_ways(net, node); }

/* Gives the pairs of a timed left goal with right goals that were there before it. */
static void choose_left(Net net, i64 node, i64 x) {
  emit_timeless_pairs(net, node, LEFT, x);
  if (!waits_for_left(net, node)) return;
  if (node_at(net, node)->kind == RECENT) emit_pairs(net, node, LEFT, x, find_newest(net, hash_policy_key(net, node, RIGHT, x)));
  else begin_serving(net, node, x);
}

/* Stores a right goal that has chosen. Those of an AND have come here by age. */
static void store_right(Net net, i64 node, i64 y) {
  store_policy_goal(net, node, RIGHT, y);
  if (is_timeless(row_at(net, y)) || !chooses_both_ways(net, node)) return;
  if (has_oldest(net, node, RIGHT)) enter_oldest(net, node, y);
  else await_settlement(net, node, RIGHT, y);
}

static void choose_right(Net net, i64 node, i64 y) {
  const NodesRecord *here = node_at(net, node);
  int timeless = is_timeless(row_at(net, y)), served = 0;
  emit_timeless_pairs(net, node, RIGHT, y);
  if (!timeless && here->kind == RECENT) emit_pairs(net, node, RIGHT, y, find_newest(net, hash_policy_key(net, node, LEFT, y)));
  else if (!timeless) served = take_oldest(net, node, y);
  if (timeless || (here->life_right != NEVER && !(served && waits_for_left(net, node)))) store_right(net, node, y);
  else free_row(net, y);
}

/* Takes in a new right goal. One that chooses early, and finds nothing that it might take, has no use. */
static void arrive_right(Net net, i64 node, i64 y) {
  int early = chooses_early(net, node), recent = node_at(net, node)->kind == RECENT;
  if (!is_new(net, node, RIGHT, y) || (early && !recent && find_oldest(net, node, y) == NONE)) free_row(net, y);
  else if (early && recent) choose_right(net, node, y);
  else {
    if (early) net->at->choices = 1;
    wait_for_close(net, node, RIGHT_CHOICE, y);
  }
}

/* Lets y choose if no other right goal has its turn now; else the host orders them, and they come back (DECIDE_RIGHT).
 * The order says who consumes, and under AND who replaces. */
static void take_right_turn(Net net, i64 node, i64 y) {
  const AtRecord *at = net->at;
  int others = at->gathered > 0 || (at->depth > 0 && frame_at(net, at->depth - 1)->task == RIGHT_CHOICE);
  if (others && (node_at(net, node)->kind == CHRONOLOGICAL || chooses_both_ways(net, node))) gather_row(net, node, RIGHT_CHOICE, y);
  else choose_right(net, node, y);
}

/* ---------------------------------------------------------------- replacement */
/* Returns the next goal in x's chain that binds what both sides may share as x does. */
static i64 find_next_alike(Net net, i64 node, i64 direction, i64 x) {
  const NodesRecord *here = node_at(net, node);
  i64 goal = find_next_of_key(net, node, direction, x);
  while (goal != NONE && !has_same_key(net, row_at(net, goal), row_at(net, x), here->rest_at, here->rest_n))
    goal = find_next_of_key(net, node, direction, goal);
  return goal;
}

/* Settles x, as its instant is over. It goes if a younger one replaces it, as it replaces the one before. */
static void settle_goal(Net net, i64 node, i64 side, i64 x) {
  i64 store = store_of(node, side), now = net->at->now;
  i64 older = find_next_alike(net, node, OLDER, x);
  while (older != NONE && (row_at(net, older)->end < now || link_at(net, older)->marked == now)) {
    discard_goal(net, store, older);
    older = find_next_alike(net, node, OLDER, x);
  }
  link_at(net, x)->marked = now;
  if (find_next_alike(net, node, NEWER, x) != NONE) discard_goal(net, store, x);
}

/* ---------------------------------------------------------------- tasks */
static void go_on_policy(Net net, i64 node, i64 task, i64 x, i64 goal) {
  emit_pairs(net, node, side_of(task), x, goal);
  free_row(net, x);
}

static void arrive_policy(Net net, i64 node, i64 task, i64 x, i64 goal) {
  switch (task) {
  case BLOCKER: store_side(net, node, BLOCKER, x); return;
  case LEFT: arrive_left(net, node, x); return;
  case RIGHT: arrive_right(net, node, x); return;
  case GO_ON_LEFT:
  case GO_ON_RIGHT: go_on_policy(net, node, task, x, goal); return;
  case DECIDE_LEFT: pair_timeless_left(net, node, x); return;
  case DECIDE_RIGHT: choose_right(net, node, x); return;
  case ORDER: gather_row(net, node, ORDER, x); return;
  case LEFT_CHOICE: choose_left(net, node, x); return;
  case RIGHT_CHOICE: take_right_turn(net, node, x); return;
  case SERVE: serve_waiting(net, node, x); return;
  case SETTLE: settle_goal(net, node, LEFT, x); return;
  case SETTLE_RIGHT: settle_goal(net, node, RIGHT, x); return;
  default: make_youngest(net, node, x);
  }
}
