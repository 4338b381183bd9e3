/* Terms are sorted by text, because bytes of UTF-8 stand in the order of code points. 0, the unbound, comes first, because it has no bytes. */

enum { RUN = 8 }; /* rows that are sorted by insertion */

/* Returns whether the text of number a is less than that of number b. */
static int is_text_before(const Terms *terms, i64 a, i64 b) {
  Text p = text_of(terms, a), q = text_of(terms, b);
  int order = memcmp(p.at, q.at, (size_t)(p.length < q.length ? p.length : q.length));
  return order ? order < 0 : p.length < q.length;
}

typedef struct { /* what rows are sorted by: `by`, `then`, and the texts of the rows' numbers, column by column */
  const i64 *by, *then, *numbers;
  i64 columns;
  const Terms *terms;
} RowKeys;

static inline int is_row_before(const RowKeys *keys, i64 i, i64 j) {
  if (keys->by[i] != keys->by[j]) return keys->by[i] < keys->by[j];
  if (keys->then[i] != keys->then[j]) return keys->then[i] < keys->then[j];
  const i64 *these = keys->numbers + i * keys->columns, *those = keys->numbers + j * keys->columns;
  for (i64 k = 0; k < keys->columns; k++)
    if (these[k] != those[k]) return is_text_before(keys->terms, these[k], those[k]);
  return 0;
}

/* Sorts order[first:after] by insertion, for a few rows. */
static void insert_rows(const RowKeys *keys, i64 *order, i64 first, i64 after) {
  for (i64 k = first + 1; k < after; k++) {
    i64 row = order[k], at = k;
    for (; at > first && is_row_before(keys, row, order[at - 1]); at--) order[at] = order[at - 1];
    order[at] = row;
  }
}

/* Merges order[low:middle] and order[middle:high] into one run; of equals, those of the former come first. */
static void merge_runs(const RowKeys *keys, i64 *order, i64 *spare, i64 low, i64 middle, i64 high) {
  i64 left = low, right = middle;
  for (i64 k = low; k < high; k++) {
    int earlier = left < middle && (right == high || !is_row_before(keys, order[right], order[left]));
    spare[k] = earlier ? order[left++] : order[right++];
  }
  memcpy(order + low, spare + low, (size_t)(high - low) * sizeof *order);
}

/* Sorts order[first:after]; equal rows stay as they stand. */
static void sort_order(const RowKeys *keys, i64 *order, i64 *spare, i64 first, i64 after) {
  for (i64 low = first; low < after; low += RUN) insert_rows(keys, order, low, low + RUN < after ? low + RUN : after);
  for (i64 width = RUN; width < after - first; width *= 2)
    for (i64 low = first; low < after - width; low += 2 * width)
      merge_runs(keys, order, spare, low, low + width, low + 2 * width < after ? low + 2 * width : after);
}

/* Returns whether all numbers have cells. */
static int are_terms(const Terms *terms, const i64 *numbers, i64 n) {
  for (i64 k = 0; k < n; k++)
    if (numbers[k] < 0 || numbers[k] >= terms->cells_n) return 0;
  return 1;
}

/* terms; rows, and the columns of their entry and end; what decides among equal ones: a number, and the terms of each; order, spare: as many as rows.
 * Fills `order` with rows of which those with equal entry and end stand together, and stay there. */
static int sort_places(const Argument *in, i64 *out) {
  View rows = in[1].view;
  const i64 *entry = (const i64 *)rows.at + in[2].number, *end = (const i64 *)rows.at + in[3].number;
  i64 *order = in[6].view.at, n = in[6].view.count, width = rows.width;
  RowKeys keys = {in[4].view.at, in[4].view.at, in[5].view.at, n > 0 ? in[5].view.count / n : 0, terms_of(&in[0])};
  (void)out;
  if (rows.count < n * width || in[4].view.count < n || in[7].view.count < n || !are_terms(keys.terms, keys.numbers, in[5].view.count))
    return OUT_OF_BOUNDS;
  for (i64 first = 0, after; first < n; first = after) {
    for (after = first; after < n && end[after * width] == end[first * width] && entry[after * width] == entry[first * width]; after++)
      order[after] = after;
    if (after > first + 1) sort_order(&keys, order, in[7].view.at, first, after);
  }
  return FINE;
}

/* terms; numbers of terms; zeros, order, spare: as many. Fills `order` with the places of the numbers in the order of their texts. */
static int sort_rows(const Argument *in, i64 *out) {
  const i64 *numbers = in[1].view.at, *equal = in[2].view.at;
  i64 n = in[1].view.count, *order = in[3].view.at;
  RowKeys keys = {equal, equal, numbers, 1, terms_of(&in[0])};
  (void)out;
  if (in[2].view.count < n || in[3].view.count < n || in[4].view.count < n || !are_terms(keys.terms, numbers, n)) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < n; k++) order[k] = k;
  sort_order(&keys, order, in[4].view.at, 0, n);
  return FINE;
}
