/* A node is local if no later log entry describes it: then what is absent of it is certain once its entry has been evaluated
 * (docs/decisions/0132-local-nodes.md). */

/* Returns whether the node that all of what a decision looks for describes is local. */
static inline int is_local(Net net, i64 node, i64 x) {
  const NodesRecord *here = node_at(net, node);
  if (here->subject == 0 || here->source == NONE) return 0;
  const Row *row = row_at(net, x);
  if (is_timeless(row)) return 0;
  if (stream_at(net, here->source)->local == 0) return 0;
  if (here->local != 0) return net->at->foreign == 0;
  i64 kind = kind_at(net, term_of(net, row, here->subject));
  return kind == MESSAGE_BLANK_KIND || (kind == EVENT_KIND && net->at->foreign == 0);
}
