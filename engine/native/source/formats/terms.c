/* Where a term ends in bytes, and whether a parser would surely give it back unchanged (pipeline/formats/batches/ntriples.py, `_PLAIN`). */

enum { SCHEME = 1, HOST = 2, PATH = 4, OPAQUE = 8, FIRST = 16, LETTER = 32, DIGIT = 64, SMALL = 128, LABEL = 256 }; /* roles of a byte in a term */
enum { IN_ALL = SCHEME | HOST | PATH | OPAQUE | FIRST | LABEL };

static const uint16_t ROLES[256] = {
    ['A' ... 'Z'] = IN_ALL | LETTER,
    ['a' ... 'z'] = IN_ALL | LETTER | SMALL,
    ['0' ... '9'] = IN_ALL | DIGIT,
    ['.'] = SCHEME | HOST | PATH | OPAQUE | FIRST,
    ['-'] = SCHEME | HOST | PATH | OPAQUE | LABEL,
    ['_'] = HOST | PATH | OPAQUE | FIRST | LABEL,
    ['~'] = PATH | OPAQUE | FIRST,
    ['/'] = PATH | OPAQUE,
    [':'] = OPAQUE,
    ['+'] = SCHEME,
};

static const Text XSD = TEXT("^^<http://www.w3.org/2001/XMLSchema#"), STRING = TEXT("string>");

static inline int is_blank(byte character) { return character == ' ' || character == '\t'; }

static inline i64 after_blanks(Text text, i64 i) {
  while (i < text.size && is_blank(text.at[i])) i++;
  return i;
}

/* ---------------------------------------------------------------- where a term ends */
/* Returns the place after the `>` of the IRI at i, ABSENT without one; the key becomes its hash. */
static inline i64 iri_end(Text text, i64 i, u64 *key) {
  for (; i < text.size; i += 8) {
    u64 word = word_at(text, i), found = marks(word, '>');
    if (found) {
      i64 size = first_of(found) + 1;
      *key = mixed(*key, leading(word, size));
      return i + size;
    }
    *key = mixed(*key, word);
  }
  return ABSENT;
}

/* Returns the place after the closing quote of the string whose opening quote is before i, ABSENT without one; the key becomes its hash, and
 * `escapes` the number of backslashes that lead an escape. */
static inline i64 string_end(Text text, i64 i, u64 *key, i64 *escapes) {
  *escapes = 0;
  while (i < text.size) {
    u64 word = word_at(text, i), found = marks(word, '"') | marks(word, '\\');
    if (!found) {
      *key = mixed(*key, word);
      i += 8;
      continue;
    }
    i64 size = first_of(found) + 1;
    *key = mixed(*key, leading(word, size));
    i += size;
    if (text.at[i - 1] == '"') return i;
    if (i == text.size) break;
    ++*escapes;
    *key = mixed(*key, text.at[i++]);
  }
  return ABSENT;
}

/* Returns the next blank or end of line; the key becomes the hash of what is before it. */
static inline i64 word_end(Text text, i64 i, u64 *key) {
  while (i < text.size && !is_blank(text.at[i]) && text.at[i] != '\n') *key = mixed(*key, text.at[i++]);
  return i;
}

/* Returns the place after the term at i, ABSENT if there is none; the key becomes its hash. The term's content is not looked at. */
static inline i64 term_end(Text text, i64 i, u64 *key) {
  byte first = text.at[i];
  i64 escapes;
  if (first == '<') return iri_end(text, i, key);
  if (first == '_') return word_end(text, i, key);
  if (first != '"') return ABSENT;
  *key = mixed(*key, first);
  i = string_end(text, i + 1, key, &escapes);
  if (i == ABSENT || i == text.size) return i;
  if (text.at[i] == '^') return iri_end(text, i, key);
  return text.at[i] == '@' ? word_end(text, i, key) : i;
}

/* ---------------------------------------------------------------- whether a term is plain */
/* Returns the place after the characters of a role that stand at i. */
static inline i64 after_run(Text text, i64 i, i64 end, int role) {
  while (i < end && ROLES[text.at[i]] & role) i++;
  return i;
}

/* Returns the place after `//host:port/path`, the last two of which may be left out; ABSENT if that does not stand there. */
static i64 after_authority(Text text, i64 i, i64 end) {
  if (i + 2 >= end || text.at[i + 1] != '/') return ABSENT;
  i64 host = i + 2;
  i = after_run(text, host, end, HOST);
  if (i == host) return ABSENT;
  if (i < end && text.at[i] == ':') {
    i64 port = i + 1;
    i = after_run(text, port, end, DIGIT);
    if (i == port || i > port + 5) return ABSENT;
  }
  return i < end && text.at[i] == '/' ? after_run(text, i + 1, end, PATH) : i;
}

/* Returns whether text[i:end] is an IRI of the plainest kind. */
static int is_plain_iri_text(Text text, i64 i, i64 end) {
  if (end <= i || !(ROLES[text.at[i]] & LETTER)) return 0;
  i = after_run(text, i + 1, end, SCHEME);
  if (i + 1 >= end || text.at[i] != ':') return 0;
  i++;
  if (text.at[i] == '/') {
    i = after_authority(text, i, end);
    if (i == ABSENT) return 0;
  } else if (ROLES[text.at[i]] & FIRST)
    i = after_run(text, i + 1, end, OPAQUE);
  else
    return 0;
  if (i < end && text.at[i] == '#') i = after_run(text, i + 1, end, PATH);
  return i == end;
}

/* Returns whether text[i:end] is such an IRI in its brackets. */
static int is_plain_iri(Text text, i64 i, i64 end) {
  return end - i > 2 && text.at[i] == '<' && text.at[end - 1] == '>' && is_plain_iri_text(text, i + 1, end - 1);
}

/* Returns the number of bytes of the character beyond ASCII at i; ABSENT for no such character, and for U+FFFE and U+FFFF.
 * Source: Unicode, table 3-7. */
static i64 character_size(Text text, i64 i, i64 end) {
  byte first = text.at[i];
  i64 size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4 || i + size > end) return ABSENT;
  for (i64 k = 1; k < size; k++)
    if ((text.at[i + k] & 0xC0) != 0x80) return ABSENT;
  byte second = text.at[i + 1];
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return ABSENT;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return ABSENT;
  if (first == 0xEF && second == 0xBF && text.at[i + 2] >= 0xBE) return ABSENT;
  return size;
}

/* Returns whether text[i:end] is UTF-8 of characters that N-Triples writes as they are. Quotes and backslashes are not looked for. */
static int is_plain_text(Text text, i64 i, i64 end) {
  while (i < end) {
    u64 word = word_at(text, i), odd = marks_of_controls(word) | marks(word, 127) | beyond_ascii(word);
    if (!odd) {
      i += 8;
      continue;
    }
    i += first_of(odd);
    if (i >= end) break;
    if (text.at[i] < 0x80) return 0;
    i64 size = character_size(text, i, end);
    if (size == ABSENT) return 0;
    i += size;
  }
  return 1;
}

/* Returns whether text[i:end], after the closing quote of a literal, is nothing, a datatype of XML Schema other than xsd:string, or a short
 * language tag. */
static int is_plain_suffix(Text text, i64 i, i64 end) {
  if (i == end) return 1;
  if (text.at[i] == '@') return 2 <= end - i - 1 && end - i - 1 <= 3 && after_run(text, i + 1, end, SMALL) == end;
  if (!starts_with(text, i, XSD)) return 0;
  i64 name = i + XSD.size;
  if (starts_with(text, name, STRING)) return 0;
  i = after_run(text, name, end, LETTER);
  return i > name && i == end - 1 && text.at[i] == '>';
}

/* Returns whether the characters that are escaped in text[i:end] are those that canonical N-Triples escapes, and so. */
static int has_plain_escapes(Text text, i64 i, i64 end) {
  for (; i < end; i++)
    if (text.at[i] == '\\' && memchr("\"\\nrt", text.at[++i], 5) == NULL) return 0;
  return 1;
}

/* Returns whether text[i:end] is a blank node with a label of ASCII and without dots. */
static int is_plain_label(Text text, i64 i, i64 end) {
  i64 first = i + 2;
  return first < end && text.at[i + 1] == ':' && text.at[first] != '-' && after_run(text, first, end, LABEL) == end;
}

/* Returns whether the term text[i:end], as `term_end` found it, is canonical as it stands. False says nothing. */
static int is_plain(Text text, i64 i, i64 end) {
  u64 key = 0;
  i64 escapes;
  if (text.at[i] == '<') return is_plain_iri(text, i, end);
  if (text.at[i] == '_') return is_plain_label(text, i, end);
  i64 close = string_end(text, i + 1, &key, &escapes);
  return (escapes == 0 || has_plain_escapes(text, i + 1, close - 1)) && is_plain_text(text, i + 1, close - 1) && is_plain_suffix(text, close, end);
}

/* Returns whether text[i:end] is one term as far as its quotes and brackets go, so that `is_plain` may look at it. */
static int is_whole(Text text, i64 i, i64 end) {
  u64 key = 0;
  i64 escapes;
  if (text.at[i] == '<' || text.at[i] == '_') return 1;
  if (text.at[i] != '"') return 0;
  i64 close = string_end(text, i + 1, &key, &escapes);
  return close != ABSENT && close <= end;
}
