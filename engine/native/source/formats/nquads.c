/* Lines of N-Triples and N-Quads become cells of term numbers, and the time of each graph is found. */

enum { PLACES = 4, GENERATED = 0, STARTS, ENDS, TIMINGS }; /* columns of `cells`; properties that give a graph its time */

static const Text TIMING_NAMES[TIMINGS] = {
    [GENERATED] = TEXT("<http://www.w3.org/ns/prov#generatedAtTime>"),
    [STARTS] = TEXT("<http://streamreasoning.org/timeVocab#startsAtTime>"),
    [ENDS] = TEXT("<http://streamreasoning.org/timeVocab#endsAtTime>"),
};
static const Text DATE_TIME = TEXT("\"^^<http://www.w3.org/2001/XMLSchema#dateTime>");
static const Text DATE_TIME_STAMP = TEXT("\"^^<http://www.w3.org/2001/XMLSchema#dateTimeStamp>");

/* ---------------------------------------------------------------- lines */
/* Returns the place after the rest of a statement's line: blanks, a comment of printable ASCII, and the line's end. ABSENT if anything else is
 * there. */
static inline i64 after_rest(Text text, i64 i) {
  i = after_blanks(text, i);
  if (i < text.size && text.at[i] == '#')
    while (i < text.size && ((text.at[i] >= 0x20 && text.at[i] < 0x7F) || text.at[i] == '\t')) i++;
  if (i < text.size && text.at[i] == '\r' && ++i == text.size) return ABSENT;
  if (i == text.size) return i;
  return text.at[i] == '\n' ? i + 1 : ABSENT;
}

/* Returns whether a term that begins so may stand in a place: subject (0), predicate, object, graph. */
static inline int may_stand(byte first, i64 place) { return first == '<' || (first == '_' && place != 1) || (first == '"' && place == 2); }

/* Returns the number of the term at i, and moves i behind it; ABSENT if it is for the exact path. */
static inline i64 read_term(Terms *terms, i64 *i, i64 place) {
  Text text = terms->text;
  u64 key = terms->seed;
  i64 begin = *i, end = term_end(text, begin, &key);
  if (end == ABSENT || end >= text.size || end - begin > MAX_TERM || !is_blank(text.at[end]) || !may_stand(text.at[begin], place)) return ABSENT;
  i64 before = terms->count, number = intern_term(terms, begin, end, key);
  if (number == before) terms->flags[number] = is_plain(text, begin, end) ? PLAIN : ODD;
  *i = end;
  return number;
}

/* Reads the statement at i of up to `places` terms into its row of cells. Returns the place after its line, ABSENT if it is for the exact path. */
static inline i64 read_statement(Terms *terms, i64 i, i64 places, int32_t *cells) {
  Text text = terms->text;
  i64 place = 0;
  while (place < places && text.at[i] != '.') {
    i64 number = read_term(terms, &i, place);
    if (number == ABSENT) return ABSENT;
    cells[place++] = (int32_t)number;
    i = after_blanks(text, i);
    if (i == text.size) return ABSENT;
  }
  if (place < 3 || text.at[i] != '.') return ABSENT;
  if (place == 3) cells[3] = ABSENT;
  return after_rest(text, i + 1);
}

/* Reads the lines of a body. Returns how many statements they have, or OTHERWISE. */
static i64 read_statements(Terms *terms, i64 places, int32_t *cells, i64 room) {
  Text text = terms->text;
  i64 row = 0, i = 0;
  while (i != ABSENT && i < text.size) {
    i = after_blanks(text, i);
    if (i == text.size) break;
    if (text.at[i] == '\n' || text.at[i] == '\r' || text.at[i] == '#') {
      i = after_rest(text, i);
      continue;
    }
    if (row == room) {
      terms->status = OUT_OF_BOUNDS;
      return OTHERWISE;
    }
    i = read_statement(terms, i, places, cells + PLACES * row++);
  }
  return i == ABSENT ? OTHERWISE : row;
}

/* text; 3 or 4 places; seed; cells, spans, flags: what is filled. Gives how many statements, and how many terms. */
static int cells_of(const Argument *in, i64 *out) {
  Terms terms = {text_of(in[0].view), in[2].word, {NULL, 0}, in[4].view.at, in[5].view.at, 0, in[4].view.count / SPAN_WIDTH, FINE};
  if (in[1].number > PLACES || in[5].view.count < terms.room) return OUT_OF_BOUNDS;
  if (!fill_table(&terms)) return NO_MEMORY;
  out[0] = read_statements(&terms, in[1].number, in[3].view.at, in[3].view.count / PLACES);
  out[1] = terms.count;
  free(terms.table.slots);
  return terms.status;
}

/* ---------------------------------------------------------------- canonical texts of terms */
/* Makes terms what stands at their places of the text, a row (start, size) each, and fills `other` with the number that each term has then. Returns
 * whether each of these pieces is a term. */
static int rename_terms(Terms *terms, const i64 *numbers, const i64 *places, i64 n, int32_t *other) {
  for (i64 k = 0; k < terms->count; k++) other[k] = (int32_t)k;
  for (i64 k = 0; k < n; k++) {
    i64 start = places[2 * k], size = places[2 * k + 1];
    u64 key = terms->seed;
    if (numbers[k] < 0 || numbers[k] >= terms->count || size < 1 || !has_piece(terms->text, start, size)) return 0;
    i64 end = term_end(terms->text, start, &key), slot = find_slot(terms, key, start, size);
    if (end != start + size || slot == ABSENT) return 0;
    i64 number = number_in(terms->table, slot);
    if (number == ABSENT) put_term(terms, slot, number = numbers[k], key, start, size);
    other[numbers[k]] = (int32_t)number;
  }
  return 1;
}

/* Returns whether each cell is the number of one of so many terms; that of a graph may be ABSENT. */
static int are_numbers(const int32_t *cells, i64 rows, i64 terms) {
  for (i64 k = 0; k < PLACES * rows; k++)
    if (cells[k] >= terms || cells[k] < (k % PLACES == PLACES - 1 ? ABSENT : 0)) return 0;
  return 1;
}

/* text, seed; numbers of terms and a row (start, size) of each; spans of how many terms; cells. Gives whether the terms are what stands there now. */
static int renamed(const Argument *in, i64 *out) {
  i64 count = in[5].number, n = in[2].view.count, rows = in[6].view.count / PLACES;
  int32_t *cells = in[6].view.at;
  Terms terms = {text_of(in[0].view), in[1].word, {NULL, 0}, in[4].view.at, NULL, count, in[4].view.count / SPAN_WIDTH, FINE};
  if (count < 0 || count > terms.room || in[3].view.count < 2 * n || !are_numbers(cells, rows, count)) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < count; k++)
    if (!has_piece(terms.text, terms.spans[k].start, terms.spans[k].size)) return OUT_OF_BOUNDS;
  int32_t *other = malloc((size_t)(count + 1) * sizeof *other);
  int status = other != NULL && fill_table(&terms) ? FINE : NO_MEMORY;
  if (status == FINE) out[0] = rename_terms(&terms, in[2].view.at, in[3].view.at, n, other);
  if (status == FINE && out[0])
    for (i64 k = 0; k < PLACES * rows; k++)
      if (cells[k] != ABSENT) cells[k] = other[cells[k]];
  free(terms.table.slots);
  free(other);
  return status;
}

/* ---------------------------------------------------------------- lines of statements */
/* Returns the slot of a row among those before it that are other statements, ABSENT if the same statement stands there. A row that nobody's text
 * brings by chance, for which many slots are taken, counts as another statement, and gets the last of these. */
static inline i64 slot_of_statement(const int32_t *cells, i64 row, const int32_t *slots, i64 mask, u64 seed) {
  const int32_t *own = cells + PLACES * row;
  u64 key = mixed(mixed(mixed(seed, (u64)own[0]), (u64)own[1]), (u64)own[2]);
  i64 slot = (i64)key & mask;
  for (i64 probe = 0; probe < LONGEST_PROBE && slots[slot]; probe++, slot = (slot + 1) & mask) {
    const int32_t *other = cells + PLACES * (i64)(slots[slot] - 1);
    if (other[0] == own[0] && other[1] == own[1] && other[2] == own[2]) return ABSENT;
  }
  return slot;
}

/* Writes a statement without its graph, if there is room: its terms lie in the text. */
static inline int write_statement(Output *out, Text text, const SpanRecord *spans, const int32_t *cells) {
  for (int place = 0; place < 3; place++) {
    SpanRecord span = spans[cells[place]];
    if (out->end - out->at < span.size + 16) return 0;
    out->at = copy_piece(out->at, text, span.start, span.size);
    *out->at++ = ' ';
  }
  *out->at++ = '.';
  *out->at++ = '\n';
  return 1;
}

/* text; spans of how many terms; cells; seed; lines: what is filled. Gives how many bytes the lines have: each statement once, whatever its graph. */
static int lines_of(const Argument *in, i64 *out) {
  Text text = text_of(in[0].view);
  const SpanRecord *spans = in[1].view.at;
  i64 count = in[2].number, rows = in[3].view.count / PLACES, size = FIRST_SLOTS;
  const int32_t *cells = in[3].view.at;
  Output lines = {in[5].view.at, (byte *)in[5].view.at + in[5].view.count};
  if (count < 0 || count * SPAN_WIDTH > in[1].view.count || rows >= INT32_MAX || !are_numbers(cells, rows, count)) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < count; k++)
    if (!has_piece(text, spans[k].start, spans[k].size)) return OUT_OF_BOUNDS;
  while (size < 2 * rows) size *= 2;
  int32_t *slots = calloc((size_t)size, sizeof *slots);
  if (slots == NULL) return NO_MEMORY;
  int status = FINE;
  for (i64 row = 0; row < rows && status == FINE; row++) {
    i64 slot = slot_of_statement(cells, row, slots, size - 1, in[4].word);
    if (slot == ABSENT) continue;
    slots[slot] = (int32_t)row + 1;
    if (!write_statement(&lines, text, spans, cells + PLACES * row)) status = OUT_OF_BOUNDS;
  }
  free(slots);
  out[0] = lines.at - (byte *)in[5].view.at;
  return status;
}

/* ---------------------------------------------------------------- times */
typedef struct { /* statements, and what is found of their graphs, by term: the objects (number and 1) of each graph's timing triples */
  Text text;
  const SpanRecord *spans;
  const int32_t *cells;
  i64 rows, count;
  int rounds; /* whether times are rounded to microseconds */
  int32_t (*stated)[TIMINGS];
  byte *is_graph, *is_timing; /* by term, and by row */
  signed char *kinds;         /* of terms: the timing property, ABSENT, or UNKNOWN */
} Statements;

enum { UNKNOWN = ABSENT - 1 };

/* Returns the timing property that a term is, or ABSENT. */
static inline int timing_of(Text text, SpanRecord span) {
  for (int kind = 0; kind < TIMINGS; kind++)
    if (span.size == TIMING_NAMES[kind].size && starts_with(text, span.start, TIMING_NAMES[kind])) return kind;
  return ABSENT;
}

/* Returns the instant of an xsd:dateTime or xsd:dateTimeStamp of the usual shape, else NO_TIME. */
static inline i64 literal_instant(Text text, SpanRecord span, int rounds) {
  i64 start = span.start, end = span.start + span.size, close = start + 1;
  if (span.size < 22 || text.at[start] != '"') return NO_TIME;
  while (close < end && close < start + 40 && text.at[close] != '"') close++;
  int known = (end - close == DATE_TIME.size && starts_with(text, close, DATE_TIME)) ||
              (end - close == DATE_TIME_STAMP.size && starts_with(text, close, DATE_TIME_STAMP));
  return known ? instant_at(text, start + 1, close, rounds) : NO_TIME;
}

/* Fills `stated` and `is_timing`. Returns whether no graph has two of a property. */
static int find_timings(Statements *all) {
  memset(all->kinds, UNKNOWN, (size_t)all->count);
  for (i64 row = 0; row < all->rows; row++)
    if (all->cells[PLACES * row + 3] != ABSENT) all->is_graph[all->cells[PLACES * row + 3]] = 1;
  for (i64 row = 0; row < all->rows; row++) {
    const int32_t *cells = all->cells + PLACES * row;
    if (cells[3] != ABSENT || !all->is_graph[cells[0]]) continue;
    signed char *kind = &all->kinds[cells[1]];
    if (*kind == UNKNOWN) *kind = (signed char)timing_of(all->text, all->spans[cells[1]]);
    if (*kind == ABSENT) continue;
    int32_t *stated = &all->stated[cells[0]][*kind];
    if (*stated != 0 && *stated != cells[2] + 1) return 0;
    *stated = cells[2] + 1;
    all->is_timing[row] = 1;
  }
  return 1;
}

/* Gives start and end of a graph, both NO_TIME if it has none. A start beyond its end is given if they are for the exact path. */
static inline Piece graph_interval(const Statements *all, i64 graph) {
  const Piece otherwise = {1, 0};
  const int32_t *stated = all->stated[graph];
  i64 generated = stated[GENERATED], first = stated[STARTS], last = stated[ENDS];
  if (generated == 0 && first == 0 && last == 0) return (Piece){NO_TIME, NO_TIME};
  if (generated != 0 && first == 0 && last == 0)
    first = last = generated;
  else if (generated != 0 || first == 0 || last == 0)
    return otherwise;
  i64 start = literal_instant(all->text, all->spans[first - 1], all->rounds);
  i64 end = start == NO_TIME || first == last ? start : literal_instant(all->text, all->spans[last - 1], all->rounds);
  return start == NO_TIME || end == NO_TIME ? otherwise : (Piece){start, end};
}

/* Fills the columns of occurrences and their times. Returns how many they are, or OTHERWISE; `untimed` is how many of them are at the default. */
static i64 place_statements(const Statements *all, Piece otherwise, int32_t *columns, i64 *starts, i64 *ends, i64 *untimed) {
  i64 kept = 0;
  for (i64 row = 0; row < all->rows; row++) {
    const int32_t *cells = all->cells + PLACES * row;
    if (all->is_timing[row]) continue;
    Piece when = {NO_TIME, NO_TIME};
    if (cells[3] != ABSENT) when = graph_interval(all, cells[3]);
    if (when.start > when.end) return OTHERWISE;
    if (when.start == NO_TIME) {
      when = otherwise;
      ++*untimed;
    }
    for (i64 place = 0; place < PLACES; place++) columns[place * all->rows + kept] = cells[place];
    starts[kept] = when.start;
    ends[kept++] = when.end;
  }
  return kept;
}

/* text; spans of how many terms; cells of how many rows; default start and end; whether times are rounded; columns, starts, ends: what is
 * filled, and has as many rows.
 * Gives how many occurrences there are, or OTHERWISE, and how many of them are at the default. The timing triples of graphs are left out. */
static int timed(const Argument *in, i64 *out) {
  i64 count = in[2].number, rows = in[4].number;
  Statements all = {.text = text_of(in[0].view), .spans = in[1].view.at, .cells = in[3].view.at, .rows = rows, .count = count};
  all.rounds = in[7].number != 0;
  if (count < 0 || rows < 0 || count * SPAN_WIDTH > in[1].view.count || rows * PLACES > in[3].view.count) return OUT_OF_BOUNDS;
  if (in[8].view.count < PLACES * rows || in[9].view.count < rows || in[10].view.count < rows || !are_numbers(all.cells, rows, count))
    return OUT_OF_BOUNDS;
  for (i64 k = 0; k < count; k++)
    if (!has_piece(all.text, all.spans[k].start, all.spans[k].size)) return OUT_OF_BOUNDS;
  byte *spare = calloc((size_t)(count * (i64)sizeof *all.stated + 2 * count + rows + 1), 1);
  if (spare == NULL) return NO_MEMORY;
  all.stated = (int32_t(*)[TIMINGS])spare;
  all.is_graph = spare + count * (i64)sizeof *all.stated;
  all.kinds = (signed char *)all.is_graph + count;
  all.is_timing = all.is_graph + 2 * count;
  Piece otherwise = {in[5].number, in[6].number};
  out[0] = find_timings(&all) ? place_statements(&all, otherwise, in[8].view.at, in[9].view.at, in[10].view.at, &out[1]) : OTHERWISE;
  free(spare);
  return FINE;
}
