/* OUT writes the solutions of a query, each once an instant. */

static int is_first_in_seen(Net net, i64 node, i64 k) { return meet_first_in(net, node, out_at(net, k)->start, out_terms(net, k), 1); }

/* Enters this instant's rows of `out` before `after` into what it has met, for they are too many, or about to be taken. */
static void remember_few(Net net, i64 after) {
  if (net->at->few_from != NONE)
    for (i64 k = net->at->few_from; k < after; k++) is_first_in_seen(net, out_at(net, k)->node, k);
  net->at->few_from = NONE;
}

static inline int has_same_values(Net net, i64 r, i64 k) {
  const i64 *a = out_terms(net, r), *b = out_terms(net, k);
  for (i64 v = 0; v < net->width; v++)
    if (a[v] != b[v]) return 0;
  return 1;
}

/* Returns whether row k of `out` is the first of its kind at this instant.
 * The first few of an instant are looked through; more have a table of hashes. */
static inline int is_first_in_out(Net net, i64 node, i64 k) {
  i64 first = net->at->few_from;
  if (first == NONE) return is_first_in_seen(net, node, k);
  for (i64 r = first; r < k; r++)
    if (out_at(net, r)->start == out_at(net, k)->start && out_at(net, r)->node == node && has_same_values(net, r, k)) return 0;
  if (k - first == MOST_FEW) remember_few(net, k + 1);
  return 1;
}

static inline void merge_into(Net net, i64 *terms, const Row *x, const Row *y) {
  for (int v = 0; v < LEAST_WIDTH; v++) terms[v] = x->terms[v] | y->terms[v];
  for (i64 v = LEAST_WIDTH; v < net->width; v++) terms[v] = x->terms[v] | y->terms[v];
}

/* Writes the join of x and y as a solution of the OUT `node`, and returns whether the solution is new at this instant.
 * Solutions that are apart are remembered at once, so that those which are looked through stay few. */
static inline int write_joined(Net net, i64 node, const Row *x, const Row *y) {
  i64 k = net->at->found;
  *out_at(net, k) = (OutRecord){lesser(x->start, y->start), greater(x->end, y->end), node, net->at->entry};
  merge_into(net, out_terms(net, k), x, y);
  int is_new = 1;
  if (node_at(net, node)->apart != 0) remember_few(net, k);
  else is_new = is_first_in_out(net, node, k);
  net->at->found = k + is_new;
  return is_new;
}

/* Writes a solution of a query; the instant's duplicates end here, whatever is hidden apart.
 * A timeless one stands at the instant at which its query opened, or its facts came. */
static void write_solution(Net net, i64 node, i64 z) {
  const NodesRecord *here = node_at(net, node);
  Row *row = row_at(net, z);
  for (i64 k = here->hide_at; k < here->hide_at + here->hide_n; k++) *term_at(net, row, slot_at(net, k)) = UNBOUND;
  if (here->template_n > 0) hide_left_out(net, node, row);
  if (is_timeless(row)) {
    if (keep_timeless_once(net, node, z)) {
      free_row(net, z);
      return;
    }
    row->start = row->end = net->at->now;
  }
  count_made(net, node, 1);
  if (write_joined(net, node, row, row) && here->template_n > 0) derive_triples(net, node, row);
  free_row(net, z);
}

/* Returns the OUT that alone reads what `node` joins and takes all of it as it is, or NONE. Such joins need no row of their own. */
static inline i64 find_plain_out(Net net, i64 node) {
  const NodesRecord *joining = node_at(net, node);
  if (joining->edge_n != 1 || joining->timeless != 0 || (joining->filter != NONE && joining->filter != TIMED_ONLY)) return NONE;
  i64 reader = edge_at(net, joining->edge_at)->node;
  const NodesRecord *reading = node_at(net, reader);
  return reading->kind == OUT && reading->template_n == 0 && reading->hide_n == 0 ? reader : NONE;
}
