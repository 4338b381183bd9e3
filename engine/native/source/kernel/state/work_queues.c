/* Work is on the stack, or waits: for the close of the instant, for the host's answers, for its collectors. All of it is counted. */

static inline void set_frame(Frame *frame, i64 node, i64 task, i64 row) {
  frame->node = node;
  frame->task = task;
  frame->row = row;
}

/* Pushes a frame: a node and what it is to do with a row. */
static inline void push_frame(Net net, i64 node, i64 task, i64 row) { set_frame(frame_at(net, net->at->depth++), node, task, row); }

/* Pushes a frame that goes on at `goal` below those that its step has pushed since `depth`, so that their work is done first. */
static void push_frame_below(Net net, i64 depth, i64 node, i64 task, i64 row, i64 goal) {
  i64 top = net->at->depth;
  *frame_at(net, top) = *frame_at(net, depth);
  *frame_at(net, depth) = (Frame){node, task, row, goal};
  net->at->depth = top + 1;
}

/* Sets work aside until the host has answered. What decides does all of it once more then, and counts it. */
static void park_frame(Net net, i64 node, i64 task, i64 row) {
  set_frame(parked_at(net, net->at->parked++), node, task, row);
  if (decides(task)) net->at->spent = 0;
}

/* Counts n more that the node's query has made at this instant: goals, solutions, what waits for the close, and the work on the way.
 * If that is more than any may, the query is marked, and the host looks into it before the next step. */
static inline void count_made(Net net, i64 node, i64 n) {
  i64 number = node_at(net, node)->query;
  QueriesRecord *query = query_at(net, number);
  AtRecord *at = net->at;
  if (query->made_at != at->now) {
    query->made_at = at->now;
    query->made = 0;
  }
  query->made += n;
  if (query->made > at->most_now) {
    at->endless = number;
    at->credit = 0;
  }
}

/* Counts `looks`, and what else the step has spent, as `count_made` does: LOOKS of them count as one row made. */
static void count_looks(Net net, i64 node, i64 looks) {
  looks += net->at->spent;
  net->at->spent = 0;
  if (looks >= LOOKS) count_made(net, node, looks / LOOKS);
}

/* Sets work aside until the instant closes. */
static void wait_for_close(Net net, i64 node, i64 task, i64 row) {
  set_frame(waiting_at(net, net->at->waiting++), node, task, row);
  count_made(net, node, 1);
}

/* Sets x aside for the host's collector. */
static void gather_row(Net net, i64 node, i64 task, i64 x) { set_frame(gathered_at(net, net->at->gathered++), node, task, x); }
