/* Decimal literals become mantissa and scale, where a word holds them. */

enum { MOST_DIGITS = 18 };
static const char DECIMAL_END[] = "\"^^<http://www.w3.org/2001/XMLSchema#decimal>";
static const i64 END_SIZE = sizeof DECIMAL_END - 1;

typedef struct {
  i64 mantissa, scale;
} DecimalValue;

/* Reads a lexical form, and returns whether it is of at most MOST_DIGITS digits. The scale is the least. */
static int read_decimal(const uint8_t *text, i64 first, i64 after, DecimalValue *found) {
  int negative = text[first] == '-', point = 0;
  i64 mantissa = 0, scale = 0, digits = 0;
  if (negative || text[first] == '+') first++;
  for (i64 k = first; k < after; k++) {
    if (text[k] == '.' && !point) {
      point = 1;
      continue;
    }
    if (text[k] < '0' || text[k] > '9' || digits == MOST_DIGITS) return 0;
    mantissa = 10 * mantissa + text[k] - '0';
    digits++;
    scale += point;
  }
  for (; scale > 0 && mantissa % 10 == 0; scale--) mantissa /= 10;
  *found = (DecimalValue){negative ? -mantissa : mantissa, scale};
  return digits > 0;
}

/* Returns whether the end of a decimal literal stands there. Its first byte is compared alone, since most other terms have another one. */
static inline int is_decimal_end(const uint8_t *text) { return text[0] == DECIMAL_END[0] && memcmp(text, DECIMAL_END, (size_t)END_SIZE) == 0; }

/* data, offsets: N-Triples texts one after the other; found, mantissas, scales: which are an xsd:decimal that a word holds, and its value */
static int read_decimals(const Argument *in, i64 *out) {
  const uint8_t *data = in[0].view.at;
  const int32_t *offsets = in[1].view.at;
  uint8_t *found = in[2].view.at;
  i64 *mantissas = in[3].view.at, *scales = in[4].view.at, n = in[2].view.count;
  (void)out;
  if (in[1].view.count <= n || in[3].view.count < n || in[4].view.count < n) return OUT_OF_BOUNDS;
  for (i64 i = 0; i < n; i++) {
    i64 first = (i64)offsets[i] + 1, after = offsets[i + 1] - END_SIZE;
    DecimalValue value;
    if (offsets[i] < 0 || offsets[i] > offsets[i + 1] || offsets[i + 1] > in[0].view.count) return OUT_OF_BOUNDS;
    found[i] = first < after && is_decimal_end(data + after) && read_decimal(data, first, after, &value);
    if (found[i]) mantissas[i] = value.mantissa, scales[i] = value.scale;
  }
  return FINE;
}
