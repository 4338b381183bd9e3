/* Timers: nodes that act at instants of their own, in a heap by the instant at which each is due.
 * A timer is a row of `timers`; the heap is its column `heap`, whose first `at->timers_due` cells are the rows of timers that are due some time. */

/* ---------------------------------------------------------------- the heap */
/* Returns the least instant at which a timer is due, FOREVER if there is none. */
static inline i64 find_next_due(Net net) { return net->at->timers_due > 0 ? timer_at(net, timer_at(net, 0)->heap)->due : FOREVER; }

static inline void put_timer(Net net, i64 k, i64 place) {
  timer_at(net, place)->heap = k;
  timer_at(net, k)->place = place;
}

/* Returns whether timer k comes before the other one; of timers due together, the first one made does. */
static inline int is_earlier(Net net, i64 k, i64 other) {
  i64 due = timer_at(net, k)->due, others = timer_at(net, other)->due;
  return due < others || (due == others && k < other);
}

/* Puts timer k at `place` of the heap, which is free or its own, and then up or down to where it belongs. */
static void move_timer(Net net, i64 k, i64 place) {
  i64 n = net->at->timers_due;
  while (place > 0 && is_earlier(net, k, timer_at(net, (place - 1) >> 1)->heap)) {
    put_timer(net, timer_at(net, (place - 1) >> 1)->heap, place);
    place = (place - 1) >> 1;
  }
  while (2 * place + 1 < n) {
    i64 below = 2 * place + 1;
    if (below + 1 < n && is_earlier(net, timer_at(net, below + 1)->heap, timer_at(net, below)->heap)) below++;
    if (!is_earlier(net, timer_at(net, below)->heap, k)) break;
    put_timer(net, timer_at(net, below)->heap, place);
    place = below;
  }
  put_timer(net, k, place);
}

/* Makes timer k due at `due`, or at no time if that is FOREVER. */
static void set_due(Net net, i64 k, i64 due) {
  TimersRecord *timer = timer_at(net, k);
  AtRecord *at = net->at;
  i64 place = timer->place;
  timer->due = due;
  if (due >= FOREVER) {
    if (place == NONE) return;
    timer->place = NONE;
    at->timers_due--;
    if (place < at->timers_due) move_timer(net, timer_at(net, at->timers_due)->heap, place);
  } else if (place == NONE) {
    at->timers_due++;
    move_timer(net, k, at->timers_due - 1);
  } else move_timer(net, k, place);
}

static inline i64 find_oldest_due(Net net, i64 node) {
  i64 oldest = store_at(net, store_of(node, LEFT))->head;
  return oldest == NONE ? FOREVER : row_at(net, oldest)->end + node_at(net, node)->life_left;
}

/* Enters all timers anew: since the kernel ran, the host has changed them in their rows alone. */
static void enter_timers(Net net) {
  net->at->timers_due = 0;
  for (i64 k = 0; k < net->at->timer_nodes; k++) {
    TimersRecord *timer = timer_at(net, k);
    NodesRecord *node = node_at(net, timer->node);
    i64 due = node->kind == WITHOUTFOR ? find_oldest_due(net, timer->node) : node->kind == COLLECT ? timer->due : FOREVER;
    node->timer = k;
    timer->place = NONE;
    set_due(net, k, due);
  }
}

/* Moves what is due first to the work that waits for the close of this instant. The collector of a COLLECT will say when it is due next. */
static void call_timer(Net net) {
  i64 k = timer_at(net, 0)->heap, node = timer_at(net, k)->node;
  if (node_at(net, node)->kind == COLLECT) {
    set_due(net, k, FOREVER);
    i64 row = take_row(net);
    row_at(net, row)->start = BIG;
    row_at(net, row)->end = -BIG;
    wait_for_close(net, node, DECIDE_RIGHT, row);
    return;
  }
  i64 store = store_of(node, LEFT), goal = store_at(net, store)->head;
  store_at(net, store)->head = row_at(net, goal)->queue;
  store_at(net, store)->count--;
  discount_goals(net, store, 1);
  unlink_goal(net, net->heads, row_at(net, goal));
  set_due(net, k, find_oldest_due(net, node));
  wait_for_close(net, node, DECIDE_LEFT, goal);
}

/* ---------------------------------------------------------------- the timers of WITHOUT ... FOR */
/* Lets x wait in the node's left store, in order of end; a timeless x stands at this instant, its query's t0.
 * Solutions of the timers that run on after the end set no further ones. */
static void start_timer(Net net, i64 node, i64 x) {
  Row *row = row_at(net, x);
  if (net->at->now > net->at->horizon) {
    free_row(net, x);
    return;
  }
  if (is_timeless(row)) row->start = row->end = net->at->now;
  i64 store = store_of(node, LEFT);
  int first = store_at(net, store)->head == NONE;
  store_goal(net, store, hash_stored_key(net, store, row, 0, 0), x, FOREVER);
  if (first) set_due(net, node_at(net, node)->timer, find_oldest_due(net, node));
}
