/* Doubles add up exactly in limbs of 32 bits that values are added to and taken from; the sum is rounded once when it is asked for.
 *
 * Every finite double is a multiple of 2**-1074 below 2**1024, so 66 limbs hold it and two more what many of them add up to. Neal, Fast
 * Exact Summation Using Small and Large Superaccumulators, arXiv:1505.05571. */

static const i64 MASK = 0xFFFFFFFF, FRACTION = ((i64)1 << 52) - 1, INFINITE = (i64)0x7FF << 52, SIGN = INT64_MIN;

typedef struct { /* limb k counts units of 2**(32 * k - 1074); then which limbs are in use */
  i64 limb[LIMB_COUNT], lowest, highest;
} LimbsRecord;

_Static_assert(sizeof(LimbsRecord) == 8 * LIMBS_WIDTH, "the columns of engine/aggregation/native/layout.py");

/* Adds to three neighbouring limbs. */
static inline void add_limbs(LimbsRecord *sum, i64 limb, i64 low, i64 middle, i64 high) {
  sum->limb[limb] += low;
  sum->limb[limb + 1] += middle;
  sum->limb[limb + 2] += high;
  sum->lowest = lesser(sum->lowest, limb);
  sum->highest = greater(sum->highest, limb + 2);
}

/* Adds (`by` 1) or takes away (-1) the finite double of these bits. */
static void add_double(LimbsRecord *sum, i64 bits, i64 by) {
  i64 exponent = bits >> 52 & 0x7FF, mantissa = bits & FRACTION, sign = bits < 0 ? -by : by;
  if (exponent > 0) {
    mantissa |= (i64)1 << 52;
    exponent--;
  }
  i64 shift = exponent & 31, low = (mantissa & MASK) << shift, high = (mantissa >> 32) << shift;
  add_limbs(sum, exponent >> 5, sign * (low & MASK), sign * ((low >> 32) + (high & MASK)), sign * (high >> 32));
}

/* Adds high * 2**32 + rest, where 0 <= rest < 2**32. */
static void add_integer(LimbsRecord *sum, i64 high, i64 rest) {
  i64 limb = UNIT >> 5, factor = (i64)1 << (UNIT & 31);
  i64 low = (high & MASK) * factor, top = (high >> 32) * factor;
  rest *= factor;
  add_limbs(sum, limb, rest & MASK, (rest >> 32) + (low & MASK), low >> 32);
  add_limbs(sum, limb + 2, top & MASK, top >> 32, 0);
}

/* Carries, so that all limbs are in [0, 2**32) but the highest in use, which has the sign and stays below 2**32. The sum is the same. */
static void carry(LimbsRecord *sum) {
  for (i64 k = sum->lowest; k < sum->highest || (k < LIMB_COUNT - 1 && (sum->limb[k] < -MASK || sum->limb[k] > MASK)); k++) {
    i64 over = sum->limb[k] >> 32;
    sum->limb[k] &= MASK;
    sum->limb[k + 1] += over;
    sum->highest = greater(sum->highest, k + 1);
  }
}

static void negate(LimbsRecord *sum) {
  for (i64 k = sum->lowest; k <= sum->highest; k++) sum->limb[k] = -sum->limb[k];
  carry(sum);
}

/* Returns the sum divided by 2**shift units, rounded down; it has less than 54 bits. */
static i64 bits_from(const LimbsRecord *sum, i64 shift) {
  i64 word = shift >> 5, off = shift & 31;
  u64 found = (u64)sum->limb[word] >> off | (u64)sum->limb[word + 1] << (32 - off);
  if (off > 11) found |= (u64)sum->limb[word + 2] << (64 - off); /* else 53 bits end before */
  return (i64)found;
}

/* Returns the bits of the double nearest to a positive sum whose leading bit is this one. */
static i64 nearest_double(const LimbsRecord *sum, i64 lowest, i64 leading) {
  i64 shift = leading - 52, word = (shift - 1) >> 5, off = (shift - 1) & 31;
  if (shift <= 0) return bits_from(sum, 0);
  if (shift >= 0x7FE) return INFINITE;
  i64 found = bits_from(sum, shift);
  if (sum->limb[word] >> off & 1) {
    i64 beyond = sum->limb[word] & (((i64)1 << off) - 1);
    for (i64 k = lowest; k < word; k++) beyond |= sum->limb[k];
    found += beyond != 0 || found & 1;
  }
  return (shift << 52) + found;
}

/* Returns the bits of the double nearest to the sum, ties to even. The limbs are changed, the sum up to the sign is not. */
static i64 round_sum(LimbsRecord *sum) {
  carry(sum);
  int negative = sum->limb[sum->highest] < 0;
  if (negative) negate(sum);
  i64 top = sum->highest, lowest = sum->lowest;
  while (top > lowest && sum->limb[top] == 0) top--;
  if (sum->limb[top] == 0) return 0;
  i64 leading = 32 * top - 1;
  for (i64 word = sum->limb[top]; word > 0; word >>= 1) leading++;
  i64 bits = nearest_double(sum, lowest, leading);
  return negative ? bits | SIGN : bits;
}

static void clear_limbs(LimbsRecord *sum) {
  for (i64 k = lesser(sum->lowest, sum->highest); k <= sum->highest; k++) sum->limb[k] = 0;
  sum->lowest = LIMB_COUNT - 1;
  sum->highest = 0;
}

/* limbs; doubles, all finite; high and rest of an integer. Adds them to the sum, and gives its bits. For tests. */
static int sum_exactly(const Argument *in, i64 *out) {
  LimbsRecord *sum = in[0].view.at, spare;
  const i64 *doubles = in[1].view.at;
  if (in[0].view.count != LIMBS_WIDTH) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < in[1].view.count; k++) add_double(sum, doubles[k], in[2].number);
  if (in[3].number || in[4].number) add_integer(sum, in[3].number, in[4].number);
  spare = *sum;
  out[0] = round_sum(&spare);
  return FINE;
}
