/* N-Triples texts of numbers are written as `numeric.lexical` writes them, one after the other into one array of bytes. */

enum { MOST_SIGNIFICANT = 64, MOST_ZEROS = 48 /* of a scale, so that a text fits */, LONGEST_SOURCE = 48 /* of a shortest form, amply */ };

static const char *const ENDS[] = {"\"^^<" XSD "integer>", "\"^^<" XSD "decimal>", "\"^^<" XSD "double>"};

typedef struct { /* significant digits, and before which of them the point stands */
  i64 n, point;
  uint8_t digits[MOST_SIGNIFICANT];
} Figures;

static inline u64 magnitude(i64 value) { return value < 0 ? -(u64)value : (u64)value; }

/* Writes the closing quote and the type, and returns the place behind. */
static uint8_t *finish_number(uint8_t *at, i64 kind) {
  size_t length = strlen(ENDS[kind]);
  memcpy(at, ENDS[kind], length);
  return at + length;
}

static inline uint8_t *begin_number(uint8_t *at, int negative) {
  *at++ = '"';
  if (negative) *at++ = '-';
  return at;
}

/* Finds the decimal digits of a whole number, none of 0. */
static void find_digits(u64 value, Figures *found) {
  uint8_t digits[20];
  i64 first = sizeof digits;
  for (; value > 0; value /= 10) digits[--first] = (uint8_t)(value % 10);
  found->n = found->point = (i64)sizeof digits - first;
  memcpy(found->digits, digits + first, (size_t)found->n);
}

static uint8_t *write_integer(uint8_t *at, i64 value) {
  Figures figures;
  at = begin_number(at, value < 0);
  find_digits(magnitude(value), &figures);
  if (value == 0) *at++ = '0';
  for (i64 k = 0; k < figures.n; k++) *at++ = (uint8_t)('0' + figures.digits[k]);
  return finish_number(at, INTEGER);
}

/* Writes a decimal with at least one digit on both sides of its point, and returns the place behind. */
static uint8_t *write_figures(uint8_t *at, Figures *figures) {
  i64 n = figures->n;
  while (n > 0 && figures->digits[n - 1] == 0) n--;
  i64 point = n == 0 ? 0 : figures->point, after = n > point + 1 ? n : point + 1;
  if (point <= 0) *at++ = '0';
  for (i64 k = point < 0 ? point : 0; k < (after > 1 ? after : 1); k++) {
    if (k == point) *at++ = '.';
    *at++ = k >= 0 && k < n ? (uint8_t)('0' + figures->digits[k]) : '0';
  }
  return at;
}

/* Adds one in the last place. */
static void round_up(Figures *figures) {
  i64 k = figures->n - 1;
  while (k >= 0 && figures->digits[k] == 9) k--;
  if (k < 0) {
    figures->digits[0] = 1;
    figures->n = 1;
    figures->point++;
    return;
  }
  figures->digits[k]++;
  figures->n = k + 1;
}

/* Finds the significant digits of value / divisor, at most so many, the last half to even. */
static void find_quotient(u64 value, u64 divisor, i64 most, Figures *found) {
  find_digits(value / divisor, found);
  u64 rest = value % divisor;
  while (rest > 0 && found->n < most) {
    uint8_t digit = (uint8_t)(rest * 10 / divisor);
    rest = rest * 10 % divisor;
    if (found->n > 0 || digit > 0) found->digits[found->n++] = digit;
    else found->point--;
  }
  if (rest > divisor - rest || (rest == divisor - rest && found->digits[found->n - 1] & 1)) round_up(found);
}

/* Returns whether there is room for n texts and where they end. */
static int has_text_room(i64 n, View data, View offsets) { return data.count >= n * LONGEST_NUMBER && offsets.count > n; }

/* values; bytes and offsets to fill with texts of xsd:integer */
static int write_integers(const Argument *in, i64 *out) {
  const i64 *values = in[0].view.at, n = in[0].view.count;
  uint8_t *data = in[1].view.at, *at = data;
  int32_t *offsets = in[2].view.at;
  (void)out;
  if (!has_text_room(n, in[1].view, in[2].view)) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < n; k++) {
    at = write_integer(at, values[k]);
    offsets[k + 1] = (int32_t)(at - data);
  }
  return FINE;
}

/* values; divisors; scale; digits; bytes and offsets to fill with texts of xsd:decimal: value / divisor / 10**scale, half to even */
static int write_quotients(const Argument *in, i64 *out) {
  const i64 *values = in[0].view.at, *divisors = in[1].view.at, n = in[0].view.count, scale = in[2].number, most = in[3].number;
  uint8_t *data = in[4].view.at, *at = data;
  int32_t *offsets = in[5].view.at;
  (void)out;
  if (!has_text_room(n, in[4].view, in[5].view) || in[1].view.count < n || most < 1 || most > MOST_SIGNIFICANT - 20) return OUT_OF_BOUNDS;
  if (scale < 0 || scale > MOST_ZEROS) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < n; k++) {
    Figures figures;
    if (divisors[k] <= 0) return OUT_OF_BOUNDS;
    find_quotient(magnitude(values[k]), (u64)divisors[k], most, &figures);
    figures.point -= scale;
    at = finish_number(write_figures(begin_number(at, values[k] < 0), &figures), DECIMAL);
    offsets[k + 1] = (int32_t)(at - data);
  }
  return FINE;
}

static i64 read_whole(const uint8_t *at, const uint8_t *end) {
  i64 value = 0;
  int negative = at < end && *at == '-';
  if (at < end && (*at == '-' || *at == '+')) at++;
  for (; at < end; at++) value = 10 * value + *at - '0';
  return negative ? -value : value;
}

/* Reads a shortest form without its sign. */
static void read_figures(const uint8_t *at, const uint8_t *end, Figures *found) {
  int seen = 0;
  found->n = found->point = 0;
  for (; at < end && *at <= '9'; at++) {
    if (*at == '.') seen = 1;
    else if (found->n > 0 || *at != '0') {
      found->digits[found->n++] = (uint8_t)(*at - '0');
      found->point += !seen;
    } else found->point -= seen;
  }
  if (at < end) found->point += read_whole(at + 1, end);
}

/* Writes mantissa and exponent: 1.5E0. */
static uint8_t *write_double(uint8_t *at, Figures *figures) {
  i64 exponent = figures->n == 0 ? 0 : figures->point - 1;
  figures->point = 1;
  at = write_figures(at, figures);
  *at++ = 'E';
  if (exponent < 0) {
    *at++ = '-';
    exponent = -exponent;
  }
  if (exponent >= 100) *at++ = (uint8_t)('0' + exponent / 100);
  if (exponent >= 10) *at++ = (uint8_t)('0' + exponent / 10 % 10);
  *at++ = (uint8_t)('0' + exponent % 10);
  return at;
}

/* Writes the text of xsd:double whose shortest form (such as -12.5, 1e-07, inf) is given. */
static uint8_t *write_shortest(uint8_t *at, Text source) {
  const uint8_t *from = source.at, *end = from + source.length;
  int negative = *from == '-';
  from += negative;
  at = begin_number(at, negative);
  if (*from > '9') {
    if (*from == 'n') at -= negative;
    memcpy(at, *from == 'i' ? "INF" : "NaN", 3);
    return finish_number(at + 3, DOUBLE);
  }
  Figures figures;
  read_figures(from, end, &figures);
  return finish_number(write_double(at, &figures), DOUBLE);
}

/* the shortest forms of doubles, as Arrow has them, and their offsets; bytes and offsets to fill with texts of xsd:double */
static int write_doubles(const Argument *in, i64 *out) {
  const uint8_t *source = in[0].view.at;
  const int32_t *from = in[1].view.at;
  uint8_t *data = in[2].view.at, *at = data;
  int32_t *offsets = in[3].view.at;
  i64 n = in[3].view.count - 1;
  (void)out;
  if (!has_text_room(n, in[2].view, in[3].view) || in[1].view.count <= n) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < n; k++) {
    i64 length = (i64)from[k + 1] - from[k];
    if (from[k] < 0 || length < 1 || length > LONGEST_SOURCE || from[k + 1] > in[0].view.count) return OUT_OF_BOUNDS;
    at = write_shortest(at, (Text){source + from[k], length});
    offsets[k + 1] = (int32_t)(at - data);
  }
  return FINE;
}
