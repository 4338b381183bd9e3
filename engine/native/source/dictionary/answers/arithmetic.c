/* Exact numbers are a kind, a mantissa and a scale: mantissa / 10**scale. What a word does not hold is left to the host. */

enum { QUOTIENT_DIGITS = 34 /* as engine.expressions.numeric has it */, FEW_DIGITS = 17 /* a literal with so few fits */ };

static const i64 WHOLE_TENS[] = {
    1LL,          10LL,          100LL,          1000LL,          10000LL,          100000LL,
    1000000LL,    10000000LL,    100000000LL,    1000000000LL,    10000000000LL,    100000000000LL,
    1000000000000LL, 10000000000000LL, 100000000000000LL, 1000000000000000LL, 10000000000000000LL, 100000000000000000LL,
};
_Static_assert(sizeof WHOLE_TENS == (MOST_SCALE + 1) * sizeof(i64), "there is a power for each scale");

typedef struct { /* kind: INTEGER or DECIMAL */
  i64 kind, mantissa, scale;
} Value;

/* Reads the value of a literal of xsd:integer that has a few digits and no sign, and returns whether a text is one. */
static inline int read_few_digits(Text text, Value *value) {
  const i64 end = (i64)strlen(ENDS[INTEGER]), after = text.length - end;
  if (after < 2 || after > 1 + FEW_DIGITS || text.at[0] != '"' || !is_same(text.at + after, (const uint8_t *)ENDS[INTEGER], end)) return 0;
  i64 found = 0;
  for (i64 k = 1; k < after; k++) {
    if (!is_digit(text.at[k])) return 0;
    found = 10 * found + text.at[k] - '0';
  }
  *value = (Value){INTEGER, found, 0};
  return 1;
}

/* Reads a term's value, and returns whether it is an integer or a decimal that fits. */
static int read_value(const Terms *terms, i64 number, Value *value) {
  if (number == NONE) return 0;
  Text text = text_of(terms, number);
  if (read_few_digits(text, value)) return 1;
  i64 length = 0, which = find_type(text, &length);
  if (which == NO_NUMERAL || NUMERIC_TYPES[which].kind == DOUBLE || length == 0) return 0;
  const NumericType *type = &NUMERIC_TYPES[which];
  Numeral numeral = read_numeral(text.at + 1, length, type->kind);
  if (!numeral.well || !numeral.fits || numeral.mantissa > (u64)MOST_MANTISSA || -numeral.power > MOST_SCALE || !is_within(type, &numeral)) return 0;
  *value = (Value){type->kind, numeral.negative ? -(i64)numeral.mantissa : (i64)numeral.mantissa, -numeral.power};
  return 1;
}

/* A decimal that is whole becomes an integer. */
static void make_canonical(Value *value) {
  for (; value->scale > 0 && value->mantissa % 10 == 0; value->scale--) value->mantissa /= 10;
  if (value->scale == 0) value->kind = INTEGER;
}

/* Leaves the sum, difference or product of two values in the place of the first, and returns whether it fits. */
static int combine(i64 operation, Value *value, const Value *other) {
  i64 a = value->mantissa, b = other->mantissa, more = other->scale - value->scale;
  if (other->kind > value->kind) value->kind = other->kind;
  if (operation == MULTIPLY) {
    if (fabs((double)a * (double)b) > (double)MOST_MANTISSA) return 0;
    value->mantissa = a * b;
    value->scale += other->scale;
  } else {
    if (magnitude(more > 0 ? a : b) > (u64)(MOST_MANTISSA / WHOLE_TENS[magnitude(more)])) return 0;
    if (more > 0) {
      a *= WHOLE_TENS[more];
      value->scale = other->scale;
    } else b *= WHOLE_TENS[-more];
    value->mantissa = operation == ADD ? a + b : a - b;
  }
  return magnitude(value->mantissa) <= (u64)MOST_MANTISSA && value->scale <= MOST_SCALE;
}

/* Writes a value, and returns the length of its text. */
static i64 write_value(uint8_t *text, const Value *value) {
  if (value->kind == INTEGER) return write_integer(text, value->mantissa) - text;
  Figures figures;
  find_digits(magnitude(value->mantissa), &figures);
  figures.point -= value->scale;
  return finish_number(write_figures(begin_number(text, value->mantissa < 0), &figures), DECIMAL) - text;
}

/* Writes the quotient of two values, a decimal, and returns the length of its text; 0 for a division by zero. */
static i64 write_quotient(uint8_t *text, const Value *value, const Value *by) {
  i64 a = value->mantissa, b = by->mantissa;
  if (b == 0) return 0;
  Figures figures;
  find_quotient(magnitude(a), magnitude(b), QUOTIENT_DIGITS, &figures);
  figures.point += by->scale - value->scale;
  return finish_number(write_figures(begin_number(text, a != 0 && (a < 0) != (b < 0)), &figures), DECIMAL) - text;
}

/* Returns the number of the first n bytes of a text, or NO_ANSWER if there are none or no room is there for them. */
static i64 intern_written(const Terms *terms, const uint8_t *text, i64 n) { return n > 0 ? intern_text(terms, (Text){text, n}) : NO_ANSWER; }

/* Returns the number of the term of a value; those of small integers are remembered. */
static i64 intern_value(const Terms *terms, const Value *value) {
  uint8_t text[LONGEST_NUMBER];
  i64 whole = value->mantissa;
  if (value->kind != INTEGER || whole < 0 || whole >= MOST_SMALL) return intern_written(terms, text, write_value(text, value));
  if (terms->small[whole] == NONE) {
    i64 number = intern_written(terms, text, write_value(text, value));
    terms->small[whole] = number > 0 ? number : NONE;
  }
  __builtin_prefetch(&terms->cells[terms->small[whole]]); /* for a name, which has its text */
  return terms->small[whole] != NONE ? terms->small[whole] : NO_ANSWER;
}

/* Returns the number of the term that is the value of an expression, or NO_ANSWER where the host has to say it. */
static i64 calculate(const Terms *terms, const ArithmeticRecord *recipe, const i64 *arguments) {
  const StepRecord *step = (const StepRecord *)(recipe + 1), *end = step + recipe->steps;
  Value values[DEEPEST];
  i64 depth = 0;
  for (; step < end; step++) {
    if ((step->operation == ARGUMENT || step->operation == CONSTANT) && depth == DEEPEST) return NO_ANSWER;
    switch (step->operation) {
    case CONSTANT: values[depth++] = (Value){step->first, step->second, step->third}; break;
    case ARGUMENT:
      if (!read_value(terms, arguments[step->first], &values[depth++])) return NO_ANSWER;
      break;
    case NEGATE: values[depth - 1].mantissa *= -1; break;
    case CANONICAL: make_canonical(&values[depth - 1]); break;
    case DIVIDE: { /* it stands last */
      uint8_t text[LONGEST_NUMBER];
      return intern_written(terms, text, write_quotient(text, &values[0], &values[1]));
    }
    default:
      depth--;
      if (!combine(step->operation, &values[depth - 1], &values[depth])) return NO_ANSWER;
    }
  }
  return intern_value(terms, &values[0]);
}
