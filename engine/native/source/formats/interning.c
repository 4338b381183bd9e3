/* The distinct terms of one body are numbered in order of their first appearance, and found again by hash and comparison. */

static const i64 MAX_TERM = 1 << 18; /* bytes; longer terms are for the exact path, whose limit is as many characters */
static const i64 FIRST_SLOTS = 1 << 10, LONGEST_PROBE = 1 << 10;

typedef struct { /* a slot holds the upper half of a term's hash, and below it the term's number and 1; an empty one is 0 */
  u64 *slots;
  i64 size; /* a power of two, at least twice the number of terms */
} Table;

typedef struct {
  Text text;
  u64 seed; /* of the hashes */
  Table table;
  SpanRecord *spans;
  byte *flags;
  i64 count, room;
  int status; /* FINE, or why the last term was refused */
} Terms;

static inline u64 slot_entry(u64 key, i64 number) { return key >> 32 << 32 | (u64)(number + 1); }

/* Returns the number of the term in a slot, ABSENT in an empty one. */
static inline i64 number_in(Table table, i64 slot) { return (i64)(uint32_t)table.slots[slot] - 1; }

/* Makes a table of the terms so far, whose slots are fewer than eight times as many. Returns whether there was memory for it. */
static int fill_table(Terms *terms) {
  Table table = {NULL, FIRST_SLOTS};
  while (2 * terms->count > table.size) table.size *= 4;
  table.slots = calloc((size_t)table.size, sizeof *table.slots);
  if (table.slots == NULL) return 0;
  for (i64 number = 0; number < terms->count; number++) {
    u64 key = (u64)terms->spans[number].key;
    i64 slot = (i64)key & (table.size - 1);
    while (table.slots[slot]) slot = (slot + 1) & (table.size - 1);
    table.slots[slot] = slot_entry(key, number);
  }
  free(terms->table.slots);
  terms->table = table;
  return 1;
}

/* Returns the slot of a term, or the empty one where it belongs; ABSENT if that would take too long, which nobody's text does by chance. */
static inline i64 find_slot(const Terms *terms, u64 key, i64 start, i64 size) {
  i64 mask = terms->table.size - 1, slot = (i64)key & mask;
  for (i64 probe = 0; probe < LONGEST_PROBE; probe++) {
    u64 entry = terms->table.slots[slot];
    if (entry == 0) return slot;
    if (entry >> 32 == key >> 32) {
      const SpanRecord *span = &terms->spans[(i64)(uint32_t)entry - 1];
      if (span->size == size && are_same(terms->text, span->start, start, size)) return slot;
    }
    slot = (slot + 1) & mask;
  }
  return ABSENT;
}

/* Makes a piece of the text a term. */
static inline void put_term(Terms *terms, i64 slot, i64 number, u64 key, i64 start, i64 size) {
  terms->table.slots[slot] = slot_entry(key, number);
  terms->spans[number] = (SpanRecord){.start = start, .size = size, .key = (i64)key, .close = 0};
}

/* Returns the number of the term at text[i:end], which is the last one if it is new; ABSENT if it is for the exact path, or has no room. */
static inline i64 intern_term(Terms *terms, i64 i, i64 end, u64 key) {
  i64 slot = find_slot(terms, key, i, end - i);
  if (slot == ABSENT) return ABSENT;
  i64 number = number_in(terms->table, slot);
  if (number != ABSENT) return number;
  if (terms->count == terms->room) {
    terms->status = OUT_OF_BOUNDS;
    return ABSENT;
  }
  number = terms->count++;
  put_term(terms, slot, number, key, i, end - i);
  if (2 * terms->count > terms->table.size && !fill_table(terms)) {
    terms->status = NO_MEMORY;
    return ABSENT;
  }
  return number;
}

/* ---------------------------------------------------------------- dictionaries of columns */
typedef struct { /* the numbers of a column's rows, which become its indices; `new` is by term, and `chosen` by index */
  const int32_t *cells;
  int32_t *indices, *new, *chosen;
  i64 rows, count;
} Column;

/* Fills a column's indices, and chooses its terms in order of first appearance. Returns whether all numbers are those of terms. */
static int choose_terms(Column *column, i64 terms) {
  column->count = 0;
  for (i64 k = 0; k < terms; k++) column->new[k] = ABSENT;
  for (i64 row = 0; row < column->rows; row++) {
    i64 number = column->cells[row];
    column->indices[row] = ABSENT;
    if (number == ABSENT) continue;
    if (number < 0 || number >= terms) return 0;
    if (column->new[number] == ABSENT) {
      column->new[number] = (int32_t)column->count;
      column->chosen[column->count++] = (int32_t)number;
    }
    column->indices[row] = column->new[number];
  }
  return 1;
}

typedef struct { /* where texts are put one after another; `end` is the end of the room */
  byte *at, *end;
} Output;

/* Copies a value of JSON as a term. Returns whether it is one, and has room. */
static int copy_value(Output *out, Text text, SpanRecord span) {
  if (out->end - out->at < span.size + VALUE_ROOM + 8) return 0;
  byte *end = put_value(out->at, text, span);
  if (end == NULL) return 0;
  out->at = end;
  return 1;
}

/* Copies a term; of a literal in JSON, whose two quotes are escaped, without the two backslashes. Returns whether it lies in the text, and has
 * room. */
static inline int copy_term(Output *out, Text text, SpanRecord span) {
  if (!has_piece(text, span.start, span.size) || out->end - out->at < span.size + 8) return 0;
  if (span.close < 0) return copy_value(out, text, span);
  if (span.close == 0) {
    out->at = copy_piece(out->at, text, span.start, span.size);
    return 1;
  }
  i64 end = span.start + span.size;
  if (span.close <= span.start || span.close >= end) return 0;
  out->at = copy_piece(out->at, text, span.start + 1, span.close - span.start - 1);
  out->at = copy_piece(out->at, text, span.close + 1, end - span.close - 1);
  return 1;
}

/* Copies the terms that were chosen, with their offsets, the first of which is 0. */
static int copy_terms(Output *out, Text text, const SpanRecord *spans, const Column *column, int32_t *offsets) {
  const byte *first = out->at;
  offsets[0] = 0;
  for (i64 k = 0; k < column->count; k++) {
    if (!copy_term(out, text, spans[column->chosen[k]])) return 0;
    offsets[k + 1] = (int32_t)(out->at - first);
  }
  return 1;
}

/* text, spans: terms; cells: a row of numbers a column; how many of these count; indices, offsets, texts, sizes: what is filled */
static int columns_of(const Argument *in, i64 *out) {
  Text text = text_of(in[0].view);
  const SpanRecord *spans = in[1].view.at;
  i64 terms = in[1].view.count / SPAN_WIDTH, width = in[2].view.width, rows = in[3].number, n = in[7].view.count / 2;
  i64 most = rows < terms ? rows : terms, *sizes = in[7].view.at;
  int32_t *offsets = in[5].view.at;
  Output texts = {in[6].view.at, (byte *)in[6].view.at + in[6].view.count};
  (void)out;
  if (rows < 0 || rows > width || in[2].view.count < n * width) return OUT_OF_BOUNDS;
  if (in[4].view.count < n * rows || in[5].view.count < n * (most + 1)) return OUT_OF_BOUNDS;
  int32_t *spare = malloc((size_t)(terms + most + 1) * sizeof *spare);
  if (spare == NULL) return NO_MEMORY;
  int status = FINE;
  for (i64 k = 0; k < n && status == FINE; k++) {
    const byte *first = texts.at;
    Column column = {(const int32_t *)in[2].view.at + k * width, (int32_t *)in[4].view.at + k * rows, spare, spare + terms, rows, 0};
    if (!choose_terms(&column, terms) || !copy_terms(&texts, text, spans, &column, offsets)) status = OUT_OF_BOUNDS;
    offsets += column.count + 1;
    sizes[2 * k] = column.count;
    sizes[2 * k + 1] = texts.at - first;
  }
  free(spare);
  return status;
}

/* text, offsets: terms one after another; flags: PLAIN or ODD of each */
static int flags_of(const Argument *in, i64 *out) {
  Text text = text_of(in[0].view);
  const int32_t *offsets = in[1].view.at;
  byte *flags = in[2].view.at;
  i64 n = in[1].view.count - 1;
  (void)out;
  if (in[2].view.count < n) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < n; k++) {
    i64 i = offsets[k], end = offsets[k + 1];
    if (!has_piece(text, i, end - i)) return OUT_OF_BOUNDS;
    flags[k] = i < end && end - i <= MAX_TERM && is_whole(text, i, end) && is_plain(text, i, end) ? PLAIN : ODD;
  }
  return FINE;
}
