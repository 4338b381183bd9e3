/* Solutions are looked up in the background: the triples of their key in a node's table, or in several tables, one after the other. */

static inline const LookupsRecord *table_of(Net net, i64 node) { return lookup_at(net, node_at(net, node)->look); }

/* Returns the cells of a row of the background's table that a node has. */
static inline const i64 *triple_at(Net net, i64 node, i64 place) {
  const LookupsRecord *table = table_of(net, node);
  return (const i64 *)(intptr_t)table->cells + within(place, table->room) * table->width;
}

static inline int agrees_with_triple(Net net, i64 node, const Row *row, const i64 *triple) {
  const NodesRecord *here = node_at(net, node);
  for (i64 k = 0; k < here->key_n; k++)
    if (triple[L_KEY + k] != term_of(net, row, slot_at(net, here->key_at + k))) return 0;
  for (i64 k = 0; k < here->look_n; k++) {
    i64 term = term_of(net, row, slot_at(net, here->look_at + k));
    if (term != UNBOUND && term != triple[L_KEY + here->key_n + k]) return 0;
  }
  return 1;
}

/* Returns the first place of a chain, from this one on, whose triple x is compatible with.
 * Triples that a later version of the background has added do not count. */
static i64 find_agreeing(Net net, i64 node, i64 x, i64 place) {
  i64 n = table_of(net, node)->n;
  const Row *row = row_at(net, x);
  while (place != NONE && (place >= n || !agrees_with_triple(net, node, row, triple_at(net, node, place))))
    place = triple_at(net, node, place)[L_OLDER];
  return place;
}

/* Returns the place of the newest triple for x, or NONE. */
static i64 find_first_place(Net net, i64 node, i64 x) {
  const NodesRecord *here = node_at(net, node);
  const LookupsRecord *table = table_of(net, node);
  const i64 *heads = (const i64 *)(intptr_t)table->heads;
  return find_agreeing(net, node, x, heads[hash_key(net, row_at(net, x), here->key_at, here->key_n) & (table->buckets - 1)]);
}

/* Returns the place of the next older triple for x, or NONE. */
static i64 find_next_place(Net net, i64 node, i64 x, i64 place) { return find_agreeing(net, node, x, triple_at(net, node, place)[L_OLDER]); }

/* Returns a copy of x with what the triple binds, on x's interval. */
static i64 copy_with_triple(Net net, i64 node, i64 x, i64 place) {
  const NodesRecord *here = node_at(net, node);
  i64 z = copy_row(net, x);
  const i64 *bound = triple_at(net, node, place) + L_KEY + here->key_n;
  for (i64 k = 0; k < here->look_n; k++) *term_at(net, row_at(net, z), slot_at(net, here->look_at + k)) = (int32_t)bound[k];
  return z;
}

/* ---------------------------------------------------------------- FINDs, one after the other
 * A row found stands on those of the FINDs before, down to x: `hash` has its place in the table, `older` the row that it stands on, `newer`
 * its FIND. */

/* Returns whether a node that decides on absence is to look up what it decides. */
static inline int has_finds(Net net, i64 node) {
  i64 first = node_at(net, node)->look_via;
  return first != NONE && node_at(net, first)->look != NONE;
}

/* Returns the next row that all FINDs have for x, or NONE. The search goes on from a place in the table of `find`, for the row `below`. */
static i64 find_row_from(Net net, i64 x, i64 below, i64 find, i64 place) {
  for (;;) {
    if (place != NONE) {
      i64 z = copy_with_triple(net, find, below, place);
      Row *row = row_at(net, z);
      row->hash = place;
      row->older = (int32_t)below;
      row->newer = (int32_t)find;
      const EdgesRecord *edge = edge_at(net, node_at(net, find)->edge_at);
      if (edge->task == EMIT) return z;
      find = edge->node;
      below = z;
      place = find_first_place(net, find, below);
    } else if (below == x) return NONE;
    else {
      const Row *row = row_at(net, below);
      free_row(net, below);
      find = row->newer;
      place = row->hash;
      below = row->older;
      place = find_next_place(net, find, below, place);
    }
  }
}

/* Returns x with what the FINDs of a node have for it first, or NONE.
 * The row is to go on to `find_next_row` or to be given back to `free_found_rows`. */
static i64 find_first_row(Net net, i64 node, i64 x) {
  i64 find = node_at(net, node)->look_via;
  return find_row_from(net, x, x, find, find_first_place(net, find, x));
}

/* Returns x with what comes after z, which is freed; or NONE. */
static i64 find_next_row(Net net, i64 x, i64 z) {
  const Row *row = row_at(net, z);
  i64 find = row->newer, place = row->hash, below = row->older;
  free_row(net, z);
  return find_row_from(net, x, below, find, find_next_place(net, find, below, place));
}

/* Frees z and the rows that it stands on. */
static void free_found_rows(Net net, i64 x, i64 z) {
  while (z != x) {
    i64 below = row_at(net, z)->older;
    free_row(net, z);
    z = below;
  }
}
