/* Numeric literals become a double and an error bound, as engine/dictionary/float_bounds.py defines them.
 * The nearest double is found by Clinger's exact cases and the algorithm of Eisel and Lemire (D. Lemire, Number Parsing at a Gigabyte per
 * Second, Software: Practice and Experience 51(8), 2021). The few that these leave open are the host's. */

enum { NO_NUMERAL = -1, MOST_DIGITS = 19 /* that surely fit into a word */, LARGE = 1 << 20 /* an exponent beyond all doubles */ };
static const u64 EXACT = 1ULL << 53;

static const uint8_t MARK[] = "\"^^<" XSD;
enum { MARK_LENGTH = sizeof MARK - 1, LONGEST_NAME = 18 };

typedef struct { /* of XML Schema (2, 3.4.13 to 3.4.25): the largest magnitudes of a value below zero and of one above, and whether zero is one */
  const char *name;
  i64 length, kind;
  u64 below, above;
  int zero;
} NumericType;

static const NumericType NUMERIC_TYPES[] = {
    {"double", 6, DOUBLE, UINT64_MAX, UINT64_MAX, 1},
    {"decimal", 7, DECIMAL, UINT64_MAX, UINT64_MAX, 1},
    {"integer", 7, INTEGER, UINT64_MAX, UINT64_MAX, 1},
    {"nonPositiveInteger", 18, INTEGER, UINT64_MAX, 0, 1},
    {"negativeInteger", 15, INTEGER, UINT64_MAX, 0, 0},
    {"nonNegativeInteger", 18, INTEGER, 0, UINT64_MAX, 1},
    {"positiveInteger", 15, INTEGER, 0, UINT64_MAX, 0},
    {"long", 4, INTEGER, 1ULL << 63, INT64_MAX, 1},
    {"int", 3, INTEGER, 1ULL << 31, INT32_MAX, 1},
    {"short", 5, INTEGER, 1 << 15, INT16_MAX, 1},
    {"byte", 4, INTEGER, 1 << 7, INT8_MAX, 1},
    {"unsignedLong", 12, INTEGER, 0, UINT64_MAX, 1},
    {"unsignedInt", 11, INTEGER, 0, UINT32_MAX, 1},
    {"unsignedShort", 13, INTEGER, 0, UINT16_MAX, 1},
    {"unsignedByte", 12, INTEGER, 0, UINT8_MAX, 1},
};
enum { N_NUMERIC_TYPES = sizeof NUMERIC_TYPES / sizeof *NUMERIC_TYPES };

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}; /* exactly */

/* Returns which of the types a term's text has, NO_NUMERAL if none, and leaves the length of the lexical form. */
static i64 find_type(Text text, i64 *lexical) {
  i64 n = text.length, length = 0;
  if (n < MARK_LENGTH + 5 || text.at[0] != '"' || text.at[n - 1] != '>') return NO_NUMERAL;
  while (length < LONGEST_NAME && text.at[n - 2 - length] != '#' && length < n - MARK_LENGTH - 2) length++;
  i64 mark = n - 1 - length - MARK_LENGTH;
  if (mark <= 0 || !is_same(text.at + mark, MARK, MARK_LENGTH)) return NO_NUMERAL;
  const uint8_t *name = text.at + mark + MARK_LENGTH;
  for (i64 k = 0; k < N_NUMERIC_TYPES; k++)
    if (length == NUMERIC_TYPES[k].length && is_same(name, (const uint8_t *)NUMERIC_TYPES[k].name, length)) {
      *lexical = mark - 1;
      return k;
    }
  return NO_NUMERAL;
}

typedef struct { /* a lexical form: mantissa * 10 ** power, if it is well formed and all its digits fit */
  int well, negative, fits;
  u64 mantissa;
  i64 power;
} Numeral;

static inline int is_digit(uint8_t character) { return character >= '0' && character <= '9'; }

/* Reads an exponent, which stops at LARGE, and returns whether it is well formed. */
static int read_exponent(const uint8_t *at, const uint8_t *end, i64 *power) {
  i64 exponent = 0;
  int negative = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) at++;
  if (at == end) return 0;
  for (; at < end; at++) {
    if (!is_digit(*at)) return 0;
    exponent = 10 * exponent + *at - '0';
    if (exponent > LARGE) exponent = LARGE;
  }
  *power += negative ? -exponent : exponent;
  return 1;
}

/* Reads the lexical form, of n bytes, of a numeral of a kind. */
static Numeral read_numeral(const uint8_t *at, i64 n, i64 kind) {
  Numeral found = {0, n > 0 && *at == '-', 1, 0, 0};
  const uint8_t *end = at + n;
  i64 significant = 0;
  int any = 0, point = 0;
  if (n > 0 && (*at == '-' || *at == '+')) at++;
  for (; at < end; at++) {
    if (is_digit(*at)) {
      any = 1;
      if (significant > 0 || *at != '0') significant++;
      if (significant > MOST_DIGITS) found.fits = 0;
      else found.mantissa = 10 * found.mantissa + *at - '0';
      found.power -= point;
    } else if (*at == '.' && !point && kind != INTEGER) point = 1;
    else break;
  }
  if (!any || (at < end && (kind != DOUBLE || (*at | 0x20) != 'e'))) return found;
  found.well = at == end || read_exponent(at + 1, end, &found.power);
  return found;
}

/* Finds the double nearest to mantissa * 10 ** power, with mantissa > 0, and returns whether it is sure. */
static int find_nearest(u64 mantissa, i64 power, double *nearest) {
  if (mantissa <= EXACT && power >= -22 && power <= 22) {
    *nearest = power < 0 ? (double)mantissa / TENS[-power] : (double)mantissa * TENS[power];
    return 1;
  }
  *nearest = 0.0;
  if (power < LEAST_POWER || power > MOST_POWER) return 0;
  int zeros = __builtin_clzll(mantissa);
  u64 scaled = mantissa << zeros;
  unsigned __int128 product = (unsigned __int128)scaled * POWERS[power - LEAST_POWER][0];
  if (((u64)(product >> 64) & 0x1FF) == 0x1FF) product += (u64)((unsigned __int128)scaled * POWERS[power - LEAST_POWER][1] >> 64);
  u64 high = (u64)(product >> 64), low = (u64)product;
  if (low == UINT64_MAX && (power < -27 || power > 55)) return 0;
  int upper = (int)(high >> 63), shift = upper + 9;
  u64 bits = high >> shift;
  i64 exponent = ((217706 * power) >> 16) + 63 + upper - zeros + 1023;
  if (exponent <= 0) return 0;                                                                                /* less than the least normal double */
  if (low <= 1 && power >= -4 && power <= 23 && (bits & 3) == 1 && bits << shift == high) bits &= ~(u64)1; /* half-way: to the even one */
  bits = (bits + (bits & 1)) >> 1;
  if (bits >= 1ULL << 53) {
    bits = 1ULL << 52;
    exponent++;
  }
  if (exponent >= 2047) return 0;
  bits = (bits & ~(1ULL << 52)) | (u64)exponent << 52;
  memcpy(nearest, &bits, sizeof bits);
  return 1;
}

/* Returns whether a double is mantissa * 10 ** power, with power <= 0, itself. */
static int is_exact(u64 mantissa, i64 power) {
  for (; power < 0 && mantissa % 10 == 0; power++) mantissa /= 10;
  for (; power < 0 && mantissa % 5 == 0; power++) mantissa /= 5; /* what is left of the tens are twos */
  if (power < 0) return 0;
  return mantissa >> __builtin_ctzll(mantissa) < EXACT;
}

/* Returns whether a value lies within the range of its type. */
static int is_within(const NumericType *type, const Numeral *numeral) {
  if (numeral->mantissa == 0) return type->zero;
  return numeral->mantissa <= (numeral->negative ? type->below : type->above);
}

/* Leaves the value of a term's text and its error bound, (0, inf) where it is no number, and returns whether these are sure. */
static int approximate(Text text, double value[2]) {
  i64 length = 0, type = find_type(text, &length);
  value[0] = 0.0;
  value[1] = INFINITY;
  if (type == NO_NUMERAL) return 1;
  i64 kind = NUMERIC_TYPES[type].kind;
  if (kind != DOUBLE && length > LONGEST_NUMERAL) return 1;
  Numeral numeral = read_numeral(text.at + 1, length, kind);
  if (!numeral.well) return 1;
  if (!numeral.fits) return 0;
  if (!is_within(&NUMERIC_TYPES[type], &numeral)) return 1;
  if (numeral.mantissa == 0) {
    value[0] = numeral.negative && kind != INTEGER ? -0.0 : 0.0;
    value[1] = 0.0;
    return 1;
  }
  int sure = find_nearest(numeral.mantissa, numeral.power, value);
  value[1] = kind == DOUBLE || is_exact(numeral.mantissa, numeral.power) ? 0.0 : value[0] * 0x1p-52 + 0x1p-1000;
  if (numeral.negative) value[0] = -value[0];
  return sure;
}
