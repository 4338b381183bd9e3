/* Terms of N-Triples are written as JSON. Nearly all is copied, since most escapes of the two are the same.
 * Each function returns the place after what it writes. A term of n bytes takes at most 16 * n bytes and TERM_ROOM. */

enum { TERM_ROOM = 128 };

static const Text URI = TEXT("{\"type\":\"uri\",\"value\":\""), BNODE = TEXT("{\"type\":\"bnode\",\"value\":\"");
static const Text LITERAL = TEXT("{\"type\":\"literal\",\"value\":\""), DATATYPE = TEXT("\",\"datatype\":\""), LANGUAGE = TEXT("\",\"xml:lang\":\"");
static const Text DIRECTION = TEXT("\",\"its:dir\":\""), XSD_STRING = TEXT("\"^^<http://www.w3.org/2001/XMLSchema#string>");
static const Text TRIPLE_TERM = TEXT("{\"type\":\"triple\",\"value\":{\"subject\":"), PREDICATE_OF = TEXT(",\"predicate\":"),
                  OBJECT_OF = TEXT(",\"object\":");

static const byte NAMED[32] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'}; /* escapes that are a letter */

static inline byte *put(byte *to, Text fragment) {
  memcpy(to, fragment.at, (size_t)fragment.size);
  return to + fragment.size;
}

static inline byte *put_hex(byte *to, u64 value, int digits) {
  for (int k = 0; k < digits; k++) to[k] = (byte) "0123456789abcdef"[value >> 4 * (digits - 1 - k) & 15];
  return to + digits;
}

/* ---------------------------------------------------------------- characters */
/* Writes a code point as Python's json does, with ensure_ascii off. */
static byte *put_character(byte *to, uint32_t code) {
  if (code == '"' || code == '\\') return put_byte(put_byte(to, '\\'), (byte)code);
  if (code < 0x20) {
    if (NAMED[code]) return put_byte(put_byte(to, '\\'), NAMED[code]);
    return put_hex(put_byte(put_byte(to, '\\'), 'u'), code, 4);
  }
  if (code < 0x80) return put_byte(to, (byte)code);
  int size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (int k = size - 1; k > 0; k--, code >>= 6) to[k] = (byte)(0x80 | (code & 0x3F));
  to[0] = (byte)(0xF00 >> size | code);
  return to + size;
}

/* Returns the code point of the N-Triples escape whose backslash stands at i, and moves i behind it. */
static uint32_t read_escape(Text text, i64 *i, i64 end) {
  if (*i + 1 >= end) {
    *i = end;
    return '\\';
  }
  byte letter = text.at[*i + 1];
  *i += 2;
  if (letter == 'u' || letter == 'U') {
    uint32_t code = 0;
    for (int k = letter == 'u' ? 4 : 8; k > 0 && *i < end; k--, ++*i) {
      byte digit = text.at[*i];
      code = 16 * code + (uint32_t)(digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
    }
    return code;
  }
  for (uint32_t code = 0; code < sizeof NAMED; code++)
    if (NAMED[code] == letter) return code;
  return letter;
}

/* Writes an N-Triples string's characters from i up to its closing quote, or to `end`, and moves i there. */
static inline byte *put_text(byte *to, Text text, i64 *place, i64 end) {
  i64 i = *place;
  while (i < end) {
    u64 word = word_at(text, i), found = marks(word, '"') | marks(word, '\\') | marks_of_controls(word);
    i64 plain = found ? first_of(found) : 8;
    put_word(to, word);
    if (i + plain >= end) {
      *place = end;
      return to + (end - i);
    }
    to += plain, i += plain;
    if (plain == 8) continue;
    if (text.at[i] == '"') break;
    to = put_character(to, text.at[i] == '\\' ? read_escape(text, &i, end) : text.at[i++]);
  }
  *place = i;
  return to;
}

/* Writes any text as it stands between the quotes of a JSON string. */
static byte *put_quoted(byte *to, Text text, i64 i, i64 end) {
  while (i < end) {
    u64 word = word_at(text, i), found = marks(word, '"') | marks(word, '\\') | marks_of_controls(word);
    i64 plain = found ? first_of(found) : 8;
    put_word(to, word);
    if (i + plain >= end) return to + (end - i);
    to += plain, i += plain;
    if (plain < 8) to = put_character(to, text.at[i++]);
  }
  return to;
}

/* ---------------------------------------------------------------- terms */
/* Writes a language tag, which stands at i, in small letters, and the direction after it, if there is one. */
static byte *put_language(byte *to, Text text, i64 i, i64 end) {
  to = put(to, LANGUAGE);
  for (; i < end && !(text.at[i] == '-' && text.at[i - 1] == '-'); i++) {
    byte letter = text.at[i];
    to = put_byte(to, letter >= 'A' && letter <= 'Z' ? letter | 32 : letter);
  }
  if (i == end) return to;
  i++;
  return put_text(put(to - 1, DIRECTION), text, &i, end); /* the first of the two dashes was written */
}

/* Writes an IRI, blank node or literal. */
static byte *put_plain_term(byte *to, Text text, i64 i, i64 end) {
  if (text.at[i] == '<') {
    i++;
    to = put_text(put(to, URI), text, &i, end - 1);
  } else if (text.at[i] == '_') {
    i += 2;
    to = put_text(put(to, BNODE), text, &i, end);
  } else {
    i++;
    to = put_text(put(to, LITERAL), text, &i, end);
    if (i + 2 < end && text.at[i + 1] == '@')
      to = put_language(to, text, i + 2, end);
    else if (i + 4 < end && !(end - i == XSD_STRING.size && starts_with(text, i, XSD_STRING))) {
      i += 4;
      to = put_text(put(to, DATATYPE), text, &i, end - 1);
    }
  }
  return put_byte(put_byte(to, '"'), '}');
}

static inline int is_triple_term(Text text, i64 i, i64 end) { return i + 4 < end && text.at[i] == '<' && text.at[i + 1] == '<'; }

/* Writes the term at i of a triple term and moves i behind it; returns NULL if there is none before the end. */
static byte *put_component(byte *to, Text text, i64 *i, i64 end) {
  u64 key = 0;
  i64 after = *i < end ? term_end(text, *i, &key) : ABSENT;
  if (after == ABSENT || after > end) return NULL;
  to = put_plain_term(to, text, *i, after);
  *i = after;
  return to;
}

/* Writes a triple term as SPARQL's JSON results have it. Only its object may be one itself. Returns NULL if it is none. */
static byte *put_triple_term(byte *to, Text text, i64 i, i64 end) {
  i64 depth = 0;
  for (; is_triple_term(text, i, end); depth++) {
    to = put(to, TRIPLE_TERM);
    i += 4; /* `<<( ` */
    to = put_component(to, text, &i, end);
    if (to == NULL) return NULL;
    i++;
    to = put_component(put(to, PREDICATE_OF), text, &i, end);
    if (to == NULL) return NULL;
    to = put(to, OBJECT_OF);
    i++;
  }
  to = put_component(to, text, &i, end);
  if (to == NULL) return NULL;
  memset(to, '}', (size_t)(2 * depth));
  return to + 2 * depth;
}

/* Writes the term text[i:end]. Returns NULL for a triple term that is none. */
static inline byte *put_term_json(byte *to, Text text, i64 i, i64 end) {
  return is_triple_term(text, i, end) ? put_triple_term(to, text, i, end) : put_plain_term(to, text, i, end);
}
