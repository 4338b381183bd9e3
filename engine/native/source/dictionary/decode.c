/* Texts of numbers are written as Arrow has strings: offsets, and the bytes one after the other. Marks say which terms are still in use. */

/* terms; numbers; offsets to fill, one more. Gives the bytes of the texts in all, and how many numbers are NONE. The offsets are good if the bytes
 * fit. */
static int measure(const Argument *in, i64 *out) {
  const Terms *terms = terms_of(&in[0]);
  const i64 *numbers = in[1].view.at;
  int32_t *offsets = in[2].view.at;
  i64 n = in[1].view.count, size = 0;
  if (in[2].view.count <= n || !are_terms(terms, numbers, n)) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < n; k++) {
    offsets[k] = (int32_t)size;
    size += length_of(terms, numbers[k]);
    out[1] += numbers[k] == NONE;
  }
  offsets[n] = (int32_t)size;
  out[0] = size;
  return FINE;
}

/* terms; numbers; bytes to fill with their texts, one after the other */
static int gather(const Argument *in, i64 *out) {
  const Terms *terms = terms_of(&in[0]);
  const i64 *numbers = in[1].view.at;
  uint8_t *at = in[2].view.at, *end = at + in[2].view.count;
  (void)out;
  if (!are_terms(terms, numbers, in[1].view.count)) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < in[1].view.count; k++) {
    Text text = text_of(terms, numbers[k]);
    if (text.length > end - at) return OUT_OF_BOUNDS;
    memcpy(at, text.at, (size_t)text.length);
    at += text.length;
  }
  return FINE;
}

/* numbers; bits to set, the least of a byte first, of those that are not NONE */
static int mark_bound(const Argument *in, i64 *out) {
  const i64 *numbers = in[0].view.at, n = in[0].view.count;
  (void)out;
  if (in[1].view.count < (n + 7) >> 3) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < n; k++)
    if (numbers[k] != NONE) set_bit(in[1].view.at, k);
  return FINE;
}

/* Marks a number on suspicion: one that is no term, or is a column or -term in a program, does no harm. */
static inline void mark_number(View held, i64 number) {
  u64 place = number < 0 ? -(u64)number : (u64)number;
  if (place < (u64)held.count) ((uint8_t *)held.at)[place] = 1;
}

/* marks, one a term; numbers of those to mark */
static int mark_all(const Argument *in, i64 *out) {
  const i64 *numbers = in[1].view.at;
  (void)out;
  for (i64 k = 0; k < in[1].view.count; k++) mark_number(in[0].view, numbers[k]);
  return FINE;
}

/* marks; rows of numbers; which of the rows are free. Marks the numbers in all rows but these. */
static int mark_rows(const Argument *in, i64 *out) {
  const int32_t *numbers = in[1].view.at;
  const uint8_t *free_rows = in[2].view.at;
  i64 width = in[1].view.width, rows = width > 0 ? in[1].view.count / width : 0;
  (void)out;
  if (in[2].view.count < rows) return OUT_OF_BOUNDS;
  for (i64 row = 0; row < rows; row++)
    for (i64 k = row * width; !free_rows[row] && k < (row + 1) * width; k++) mark_number(in[0].view, numbers[k]);
  return FINE;
}
