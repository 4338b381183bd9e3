/* These operators take a row by itself: MOVE and FIRST project it, EXTEND binds a variable, COLLECT leaves it to the host.
 * EARLIEST and LATEST hand on the shortest of rows that bind the same terms, and start, or end, together. */

/* Returns whether a node meets x for the first time: at this instant, or ever if x is timeless.
 * A timeless x exists from the instant that brought it. */
static int is_first_at_node(Net net, i64 node, i64 x) {
  return is_timeless(row_at(net, x)) ? !keep_timeless_once(net, node, x) : meet_first(net, node, row_at(net, x));
}

/* Moves the columns of `from` to those of `to`, and returns whether they are what they must be. */
static int move_columns(Net net, const NodesRecord *here, const Row *from, Row *to) {
  int fits = 1;
  for (i64 m = here->move_at; m < here->move_at + here->move_n; m++) {
    i64 source = move_at(net, m)->source, target = move_at(net, m)->target;
    i64 term = source >= 0 ? term_of(net, from, source) : -source;
    if (term == UNBOUND) continue;
    if (target < 0) fits = fits && term == -target;
    else if (term_of(net, to, target) == UNBOUND) *term_at(net, to, target) = (int32_t)term;
    else fits = fits && term_of(net, to, target) == term;
  }
  return fits;
}

/* Hands on x with its columns moved, and without those that the node hides, if they are what they must be.
 * Of equal rows of this instant only the first goes on where the node says so. */
static void project_row(Net net, i64 node, i64 x) {
  const NodesRecord *here = node_at(net, node);
  const Row *from = row_at(net, x);
  i64 z = here->keep != 0 ? copy_row(net, x) : make_row(net, from->start, from->end);
  int fits = move_columns(net, here, from, row_at(net, z));
  for (i64 k = here->hide_at; k < here->hide_at + here->hide_n; k++) *term_at(net, row_at(net, z), slot_at(net, k)) = UNBOUND;
  free_row(net, x);
  if (fits && (here->once_only == 0 || is_first_at_node(net, node, z))) emit_elsewhere(net, node, z);
  else free_row(net, z);
}

/* Hands on x, as a timeless row, if none with its key came before, at whatever instant. */
static void emit_first_of_key(Net net, i64 node, i64 x) {
  i64 key_at = node_at(net, node)->key_at, key_n = node_at(net, node)->key_n;
  Row *row = row_at(net, x);
  i64 hash = hash_stored_key(net, store_of(node, LEFT), row, key_at, key_n);
  for (i64 goal = find_newest_timeless(net, hash); goal != NONE; goal = row_at(net, goal)->older)
    if (row_at(net, goal)->hash == hash && has_same_key(net, row_at(net, goal), row, key_at, key_n)) {
      free_row(net, x);
      return;
    }
  row->start = BIG;
  row->end = -BIG;
  store_goal(net, store_of(node, LEFT), hash, copy_row(net, x), FOREVER);
  emit_elsewhere(net, node, x);
}

/* Hands on a timed x, unless a row that differs in its end alone has come before: that one ends earlier. */
static void emit_earliest(Net net, i64 node, i64 x) {
  const Row *row = row_at(net, x);
  i64 store = store_of(node, LEFT), hash = hash_in_store(store, hash_bindings_and_start(net, row));
  for (i64 goal = find_newest(net, hash); goal != NONE; goal = row_at(net, goal)->older) {
    const Row *other = row_at(net, goal);
    if (other->hash == hash && other->start == row->start && has_same_bindings(net, other, row)) {
      free_row(net, x);
      return;
    }
  }
  store_goal(net, store, hash, copy_row(net, x), node_at(net, node)->life_left);
  count_made(net, node, 1);
  emit_elsewhere(net, node, x);
}

/* Lets a timed x wait for the close of its instant, and keeps a copy for those that differ from it in their starts alone. */
static void arrive_latest(Net net, i64 node, i64 x) {
  i64 store = store_of(node, LEFT), hash = hash_in_store(store, hash_bindings(net, row_at(net, x)));
  store_goal(net, store, hash, copy_row(net, x), node_at(net, node)->life_left);
  wait_for_close(net, node, DECIDE_LEFT, x);
}

/* Hands on x, unless a row of this instant differs from it in a later start alone. */
static void decide_latest(Net net, i64 node, i64 x) {
  const Row *row = row_at(net, x);
  i64 hash = hash_in_store(store_of(node, LEFT), hash_bindings(net, row));
  for (i64 goal = find_newest(net, hash); goal != NONE && row_at(net, goal)->end == row->end; goal = row_at(net, goal)->older) {
    const Row *other = row_at(net, goal);
    if (other->hash == hash && other->start > row->start && has_same_bindings(net, other, row)) {
      free_row(net, x);
      return;
    }
  }
  emit_elsewhere(net, node, x);
}

/* Writes the host's answer to a BIND, UNBOUND for an error, to the node's column. A row that waits for the answer comes again. */
static void bind_answer(Net net, i64 node, i64 x) {
  const NodesRecord *here = node_at(net, node);
  i64 answer = find_answer(net, here->ask, row_at(net, x));
  if (answer == OPEN_QUESTION) {
    store_at(net, store_of(node, LEFT))->taken--;
    park_frame(net, node, LEFT, x);
    return;
  }
  count_looks(net, node, ANSWER_COST);
  *term_at(net, row_at(net, x), here->column) = (int32_t)answer;
  emit_elsewhere(net, node, x);
}

/* Lets a solution, once for an instant, or a wake of a collector wait for the close of the instant. */
static void arrive_collect(Net net, i64 node, i64 side, i64 x) {
  if (side == LEFT && !is_first_at_node(net, node, x)) free_row(net, x);
  else wait_for_close(net, node, task_to_decide(side), x);
}
