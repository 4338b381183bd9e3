/* xsd:dateTime as it is nearly always written becomes microseconds since 1970, and these become xsd:dateTime.
 * The full form is in pipeline/formats/batches/timestamps.py. */

static const i64 NO_TIME = INT64_MIN, SECOND = 1000000, DAY = 86400 * (i64)1000000;
static const i64 MONTH_DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
static const i64 POWERS_OF_TEN[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};

typedef struct {
  i64 year, month, day;
} Date;

/* Returns the quotient that is rounded down; the divisor is positive. */
static inline i64 floor_divide(i64 value, i64 by) { return value / by - (value % by < 0); }

/* Returns the number of so many digits at i, ABSENT if they are none. */
static inline i64 number_at(Text text, i64 i, int digits) {
  i64 found = 0;
  for (int k = 0; k < digits; k++) {
    i64 digit = (i64)text.at[i + k] - '0';
    if (digit < 0 || digit > 9) return ABSENT;
    found = 10 * found + digit;
  }
  return found;
}

/* Returns the days from 1970-01-01 to a date. Source: H. Hinnant, chrono-compatible low-level date algorithms. */
static inline i64 days_from_civil(i64 year, i64 month, i64 day) {
  if (month <= 2) year--;
  i64 era = floor_divide(year, 400), of_era = year - era * 400;
  i64 of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* Returns the date of a day since 1970-01-01. Source: as above. */
static inline Date civil_from_days(i64 days) {
  days += 719468;
  i64 era = floor_divide(days, 146097), of_era = days - era * 146097;
  i64 year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  i64 of_year = of_era - (365 * year + year / 4 - year / 100), shifted = (5 * of_year + 2) / 153;
  i64 month = shifted < 10 ? shifted + 3 : shifted - 9;
  return (Date){year + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1};
}

/* Returns the seconds east of UTC, NO_TIME for no zone. No seconds are written as Z, or not at all. */
static inline i64 zone_at(Text text, i64 i, i64 end) {
  if (i == end || (i + 1 == end && text.at[i] == 'Z')) return 0;
  if (i + 6 != end || (text.at[i] != '+' && text.at[i] != '-') || text.at[i + 3] != ':') return NO_TIME;
  i64 hours = number_at(text, i + 1, 2), minutes = number_at(text, i + 4, 2);
  if (hours < 0 || minutes < 0 || minutes > 59 || hours * 60 + minutes > 14 * 60) return NO_TIME;
  return (hours * 3600 + minutes * 60) * (text.at[i] == '-' ? -1 : 1);
}

/* Returns the microseconds of the fraction whose point may stand at i, and moves i behind it; ABSENT for one without digits, and for a finer one
 * unless it `rounds` to the nearest microsecond. */
static inline i64 fraction_at(Text text, i64 *i, i64 end, int rounds) {
  int digits = 0;
  if (*i >= end || text.at[*i] != '.') return 0;
  ++*i;
  while (*i + digits < end && ROLES[text.at[*i + digits]] & DIGIT) digits++;
  if (digits == 0) return ABSENT;
  int kept = digits < 6 ? digits : 6, finer = 0;
  i64 micros = number_at(text, *i, kept) * POWERS_OF_TEN[6 - kept];
  for (int k = kept; k < digits; k++) finer |= text.at[*i + k] != '0';
  if (finer && !rounds) return ABSENT;
  if (finer) micros += text.at[*i + kept] >= '5';
  *i += digits;
  return micros;
}

static inline int is_day(i64 year, i64 month, i64 day) {
  int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= MONTH_DAYS[month - 1] + (leap && month == 2);
}

/* Returns the microseconds of text[i:end]; NO_TIME for any but the usual shape: four digits of the year, times to 23:59:59, a fraction, Z or a zone.
 * A fraction finer than a microsecond is of the usual shape if it `rounds`. */
static i64 instant_at(Text text, i64 i, i64 end, int rounds) {
  const byte *at = text.at + i;
  if (end - i < 19 || at[4] != '-' || at[7] != '-' || at[10] != 'T' || at[13] != ':' || at[16] != ':') return NO_TIME;
  i64 year = number_at(text, i, 4), month = number_at(text, i + 5, 2), day = number_at(text, i + 8, 2);
  i64 hour = number_at(text, i + 11, 2), minute = number_at(text, i + 14, 2), second = number_at(text, i + 17, 2);
  if (!is_day(year, month, day) || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return NO_TIME;
  i += 19;
  i64 micros = fraction_at(text, &i, end, rounds);
  if (micros == ABSENT) return NO_TIME;
  i64 offset = zone_at(text, i, end);
  if (offset == NO_TIME) return NO_TIME;
  return days_from_civil(year, month, day) * DAY + (hour * 3600 + minute * 60 + second - offset) * SECOND + micros;
}

/* Writes a number of `digits` digits, which is not negative, and returns the place after it. */
static inline byte *put_number(byte *to, i64 value, int digits) {
  for (int k = digits; k-- > 0; value /= 10) to[k] = (byte)('0' + value % 10);
  return to + digits;
}

static inline byte *put_byte(byte *to, byte character) {
  *to = character;
  return to + 1;
}

/* Writes an instant as `iso` of pipeline/formats/batches/timestamps.py does, and returns the place after it: at most 34 bytes. */
static byte *put_instant(byte *to, i64 micros) {
  i64 days = floor_divide(micros, DAY), rest = micros - days * DAY, seconds = rest / SECOND, fraction = rest % SECOND;
  Date date = civil_from_days(days);
  int digits = 4;
  if (date.year < 0) {
    to = put_byte(to, '-');
    date.year = -date.year;
  }
  while (POWERS_OF_TEN[digits] <= date.year) digits++;
  to = put_byte(put_number(to, date.year, digits), '-');
  to = put_byte(put_number(to, date.month, 2), '-');
  to = put_byte(put_number(to, date.day, 2), 'T');
  to = put_byte(put_number(to, seconds / 3600, 2), ':');
  to = put_byte(put_number(to, seconds / 60 % 60, 2), ':');
  to = put_number(to, seconds % 60, 2);
  if (fraction) {
    for (digits = 6; fraction % 10 == 0; digits--) fraction /= 10;
    to = put_number(put_byte(to, '.'), fraction, digits);
  }
  return put_byte(to, 'Z');
}
