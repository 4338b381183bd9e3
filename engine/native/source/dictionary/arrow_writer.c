/* One call puts solutions in order of emission (solution_order.c) and makes their record batch, in one allocation.
 * The batch's columns are query, registered, entry, start, end, values, and, of solutions that are to be merged with others, by. */

enum { SOLUTION_COLUMNS = 6, NUMBER_COLUMNS = 4, UNKNOWN = -1 /* how many rows are null */, UNBOUND = -1 };

/* ---------------------------------------------------------------- rows */
/* Returns the triple that a row makes by a query's template, whose parts are columns or constants. */
static inline Statement make_statement(const Solutions *found, const i64 *row, const i64 *parts) {
  Statement made;
  for (int k = 0; k < 3; k++) made.part[k] = parts[k] <= FIRST_CONSTANT ? found->forms->constants[FIRST_CONSTANT - parts[k]] : cell_of(row, parts[k]);
  return made;
}

/* Puts the statements of a row in order and each once, and returns how many there are. */
static i64 state_triples(const Solutions *found, const i64 *row, const QueryRecord *query, Statement *statements) {
  const i64 *parts = found->forms->wanted + query->first + 1 + query->shown;
  i64 n = 0;
  for (i64 k = 0; k < query->triples; k++) {
    Statement made = make_statement(found, row, parts + 3 * k);
    if (is_statement(found->terms->kinds, made)) n = insert_statement(found->terms, statements, n, made);
  }
  return n;
}

/* Notes the query and the statements of each row, and which rows are shown: one that is to make triples and makes none is left out. */
static void state_rows(Solutions *found) {
  const SolutionRecord *before = NULL;
  i64 lines = 0;
  found->rising = 1;
  found->ends[0] = 0;
  for (i64 row = 0; row < found->height; row++) {
    const SolutionRecord *head = head_at(found, row);
    found->which[row] = found->forms->places[head->node];
    const QueryRecord *query = query_of(found, row);
    i64 made = query->triples == 0 ? 0 : state_triples(found, row_of(found, row), query, found->statements + lines);
    lines += made;
    found->ends[row + 1] = lines;
    if (made == 0 && query->triples != 0) continue;
    found->order[found->n++] = row;
    if (before != NULL && (head->entry < before->entry || (head->entry == before->entry && head->end < before->end))) found->rising = 0;
    before = head;
  }
}

/* Counts the triples that the rows are to make, and notes the most terms that one shows; returns whether each row is of a query. */
static int survey_rows(Solutions *found, i64 *triples) {
  const Forms *forms = found->forms;
  for (i64 row = 0; row < found->height; row++) {
    i64 node = head_at(found, row)->node;
    if (node < 0 || node >= forms->places_n || forms->places[node] < 0 || forms->places[node] >= forms->queries_n) return 0;
    const QueryRecord *query = &forms->queries[forms->places[node]];
    *triples += query->triples;
    if (query->shown > found->widest) found->widest = query->shown;
  }
  return 1;
}

/* ---------------------------------------------------------------- sizes */
typedef struct { /* what is known of the columns before they are filled. `unlike` is of the terms of queries that are not ALIKE */
  i64 terms, lines, line_bytes, bytes, unlike, unlike_bytes, unbound;
  i64 *named, names, name_bytes; /* the queries whose names are shown; in `marks` they are numbered from 1 */
} Measures;

typedef struct { /* a dictionary of terms, if there is one: its terms, their bytes, the end of each list, and the place of each item in it */
  i64 *distinct, count, size, unbound;
  int32_t *ends, *places, *seen; /* `seen` numbers the terms so far from 1. An unbound item has the place UNBOUND, and lines have those below */
} Packed;

/* Counts what the rows show. */
static void count_items(const Solutions *found, Measures *m) {
  for (i64 k = 0; k < found->n; k++) {
    i64 row = found->order[k], which = found->which[row];
    const QueryRecord *query = query_of(found, row);
    m->terms += query->triples == 0 ? query->shown : 0;
    m->unlike += query->alike ? 0 : query->shown;
    if (found->forms->marks[which] == 0) {
      m->named[m->names++] = which;
      found->forms->marks[which] = m->names;
      m->name_bytes += query->name_size;
    }
  }
  m->lines = found->ends[found->height];
  for (i64 k = 0; k < m->lines; k++) m->line_bytes += length_of_line(found->terms, &found->statements[k]);
}

/* Measures the terms that the rows show. */
static void measure_texts(const Solutions *found, Measures *m) {
  for (i64 k = 0; k < found->n; k++) {
    const QueryRecord *query = query_of(found, found->order[k]);
    const i64 *row = row_of(found, found->order[k]), *wanted = found->forms->wanted + query->first + 1;
    i64 own = 0;
    for (i64 i = 0; i < query->shown; i++) {
      i64 number = cell_of(row, wanted[i]);
      own += length_of(found->terms, number);
      m->unbound += number == NONE;
    }
    m->bytes += query->triples == 0 ? own : 0;
    m->unlike_bytes += query->alike ? 0 : own;
  }
}

/* Returns the place of a term in the dictionary, to which a new one is added. */
static inline i64 place_in(Packed *packed, const Terms *terms, i64 number) {
  if (packed->seen[number] == 0) {
    packed->distinct[packed->count++] = number;
    packed->seen[number] = (int32_t)packed->count;
    packed->size += length_of(terms, number);
  }
  return packed->seen[number] - 1;
}

/* Fills what a dictionary of terms has. */
static void fill_places(const Solutions *found, Packed *packed) {
  i64 item = 0;
  for (i64 k = 0; k < found->n; k++) {
    i64 at = found->order[k];
    const QueryRecord *query = query_of(found, at);
    const i64 *row = row_of(found, at), *wanted = found->forms->wanted + query->first + 1 + query->shown;
    packed->ends[k] = (int32_t)item;
    for (i64 line = found->ends[at]; line < found->ends[at + 1]; line++) packed->places[item++] = (int32_t)(UNBOUND - 1 - line);
    for (i64 i = 0; query->triples == 0 && i < query->shown; i++) {
      i64 number = cell_of(row, wanted[i]);
      packed->unbound += number == NONE;
      packed->places[item++] = (int32_t)(number == NONE ? UNBOUND : place_in(packed, found->terms, number));
    }
  }
  packed->ends[found->n] = (int32_t)item;
}

/* Makes the dictionary of the terms that are shown, each once. There is none where there are so few terms that each stands by itself. */
static int collect_distinct(const Solutions *found, const Measures *m, Packed *packed) {
  i64 used = found->terms->at->used;
  if (m->terms < MANY || m->terms < used >> 4) return FINE;
  packed->distinct = malloc((size_t)m->terms * sizeof(i64));
  packed->seen = calloc((size_t)used, sizeof(int32_t));
  packed->ends = malloc((size_t)(found->n + 1 + m->terms + m->lines) * sizeof(int32_t));
  if (packed->distinct == NULL || packed->seen == NULL || packed->ends == NULL) return NO_MEMORY;
  packed->places = packed->ends + found->n + 1;
  fill_places(found, packed);
  return FINE;
}

static void free_packed(const Packed *packed) {
  free(packed->distinct);
  free(packed->seen);
  free(packed->ends);
}

enum { EMITTED_ARRAYS = SOLUTION_COLUMNS + 5, EMITTED_ADDRESSES = 40 /* at most */ };
typedef struct { /* what stands before the buffers */
  ArrowArray arrays[EMITTED_ARRAYS];
  ArrowArray *children[SOLUTION_COLUMNS + 1];
  const void *addresses[EMITTED_ADDRESSES];
} EmittedHead;

/* Returns the bytes of n lists of so many items, without their texts. */
static i64 measure_lists(i64 n, i64 items) { return bytes_of_bits(n) + padded(4 * (n + 1)) + bytes_of_bits(items) + padded(4 * (items + 1)); }

/* Returns the bytes of the texts in the column of values. */
static i64 measure_values(const Measures *m, const Packed *packed) { return m->line_bytes + (packed->places != NULL ? packed->size : m->bytes); }

/* Returns the bytes of the block of n solutions. */
static i64 measure_block(i64 n, const Measures *m, const Packed *packed, int tied) {
  i64 values = measure_lists(n, m->terms + m->lines) + padded(measure_values(m, packed));
  if (packed->places != NULL) values += padded(4 * (packed->count + m->lines + 1));
  i64 names = padded(4 * n) + padded(4 * (m->names + 1)) + padded(m->name_bytes);
  i64 by = tied ? measure_lists(n, m->unlike) + padded(m->unlike_bytes) : 0;
  return (i64)sizeof(EmittedHead) + names + NUMBER_COLUMNS * WORD * n + values + by;
}

/* ---------------------------------------------------------------- columns */
typedef struct { /* texts that are written one after the other, with the bits of those that are no null, if some are unbound */
  int32_t *offsets;
  uint8_t *data, *bound;
  i64 item, size;
} Texts;

static inline void end_text(Texts *texts, i64 size) {
  if (texts->bound != NULL) set_bit(texts->bound, texts->item);
  texts->size += size;
  texts->offsets[++texts->item] = (int32_t)texts->size;
}

static inline void put_text(Texts *texts, Text text) {
  memcpy(texts->data + texts->size, text.at, (size_t)text.length);
  end_text(texts, text.length);
}

static inline void put_term(Texts *texts, const Terms *terms, i64 number) {
  if (number != NONE) put_text(texts, text_of(terms, number));
  else texts->offsets[++texts->item] = (int32_t)texts->size;
}

static inline void put_statement(Texts *texts, const Terms *terms, const Statement *statement) {
  uint8_t *at = texts->data + texts->size;
  end_text(texts, write_line(terms, statement, at) - at);
}

/* Begins the buffers of so many items. */
static Texts begin_texts(Block *block, i64 items, i64 size, int unbound) {
  Texts texts = {.bound = unbound ? next_bits(block, items) : NULL};
  if (!unbound) no_buffer(block);
  texts.offsets = next_buffer(block, 4 * (items + 1));
  texts.offsets[0] = 0;
  texts.data = next_buffer(block, size);
  return texts;
}

/* Returns a struct of lists of items. */
static ArrowArray *put_list(Block *block, const void **buffers, i64 rows, i64 nulls, ArrowArray *items) {
  ArrowArray *array = put_array(block, buffers, 2, rows, nulls);
  array->n_children = 1;
  array->children = (ArrowArray **)block->address++;
  array->children[0] = items;
  return array;
}

/* Puts what a row shows: its lines and terms, or, if it is `by` these, the terms in order of their variables. */
static void put_row(const Solutions *found, i64 at, int by, Texts *texts) {
  const QueryRecord *query = query_of(found, at);
  const i64 *row = row_of(found, at), *wanted = found->forms->wanted + query->first + 1 + (by ? 0 : query->shown);
  for (i64 line = found->ends[at]; !by && line < found->ends[at + 1]; line++) put_statement(texts, found->terms, &found->statements[line]);
  for (i64 k = 0; (by || query->triples == 0) && k < query->shown; k++) put_term(texts, found->terms, cell_of(row, wanted[k]));
}

/* Returns a column of lists of texts: those that the rows show, or, if it is `by` these, the terms in order of their variables, null where queries
 * are ALIKE. */
static ArrowArray *put_lists(Block *block, const Solutions *found, const Measures *m, int by) {
  const void **buffers = block->address;
  uint8_t *valid = by ? next_bits(block, found->n) : NULL;
  if (!by) no_buffer(block);
  int32_t *ends = next_buffer(block, 4 * (found->n + 1));
  const void **item_buffers = block->address;
  Texts texts = begin_texts(block, by ? m->unlike : m->terms + m->lines, by ? m->unlike_bytes : m->line_bytes + m->bytes, m->unbound > 0);
  for (i64 k = 0; k < found->n; k++) {
    ends[k] = (int32_t)texts.item;
    if (by && query_of(found, found->order[k])->alike) continue;
    if (by) set_bit(valid, k);
    put_row(found, found->order[k], by, &texts);
  }
  ends[found->n] = (int32_t)texts.item;
  ArrowArray *items = put_array(block, item_buffers, 3, texts.item, m->unbound > 0 ? UNKNOWN : 0);
  return put_list(block, buffers, found->n, by ? UNKNOWN : 0, items);
}

/* Returns the texts of a dictionary: the distinct terms, and all lines behind them. */
static ArrowArray *put_distinct(Block *block, const Solutions *found, const Measures *m, const Packed *packed) {
  const void **buffers = block->address;
  Texts texts = begin_texts(block, packed->count + m->lines, measure_values(m, packed), 0);
  for (i64 k = 0; k < packed->count; k++) put_term(&texts, found->terms, packed->distinct[k]);
  for (i64 line = 0; line < m->lines; line++) put_statement(&texts, found->terms, &found->statements[line]);
  return put_array(block, buffers, 3, texts.item, 0);
}

/* Returns a column of lists as `put_lists` does, but with items that are places in a dictionary of texts. */
static ArrowArray *put_packed(Block *block, const Solutions *found, const Measures *m, const Packed *packed) {
  const void **buffers = block->address;
  i64 items = m->terms + m->lines;
  no_buffer(block);
  put_buffer(block, packed->ends, 4 * (found->n + 1));
  const void **item_buffers = block->address;
  uint8_t *bound = packed->unbound > 0 ? next_bits(block, items) : NULL;
  if (bound == NULL) no_buffer(block);
  int32_t *indices = next_buffer(block, 4 * items);
  for (i64 item = 0; item < items; item++) {
    i64 place = packed->places[item];
    indices[item] = (int32_t)(place > UNBOUND ? place : place == UNBOUND ? 0 : packed->count + UNBOUND - 1 - place);
    if (bound != NULL && place != UNBOUND) set_bit(bound, item);
  }
  ArrowArray *array = put_array(block, item_buffers, 2, items, packed->unbound > 0 ? UNKNOWN : 0);
  array->dictionary = put_distinct(block, found, m, packed);
  return put_list(block, buffers, found->n, 0, array);
}

/* Returns the column of names, over a dictionary. */
static ArrowArray *put_names(Block *block, const Solutions *found, const Measures *m) {
  const void **buffers = block->address;
  no_buffer(block);
  int32_t *indices = next_buffer(block, 4 * found->n);
  for (i64 k = 0; k < found->n; k++) indices[k] = (int32_t)(found->forms->marks[found->which[found->order[k]]] - 1);
  ArrowArray *column = put_array(block, buffers, 2, found->n, 0);
  buffers = block->address;
  Texts texts = begin_texts(block, m->names, m->name_bytes, 0);
  for (i64 k = 0; k < m->names; k++) {
    const QueryRecord *query = &found->forms->queries[m->named[k]];
    put_text(&texts, (Text){found->forms->names + query->name, query->name_size});
  }
  column->dictionary = put_array(block, buffers, 3, m->names, 0);
  return column;
}

/* Makes the columns of numbers: registered, entry, start and end. */
static void put_numbers(Block *block, const Solutions *found, ArrowArray **children) {
  i64 n = found->n, *numbers[NUMBER_COLUMNS];
  for (int k = 0; k < NUMBER_COLUMNS; k++) {
    const void **buffers = block->address;
    no_buffer(block);
    numbers[k] = next_buffer(block, WORD * n);
    children[k] = put_array(block, buffers, 2, n, 0);
  }
  for (i64 k = 0; k < n; k++) {
    const SolutionRecord *head = head_at(found, found->order[k]);
    numbers[0][k] = query_of(found, found->order[k])->registered;
    numbers[1][k] = head->entry;
    numbers[2][k] = head->begin;
    numbers[3][k] = head->end;
  }
}

/* Makes the batch of solutions that are in order. */
static int put_solutions(const Solutions *found, const Measures *m, const Packed *packed, int tied, ArrowArray *batch) {
  EmittedHead *head = malloc((size_t)measure_block(found->n, m, packed, tied));
  if (head == NULL) return NO_MEMORY;
  Block block = {head->arrays, head->addresses, (uint8_t *)(head + 1)};
  head->children[0] = put_names(&block, found, m);
  put_numbers(&block, found, head->children + 1);
  head->children[1 + NUMBER_COLUMNS] = packed->places != NULL ? put_packed(&block, found, m, packed) : put_lists(&block, found, m, 0);
  if (tied) head->children[SOLUTION_COLUMNS] = put_lists(&block, found, m, 1);
  put_batch(batch, head, &block, found->n, head->children, SOLUTION_COLUMNS + tied);
  return FINE;
}

/* Emits rows whose statements are made. Gives what `emit` does. */
static int emit_stated(Solutions *found, const SortRoom *room, i64 *named, int tied, ArrowArray *batch, i64 *out) {
  Measures m = {.named = named};
  Packed packed = {0};
  count_items(found, &m);
  sort_solutions(found, room);
  int status = collect_distinct(found, &m, &packed);
  if (status == FINE) {
    if (packed.places == NULL || tied) measure_texts(found, &m);
    i64 values = measure_values(&m, &packed), longest = tied && m.unlike_bytes > values ? m.unlike_bytes : values;
    if (longest > MOST_BYTES) out[0] = -1 - longest;
    else status = put_solutions(found, &m, &packed, tied, batch);
    if (out[0] == 0) out[0] = packed.places != NULL;
  }
  for (i64 k = 0; k < m.names; k++) found->forms->marks[named[k]] = 0;
  free_packed(&packed);
  return status;
}

/* terms; rows that the kernel found; forms; whether solutions are TIED; a struct to make a batch of them in order of emission.
 * Gives 1 where there are so many terms that the values stand over a dictionary, else 0; or `-1 - bytes` of texts that are more than Arrow's
 * offsets say. */
static int emit(const Argument *in, i64 *out) {
  View rows = in[1].view;
  i64 height = rows.width > 0 ? rows.count / rows.width : 0, triples = 0;
  Solutions found = {.terms = terms_of(&in[0]), .forms = (const Forms *)in[2].number, .rows = rows.at, .height = height, .width = rows.width};
  if (height > 0 && rows.width <= ENTRY) return OUT_OF_BOUNDS;
  if (!survey_rows(&found, &triples)) return OUT_OF_BOUNDS;
  i64 *work = malloc((size_t)(height * (7 + found.widest) + 1 + 3 * triples) * sizeof *work);
  if (work == NULL) return NO_MEMORY;
  found.which = work;
  found.order = found.which + height;
  found.ends = found.order + height;
  SortRoom room = {.by = found.ends + height + 1};
  room.spare = room.by + height;
  room.came = room.spare + height;
  i64 *named = room.came + height;
  room.numbers = named + height;
  found.statements = (Statement *)(room.numbers + height * found.widest);
  state_rows(&found);
  int status = emit_stated(&found, &room, named, in[3].number != 0, (ArrowArray *)in[4].number, out);
  free(work);
  return status;
}
