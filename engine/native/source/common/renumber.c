/* The terms of each slice of rows are numbered anew, so that a slice has a dictionary of its own. */

enum { NO_SLICE = -1 };

typedef struct { /* by term: the last slice that has it, and its number there */
  int32_t slice, number;
} SliceNumber;

/* Numbers the rows in `order` by slices between `bounds`. Returns FINE, or OUT_OF_BOUNDS if an array names what is not there. */
static int number_slices(View indices, View order, View bounds, SliceNumber *numbered, i64 terms, int32_t *numbers, int32_t *used, i64 *begins) {
  const int32_t *index_of = indices.at;
  const i64 *rows = order.at, *bound = bounds.at;
  i64 count = 0;
  for (i64 k = 0; k + 1 < bounds.count; k++) {
    begins[k] = count;
    if (bound[k] < 0 || bound[k] > bound[k + 1] || bound[k + 1] > order.count) return OUT_OF_BOUNDS;
    for (i64 at = bound[k]; at < bound[k + 1]; at++) {
      if (rows[at] < 0 || rows[at] >= indices.count || index_of[rows[at]] >= terms) return OUT_OF_BOUNDS;
      int32_t index = index_of[rows[at]];
      numbers[at] = 0;
      if (index < 0) continue;
      if (numbered[index].slice != k) {
        if (count == indices.count) return OUT_OF_BOUNDS;
        numbered[index] = (SliceNumber){(int32_t)k, (int32_t)(count - begins[k])};
        used[count++] = index;
      }
      numbers[at] = numbered[index].number;
    }
  }
  begins[bounds.count - 1] = count;
  return FINE;
}

/* indices of rows, below 0 for none; order: rows, by slices between `bounds`; how many terms there are; numbers, used, begins: what is filled */
static int renumber_slices(const Argument *in, i64 *out) {
  View indices = in[0].view, order = in[1].view, bounds = in[2].view;
  i64 terms = in[3].number;
  (void)out;
  if (in[4].view.count < order.count || in[5].view.count < indices.count || bounds.count < 1 || in[6].view.count < bounds.count) return OUT_OF_BOUNDS;
  if (terms < 0) return OUT_OF_BOUNDS;
  SliceNumber *numbered = malloc((size_t)(terms + 1) * sizeof *numbered);
  if (numbered == NULL) return NO_MEMORY;
  for (i64 k = 0; k < terms; k++) numbered[k].slice = NO_SLICE;
  int status = number_slices(indices, order, bounds, numbered, terms, in[4].view.at, in[5].view.at, in[6].view.at);
  free(numbered);
  return status;
}
