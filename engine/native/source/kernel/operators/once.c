/* ONCE PER: of the solutions of one key, the first one passes, and no other for a time or until something has come (semantics.md section 15).
 *
 * The left store has a goal for each key that is closed: it binds the key alone and ends where the solution that passed did. WITHIN lets goals
 * expire; UNTIL discards them.
 *
 * Solutions wait for the end of their entry, or for the close of their instant if that comes first: only then their order is known (DECIDE_LEFT).
 * Of several that wait at a node, the host finds the order, and they come back in it (DECIDE_RIGHT).
 *
 * A reset counts for later instants alone, so it waits until the solutions of its own instant are decided (BLOCKER, RIGHT_CHOICE). It is not kept,
 * for what passes later ends no earlier than it starts. A timeless one is kept, and opens its key for as long as it stands. */

/* Returns whether a timeless solution of UNTIL agrees with x's key. */
static int is_always_open(Net net, i64 node, const Row *row) {
  const NodesRecord *here = node_at(net, node);
  i64 hash = hash_stored_key(net, store_of(node, BLOCKER), row, here->key2_at, here->key2_n);
  for (i64 goal = find_newest_timeless(net, hash); goal != NONE; goal = row_at(net, goal)->older) {
    const Row *other = row_at(net, goal);
    net->at->spent++;
    if (other->hash != hash || !has_same_key(net, other, row, here->key2_at, here->key2_n)) continue;
    if (is_compatible(net, other, row, here->rest2_at, here->rest2_n)) return 1;
  }
  return 0;
}

/* Returns the goal that closes x's key, or NONE. */
static i64 find_closing(Net net, i64 node, const Row *row) {
  const NodesRecord *here = node_at(net, node);
  i64 hash = hash_stored_key(net, store_of(node, LEFT), row, here->key_at, here->key_n), oldest = net->at->now - here->life_left;
  for (i64 goal = find_newest(net, hash); goal != NONE && row_at(net, goal)->end >= oldest; goal = row_at(net, goal)->older) {
    const Row *other = row_at(net, goal);
    net->at->spent++;
    if (other->hash != hash || !has_same_key(net, other, row, here->key_at, here->key_n)) continue;
    if (has_same_key(net, other, row, here->rest_at, here->rest_n)) return goal;
  }
  return NONE;
}

/* Lets x wait for its turn, unless its key is closed: nothing opens it at this instant. A timeless solution that opens it may be on its way still. */
static void arrive_once(Net net, i64 node, i64 x) {
  NodesRecord *here = node_at(net, node);
  if (here->timeless == 0 && find_closing(net, node, row_at(net, x)) != NONE) free_row(net, x);
  else {
    here->awaiting++;
    net->at->choices = 1;
    wait_for_close(net, node, DECIDE_LEFT, x);
  }
}

static void copy_columns(Net net, const Row *from, Row *to, i64 first, i64 n) {
  for (i64 k = first; k < first + n; k++) *term_at(net, to, slot_at(net, k)) = (int32_t)term_of(net, from, slot_at(net, k));
}

/* Keeps a goal that closes x's key from now on. */
static void close_key(Net net, i64 node, const Row *row) {
  const NodesRecord *here = node_at(net, node);
  i64 goal = make_row(net, net->at->now, net->at->now), store = store_of(node, LEFT);
  copy_columns(net, row, row_at(net, goal), here->key_at, here->key_n);
  copy_columns(net, row, row_at(net, goal), here->rest_at, here->rest_n);
  if (is_policy_store(net, store)) store_policy_goal(net, node, LEFT, goal);
  else store_goal(net, store, hash_stored_key(net, store, row, here->key_at, here->key_n), goal, here->life_left);
  count_made(net, node, 1);
}

/* Hands on x if its key is open. Those before x have had their turn. */
static void pass_once(Net net, i64 node, i64 x) {
  const Row *row = row_at(net, x);
  i64 closing = find_closing(net, node, row);
  if (closing != NONE && (node_at(net, node)->timeless == 0 || !is_always_open(net, node, row))) {
    free_row(net, x);
    return;
  }
  if (closing != NONE) discard_goal(net, store_of(node, LEFT), closing);
  close_key(net, node, row);
  emit_elsewhere(net, node, x);
}

/* Gives x its turn if it alone has waited; else x goes to the host with the others, which `awaiting` counts below zero meanwhile. */
static void take_turn(Net net, i64 node, i64 x) {
  NodesRecord *here = node_at(net, node);
  if (here->awaiting == 1) {
    here->awaiting = 0;
    pass_once(net, node, x);
    return;
  }
  if (here->awaiting > 0) here->awaiting = -here->awaiting;
  here->awaiting++;
  gather_row(net, node, LEFT, x);
}

/* Discards the goals from `goal` on, along a chain or a queue, that z agrees with and that end before it starts. */
static void open_keys(Net net, i64 node, const Row *z, i64 goal, int in_chain) {
  const NodesRecord *here = node_at(net, node);
  i64 store = store_of(node, LEFT), hash = hash_stored_key(net, store, z, here->key_at, here->key_n), next;
  for (; goal != NONE; goal = next) {
    const Row *other = row_at(net, goal);
    next = in_chain ? other->older : other->queue;
    net->at->spent++;
    if ((in_chain && (other->hash != hash || !has_same_key(net, other, z, here->key_at, here->key_n))) || other->end >= z->start) continue;
    if (!is_compatible(net, other, z, here->rest2_at, here->rest2_n)) continue;
    discard_goal(net, store, goal);
  }
}

/* Opens the keys that z agrees with. Goals are in chains by what z certainly binds of the key; if that is nothing, z looks at all. */
static void reset_keys(Net net, i64 node, i64 z) {
  const NodesRecord *here = node_at(net, node);
  const Row *row = row_at(net, z);
  i64 store = store_of(node, LEFT);
  if (here->key2_n > 0) open_keys(net, node, row, find_newest(net, hash_stored_key(net, store, row, here->key_at, here->key_n)), 1);
  else open_keys(net, node, row, store_at(net, store)->head, 0);
  free_row(net, z);
}

/* Keeps a timeless z; a timed one waits until all solutions of its instant have had their turn. */
static void arrive_reset(Net net, i64 node, i64 z) {
  if (is_timeless(row_at(net, z))) store_side(net, node, BLOCKER, z);
  else if (store_at(net, store_of(node, LEFT))->count == 0) free_row(net, z); /* what is stored at this instant ends no earlier than z starts */
  else wait_for_close(net, node, RIGHT_CHOICE, z);
}

static void do_once_task(Net net, i64 node, i64 task, i64 x) {
  switch (task) {
  case BLOCKER: arrive_reset(net, node, x); break;
  case DECIDE_LEFT: take_turn(net, node, x); break;
  case DECIDE_RIGHT: pass_once(net, node, x); break;
  case RIGHT_CHOICE: reset_keys(net, node, x); break;
  default: arrive_once(net, node, x);
  }
  count_looks(net, node, 0);
}
