/* Collectors that nothing inside the instant waits for: their solutions are kept for the end of the feed, and their reports come back in one go. */

enum { MOST_DEFERRED = 1 << 16 };

/* Sets a window with a step due at the next multiple, if the window holds then a solution from before the end of its streams. */
static void schedule_window(Net net, i64 node, i64 side) {
  const NodesRecord *here = node_at(net, node);
  TimersRecord *timer = timer_at(net, here->timer);
  i64 now = net->at->now, following = (divide_down(now, here->step) + 1) * here->step;
  if (side == LEFT && now <= net->at->horizon) timer->latest = now;
  set_due(net, here->timer, timer->latest > following - here->window ? following : FOREVER);
}

/* Sets x aside, with its instant and entry, for the collector of a node. */
static void defer_row(Net net, i64 node, i64 side, i64 x) {
  AtRecord *at = net->at;
  *deferred_at(net, at->deferred_n++) = (DeferredRecord){node, side, x, at->now, at->entry};
  if (node_at(net, node)->step > 0) schedule_window(net, node, side);
}

/* Gives the next report to its node's readers, at its instant; after the last, time goes on from where it stood. */
static void emit_report(Net net) {
  AtRecord *at = net->at;
  i64 r = at->reported;
  if (r == at->reports) {
    at->now = at->stood;
    at->reported = at->reports = 0;
    return;
  }
  const ReportsRecord *report = report_at(net, r);
  at->reported = r + 1;
  at->now = report->end;
  at->entry = report->entry;
  push_frame(net, report->node, EMIT, take_row_with(net, report->start, report->end, report_terms(net, r)));
}
