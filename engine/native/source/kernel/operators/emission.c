/* A solution leaves its node: through the filter, and then to the readers. */

/* Returns whether z is to go on now; if not, it has been parked or freed. */
static int passes_filter(Net net, i64 node, i64 z) {
  i64 filter = node_at(net, node)->filter;
  const Row *row = row_at(net, z);
  i64 verdict = filter >= 0 ? judge_exactly(net, filter, row) : is_timeless(row) == (filter == TIMELESS_ONLY) ? TRUE : FALSE;
  if (net->at->spent > 0) count_looks(net, node, 0);
  if (verdict == TRUE) return 1;
  if (verdict == PENDING) park_frame(net, node, EMIT, z);
  else {
    store_at(net, SIDES * node)->refused++;
    if (verdict == ERROR) store_at(net, SIDES * node + RIGHT)->refused++;
    free_row(net, z);
  }
  return 0;
}

/* Pushes z for the node's reader, or leaves it to another step to copy it for several. */
static inline void forward_row(Net net, i64 node, i64 z) {
  const NodesRecord *here = node_at(net, node);
  store_at(net, SIDES * node)->given++;
  if (here->edge_n != 1) push_frame(net, node, FAN, z);
  else push_frame(net, edge_at(net, here->edge_at)->node, edge_at(net, here->edge_at)->task, z);
}

/* Hands on row z, which the caller owned. */
static inline void emit_row(Net net, i64 node, i64 z) {
  i64 filter = node_at(net, node)->filter;
  if (filter == NONE || (filter == TIMED_ONLY && !is_timeless(row_at(net, z))) || passes_filter(net, node, z)) forward_row(net, node, z);
}

/* Does as `emit_row` does, off the hot path: one copy of its code serves all callers. */
__attribute__((noinline)) static void emit_elsewhere(Net net, i64 node, i64 z) { emit_row(net, node, z); }

/* Pushes one copy of z for each reader of `node`; the room for them was checked. */
static void fan_out_row(Net net, i64 node, i64 z) {
  const NodesRecord *here = node_at(net, node);
  for (i64 e = here->edge_at; e < here->edge_at + here->edge_n; e++) push_frame(net, edge_at(net, e)->node, edge_at(net, e)->task, copy_row(net, z));
  free_row(net, z);
}
