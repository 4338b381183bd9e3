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
