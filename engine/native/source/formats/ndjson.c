/* ndjson, one object of plain members per line, becomes cells of term numbers and times. Terms are kept as they stand in JSON: strings between their
 * quotes, and values. No string that is a term is equal to a value, because it has a colon or a backslash. */

enum { SUBJECT, PREDICATE, OBJECT, GRAPH, AT, FROM, TO, ID, MEMBERS }; /* the members of an object; the first four are the places of terms */
enum { TRIPLE = 1 << SUBJECT | 1 << PREDICATE | 1 << OBJECT, INTERVAL = 1 << FROM | 1 << TO };

static const Text TIME_AND_ID[] = {TEXT("at\""), TEXT("start\""), TEXT("end\""), TEXT("id\"")}; /* names with their quotes, from AT on */
static const Text NULL_VALUE = TEXT("null");

typedef struct { /* a body, what is filled while it is read, and where the strings of the line's members stand */
  Terms terms;
  int32_t *columns; /* of term numbers: a row a place, `room` long */
  i64 room, *starts, *ends, default_start, default_end;
  Piece values[MEMBERS], id;
  int framed, rounds; /* whether lines may have an id; whether times are rounded to microseconds */
} Body;

/* Returns the member whose name stands after the quote before i, and moves i behind the name's quote; ABSENT for another name. */
static inline int member_at(Text text, i64 *i) {
  static const byte PLACE_NAMES[] = {'s', 'p', 'o', 'g'};
  if (*i + 1 < text.size && text.at[*i + 1] == '"') {
    for (int k = SUBJECT; k <= GRAPH; k++)
      if (text.at[*i] == PLACE_NAMES[k]) {
        *i += 2;
        return k;
      }
    return ABSENT;
  }
  for (int k = AT; k < MEMBERS; k++)
    if (starts_with(text, *i, TIME_AND_ID[k - AT])) {
      *i += TIME_AND_ID[k - AT].size;
      return k;
    }
  return ABSENT;
}

/* Returns PLAIN or ODD for a term that stands at text[i:end] in JSON; sets the span's `close` of a plain literal. */
static byte flag_of(Text text, SpanRecord *span, i64 i, i64 end) {
  if (text.at[i] == '<') return is_plain_iri(text, i, end) ? PLAIN : ODD;
  i64 k = i + 2;
  while (k < end && text.at[k] != '\\') k++;
  if (k + 1 >= end || text.at[k + 1] != '"' || !is_plain_text(text, i + 2, k) || !is_plain_suffix(text, k + 2, end)) return ODD;
  span->close = k;
  return PLAIN;
}

/* Returns whether the string text[i:end] may be short for a term of this place: a prefixed name, `a`, or a dateTime. It is kept out of the loop over
 * lines, most of which have none. */
__attribute__((noinline)) static int may_be_short(Text text, i64 i, i64 end, int place) {
  if (i == end) return 0;
  byte first = text.at[i];
  if (place == PREDICATE && end - i == 1 && first == 'a') return 1;
  int numeric = first == '-' || ROLES[first] & DIGIT;
  if (numeric ? place != OBJECT : first != ':' && !(ROLES[first] & LETTER)) return 0;
  return memchr(text.at + i, ':', (size_t)(end - i)) != NULL;
}

/* Returns the number of the term at text[i:end]; ABSENT for a term of no kind that may stand there without being looked at. */
static inline i64 json_term(Terms *terms, i64 i, i64 end, u64 key, int place) {
  Text text = terms->text;
  int iri = i < end && text.at[i] == '<', literal = place == OBJECT && i + 1 < end && text.at[i] == '\\' && text.at[i + 1] == '"';
  int spelled = iri || literal;
  if (!(spelled || may_be_short(text, i, end, place)) || end - i > MAX_TERM) return ABSENT;
  i64 before = terms->count, number = intern_term(terms, i, end, key);
  if (number == before) terms->flags[number] = spelled ? flag_of(text, &terms->spans[number], i, end) : ODD;
  return number;
}

/* Reads a member's value that stands at i and is no string. Returns the place after it, ABSENT if it is for the exact path. It is kept out of the
 * loop over lines, most of which have strings alone. */
__attribute__((noinline)) static i64 read_value(Body *body, i64 i, int member, i64 row) {
  Terms *terms = &body->terms;
  u64 key = terms->seed;
  i64 kind, end = value_end(terms->text, i, &kind, &key);
  if (end == ABSENT || end - i > MAX_TERM || (member != OBJECT && kind != LITERAL_VALUE)) return ABSENT;
  i64 before = terms->count, number = intern_term(terms, i, end, key);
  if (number == ABSENT) return ABSENT;
  if (number == before) {
    if (kind == LITERAL_VALUE) kind = object_kind(terms->text, i, end);
    terms->spans[number].close = kind;
    terms->flags[number] = kind ? PLAIN : ODD;
  }
  if (member != OBJECT && terms->spans[number].close == LITERAL_VALUE) return ABSENT;
  body->columns[member * body->room + row] = (int32_t)number;
  return end;
}

/* Reads a member's string, whose quote stands at i. Returns the place after it, ABSENT if it is for the exact path. */
static inline i64 read_string(Body *body, i64 i, int member, i64 row) {
  Text text = body->terms.text;
  i64 begin = i + 1, escapes;
  u64 key = body->terms.seed;
  i = string_end(text, begin, &key, &escapes);
  if (i == ABSENT) return ABSENT;
  body->values[member] = (Piece){begin, i - 1};
  if (member > GRAPH) return escapes || !is_plain_text(text, begin, i - 1) ? ABSENT : i;
  i64 number = json_term(&body->terms, begin, i - 1, key, member);
  if (number == ABSENT) return ABSENT;
  body->columns[member * body->room + row] = (int32_t)number;
  return i;
}

/* Reads the object whose brace is before i, and its members as bits. Returns the place after it, ABSENT if it is for the exact path. */
static inline i64 read_object(Body *body, i64 i, i64 row, int *found) {
  Text text = body->terms.text;
  *found = 0;
  body->columns[GRAPH * body->room + row] = ABSENT;
  for (;;) {
    i = after_blanks(text, i);
    if (i == text.size || text.at[i++] != '"') return ABSENT;
    int member = member_at(text, &i);
    i = after_blanks(text, i);
    if (member == ABSENT || *found & 1 << member || i == text.size || text.at[i] != ':') return ABSENT;
    *found |= 1 << member;
    i = after_blanks(text, i + 1);
    if (member == GRAPH && starts_with(text, i, NULL_VALUE))
      i += NULL_VALUE.size;
    else if (i < text.size && text.at[i] == '"')
      i = read_string(body, i, member, row);
    else if (member <= GRAPH)
      i = read_value(body, i, member, row);
    else
      return ABSENT;
    if (i == ABSENT) return ABSENT;
    i = after_blanks(text, i);
    if (i == text.size || (text.at[i] != '}' && text.at[i] != ',')) return ABSENT;
    if (text.at[i++] == '}') return i;
  }
}

static inline i64 member_instant(const Body *body, int member) {
  return instant_at(body->terms.text, body->values[member].start, body->values[member].end, body->rounds);
}

/* Gives start and end of a line with these members; NO_TIME if they are for the exact path. */
static inline void read_interval(Body *body, int found, i64 row) {
  i64 start = body->default_start, end = body->default_end;
  if (found & 1 << AT)
    start = end = found & INTERVAL ? NO_TIME : member_instant(body, AT);
  else if ((found & INTERVAL) == INTERVAL) {
    start = member_instant(body, FROM), end = member_instant(body, TO);
    if (end == NO_TIME || start > end) start = NO_TIME;
  } else if (found & INTERVAL)
    start = NO_TIME;
  body->starts[row] = start, body->ends[row] = end;
}

/* Returns the place after the line's end, ABSENT if more stands on the line. */
static inline i64 after_line(Text text, i64 i) {
  i = after_blanks(text, i);
  if (i < text.size && text.at[i] == '\r') i++;
  if (i == text.size) return i;
  return text.at[i] == '\n' ? i + 1 : ABSENT;
}

/* Reads the lines of a body. Returns how many events they have, or OTHERWISE. */
static i64 read_events(Body *body) {
  Text text = body->terms.text;
  i64 row = 0, line = 0, i = 0;
  int found;
  while (i < text.size) {
    i = after_blanks(text, i);
    if (i == text.size) break;
    if (text.at[i] == '\n' || text.at[i] == '\r') {
      i++;
      continue;
    }
    if (row == body->room) body->terms.status = OUT_OF_BOUNDS;
    if (text.at[i] != '{' || row == body->room) return OTHERWISE;
    i = read_object(body, i + 1, row, &found);
    if (i != ABSENT) i = after_line(text, i);
    if (i == ABSENT || (found & 1 << ID && !body->framed)) return OTHERWISE;
    if (found & 1 << ID && line == 0) body->id = body->values[ID];
    line++;
    if (found == 1 << ID) continue;
    read_interval(body, found, row);
    if ((found & TRIPLE) != TRIPLE || body->starts[row] == NO_TIME) return OTHERWISE;
    row++;
  }
  return row;
}

/* text, seed; whether lines may have an id, and times are rounded; default start and end; columns, starts, ends, spans, flags: what is filled.
 * Gives how many events, how many terms, and where the first line's id begins and ends. */
static int events_of(const Argument *in, i64 *out) {
  Terms terms = {text_of(in[0].view), in[1].word, {NULL, 0}, in[9].view.at, in[10].view.at, 0, in[9].view.count / SPAN_WIDTH, FINE};
  Body body = {terms, in[6].view.at, in[6].view.width, in[7].view.at, in[8].view.at, in[4].number, in[5].number, {{0, 0}}, {ABSENT, ABSENT}, 0, 0};
  body.framed = in[2].number != 0, body.rounds = in[3].number != 0;
  if (in[6].view.count < 4 * body.room || in[7].view.count < body.room || in[8].view.count < body.room) return OUT_OF_BOUNDS;
  if (in[10].view.count < terms.room) return OUT_OF_BOUNDS;
  if (!fill_table(&body.terms)) return NO_MEMORY;
  out[0] = read_events(&body);
  out[1] = body.terms.count;
  out[2] = body.id.start;
  out[3] = body.id.end;
  free(body.terms.table.slots);
  return body.terms.status;
}
