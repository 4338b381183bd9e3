/* Solutions are joined with the instances of their key: rows of a table of instances, in the order of a parameter that a condition compares. */

/* Returns whether no row of x's key from this one on passes that condition: the row's bound lies surely beyond the number that is compared. */
static inline int is_beyond(Net net, i64 node, const Row *row, const i64 *instance) {
  const NodesRecord *here = node_at(net, node);
  if (here->column == 0) return 0;
  const Number *number = number_at(net, term_of(net, row, here->column));
  double bound;
  memcpy(&bound, instance + L_KEY + here->key_n + here->look_n, sizeof bound);
  return here->by_right != 0 ? number->value + number->slack < bound : number->value - number->slack > bound;
}

/* ---------------------------------------------------------------- chains of a table of instances */
static inline i64 *instance_in(View cells, i64 place) { return (i64 *)cells.at + place * cells.width; }

/* Returns where the number of the first row of a row's chain stands. */
static i64 *find_chain_of(View heads, View cells, i64 place, i64 keys) {
  i64 hash = 0;
  for (i64 k = 0; k < keys; k++) hash = mix_hash(hash, instance_in(cells, place)[L_KEY + k]);
  return (i64 *)heads.at + (hash & (heads.count - 1));
}

/* Returns whether a row stands before another one in a chain that rises (1), or falls (-1), in its bounds. */
static inline int stands_before(View cells, i64 one, i64 other, i64 direction) {
  double a, b;
  memcpy(&a, instance_in(cells, one) + cells.width - 1, sizeof a);
  memcpy(&b, instance_in(cells, other) + cells.width - 1, sizeof b);
  return direction > 0 ? a < b : direction < 0 ? a > b : 0;
}

/* heads, cells: the table; places: rows that enter its chains, those of a chain one after the other in its order; keys: how many columns the key has;
   direction: of its order, or 0. A chain is walked once for all rows that enter it. */
static int link_instances(const Argument *in, i64 *out) {
  View heads = in[0].view, cells = in[1].view, places = in[2].view;
  i64 *chain = NULL, *link = NULL;
  (void)out;
  for (i64 k = 0; k < places.count; k++) {
    i64 place = ((const i64 *)places.at)[k];
    if (place < 0 || place >= cells.count / cells.width) return OUT_OF_BOUNDS;
    i64 *first = find_chain_of(heads, cells, place, in[3].number);
    if (first != chain) chain = link = first;
    while (*link != NONE && stands_before(cells, *link, place, in[4].number)) link = instance_in(cells, *link) + L_OLDER;
    instance_in(cells, place)[L_OLDER] = *link;
    *link = place;
  }
  return FINE;
}

/* The link of a row that leaves is negative in this way until it has left; the mark of a mark is the link again. */
static inline i64 mark_leaving(i64 link) { return -3 - link; }
static inline int is_leaving(const i64 *instance) { return instance[L_OLDER] < NONE; }

/* heads, cells: the table; places: rows that leave its chains; keys: how many columns the key has.
   A chain is walked once for all rows that leave it. */
static int unlink_instances(const Argument *in, i64 *out) {
  View heads = in[0].view, cells = in[1].view, places = in[2].view;
  (void)out;
  for (i64 k = 0; k < places.count; k++) {
    i64 place = ((const i64 *)places.at)[k];
    if (place < 0 || place >= cells.count / cells.width) return OUT_OF_BOUNDS;
    i64 *instance = instance_in(cells, place);
    if (!is_leaving(instance)) instance[L_OLDER] = mark_leaving(instance[L_OLDER]);
  }
  for (i64 k = 0; k < places.count; k++) {
    i64 place = ((const i64 *)places.at)[k], *link = find_chain_of(heads, cells, place, in[3].number);
    while (is_leaving(instance_in(cells, place))) {
      if (*link == NONE) return OUT_OF_BOUNDS;
      i64 *instance = instance_in(cells, *link);
      if (is_leaving(instance)) {
        *link = mark_leaving(instance[L_OLDER]);
        instance[L_OLDER] = NONE;
      } else {
        link = instance + L_OLDER;
      }
    }
  }
  return FINE;
}

/* ---------------------------------------------------------------- the join */
/* The values of the searched parameter that x's text has; without a search one value, which is any. `k` is the one whose chain is followed. */
typedef struct {
  const i64 *at;
  i64 n, k;
} Values;

static Values find_values(Net net, i64 node, i64 x) {
  Values values = {NULL, 1, -1};
  i64 search = table_of(net, node)->search;
  if (search != 0) values.n = search_text(search, term_of(net, row_at(net, x), node_at(net, node)->searched), &values.at);
  return values;
}

static inline i64 value_of_row(Net net, i64 node, i64 place) { return triple_at(net, node, place)[L_KEY + node_at(net, node)->key_n]; }

/* Returns the first row of the chain of x's key and the value. */
static i64 find_chain(Net net, i64 node, i64 x, const Values *values) {
  if (values->at == NULL) return find_first_place(net, node, x);
  const NodesRecord *here = node_at(net, node);
  const LookupsRecord *table = table_of(net, node);
  i64 hash = mix_hash(hash_key(net, row_at(net, x), here->key_at, here->key_n), values->at[values->k]);
  return find_agreeing(net, node, x, ((const i64 *)(intptr_t)table->heads)[hash & (table->buckets - 1)]);
}

/* Returns the next row for x, of the chain of a place or of those of the values behind it, or NONE. */
static i64 find_next_instance(Net net, i64 node, i64 x, Values *values, i64 place) {
  for (;;) {
    if (place != NONE) place = find_next_place(net, node, x, place);
    else if (++values->k < values->n) place = find_chain(net, node, x, values);
    else return NONE;
    while (place != NONE && values->at != NULL && value_of_row(net, node, place) != values->at[values->k])
      place = find_next_place(net, node, x, place);
    if (place != NONE && !is_beyond(net, node, row_at(net, x), triple_at(net, node, place))) return place;
    place = NONE;
  }
}

/* Returns the first row for x, or the one at the place where a step before has stopped. */
static i64 find_first_instance(Net net, i64 node, i64 x, Values *values, i64 place) {
  if (place == NONE) return find_next_instance(net, node, x, values, NONE);
  values->k = 0;
  if (values->at != NULL)
    while (values->at[values->k] != value_of_row(net, node, place)) values->k++;
  return place;
}

/* Lets x meet the instances of its key, from `place` on. What has no time meets none. */
static void join_instances(Net net, i64 node, i64 x, i64 place) {
  i64 depth = net->at->depth, made = 0;
  if (is_timeless(row_at(net, x))) {
    free_row(net, x);
    return;
  }
  Values values = find_values(net, node, x);
  for (place = find_first_instance(net, node, x, &values, place); place != NONE; place = find_next_instance(net, node, x, &values, place)) {
    if (made == CHUNK) {
      push_frame_below(net, depth, node, LOOK_ON, x, place);
      count_made(net, node, 1);
      return;
    }
    made++;
    emit_row(net, node, copy_with_triple(net, node, x, place));
  }
  free_row(net, x);
}
