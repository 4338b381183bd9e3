/* Streams of events as ETALIS writes them. Clauses `event(name(argument, ...), time).` become the names and arguments of events, by numbers of terms,
 * and then rows: each event has a node, which is named by a digest of what the event is (`event_node`, epsparql/etalis/parser/vocabulary.py).
 * Arguments are numbers, names and strings, of one token each; times are seconds. Anything else is for the exact path, comments too. */

enum { MICROS = 1000000, MOST_SECONDS = 12, MOST_FRACTION = 6 }; /* digits of a time before and behind the point */
enum { NODE_HEX = 32, INSTANT_ROOM = 24 };

static const Text EVENT_OPENING = TEXT("event("), NOT_NAME = TEXT("not"), PROLOG_NAME = TEXT("prolog");
_Static_assert(sizeof "<urn:ele:event:" + NODE_HEX == NODE_SIZE, "Python makes room for the nodes");
static const Text NODE_OPENING = TEXT("<urn:ele:event:"), NAME_OPENING = TEXT("<urn:ele:");

typedef struct { /* a body, and what is filled while it is read: of each event the name and where its arguments begin; all arguments */
  Terms terms;
  int32_t *names, *firsts, *arguments;
  i64 *starts, *ends, room, arguments_room, events, count, now;
  int is_file;
} Clauses;

/* ---------------------------------------------------------------- clauses */
static inline int is_space(byte character) { return character == ' ' || character == '\t' || character == '\n' || character == '\r'; }

static inline i64 after_spaces(Text text, i64 i) {
  while (i < text.size && is_space(text.at[i])) i++;
  return i;
}

static inline byte byte_at(Text text, i64 i) { return i < text.size ? text.at[i] : 0; }

static inline int is_word(byte character) { return (ROLES[character] & (LETTER | DIGIT)) || character == '_'; }

/* Returns the place after the name at i; ABSENT if there is none, or it goes on beyond ASCII. */
static inline i64 name_end(Text text, i64 i) {
  if (!(ROLES[byte_at(text, i)] & SMALL)) return ABSENT;
  while (i < text.size && is_word(text.at[i])) i++;
  byte after = byte_at(text, i);
  return after >= 0x80 || after == ':' ? ABSENT : i;
}

/* Returns the place after the quoted token at i, which has no backslash, no line's end and no quote inside. */
static i64 quoted_end(Text text, i64 i) {
  byte quote = text.at[i++];
  while (i < text.size && text.at[i] != quote && text.at[i] != '\\' && text.at[i] != '\n') i++;
  if (byte_at(text, i++) != quote) return ABSENT;
  byte after = byte_at(text, i);
  return after == '"' || after == '\'' || after == '(' ? ABSENT : i;
}

/* Returns the place after the argument at i; `is_integer` says that it is canonical as an integer. */
static inline i64 argument_end(Text text, i64 i, int *is_integer) {
  byte first = byte_at(text, i);
  *is_integer = 0;
  if (first == '"' || first == '\'') return quoted_end(text, i);
  if (ROLES[first] & SMALL) {
    i64 end = name_end(text, i);
    return end == ABSENT || byte_at(text, end) == '(' ? ABSENT : end;
  }
  i64 kind, end = first == '-' || ROLES[first] & DIGIT ? number_end(text, i, &kind) : ABSENT;
  if (end == ABSENT || is_word(byte_at(text, end)) || byte_at(text, end) == '.' || byte_at(text, end) >= 0x80) return ABSENT;
  *is_integer = kind == INTEGER_VALUE && !(first == '-' && text.at[i + 1] == '0');
  return end;
}

/* Returns the number of the term at text[i:end], ABSENT if it is for the exact path. */
static inline i64 clause_term(Terms *terms, i64 i, i64 end, int is_integer) {
  if (end - i > MAX_TERM) return ABSENT;
  i64 before = terms->count, number = intern_term(terms, i, end, hash_of(terms->text, i, end, terms->seed));
  if (number == before) {
    terms->flags[number] = is_integer ? PLAIN : ODD;
    if (is_integer) terms->spans[number].close = INTEGER_VALUE;
  }
  return number;
}

/* Reads the arguments after the bracket before i. Returns the place after the closing one. */
static inline i64 read_arguments(Clauses *all, i64 i) {
  Text text = all->terms.text;
  int is_integer;
  for (;;) {
    i = after_spaces(text, i);
    i64 end = argument_end(text, i, &is_integer), number = end == ABSENT ? ABSENT : clause_term(&all->terms, i, end, is_integer);
    if (number == ABSENT || all->count == all->arguments_room) return ABSENT;
    all->arguments[all->count++] = (int32_t)number;
    i = after_spaces(text, end);
    byte after = byte_at(text, i++);
    if (after == ')') return i;
    if (after != ',') return ABSENT;
  }
}

/* Reads a time in seconds at i as microseconds. Returns the place after it. */
static inline i64 read_seconds(Text text, i64 i, i64 *micros) {
  i64 first = i, seconds = 0, fraction = 0;
  for (; i < text.size && ROLES[text.at[i]] & DIGIT && i < first + MOST_SECONDS; i++) seconds = 10 * seconds + text.at[i] - '0';
  if (i == first) return ABSENT;
  if (byte_at(text, i) == '.') {
    first = ++i;
    for (; i < text.size && ROLES[text.at[i]] & DIGIT && i < first + MOST_FRACTION; i++) fraction = 10 * fraction + text.at[i] - '0';
    if (i == first) return ABSENT;
    for (i64 k = i; k < first + MOST_FRACTION; k++) fraction *= 10;
  }
  *micros = seconds * MICROS + fraction;
  byte after = byte_at(text, i);
  return is_word(after) || after == '.' || after >= 0x80 ? ABSENT : i;
}

/* Reads the times after the comma before i. Returns the place after them. */
static inline i64 read_times(Text text, i64 i, i64 *start, i64 *end) {
  i = after_spaces(text, i);
  if (byte_at(text, i) != '[') {
    i = read_seconds(text, i, start);
    *end = *start;
    return i;
  }
  i = read_seconds(text, after_spaces(text, i + 1), start);
  if (i == ABSENT) return ABSENT;
  i = after_spaces(text, i);
  if (byte_at(text, i) != ',') return ABSENT;
  i = read_seconds(text, after_spaces(text, i + 1), end);
  if (i == ABSENT || *start > *end) return ABSENT;
  i = after_spaces(text, i);
  return byte_at(text, i) == ']' ? i + 1 : ABSENT;
}

/* Reads the clause at i. Returns the place after it, ABSENT if it is for the exact path. */
static inline i64 read_clause(Clauses *all, i64 i) {
  Text text = all->terms.text;
  if (!starts_with(text, i, EVENT_OPENING) || all->events == all->room) return ABSENT;
  i64 begin = after_spaces(text, i + EVENT_OPENING.size), event = all->events;
  i = name_end(text, begin);
  if (i == ABSENT || (i - begin == NOT_NAME.size && starts_with(text, begin, NOT_NAME))) return ABSENT;
  if (i - begin == PROLOG_NAME.size && starts_with(text, begin, PROLOG_NAME)) return ABSENT;
  i64 name = clause_term(&all->terms, begin, i, 0), start = all->now + 1, end = start;
  all->firsts[event] = (int32_t)all->count;
  if (byte_at(text, i) == '(') i = read_arguments(all, i + 1);
  if (i == ABSENT || name == ABSENT) return ABSENT;
  i = after_spaces(text, i);
  if (byte_at(text, i) == ',') {
    i = read_times(text, i + 1, &start, &end);
    if (i == ABSENT) return ABSENT;
    i = after_spaces(text, i);
  }
  if (byte_at(text, i) != ')') return ABSENT;
  i = after_spaces(text, i + 1);
  if (byte_at(text, i) != '.' || (i + 1 < text.size && !is_space(text.at[i + 1]))) return ABSENT;
  if (all->is_file == 0) all->now++;
  else if (end > all->now) all->now = end;
  all->names[event] = (int32_t)name;
  all->starts[event] = start;
  all->ends[event] = end;
  all->events = event + 1;
  return i + 1;
}

/* text, seed; the time (µs) before the first clause; whether a file has the text; names, firsts, arguments, starts, ends, spans, flags: what is
 * filled. Gives how many events, or OTHERWISE, and how many arguments and terms. */
static int clauses_of(const Argument *in, i64 *out) {
  Terms terms = {text_of(in[0].view), in[1].word, {NULL, 0}, in[9].view.at, in[10].view.at, 0, in[9].view.count / SPAN_WIDTH, FINE};
  Clauses all = {.terms = terms, .names = in[4].view.at, .firsts = in[5].view.at, .arguments = in[6].view.at, .starts = in[7].view.at};
  all.ends = in[8].view.at, all.room = in[4].view.count, all.arguments_room = in[6].view.count, all.now = in[2].number;
  all.is_file = in[3].number != 0;
  if (in[5].view.count <= all.room || in[7].view.count < all.room || in[8].view.count < all.room) return OUT_OF_BOUNDS;
  if (in[10].view.count < terms.room) return OUT_OF_BOUNDS;
  if (!fill_table(&all.terms)) return NO_MEMORY;
  i64 i = after_spaces(terms.text, 0);
  while (i != ABSENT && i < terms.text.size) {
    i = read_clause(&all, i);
    if (i != ABSENT) i = after_spaces(terms.text, i);
  }
  all.firsts[all.events] = (int32_t)all.count;
  out[0] = i == ABSENT ? OTHERWISE : all.events;
  out[1] = all.count;
  out[2] = all.terms.count;
  free(all.terms.table.slots);
  return all.terms.status;
}

/* ---------------------------------------------------------------- rows */
typedef struct { /* what events are written to: a text with room for their nodes, the spans of its terms, and rows */
  Text text;
  byte *nodes;
  SpanRecord *spans;
  int32_t *columns, *known; /* a row of numbers a place; a hash table of the events that have nodes of their own, by their places from 1 */
  i64 *starts, *ends, rows, width, count, mask;
  byte *line;
  i64 line_room;
  const OpenSsl *openssl;
} Written;

static byte *put_whole_number(byte *to, i64 number) {
  byte digits[INSTANT_ROOM];
  i64 n = 0;
  u64 rest = number < 0 ? -(u64)number : (u64)number;
  if (number < 0) *to++ = '-';
  do digits[n++] = (byte)('0' + rest % 10);
  while (rest /= 10);
  while (n > 0) *to++ = digits[--n];
  return to;
}

/* Writes what an event is, line by line, and leaves the first half of its digest as text. Returns whether there was memory for it, and all terms have
 * room. */
static int digest_event(Written *all, SpanRecord name, const int32_t *arguments, i64 n, i64 start, i64 end, byte *hex) {
  i64 size = name.size + 4 * INSTANT_ROOM + 2 * BLOCK_BYTES;
  for (i64 k = 0; k < n; k++) size += all->spans[arguments[k]].size + VALUE_ROOM + 16;
  if (size > all->line_room) {
    byte *line = realloc(all->line, (size_t)(2 * size));
    if (line == NULL) return 0;
    all->line = line, all->line_room = 2 * size;
  }
  Output to = {all->line, all->line + all->line_room};
  to.at = copy_piece(to.at, all->text, name.start + NAME_OPENING.size, name.size - NAME_OPENING.size - 1);
  *to.at++ = '/';
  to.at = put_whole_number(to.at, n);
  for (i64 k = 0; k < n; k++) {
    *to.at++ = '\n';
    if (!copy_term(&to, all->text, all->spans[arguments[k]])) return 0;
  }
  *to.at++ = '\n';
  to.at = put_whole_number(to.at, start);
  *to.at++ = '\n';
  to.at = put_whole_number(to.at, end);
  uint8_t digest[DIGEST_BYTES];
  find_digest(all->openssl, all->line, to.at - all->line, digest);
  for (i64 k = 0; k < NODE_HEX; k++) hex[k] = (byte)"0123456789abcdef"[digest[k / 2] >> (k % 2 ? 0 : 4) & 15];
  return 1;
}

/* Returns the number of the node with this digest: that of an equal event before, or a new one. */
static i64 number_node(Written *all, const byte *hex) {
  u64 key;
  memcpy(&key, hex, sizeof key);
  i64 slot = (i64)(key * FACTOR >> 32) & all->mask;
  for (; all->known[slot] != 0; slot = (slot + 1) & all->mask) {
    SpanRecord *span = &all->spans[all->known[slot] - 1];
    if (memcmp(all->text.at + span->start + NODE_OPENING.size, hex, NODE_HEX) == 0) return all->known[slot] - 1;
  }
  i64 number = all->count++;
  all->known[slot] = (int32_t)number + 1;
  all->spans[number] = (SpanRecord){.start = all->nodes - all->text.at, .size = NODE_SIZE, .key = 0, .close = 0};
  memcpy(all->nodes, NODE_OPENING.at, (size_t)NODE_OPENING.size);
  memcpy(all->nodes + NODE_OPENING.size, hex, NODE_HEX);
  all->nodes[NODE_OPENING.size + NODE_HEX] = '>';
  all->nodes += NODE_SIZE;
  return number;
}

/* Writes the rows of an event: its type, and its arguments. `types` is the number of the type's predicate, before those of arguments. */
static void put_event_rows(Written *all, i64 node, i64 type, const int32_t *arguments, i64 n, i64 types, i64 start, i64 end) {
  for (i64 k = 0; k <= n; k++, all->rows++) {
    i64 cells[] = {node, types + k, k == 0 ? type : arguments[k - 1], ABSENT};
    for (i64 place = SUBJECT; place <= GRAPH; place++) all->columns[place * all->width + all->rows] = (int32_t)cells[place];
    all->starts[all->rows] = start;
    all->ends[all->rows] = end;
  }
}

/* Returns whether the numbers of events and their arguments lie in the arrays that they name. */
static int are_events(const Argument *in, i64 terms, i64 events) {
  const int32_t *names = in[4].view.at, *firsts = in[5].view.at, *arguments = in[6].view.at;
  const SpanRecord *spans = in[2].view.at;
  if (in[5].view.count != events + 1 || firsts[0] != 0 || firsts[events] > in[6].view.count) return 0;
  if (in[7].view.count < events || in[8].view.count < events) return 0;
  for (i64 k = 0; k < events; k++) {
    if (firsts[k] > firsts[k + 1] || names[k] < 0 || names[k] >= terms) return 0;
    SpanRecord name = spans[names[k]];
    if (name.close != 0 || name.size <= NAME_OPENING.size || !has_piece(text_of(in[0].view), name.start, name.size)) return 0;
  }
  for (i64 k = 0; k < firsts[events]; k++)
    if (arguments[k] < 0 || arguments[k] >= terms) return 0;
  return 1;
}

static int write_events(Written *all, const Argument *in, i64 events) {
  const int32_t *names = in[4].view.at, *firsts = in[5].view.at, *arguments = in[6].view.at;
  const i64 *starts = in[7].view.at, *ends = in[8].view.at;
  byte hex[NODE_HEX];
  for (i64 k = 0; k < events; k++) {
    const int32_t *own = arguments + firsts[k];
    i64 n = firsts[k + 1] - firsts[k];
    if (!digest_event(all, all->spans[names[k]], own, n, starts[k], ends[k], hex)) return OUT_OF_BOUNDS;
    put_event_rows(all, number_node(all, hex), names[k], own, n, in[9].number, starts[k], ends[k]);
  }
  return FINE;
}

/* text: a body with its terms, and room for a node of each event at the end; where that begins; spans: those of the terms, with room for nodes; how
 * many terms there are; names, firsts, arguments, starts, ends: the events; the number of the type's predicate, which is before those of arguments;
 * OpenSSL's functions, or none; columns, starts, ends: the rows that are filled. Gives how many terms there are then. */
static int rows_of_events(const Argument *in, i64 *out) {
  i64 events = in[4].view.count, terms = in[3].number, nodes = in[1].number, rows = in[12].view.count, size = 1;
  if (terms < 0 || (terms + events) * SPAN_WIDTH > in[2].view.count) return OUT_OF_BOUNDS;
  if (!has_piece(text_of(in[0].view), nodes, events * NODE_SIZE)) return OUT_OF_BOUNDS;
  if (!are_events(in, terms, events) || in[11].view.count < PLACES * rows || in[13].view.count < rows) return OUT_OF_BOUNDS;
  if (rows != events + ((const int32_t *)in[5].view.at)[events]) return OUT_OF_BOUNDS;
  while (size < 2 * events) size *= 2;
  Written all = {.text = text_of(in[0].view), .nodes = (byte *)in[0].view.at + nodes, .spans = in[2].view.at, .columns = in[11].view.at};
  all.starts = in[12].view.at, all.ends = in[13].view.at, all.width = rows, all.count = terms, all.mask = size - 1;
  all.openssl = in[10].view.count == 3 ? in[10].view.at : NULL;
  all.known = calloc((size_t)size, sizeof *all.known);
  if (all.known == NULL) return NO_MEMORY;
  int status = write_events(&all, in, events);
  out[0] = all.count;
  free(all.line);
  free(all.known);
  return status;
}
