/* Terms of ndjson that are values of JSON: numbers, booleans, and objects as SPARQL's JSON results have them. A value stays in the body as it was
 * written. It becomes a term of N-Triples when it is copied. */

/* The `close` of a value's span. */
enum { INTEGER_VALUE = -1, DECIMAL_VALUE = -2, DOUBLE_VALUE = -3, BOOLEAN_VALUE = -4, LITERAL_VALUE = -5, IRI_VALUE = -6 };

enum { TERM_TYPE, TERM_VALUE, TERM_DATATYPE, TERM_LANGUAGE, TERM_PARTS }; /* the members of an object that is a term */

static const Text PART_NAMES[] = {TEXT("type\""), TEXT("value\""), TEXT("datatype\""), TEXT("xml:lang\"")};
static const Text URI_TYPE = TEXT("uri"), LITERAL_TYPE = TEXT("literal"), TRUE_VALUE = TEXT("true"), FALSE_VALUE = TEXT("false");
static const Text VALUE_SUFFIXES[] = {
    TEXT("\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
    TEXT("\"^^<http://www.w3.org/2001/XMLSchema#decimal>"),
    TEXT("\"^^<http://www.w3.org/2001/XMLSchema#double>"),
    TEXT("\"^^<http://www.w3.org/2001/XMLSchema#boolean>"),
}; /* by the negative of the kind, from INTEGER_VALUE on */

typedef struct {
  i64 start, end;
} Piece;

static inline u64 hash_of(Text text, i64 i, i64 end, u64 key) {
  for (; i < end; i += 8) key = mixed(key, end - i < 8 ? leading(word_at(text, i), end - i) : word_at(text, i));
  return key;
}

/* ---------------------------------------------------------------- where a value ends */
/* Returns the place after the digits at i, ABSENT without any. */
static inline i64 after_digits(Text text, i64 i) {
  i64 end = after_run(text, i, text.size, DIGIT);
  return end == i ? ABSENT : end;
}

/* Returns the place after the number at i, and its kind; ABSENT if JSON has no such number. */
static i64 number_end(Text text, i64 i, i64 *kind) {
  *kind = INTEGER_VALUE;
  if (text.at[i] == '-') i++;
  i64 first = i;
  i = after_digits(text, i);
  if (i == ABSENT || (text.at[first] == '0' && i > first + 1)) return ABSENT;
  if (i < text.size && text.at[i] == '.') {
    *kind = DECIMAL_VALUE;
    i = after_digits(text, i + 1);
    if (i == ABSENT) return ABSENT;
  }
  if (i < text.size && (text.at[i] == 'e' || text.at[i] == 'E')) {
    *kind = DOUBLE_VALUE;
    i++;
    if (i < text.size && (text.at[i] == '+' || text.at[i] == '-')) i++;
    i = after_digits(text, i);
  }
  return i;
}

/* Returns the place after the object whose brace stands at i, whatever is in it; ABSENT if it does not end on its line. The key becomes its hash,
 * so that an object that was seen before is read once. */
static i64 object_end(Text text, i64 i, u64 *key) {
  i64 depth = 0, escapes;
  while (i < text.size && text.at[i] != '\n') {
    byte character = text.at[i++];
    if (character == '"') {
      i = string_end(text, i, key, &escapes);
      if (i == ABSENT) return ABSENT;
      continue;
    }
    *key = mixed(*key, character);
    if (character == '{')
      depth++;
    else if (character == '}' && --depth == 0)
      return i;
  }
  return ABSENT;
}

/* Returns the place after the value at i, which is no string, and its kind; ABSENT if it is none that can be a term. The key becomes its hash. */
static i64 value_end(Text text, i64 i, i64 *kind, u64 *key) {
  i64 end = ABSENT;
  if (i == text.size) return ABSENT;
  *kind = LITERAL_VALUE;
  if (text.at[i] == '{') return object_end(text, i, key);
  if (text.at[i] == '-' || ROLES[text.at[i]] & DIGIT)
    end = number_end(text, i, kind);
  else {
    *kind = BOOLEAN_VALUE;
    if (starts_with(text, i, TRUE_VALUE)) end = i + TRUE_VALUE.size;
    if (starts_with(text, i, FALSE_VALUE)) end = i + FALSE_VALUE.size;
  }
  if (end != ABSENT) *key = hash_of(text, i, end, *key);
  return end;
}

/* ---------------------------------------------------------------- objects */
/* Returns the member of an object that is a term whose name begins with a character, TERM_PARTS if there is none. */
static inline int part_of(byte first) {
  return first == 'v' ? TERM_VALUE : first == 'd' ? TERM_DATATYPE : first == 't' ? TERM_TYPE : first == 'x' ? TERM_LANGUAGE : TERM_PARTS;
}

/* Returns the place of the quote that ends the string at i, ABSENT if it has an escape or does not end. */
static inline i64 quote_after(Text text, i64 i) {
  for (; i < text.size; i += 8) {
    u64 word = word_at(text, i), found = marks(word, '"') | marks(word, '\\');
    if (!found) continue;
    i += first_of(found);
    return text.at[i] == '"' ? i : ABSENT;
  }
  return ABSENT;
}

/* Reads the members of the object whose brace stands at i, strings without escapes. Returns the place after it, ABSENT for any other object. */
static i64 read_parts(Text text, i64 i, Piece *parts) {
  for (int part = 0; part < TERM_PARTS; part++) parts[part] = (Piece){ABSENT, ABSENT};
  for (;;) {
    i = after_blanks(text, i + 1);
    if (i + 1 >= text.size || text.at[i++] != '"') return ABSENT;
    int part = part_of(text.at[i]);
    if (part == TERM_PARTS || !starts_with(text, i, PART_NAMES[part]) || parts[part].start != ABSENT) return ABSENT;
    i = after_blanks(text, i + PART_NAMES[part].size);
    if (i >= text.size || text.at[i] != ':') return ABSENT;
    i = after_blanks(text, i + 1);
    if (i >= text.size || text.at[i] != '"') return ABSENT;
    i64 end = quote_after(text, i + 1);
    if (end == ABSENT) return ABSENT;
    parts[part] = (Piece){i + 1, end};
    i = after_blanks(text, end + 1);
    if (i >= text.size || (text.at[i] != ',' && text.at[i] != '}')) return ABSENT;
    if (text.at[i] == '}') return i + 1;
  }
}

static inline int has_part(const Piece *parts, int part) { return parts[part].start != ABSENT; }

static inline int is_part(Text text, Piece part, Text wanted) {
  return part.end - part.start == wanted.size && starts_with(text, part.start, wanted);
}

/* Returns whether text[i:end] is the IRI of a datatype of XML Schema other than xsd:string. */
static int is_plain_datatype(Text text, i64 i, i64 end) {
  static const i64 BEFORE_IRI = 3; /* `^^<` */
  Text space = {XSD.at + BEFORE_IRI, XSD.size - BEFORE_IRI}, string = {STRING.at, STRING.size - 1};
  if (!starts_with(text, i, space)) return 0;
  i += space.size;
  return i < end && !starts_with(text, i, string) && after_run(text, i, end, LETTER) == end;
}

/* Returns the kind of the object at text[i:end], LITERAL_VALUE or IRI_VALUE; 0 if it is to be looked at. No declared prefix has a meaning in an IRI
 * with an authority. */
static i64 object_kind(Text text, i64 i, i64 end) {
  Piece parts[TERM_PARTS];
  if (read_parts(text, i, parts) != end || !has_part(parts, TERM_VALUE)) return 0;
  Piece value = parts[TERM_VALUE], datatype = parts[TERM_DATATYPE], language = parts[TERM_LANGUAGE];
  int typed = has_part(parts, TERM_DATATYPE), tagged = has_part(parts, TERM_LANGUAGE);
  int known = has_part(parts, TERM_TYPE);
  if (known && is_part(text, parts[TERM_TYPE], URI_TYPE)) {
    i64 scheme = after_run(text, value.start, value.end, SCHEME);
    int absolute = scheme + 1 < value.end && text.at[scheme] == ':' && text.at[scheme + 1] == '/';
    return !typed && !tagged && absolute && is_plain_iri_text(text, value.start, value.end) ? IRI_VALUE : 0;
  }
  i64 size = value.end - value.start;
  int bare = !known && !typed && !tagged; /* then a colon may be that of an IRI or of a name */
  if (known ? !is_part(text, parts[TERM_TYPE], LITERAL_TYPE) : bare && size > 0 && memchr(text.at + value.start, ':', (size_t)size)) return 0;
  if ((typed && tagged) || !is_plain_text(text, value.start, value.end)) return 0;
  if (typed) return is_plain_datatype(text, datatype.start, datatype.end) ? LITERAL_VALUE : 0;
  size = language.end - language.start;
  return !tagged || (2 <= size && size <= 3 && after_run(text, language.start, language.end, SMALL) == language.end) ? LITERAL_VALUE : 0;
}

/* ---------------------------------------------------------------- terms of values */
static inline byte *put_piece(byte *to, Text text, Piece piece) { return copy_piece(to, text, piece.start, piece.end - piece.start); }

/* Writes the term of an object, which takes fewer bytes than the object. Returns the place after it, NULL if the span is none of an object. */
static byte *put_object(byte *to, Text text, SpanRecord span) {
  Piece parts[TERM_PARTS];
  i64 end = span.start + span.size;
  if (span.size < 2 || read_parts(text, span.start, parts) != end || !has_part(parts, TERM_VALUE)) return NULL;
  int iri = span.close == IRI_VALUE;
  to = put_byte(put_piece(put_byte(to, iri ? '<' : '"'), text, parts[TERM_VALUE]), iri ? '>' : '"');
  if (has_part(parts, TERM_LANGUAGE)) return put_piece(put_byte(to, '@'), text, parts[TERM_LANGUAGE]);
  if (!has_part(parts, TERM_DATATYPE)) return to;
  to = put_byte(put_byte(put_byte(to, '^'), '^'), '<');
  return put_byte(put_piece(to, text, parts[TERM_DATATYPE]), '>');
}

/* Writes the term of a value, which takes at most VALUE_ROOM bytes more than the value. Returns the place after it, NULL if it is no value. */
static inline byte *put_value(byte *to, Text text, SpanRecord span) {
  if (span.close == LITERAL_VALUE || span.close == IRI_VALUE) return put_object(to, text, span);
  if (span.close < BOOLEAN_VALUE || span.close > INTEGER_VALUE) return NULL;
  Text suffix = VALUE_SUFFIXES[INTEGER_VALUE - span.close];
  to = copy_piece(put_byte(to, '"'), text, span.start, span.size);
  return copy_piece(to, suffix, 0, suffix.size);
}
