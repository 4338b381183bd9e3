/* Stores are maintained as a whole: goals that have outlived their life are freed though no goal comes, and goals are read out and entered again for
 * snapshots. */

enum { TOGETHER = 32, SWEPT_AT_ONCE = 16 };
/* TOGETHER: goals that are entered at the same time. SWEPT_AT_ONCE: stores that a feed sweeps besides one for each of its events: each gets its turn,
 * and one event never pays for all. */

/* Frees the goals of a store that no solution from this instant on can meet. Goals that any step has begun with stay, for they are younger.
 * Goals of a timer and of FIRST wait for no partner; those of a policy may be on their way to be settled. */
static void sweep_store(Net net, i64 store) {
  const NodesRecord *node = node_at(net, store / SIDES);
  i64 side = store % SIDES;
  if (is_passing(node)) {
    if (side == BLOCKER) retire_blockers(net, store / SIDES);
    else if (store_at(net, store)->count > 0) expire_goals(net, store, net->at->now - life_of(node, side));
  } else if (store_at(net, store)->count > 0 && !(node->kind == WITHOUTFOR && side == LEFT) && node->kind != FIRST && !is_policy_store(net, store))
    expire_goals(net, store, net->at->now - life_of(node, side));
}

/* Frees what nothing needs any more in the stores whose turn it is. Goals of a stream that fell silent go as the others' time passes.
 * Stores and nodes have room for more, but not for equally many. */
static void sweep_stores_in_turn(Net net) {
  AtRecord *at = net->at;
  i64 n = lesser(height_of(net, TABLE_STORES), SIDES * height_of(net, TABLE_NODES));
  for (i64 k = lesser(n, SWEPT_AT_ONCE + at->events); k > 0; k--) {
    at->swept = (at->swept + 1) % n;
    sweep_store(net, at->swept);
  }
}

/* the handle; first, after: the stores in which what nothing needs any more is freed, the second exclusive */
static int sweep_stores(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  (void)out;
  for (i64 store = in[1].number; store < in[2].number; store++) sweep_store(&tables, store);
  return FINE;
}

/* ---------------------------------------------------------------- snapshots */
/* Frees a timeless goal of a store, which comes in its queue after `newer`, or first. */
static void free_timeless_goal(Net net, i64 store, i64 newer, i64 goal) {
  const Row *row = row_at(net, goal);
  if (newer == NONE) store_at(net, store)->timeless_head = row->queue;
  else row_at(net, newer)->queue = row->queue;
  unlink_goal(net, net->timeless, row);
  free_row(net, goal);
  net->at->timeless_goals--;
  store_at(net, store)->count--;
  discount_goals(net, store, 1);
}

/* the handle; a store; dead: which of its timeless goals are freed, the newest first */
static int free_timeless_goals(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  const i64 *dead = in[2].view.at;
  i64 store = in[1].number, goal = store_at(&tables, store)->timeless_head, newer = NONE;
  (void)out;
  for (i64 k = 0; k < in[2].view.count; k++) {
    if (goal == NONE) return OUT_OF_BOUNDS;
    i64 after = row_at(&tables, goal)->queue;
    if (dead[k] == 0) newer = goal;
    else free_timeless_goal(&tables, store, newer, goal);
    goal = after;
  }
  return FINE;
}

typedef struct { /* where goals are read to: the store and number of each, and the cells of some columns */
  const i64 *columns;
  i64 *stores, *numbers, *cells;
  i64 width, room;
} Reading;

static void read_goal(Net net, const Reading *reading, i64 k, i64 store, i64 goal) {
  reading->stores[k] = store;
  reading->numbers[k] = goal;
  for (i64 column = 0; column < reading->width; column++)
    reading->cells[k * reading->width + column] = read_cell(net, row_at(net, goal), reading->columns[column]);
}

static i64 count_queue(Net net, i64 goal) {
  i64 n = 0;
  for (; goal != NONE; goal = row_at(net, goal)->queue) n++;
  return n;
}

/* Reads the goals of a store behind the first n, and returns how many there are now, or NONE if there is no room.
 * Timeless ones come the newest first in their queue, and the oldest first here. */
static i64 read_store(Net net, const Reading *reading, i64 n, i64 store) {
  const StoresRecord *here = store_at(net, store);
  i64 timed = count_queue(net, here->head), timeless = count_queue(net, here->timeless_head), k = n;
  if (n + timed + timeless > reading->room) return NONE;
  for (i64 goal = here->head; goal != NONE; goal = row_at(net, goal)->queue) read_goal(net, reading, k++, store, goal);
  k = n + timed + timeless;
  for (i64 goal = here->timeless_head; goal != NONE; goal = row_at(net, goal)->queue) read_goal(net, reading, --k, store, goal);
  return n + timed + timeless;
}

/* the handle; columns; first, after: the stores whose goals are listed, the second exclusive; stores, numbers, cells: what is filled with the store,
 * the row and the columns of each: store by store, the timed ones in order of end and then the timeless ones.
 * An empty store's row may be no query's. */
static int read_goals(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  i64 width = in[1].view.count, room = lesser(in[4].view.count, in[5].view.count), n = 0;
  Reading reading = {in[1].view.at, in[4].view.at, in[5].view.at, in[6].view.at, width, room};
  (void)out;
  if (in[6].view.count < room * width) return OUT_OF_BOUNDS;
  for (i64 store = in[2].number; store < in[3].number; store++) {
    if (store_at(&tables, store)->count == 0) continue;
    n = read_store(&tables, &reading, n, store);
    if (n == NONE) return OUT_OF_BOUNDS;
  }
  return FINE;
}

/* the handle; ages: numbers of timed goals, by row, that rise in each chain as the chain does, which a policy orders */
static int read_ages(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  i64 *ages = in[1].view.at, age = 0;
  (void)out;
  if (in[1].view.count < tables.at->used) return OUT_OF_BOUNDS;
  for (i64 head = 0; head <= tables.heads.mask; head++) {
    i64 goal = tables.heads.at[head];
    while (goal != NONE && row_at(&tables, goal)->older != NONE) goal = row_at(&tables, goal)->older;
    for (; goal != NONE; goal = row_at(&tables, goal)->newer) ages[goal] = age++;
  }
  return FINE;
}

/* Takes a row with these cells in some columns; the others are zero. */
static inline i64 enter_row(Net net, const i64 *columns, i64 width, const i64 *cells) {
  i64 number = take_row(net);
  Row *row = row_at(net, number);
  *row = (Row){0};
  for (i64 v = 0; v < net->width; v++) row->terms[v] = 0;
  for (i64 column = 0; column < width; column++) write_cell(net, row, columns[column], cells[column]);
  return number;
}

/* the handle; columns, cells: those of each row, and perhaps others behind them; numbers: the rows that are taken. The room was made. */
static int enter_rows(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  const i64 *columns = in[1].view.at, *cells = in[2].view.at;
  i64 width = in[1].view.count, n = in[3].view.count, *numbers = in[3].view.at;
  (void)out;
  if (n > 0 && (in[2].view.width < width || in[2].view.count < n * in[2].view.width)) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < n; k++) numbers[k] = enter_row(&tables, columns, width, &cells[k * in[2].view.width]);
  return FINE;
}

/* Returns the hash under which a node keeps a goal of a side. The first three kinds are those of `keep_timeless_once`. */
static i64 hash_stored_goal(Net net, i64 store, const Row *row) {
  const NodesRecord *node = node_at(net, store / SIDES);
  i64 side = store % SIDES, kind = node->kind;
  if (side == LEFT && (kind == OUT || kind == MOVE || kind == COLLECT || kind == LATEST)) return hash_in_store(store, hash_bindings(net, row));
  if (kind == EARLIEST) return hash_in_store(store, hash_bindings_and_start(net, row));
  if (kind == WITHOUTFOR && side == LEFT) return hash_stored_key(net, store, row, 0, 0);
  if (side == BLOCKER) return hash_stored_key(net, store, row, node->key2_at, node->key2_n);
  return hash_stored_key(net, store, row, node->key_at, node->key_n);
}

typedef struct { /* goals that enter: the cells of each in some columns, and its store and mark; the order in which they come */
  const i64 *columns, *order, *marked; /* the last two may be NULL */
  View cells;
  const int32_t *stores;
  int32_t *numbers;
  i64 width;
} Entering;

static inline i64 place_of(const Entering *goals, i64 k) { return goals->order != NULL ? goals->order[k] : k; }

static void store_entered(Net net, const Entering *goals, i64 place) {
  i64 store = goals->stores[place], goal = goals->numbers[place];
  if (!is_policy_store(net, store)) store_goal_in_order(net, store, row_at(net, goal)->hash, goal);
  else restore_policy_goal(net, store / SIDES, store % SIDES, goal, goals->marked != NULL ? goals->marked[place] : -BIG);
}

/* Enters the goals [first, after). A table of many goals is in no cache, so some goals wait for their chains at the same time. */
static void enter_together(Net net, const Entering *goals, i64 first, i64 after) {
  for (i64 k = first; k < after; k++) {
    i64 place = place_of(goals, k);
    i64 goal = enter_row(net, goals->columns, goals->width, (const i64 *)goals->cells.at + place * goals->cells.width);
    goals->numbers[place] = (int32_t)goal;
    row_at(net, goal)->hash = hash_stored_goal(net, goals->stores[place], row_at(net, goal));
    __builtin_prefetch(&net->heads.at[row_at(net, goal)->hash & net->heads.mask]);
  }
  for (i64 k = first; k < after; k++)
    __builtin_prefetch(row_at(net, greater(find_newest(net, row_at(net, goals->numbers[place_of(goals, k)])->hash), 0)));
  for (i64 k = first; k < after; k++) store_entered(net, goals, place_of(goals, k));
}

/* the handle; columns, cells, stores: those of the goals; order: in which they are entered, which falls nowhere in end, since queues need that;
 * marked: the marks of goals of policies; numbers: the rows that are taken. An empty order is theirs, and empty marks are none. The room was made. */
static int enter_goals(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  i64 n = in[6].view.count, width = in[1].view.count;
  View cells = in[2].view, order = in[4].view, marked = in[5].view;
  Entering goals = {in[1].view.at, order.count ? order.at : NULL, marked.count ? marked.at : NULL, cells, in[3].view.at, in[6].view.at, width};
  (void)out;
  if (n > 0 && (cells.width < width || cells.count < n * cells.width || in[3].view.count < n)) return OUT_OF_BOUNDS;
  if ((order.count && order.count < n) || (marked.count && marked.count < n)) return OUT_OF_BOUNDS;
  for (i64 first = 0; first < n; first += TOGETHER) enter_together(&tables, &goals, first, lesser(first + TOGETHER, n));
  return FINE;
}

/* the handle; stores, numbers: the rows that become goals, and where; those of one store come in order of end */
static int store_goals_in_order(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  const i64 *stores = in[1].view.at, *numbers = in[2].view.at;
  (void)out;
  if (in[2].view.count < in[1].view.count) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < in[1].view.count; k++) {
    if (is_policy_store(&tables, stores[k])) link_before(&tables, stores[k], numbers[k]);
    store_goal_in_order(&tables, stores[k], hash_stored_goal(&tables, stores[k], row_at(&tables, numbers[k])), numbers[k]);
  }
  return FINE;
}

/* the handle; tags, numbers: what the instant has met before, by rows, which are freed */
static int restore_seen(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  const i64 *tags = in[1].view.at, *numbers = in[2].view.at;
  (void)out;
  if (in[2].view.count < in[1].view.count) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < in[1].view.count; k++) {
    meet_first(&tables, tags[k], row_at(&tables, numbers[k]));
    free_row(&tables, numbers[k]);
  }
  return FINE;
}
