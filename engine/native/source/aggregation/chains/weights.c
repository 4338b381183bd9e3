/* A weight says of a set of matches how many they are, and what each sum over them is. Its numbers have 128 bits.
 *
 * Weights are a commutative ring: those of disjoint sets add, and (n, s) * (m, t) = (n m, s m + n t) is the weight of all pairs of their matches. */

typedef __int128 i128;
typedef unsigned __int128 u128;

typedef struct {
  i128 part[MOST_PARTS];
} Weight;

static inline i128 read_wide(const i64 *cell) { return (i128)((u128)(u64)cell[1] << 64 | (u64)cell[0]); }

static inline void write_wide(i64 *cell, i128 number) {
  cell[0] = (i64)number;
  cell[1] = (i64)(number >> 64);
}

static inline int is_short(i128 number) { return number == (i64)number; }

/* Multiplies, and notes a product of more than 125 bits. */
static inline i128 multiply(i128 a, i128 b, i64 *fault) {
  if (is_short(a) && is_short(b)) return a * b;
  double size = (double)a * (double)b;
  if (size < 0x1p125 && size > -0x1p125) return a * b;
  *fault = TOO_LARGE;
  return 0;
}

static inline i128 add(i128 a, i128 b, i64 *fault) {
  i128 sum;
  if (__builtin_add_overflow(a, b, &sum)) *fault = TOO_LARGE;
  return sum;
}

static Weight read_weight(const i64 *cells, i64 parts) {
  Weight weight;
  for (i64 p = 0; p < parts; p++) weight.part[p] = read_wide(cells + 2 * p);
  return weight;
}

static Weight multiply_weights(const Weight *a, const Weight *b, i64 parts, i64 *fault) {
  Weight product;
  product.part[0] = multiply(a->part[0], b->part[0], fault);
  for (i64 p = 1; p < parts; p++)
    product.part[p] = add(multiply(a->part[p], b->part[0], fault), multiply(a->part[0], b->part[p], fault), fault);
  return product;
}

/* Adds (`by` 1) or takes away (-1) a weight. */
static void add_weight(i64 *cells, const Weight *weight, i64 by, i64 parts, i64 *fault) {
  for (i64 p = 0; p < parts; p++) write_wide(cells + 2 * p, add(read_wide(cells + 2 * p), by * weight->part[p], fault));
}
