/* Instants are written as xsd:dateTime in UTC, as `engine.expressions.temporal` writes them. */

static const i64 SECOND = 1000000, DAY = 86400LL * 1000000, CENTURIES = 146097 /* days of four hundred years */;

static inline i64 floor_quotient(i64 a, i64 b) { return a / b - (a % b < 0); }

/* Writes a number with leading zeros and the character behind it, and returns the place behind both. */
static uint8_t *write_padded(uint8_t *at, i64 value, int width, char after) {
  for (int k = width - 1; k >= 0; k--, value /= 10) at[k] = (uint8_t)('0' + value % 10);
  at[width] = (uint8_t)after;
  return at + width + 1;
}

typedef struct {
  i64 year, month, day;
} Date;

/* Returns the date of a day since 1970 in the Gregorian calendar (H. Hinnant, chrono-compatible low-level date algorithms). */
static Date civil_date(i64 days) {
  i64 shifted = days + 719468, era = floor_quotient(shifted, CENTURIES), of_era = shifted - era * CENTURIES;
  i64 year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  i64 of_year = of_era - (365 * year + year / 4 - year / 100), part = (5 * of_year + 2) / 153, month = part < 10 ? part + 3 : part - 9;
  return (Date){year + 400 * era + (month <= 2), month, of_year - (153 * part + 2) / 5 + 1};
}

/* Writes the term of an instant, and returns its length; 0 for a year before 0 or after 9999, which the host writes. */
static i64 write_instant(uint8_t *text, i64 micros) {
  static const char TYPE[] = "\"^^<" XSD "dateTime>";
  i64 days = floor_quotient(micros, DAY), rest = micros - days * DAY;
  Date date = civil_date(days);
  if (date.year < 0 || date.year > 9999) return 0;
  uint8_t *at = text;
  *at++ = '"';
  at = write_padded(at, date.year, 4, '-');
  at = write_padded(at, date.month, 2, '-');
  at = write_padded(at, date.day, 2, 'T');
  at = write_padded(at, rest / (3600 * SECOND), 2, ':');
  at = write_padded(at, rest / (60 * SECOND) % 60, 2, ':');
  at = write_padded(at, rest / SECOND % 60, 2, '.');
  if (rest % SECOND) {
    at = write_padded(at, rest % SECOND, 6, '0') - 1;
    while (at[-1] == '0') at--;
  } else at--;
  *at++ = 'Z';
  memcpy(at, TYPE, sizeof TYPE - 1);
  return at + sizeof TYPE - 1 - text;
}
