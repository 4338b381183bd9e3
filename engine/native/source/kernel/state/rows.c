/* A row holds one solution. Rows are taken from those given back, and copied. */

/* Takes a row: the one given back last, else one never used. */
static inline i64 take_row(Net net) {
  AtRecord *at = net->at;
  return at->free > 0 ? net->free[place_in(net, TABLE_FREE, --at->free)] : at->used++;
}

static inline void free_row(Net net, i64 row) { net->free[place_in(net, TABLE_FREE, net->at->free++)] = (int32_t)row; }

static inline int is_timeless(const Row *row) { return row->start > row->end; }

/* Returns the cell of a row in any column. */
static i64 read_cell(Net net, const Row *row, i64 column) {
  switch (column) {
  case START: return row->start;
  case END: return row->end;
  case HASH: return row->hash;
  case OLDER: return row->older;
  case NEWER: return row->newer;
  case QUEUE: return row->queue;
  default: return term_of(net, row, column);
  }
}

static void write_cell(Net net, Row *row, i64 column, i64 value) {
  switch (column) {
  case START: row->start = value; return;
  case END: row->end = value; return;
  case HASH: row->hash = value; return;
  case OLDER: row->older = (int32_t)value; return;
  case NEWER: row->newer = (int32_t)value; return;
  case QUEUE: row->queue = (int32_t)value; return;
  default: *term_at(net, row, column) = (int32_t)value;
  }
}

/* The terms that each row has stand apart in such loops, because loops of unknown length cost more than what they do. */
static inline i64 copy_row(Net net, i64 x) {
  i64 copy = take_row(net);
  const Row *from = row_at(net, x);
  Row *to = row_at(net, copy);
  *to = *from;
  for (int v = 0; v < LEAST_WIDTH; v++) to->terms[v] = from->terms[v];
  for (i64 v = LEAST_WIDTH; v < net->width; v++) to->terms[v] = from->terms[v];
  return copy;
}

static inline void unbind_terms(Net net, Row *row) {
  for (int v = 0; v < LEAST_WIDTH; v++) row->terms[v] = UNBOUND;
  for (i64 v = LEAST_WIDTH; v < net->width; v++) row->terms[v] = UNBOUND;
}

/* Returns a row on this interval with nothing bound. */
static inline i64 make_row(Net net, i64 start, i64 end) {
  i64 number = take_row(net);
  Row *row = row_at(net, number);
  row->start = start;
  row->end = end;
  unbind_terms(net, row);
  return number;
}

/* Returns a row with the terms of a fact or report. */
static i64 take_row_with(Net net, i64 start, i64 end, const i64 *terms) {
  i64 number = take_row(net);
  Row *row = row_at(net, number);
  row->start = start;
  row->end = end;
  for (i64 v = 0; v < net->width; v++) row->terms[v] = (int32_t)terms[v];
  return number;
}
