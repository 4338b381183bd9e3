/* A table whose columns stand one after another has each row once. Its rows are found by hash: a slot holds a row's number and 1, or 0. */

typedef struct {
  i64 *cells, columns, room; /* row k has its columns at k, room + k and so on */
  int32_t *slots;
  i64 mask;
  u64 seed; /* of the hashes, so that nobody can prepare rows that collide */
} RowSet;

static int open_set(RowSet *set, View table, View slots, u64 seed, i64 rows) {
  *set = (RowSet){table.at, table.width ? table.count / table.width : 0, table.width, slots.at, slots.count - 1, seed};
  return rows >= 0 && rows <= set->room && rows < slots.count && (slots.count & set->mask) == 0 ? FINE : OUT_OF_BOUNDS;
}

/* Returns the slot of a row, whose column k stands at row[k * step], or the empty slot where it belongs. */
static inline i64 slot_of(const RowSet *set, const i64 *row, i64 step) {
  u64 key = set->seed;
  for (i64 k = 0; k < set->columns; k++) {
    key = (key ^ (u64)row[k * step]) * 0x9E3779B97F4A7C15u;
    key ^= key >> 32;
  }
  for (i64 slot = (i64)key & set->mask;; slot = (slot + 1) & set->mask) {
    i64 other = (i64)set->slots[slot] - 1, k = 0;
    if (other < 0 || other >= set->room) return slot;
    while (k < set->columns && set->cells[k * set->room + other] == row[k * step]) k++;
    if (k == set->columns) return slot;
  }
}

/* table (columns x room); slots, which are 0: what is filled; how many rows there are; seed */
static int spread_rows(const Argument *in, i64 *out) {
  RowSet set;
  (void)out;
  if (open_set(&set, in[0].view, in[1].view, in[3].word, in[2].number)) return OUT_OF_BOUNDS;
  for (i64 row = 0; row < in[2].number; row++) set.slots[slot_of(&set, set.cells + row, set.room)] = (int32_t)row + 1;
  return FINE;
}

/* table, slots: what is changed; how many rows there are; seed; more rows. Gives how many rows there are with those that are new. */
static int unite_rows(const Argument *in, i64 *out) {
  RowSet set;
  const i64 *more = in[4].view.at;
  i64 n = in[2].number, count = in[4].view.width ? in[4].view.count / in[4].view.width : 0;
  if (open_set(&set, in[0].view, in[1].view, in[3].word, n + count) || in[4].view.width != set.columns) return OUT_OF_BOUNDS;
  for (i64 row = 0; row < count; row++, more += set.columns) {
    i64 slot = slot_of(&set, more, 1);
    if (set.slots[slot]) continue;
    for (i64 k = 0; k < set.columns; k++) set.cells[k * set.room + n] = more[k];
    set.slots[slot] = (int32_t)++n;
  }
  out[0] = n;
  return FINE;
}
