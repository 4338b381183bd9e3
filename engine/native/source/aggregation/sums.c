/* SUM and AVG of a group add values when they come and take them away when they leave. */

enum { SPARE = 0 }; /* the row of `limbs` that a sum is rounded in */

static inline LimbsRecord *limbs_at(const Tables *t, i64 row) { return (LimbsRecord *)(t->limbs + row * LIMBS_WIDTH); }

/* Returns a row for a sum of doubles, for which there is room. A free row has the next free one in its first limb. */
static i64 take_limbs(const Tables *t) {
  i64 row = t->at->free_limbs;
  if (row == NONE)
    row = t->at->limbs_top++;
  else {
    t->at->free_limbs = limbs_at(t, row)->limb[0];
    limbs_at(t, row)->limb[0] = 0;
  }
  limbs_at(t, row)->lowest = LIMB_COUNT - 1;
  limbs_at(t, row)->highest = 0;
  return row;
}

static void free_limbs(const Tables *t, i64 row) {
  if (row == NONE) return;
  clear_limbs(limbs_at(t, row));
  limbs_at(t, row)->limb[0] = t->at->free_limbs;
  t->at->free_limbs = row;
}

/* Adds (`by` 1) or takes away (-1) a value of SUM. */
static inline void add_value(const Tables *t, SumRecord *sum, i64 kind, i64 value, i64 by) {
  if (kind == ERROR) {
    sum->errors += by;
  } else if (kind <= DECIMAL) {
    sum->decimals += by * (kind == DECIMAL);
    value *= by;
    sum->rest += value & MASK;
    sum->high += (value >> 32) + (sum->rest >> 32);
    sum->rest &= MASK;
  } else {
    sum->doubles += by;
    if (kind == DOUBLE) {
      if (sum->limbs == NONE) sum->limbs = take_limbs(t);
      add_double(limbs_at(t, sum->limbs), value, by);
    } else if (kind == NAN)
      sum->nans += by;
    else if (kind == RISE)
      sum->rises += by;
    else
      sum->falls += by;
  }
}

/* Returns the bits of the exact sum, rounded once; NaN and infinities add as IEEE says. */
static i64 total_double(const Tables *t, const SumRecord *sum) {
  LimbsRecord *spare = limbs_at(t, SPARE), *limbs = limbs_at(t, sum->limbs);
  if (sum->nans > 0 || (sum->rises > 0 && sum->falls > 0)) return (i64)0x7FF8 << 48;
  if (sum->rises > 0) return INFINITE;
  if (sum->falls > 0) return INFINITE | SIGN;
  carry(limbs);
  for (i64 k = limbs->lowest; k <= limbs->highest; k++) spare->limb[k] = limbs->limb[k];
  spare->lowest = limbs->lowest;
  spare->highest = limbs->highest;
  if (sum->high != 0 || sum->rest != 0) add_integer(spare, sum->high, sum->rest);
  i64 bits = round_sum(spare);
  clear_limbs(spare);
  return bits;
}

/* Gives the sum; a number beyond 62 bits has two parts. */
static inline void report_sum(const Tables *t, const SumRecord *sum, ResultRecord *given) {
  given->code = A_TERM, given->result = 0, given->high = 0;
  if (sum->errors > 0) return;
  if (sum->doubles > 0) {
    given->code = A_DOUBLE, given->result = total_double(t, sum);
    return;
  }
  given->code = sum->decimals > 0 ? A_DECIMAL : AN_INTEGER;
  given->result = ((sum->high & MASK >> 2) << 32) + sum->rest;
  given->high = sum->high >> 30;
}

/* ---------------------------------------------------------------- totals of many solutions */
static const i64 MOST_COUNTED = (i64)1 << 62, MOST_EXACT = (i64)1 << 60; /* the upper half of a sum that a report has room for */

/* Adds (`by` 1) or takes away (-1) a total. What does not fit any more is told in at->excess. */
static inline void add_total(const Tables *t, void *state, i64 op, const TotalRecord *total, i64 by) {
  if (op == COUNT_TOTAL) {
    *(i64 *)state += by * total->n;
    if (*(i64 *)state >= MOST_COUNTED) t->at->excess = 1;
    return;
  }
  TotalSumRecord *sum = state;
  sum->n += by * total->n;
  sum->wide += by * total->wide;
  i128 addend = by * (i128)((u128)(u64)total->high << 64 | (u64)total->low);
  i128 low = (i128)(u64)sum->low + (u64)addend;
  i128 rest = (i128)((u128)(u64)sum->high << 64 | (u64)sum->middle) + (addend >> 64) + (low >> 64);
  sum->low = (i64)low;
  sum->middle = (i64)rest;
  sum->high = (i64)(rest >> 64);
  int fits = sum->high <= 1 && sum->high >= -2;
  if (op == SUM_TOTAL) fits = sum->high == sum->middle >> 63 && sum->middle < MOST_EXACT && sum->middle > -MOST_EXACT;
  if (sum->n >= MOST_COUNTED || !fits) t->at->excess = 1;
}

/* Returns the bits of the double nearest to a sum in units of 2**-DOUBLE_SHIFT. */
static i64 round_total(const Tables *t, const TotalSumRecord *sum) {
  LimbsRecord *spare = limbs_at(t, SPARE);
  const i64 words[] = {sum->low, sum->middle, sum->high};
  enum { FIRST_LIMB = (UNIT - DOUBLE_SHIFT) / 32, OFFSET = (UNIT - DOUBLE_SHIFT) % 32 };
  for (i64 k = 0; k < 6; k++) {
    i64 piece = k < 5 ? words[k / 2] >> (k % 2 * 32) & MASK : words[2] >> 32;
    add_limbs(spare, FIRST_LIMB + k, (i64)((u64)piece << OFFSET) & MASK, piece >> (32 - OFFSET), 0);
  }
  i64 bits = round_sum(spare);
  clear_limbs(spare);
  return bits;
}

/* Gives a total of SUM. */
static inline void report_total(const Tables *t, const TotalSumRecord *sum, i64 op, ResultRecord *given) {
  given->of = sum->n;
  if (op == DOUBLE_TOTAL && sum->wide > 0) {
    given->code = A_DOUBLE, given->result = round_total(t, sum), given->high = 0;
    return;
  }
  given->code = sum->wide > 0 ? A_DECIMAL : AN_INTEGER;
  i128 low = (i128)((u128)(u64)sum->middle << 64 | (u64)sum->low), whole = low;
  if (op == DOUBLE_TOTAL) whole = sum->high * ((i128)1 << (128 - DOUBLE_SHIFT)) + (i128)((u128)low >> DOUBLE_SHIFT);
  given->result = (i64)whole & (((i64)1 << 62) - 1);
  given->high = (i64)(whole >> 62);
}
