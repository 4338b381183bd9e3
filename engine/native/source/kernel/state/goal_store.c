/* The store holds rows, chains by key, and queues in order of end. */

static inline i64 store_of(i64 node, i64 side) { return SIDES * node + side; }

static inline i64 hash_key(Net net, const Row *row, i64 key_at, i64 key_n) {
  i64 hash = 0;
  for (i64 k = key_at; k < key_at + key_n; k++) hash = mix_hash(hash, term_of(net, row, slot_at(net, k)));
  return hash;
}

/* Returns the hash of a store and a key, from the key's: all stores share one table of chains. Stores of one key never collide. */
static inline i64 hash_in_store(i64 store, i64 hash) { return hash ^ (store * SALT); }

static inline i64 hash_stored_key(Net net, i64 store, const Row *row, i64 key_at, i64 key_n) {
  return hash_in_store(store, hash_key(net, row, key_at, key_n));
}

/* Returns the timed goal that came last among those whose chain this is. */
static inline i64 find_newest(Net net, i64 hash) { return net->heads.at[hash & net->heads.mask]; }

static inline i64 find_newest_timeless(Net net, i64 hash) { return net->timeless.at[hash & net->timeless.mask]; }

/* Links a timed goal that comes late, as `link_goal` does; its place is behind the goals that end after it. */
static void link_goal_in_order(Net net, i64 goal) {
  Row *row = row_at(net, goal);
  i64 after = find_newest(net, row->hash), before = NONE;
  while (after != NONE && row_at(net, after)->end > row->end) {
    before = after;
    after = row_at(net, after)->older;
  }
  row->older = (int32_t)after;
  row->newer = (int32_t)before;
  if (after != NONE) row_at(net, after)->newer = (int32_t)goal;
  if (before != NONE) row_at(net, before)->older = (int32_t)goal;
  else net->heads.at[row->hash & net->heads.mask] = (int32_t)goal;
}

/* Links a goal to the head of its chain. Chains fall in end: goals come in order of end, and timeless ones have chains of their own. */
static inline void link_goal(Net net, Chains chains, i64 goal) {
  Row *row = row_at(net, goal);
  int32_t *head = &chains.at[row->hash & chains.mask];
  i64 after = *head;
  row->older = (int32_t)after;
  row->newer = (int32_t)NONE;
  if (after != NONE) row_at(net, after)->newer = (int32_t)goal;
  *head = (int32_t)goal;
}

static inline void unlink_goal(Net net, Chains chains, const Row *row) {
  i64 older = row->older, newer = row->newer;
  if (newer != NONE) row_at(net, newer)->older = (int32_t)older;
  else chains.at[row->hash & chains.mask] = (int32_t)older;
  if (older != NONE) row_at(net, older)->newer = (int32_t)newer;
}

/* Counts one goal more that the store's query keeps. A query beyond its limit is marked, and the host looks into it before the next step. */
static inline void count_goal(Net net, i64 store) {
  i64 number = node_at(net, store / SIDES)->query;
  QueriesRecord *query = query_at(net, number);
  if (++query->goals > query->limit) {
    net->at->endless = number;
    net->at->credit = 0;
  }
}

/* Counts `n` goals fewer that the store's query keeps. */
static inline void discount_goals(Net net, i64 store, i64 n) { query_at(net, node_at(net, store / SIDES)->query)->goals -= n; }

/* Frees the timed goals of a store that ended before `horizon`. */
static inline void expire_goals(Net net, i64 store, i64 horizon) {
  StoresRecord *here = store_at(net, store);
  i64 goal = here->head, freed = 0;
  while (goal != NONE && row_at(net, goal)->end < horizon) {
    const Row *row = row_at(net, goal);
    i64 after = row->queue;
    unlink_goal(net, net->heads, row);
    free_row(net, goal);
    freed++;
    goal = after;
  }
  here->head = goal;
  here->count -= freed;
  discount_goals(net, store, freed);
}

static inline void store_timeless_goal(Net net, i64 store, i64 goal) {
  StoresRecord *here = store_at(net, store);
  link_goal(net, net->timeless, goal);
  net->at->timeless_goals++;
  row_at(net, goal)->queue = (int32_t)here->timeless_head;
  here->timeless_head = goal;
}

/* Appends a timed goal to the queue of its store. */
static inline void queue_goal(Net net, i64 store, i64 goal) {
  StoresRecord *here = store_at(net, store);
  if (here->head == NONE) here->head = goal;
  else row_at(net, here->tail)->queue = (int32_t)goal;
  here->tail = goal;
}

/* Keeps `goal` in its store for `life` µs after its end; expires what has outlived it. */
static inline void store_goal(Net net, i64 store, i64 hash, i64 goal, i64 life) {
  Row *row = row_at(net, goal);
  StoresRecord *here = store_at(net, store);
  row->hash = hash;
  here->count++;
  if (is_timeless(row)) store_timeless_goal(net, store, goal);
  else {
    link_goal(net, net->heads, goal);
    row->queue = (int32_t)NONE;
    if (here->head != NONE && row_at(net, here->head)->end < net->at->now - life) expire_goals(net, store, net->at->now - life);
    queue_goal(net, store, goal);
  }
  count_goal(net, store);
}

/* Keeps `goal` in its store between feeds, though others of its chain may end later. */
static void store_goal_in_order(Net net, i64 store, i64 hash, i64 goal) {
  Row *row = row_at(net, goal);
  row->hash = hash;
  store_at(net, store)->count++;
  if (is_timeless(row)) store_timeless_goal(net, store, goal);
  else {
    row->queue = (int32_t)NONE;
    link_goal_in_order(net, goal);
    queue_goal(net, store, goal);
  }
  count_goal(net, store);
}

/* Notes what a goal that enters its store comes after, so that it may leave from the middle of the queue. */
static inline void link_before(Net net, i64 store, i64 goal) { link_at(net, goal)->before = store_at(net, store)->tail; }

/* Discards a timed goal from its store, wherever it stands in the queue. */
static void discard_goal(Net net, i64 store, i64 goal) {
  StoresRecord *here = store_at(net, store);
  const Row *row = row_at(net, goal);
  i64 after = row->queue, before = link_at(net, goal)->before;
  if (here->head == goal) here->head = after;
  else row_at(net, before)->queue = (int32_t)after;
  if (here->tail == goal) here->tail = before;
  else link_at(net, after)->before = before;
  here->count--;
  discount_goals(net, store, 1);
  unlink_goal(net, net->heads, row);
  free_row(net, goal);
}

/* Frees all goals of a store, the timeless ones too. */
static void clear_store(Net net, i64 store) {
  StoresRecord *here = store_at(net, store);
  for (i64 goal = here->head, after; goal != NONE; goal = after) {
    after = row_at(net, goal)->queue;
    unlink_goal(net, net->heads, row_at(net, goal));
    free_row(net, goal);
  }
  for (i64 goal = here->timeless_head, after; goal != NONE; goal = after) {
    after = row_at(net, goal)->queue;
    unlink_goal(net, net->timeless, row_at(net, goal));
    net->at->timeless_goals--;
    free_row(net, goal);
  }
  discount_goals(net, store, here->count);
  here->head = here->tail = here->timeless_head = NONE;
  here->count = 0;
}

/* Splits each chain, from its oldest goal on, so the order of end survives. */
static void spread_chains(Net net, Chains before, Chains chains) {
  for (i64 head = 0; head <= before.mask; head++) {
    i64 goal = before.at[head];
    while (goal != NONE && row_at(net, goal)->older != NONE) goal = row_at(net, goal)->older;
    while (goal != NONE) {
      i64 newer = row_at(net, goal)->newer;
      link_goal(net, chains, goal);
      goal = newer;
    }
  }
}

/* Returns the hash of all that a row binds, however wide it is. */
static i64 hash_bindings(Net net, const Row *row) {
  i64 hash = 0;
  for (i64 v = 0; v < net->width; v++) hash += row->terms[v] * (SALT + 2 * (VAR + v));
  return mix_hash(hash, 0);
}

static inline i64 hash_bindings_and_start(Net net, const Row *row) { return mix_hash(hash_bindings(net, row), row->start); }

static inline int has_same_bindings(Net net, const Row *x, const Row *y) {
  for (i64 v = 0; v < net->width; v++)
    if (x->terms[v] != y->terms[v]) return 0;
  return 1;
}

/* Returns whether a timeless row like x has come to a node before, at whatever instant; if not, its left store keeps a copy. */
static int keep_timeless_once(Net net, i64 node, i64 x) {
  const Row *row = row_at(net, x);
  i64 store = store_of(node, LEFT), hash = hash_in_store(store, hash_bindings(net, row));
  for (i64 goal = find_newest_timeless(net, hash); goal != NONE; goal = row_at(net, goal)->older)
    if (row_at(net, goal)->hash == hash && has_same_bindings(net, row_at(net, goal), row)) return 1;
  store_goal(net, store, hash, copy_row(net, x), FOREVER);
  count_made(net, node, 1);
  return 0;
}

/* the handle; first, after: the stores whose goals are freed, the second exclusive */
static int clear_stores(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  (void)out;
  for (i64 store = in[1].number; store < in[2].number; store++) clear_store(&tables, store);
  return FINE;
}

/* the handle; heads: a larger table, to which the timed goals move */
static int spread_goals(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  (void)out;
  spread_chains(&tables, tables.heads, chains_in(in[1].view));
  return FINE;
}

/* the handle; heads: a larger table, to which the timeless goals move */
static int spread_timeless_goals(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  (void)out;
  spread_chains(&tables, tables.timeless, chains_in(in[1].view));
  return FINE;
}
