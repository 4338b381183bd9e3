/* JOIN stands for every positive two-sided operator. */

typedef struct { /* the terms on which a row meets goals of a node's other side, read once a probe */
  i64 relation;
  i64 oldest; /* least start (µs) the window admits */
  i64 until;  /* least end (µs) of a goal that may count; goals that end before have expired, or may at any step */
  i64 hash;   /* of the goals */
  i64 key_at, key_n, rest_at, rest_n;
} Terms;

/* Returns the terms of a row, which came from `side`; `hash` is its key's. */
static inline Terms read_terms(Net net, i64 node, i64 side, i64 hash) {
  const NodesRecord *here = node_at(net, node);
  i64 now = net->at->now, other = opposite_of(side);
  return (Terms){
      .relation = here->relation,
      .oldest = now - here->span,
      .until = now - lesser(here->span, life_of(here, other)),
      .hash = hash_in_store(store_of(node, other), hash),
      .key_at = here->key_at,
      .key_n = here->key_n,
      .rest_at = here->rest_at,
      .rest_n = here->rest_n,
  };
}

static inline i64 hash_join_key(Net net, i64 node, i64 x) {
  const NodesRecord *here = node_at(net, node);
  return hash_key(net, row_at(net, x), here->key_at, here->key_n);
}

/* Returns whether left x and right y join. */
static inline int is_joinable(Net net, const Terms *terms, const Row *x, const Row *y) {
  return x->start >= terms->oldest && y->start >= terms->oldest && holds_relation(terms->relation, x, y) &&
         has_same_key(net, x, y, terms->key_at, terms->key_n) && is_compatible(net, x, y, terms->rest_at, terms->rest_n);
}

/* Counts rows that a join has written as solutions of `out` itself. */
static inline void count_given(Net net, i64 node, i64 out, i64 made) {
  store_at(net, SIDES * node)->given += made;
  store_at(net, SIDES * out)->taken += made;
}

static inline i64 join_rows(Net net, const Row *x, const Row *y) {
  i64 z = take_row(net);
  merge_rows(net, row_at(net, z), x, y);
  return z;
}

/* Counts what a probe has looked at and made; what it wrote itself costs as much as what others would. */
static inline void count_probe(Net net, i64 node, i64 out, i64 looked, i64 made) {
  if (out != NONE) count_given(net, node, out, made);
  count_looks(net, node, looked + made * (out != NONE ? LOOKS : JOIN_COST));
}

/* Lets x meet the goals of one chain from `goal` on.
 * Results beyond a chunk are left to another step, which finds `goal` there. A goal not older than its terms admit does not expire at this instant.
 * A join with a timeless x ends where its timed goal does, so an older goal would give a solution of the past. */
static inline void probe_chain(Net net, i64 node, i64 side, i64 x, i64 goal, i64 key, int stored) {
  const Row *row = row_at(net, x);
  const Terms terms = read_terms(net, node, side, key);
  i64 out = find_plain_out(net, node), depth = net->at->depth, made = 0, looked = 0, until = terms.until;
  if (goal != NONE && is_timeless(row_at(net, goal))) until = -BIG;
  else if (is_timeless(row)) until = net->at->now;
  while (goal != NONE) {
    const Row *other = row_at(net, goal), *left = side == RIGHT ? other : row, *right = side == RIGHT ? row : other;
    if (other->end < until) break; /* the chain falls in end */
    if (other->hash == terms.hash) {
      looked++;
      if (is_joinable(net, &terms, left, right)) {
        if (made == CHUNK) {
          push_frame_below(net, depth, node, task_to_go_on(side, stored), x, goal);
          count_probe(net, node, out, looked, made);
          return;
        }
        made++;
        if (out != NONE) write_joined(net, out, left, right);
        else emit_row(net, node, join_rows(net, left, right));
      }
    }
    goal = other->older;
  }
  if (looked >= LOOKS / JOIN_COST || (made > 0 && out != NONE)) count_probe(net, node, out, looked, made);
  if (!stored) free_row(net, x);
}

static void go_on_join(Net net, i64 node, i64 side, i64 x, i64 goal, int stored) {
  probe_chain(net, node, side, x, goal, hash_join_key(net, node, x), stored);
}

/* Returns whether a left goal of a SEQ may end before x starts, where x is part of a right solution of that SEQ.
 * What comes later ends no earlier than x does. If x lacks a variable of the key, any left goal will do. */
static int is_preceded(Net net, i64 gate, i64 x) {
  const Row *row = row_at(net, x);
  const NodesRecord *here = node_at(net, gate);
  i64 left = store_of(gate, LEFT);
  if (is_timeless(row)) return 1;
  if (store_at(net, left)->count == 0) return 0;
  for (i64 k = here->key_at; k < here->key_at + here->key_n; k++)
    if (term_of(net, row, slot_at(net, k)) == UNBOUND) return row_at(net, store_at(net, left)->head)->end < row->start;
  i64 hash = hash_stored_key(net, left, row, here->key_at, here->key_n), oldest = net->at->now - lesser(here->span, here->life_left);
  for (i64 goal = find_newest(net, hash); goal != NONE && row_at(net, goal)->end >= oldest; goal = row_at(net, goal)->older) {
    const Row *other = row_at(net, goal);
    if (other->end < row->start && other->hash == hash && has_same_key(net, other, row, here->key_at, here->key_n)) return 1;
  }
  return 0;
}

/* Leaves x's timeless goals, and the triples it meets in a table of the background, to other steps.
 * The goals begin with the newest of x's key. The newest of the whole chain may be on another one once the table of chains has grown. */
__attribute__((noinline)) static void defer_timeless_goals(Net net, i64 node, i64 side, i64 x, i64 key) {
  int stored = life_of(node_at(net, node), side) != NEVER;
  if (side == LEFT && node_at(net, node)->look != NONE)
    push_frame_below(net, net->at->depth, node, stored ? LOOK_ON_STORED : LOOK_ON, stored ? x : copy_row(net, x), NONE);
  i64 hash = hash_in_store(store_of(node, opposite_of(side)), key), goal = find_newest_timeless(net, hash);
  while (goal != NONE && row_at(net, goal)->hash != hash) goal = row_at(net, goal)->older;
  if (goal == NONE) return;
  push_frame_below(net, net->at->depth, node, task_to_go_on(side, stored), stored ? x : copy_row(net, x), goal);
}

/* Joins semi-naively: x is stored, if its side is, and meets every goal of the other side that was stored before it.
 * What comes later meets x in its turn, even while x goes on in steps of its own; so each pair meets once. A probe of an empty side costs nothing. */
static inline void arrive_join(Net net, i64 node, i64 side, i64 x) {
  const NodesRecord *here = node_at(net, node);
  const Row *row = row_at(net, x);
  i64 partners = store_of(node, opposite_of(side));
  if (row->start < net->at->now - here->span || (here->gate != NONE && !is_preceded(net, here->gate, x))) {
    free_row(net, x);
    return;
  }
  i64 key = hash_key(net, row, here->key_at, here->key_n), life = life_of(here, side), goal = NONE;
  if (is_of_star(net, here, row)) {
    goal = store_at(net, partners)->star_head;
    store_in_star(net, store_of(node, side), hash_in_store(store_of(node, side), key), x);
    count_made(net, node, 1);
    if (goal != NONE) probe_chain(net, node, side, x, goal, key, 1);
    return;
  }
  if (here->timeless != 0) defer_timeless_goals(net, node, side, x, key);
  if (store_at(net, partners)->count > 0) goal = find_newest(net, hash_in_store(partners, key));
  if (life != NEVER) {
    store_goal(net, store_of(node, side), hash_in_store(store_of(node, side), key), x, life);
    count_made(net, node, 1);
  }
  if (goal != NONE) probe_chain(net, node, side, x, goal, key, life != NEVER);
  else if (life == NEVER) free_row(net, x);
}

/* Lets left x meet the triples of its key in the node's table, from `place` on. */
static void join_background(Net net, i64 node, i64 task, i64 x, i64 place) {
  i64 depth = net->at->depth, made = 0, via = node_at(net, node)->look_via;
  if (place == NONE) place = find_first_place(net, node, x);
  for (; place != NONE; place = find_next_place(net, node, x, place)) {
    if (made == CHUNK) {
      push_frame_below(net, depth, node, task, x, place);
      count_made(net, node, 1);
      return;
    }
    made++;
    i64 z = copy_with_triple(net, node, x, place);
    if (via != NONE) push_frame(net, via, LEFT, z);
    else emit_row(net, node, z);
  }
  if (task == LOOK_ON) free_row(net, x);
}
