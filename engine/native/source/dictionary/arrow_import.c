/* One call takes in a batch of occurrences through Arrow's C data interface and interns its terms, and one makes such a batch, however few its rows.
 * The batch has the columns s, p, o, g, start, end (8 bytes) and late (bits). The first four are dictionaries of utf8 with indices of 4 bytes, g
 * with nulls.
 * Each array made here stands in one allocation, structs and data alike, which goes when Arrow lets go of the outermost struct. So children and
 * dictionaries have nothing of their own to free. */

typedef struct ArrowArray ArrowArray; /* source: Arrow C data interface */
struct ArrowArray {
  i64 length, null_count, offset, n_buffers, n_children;
  const void **buffers;
  ArrowArray **children;
  ArrowArray *dictionary;
  void (*release)(ArrowArray *);
  void *private_data;
};
_Static_assert(sizeof(ArrowArray) == ARROW_WORDS * sizeof(i64), "Python makes room for a struct of so many words");

enum { START = 4, FINISH, LATE, COLUMNS }; /* of the batch, behind the terms */
enum { UNUSED = -1 };                      /* a string that no row has had yet, or no string */
enum { WORD = 8 };

static void release_block(ArrowArray *array) {
  void *block = array->private_data;
  array->release = NULL;
  free(block);
}

/* Returns a size in bytes, rounded up to whole words. */
static inline i64 padded(i64 size) { return (size + WORD - 1) / WORD * WORD; }

static inline i64 bytes_of_bits(i64 bits) { return padded((bits + 7) >> 3); }

/* ---------------------------------------------------------------- a batch comes in */
typedef struct { /* the table of the rows that are taken, and which rows of the batch they are */
  i64 *cells, width, kept;
  const i64 *rows;
} Taking;

typedef struct { /* room for as many numbers as there are rows: the use of each string, the strings in use, and their numbers */
  i64 *uses, *which, *numbers;
} Spare;

/* Gives each row of a column its place among the strings in use, UNUSED for null, and returns how many these are; BROKEN if the column is none.
 * Strings come in the order of their first use, so a dictionary may have many that no row has. If it has more strings than rows are taken, each use
 * is a string. */
static i64 find_strings(const Taking *taking, const ArrowArray *column, i64 *target, const Spare *spare) {
  const uint8_t *valid = column->buffers[0];
  i64 strings = column->dictionary->length, used = 0;
  int remembered = strings <= taking->kept;
  for (i64 k = 0; remembered && k < strings; k++) spare->uses[k] = UNUSED;
  for (i64 i = 0; i < taking->kept; i++) {
    i64 row = column->offset + taking->rows[i];
    target[i] = UNUSED;
    if (valid != NULL && !bit_of(valid, row)) continue;
    i64 string = load_index(column->buffers[1], row), use = UNUSED;
    if (string < 0 || string >= strings) return BROKEN;
    if (remembered) use = spare->uses[string];
    if (use == UNUSED) {
      use = used++;
      spare->which[use] = string;
      if (remembered) spare->uses[string] = use;
    }
    target[i] = use;
  }
  return used;
}

/* Fills `target` with the numbers of the terms in some rows of a column, NONE for null. Leaves in `wanting` the bytes of a string without room, if
 * any. */
static int take_column(const Terms *terms, const Taking *taking, const ArrowArray *column, i64 *target, const Spare *spare, i64 *wanting) {
  const ArrowArray *dictionary = column->dictionary;
  i64 used = find_strings(taking, column, target, spare);
  if (used == BROKEN) return OUT_OF_BOUNDS;
  Strings strings = {(const uint8_t *)dictionary->buffers[1] + 4 * dictionary->offset, dictionary->buffers[2]};
  i64 done = intern_some(terms, strings, spare->which, used, spare->numbers);
  if (done == BROKEN) return OUT_OF_BOUNDS;
  if (done < used) {
    *wanting = string_of(strings, spare->which[done]).length;
    return FINE;
  }
  for (i64 i = 0; i < taking->kept; i++) target[i] = target[i] == UNUSED ? NONE : spare->numbers[target[i]];
  return FINE;
}

/* Fills the rows of the table beside those of terms, and notes which rows are not late. */
static void take_times(Taking *taking, const ArrowArray *batch, i64 since) {
  const ArrowArray *late = batch->children[LATE];
  i64 *rows = taking->cells + ROW * taking->width;
  for (i64 k = 0; k < batch->length; k++)
    if (!bit_of(late->buffers[1], late->offset + k)) rows[taking->kept++] = k;
  taking->rows = rows;
  for (i64 line = 0; line < FIRST_TERM; line++) memset(taking->cells + line * taking->width, 0, (size_t)taking->kept * sizeof(i64));
  for (i64 i = 0; i < taking->kept; i++) taking->cells[SINCE * taking->width + i] = since;
  for (i64 which = START; which <= FINISH; which++) {
    const ArrowArray *column = batch->children[which];
    i64 *target = taking->cells + (FIRST_TERM + which) * taking->width;
    for (i64 i = 0; i < taking->kept; i++) target[i] = load_number(column->buffers[1], column->offset + rows[i]);
  }
}

/* Takes the terms in the columns that are wanted; the others are NONE. */
static int take_terms(const Terms *terms, const Taking *taking, const ArrowArray *batch, i64 wanted, i64 *wanting) {
  i64 kept = taking->kept, *room = malloc((size_t)(3 * kept + 1) * sizeof *room); /* for all columns, since most batches have one row */
  if (room == NULL) return NO_MEMORY;
  Spare spare = {room, room + kept, room + 2 * kept};
  int status = FINE;
  for (i64 which = 0; which < TERMS && status == FINE && *wanting < 0; which++) {
    i64 *target = taking->cells + (FIRST_TERM + which) * taking->width;
    if (which < wanted) status = take_column(terms, taking, batch->children[which], target, &spare, wanting);
    else memset(target, 0, (size_t)kept * sizeof *target);
  }
  free(room);
  return status;
}

/* Returns the row after those that stand side by side from `first` on and have its subject. Tells whether they are on one interval. */
static i64 end_of_subject(const Taking *taking, i64 first, int *is_whole) {
  const i64 *s = taking->cells + FIRST_TERM * taking->width, *start = s + START * taking->width, *end = s + FINISH * taking->width;
  i64 after = first + 1;
  for (*is_whole = 1; after < taking->kept && s[after] == s[first]; after++)
    *is_whole = *is_whole && start[after] == start[first] && end[after] == end[first];
  return after;
}

/* Marks the rows of each subject that has all its rows side by side and on one interval, by the first row of the table. `rows` is a hash table, empty
 * at first, of the rows at which subjects begin, from 1 on. */
static void mark_whole_subjects(const Taking *taking, i64 *rows, i64 mask) {
  const i64 *s = taking->cells + FIRST_TERM * taking->width;
  int is_whole;
  for (i64 first = 0, after; first < taking->kept; first = after) {
    i64 place = (i64)((u64)s[first] * 0x9E3779B97F4A7C15u >> 32) & mask;
    after = end_of_subject(taking, first, &is_whole);
    while (rows[place] != 0 && s[rows[place] - 1] != s[first]) place = (place + 1) & mask;
    if (rows[place] == 0) {
      rows[place] = first + 1;
      for (i64 k = first; is_whole && k < after; k++) taking->cells[k] = WHOLE_SUBJECT;
    } else /* it has come before, so neither is all of it */
      for (i64 k = rows[place] - 1; taking->cells[k] == WHOLE_SUBJECT && s[k] == s[first]; k++) taking->cells[k] = 0;
  }
}

static int find_whole_subjects(const Taking *taking) {
  i64 size = 2;
  while (size < 2 * taking->kept) size *= 2;
  i64 *rows = calloc((size_t)size, sizeof *rows);
  if (rows == NULL) return NO_MEMORY;
  mark_whole_subjects(taking, rows, size - 1);
  free(rows);
  return FINE;
}

/* terms; a batch; how many of s, p, o and g are wanted; where it came from; a table (HEIGHT x rows) to fill with the rows that are not late.
 * Gives how many these are, and lets the batch go; or `-1 - bytes` for which there was no room, and the batch stays. */
static int taken(const Argument *in, i64 *out) {
  ArrowArray *batch = (ArrowArray *)in[1].number;
  View table = in[4].view;
  Taking taking = {table.at, table.width, 0, NULL};
  i64 wanting = -1;
  int status = OUT_OF_BOUNDS;
  if (table.width >= batch->length && table.count == HEIGHT * table.width && batch->n_children == COLUMNS) {
    take_times(&taking, batch, in[3].number);
    status = take_terms(terms_of(&in[0]), &taking, batch, in[2].number, &wanting);
    if (status == FINE && wanting < 0 && in[2].number > 0) status = find_whole_subjects(&taking);
  }
  if (status != FINE || wanting < 0) batch->release(batch);
  out[0] = wanting < 0 ? taking.kept : -1 - wanting;
  return status;
}

/* ---------------------------------------------------------------- a batch is made */
typedef struct { /* a block that is filled: its next struct, its next address of a buffer, and where its next buffer begins */
  ArrowArray *array;
  const void **address;
  uint8_t *data;
} Block;

/* Begins a buffer of so many bytes and notes its address. */
static inline void *next_buffer(Block *block, i64 size) {
  void *at = block->data;
  *block->address++ = at;
  block->data += padded(size);
  return at;
}

static inline uint8_t *next_bits(Block *block, i64 bits) { return memset(next_buffer(block, (bits + 7) >> 3), 0, (size_t)bytes_of_bits(bits)); }

static inline void put_buffer(Block *block, const void *source, i64 size) { memcpy(next_buffer(block, size), source, (size_t)size); }

static inline void no_buffer(Block *block) { *block->address++ = NULL; }

/* Returns a struct of rows with so many buffers. */
static ArrowArray *put_array(Block *block, const void **buffers, i64 n, i64 rows, i64 nulls) {
  ArrowArray *array = block->array++;
  *array = (ArrowArray){.length = rows, .null_count = nulls, .n_buffers = n, .buffers = buffers, .release = release_block};
  return array;
}

/* Makes a struct a batch of columns, which is the block's owner. */
static void put_batch(ArrowArray *batch, void *memory, Block *block, i64 rows, ArrowArray **children, i64 columns) {
  const void **nothing = block->address; /* its own buffer: none of its rows is null */
  no_buffer(block);
  *batch = (ArrowArray){.length = rows, .n_buffers = 1, .buffers = nothing, .n_children = columns, .children = children, .release = release_block};
  batch->private_data = memory;
}

typedef struct { /* what a batch is made of: `sizes` has the terms and the bytes of each dictionary; these stand one after another */
  const int32_t *indices, *offsets;
  const uint8_t *texts;
  const i64 *sizes, *start, *end;
  i64 rows;
} Occurrences;

enum { BATCH_ARRAYS = COLUMNS + 4, BATCH_ADDRESSES = 2 * COLUMNS + 3 * 4 + 1 };
typedef struct { /* what stands before the buffers */
  ArrowArray arrays[BATCH_ARRAYS];
  ArrowArray *children[COLUMNS];
  const void *addresses[BATCH_ADDRESSES];
} BatchHead;

/* Returns the struct of a column of terms; indices below 0 are null. */
static ArrowArray *put_indices(Block *block, const int32_t *indices, i64 rows) {
  const void **buffers = block->address;
  uint8_t *bits = next_bits(block, rows);
  i64 nulls = 0;
  for (i64 k = 0; k < rows; k++) {
    if (indices[k] < 0) nulls++;
    else set_bit(bits, k);
  }
  if (nulls == 0) buffers[0] = NULL;
  put_buffer(block, indices, 4 * rows);
  return put_array(block, buffers, 2, rows, nulls);
}

static void put_columns(Block *block, ArrowArray **children, const Occurrences *made) {
  const int32_t *offsets = made->offsets;
  const uint8_t *texts = made->texts;
  for (i64 k = 0; k < TERMS; k++) {
    i64 terms = made->sizes[2 * k], size = made->sizes[2 * k + 1];
    children[k] = put_indices(block, made->indices + k * made->rows, made->rows);
    const void **buffers = block->address;
    no_buffer(block);
    put_buffer(block, offsets, 4 * (terms + 1));
    put_buffer(block, texts, size);
    children[k]->dictionary = put_array(block, buffers, 3, terms, 0);
    offsets += terms + 1;
    texts += size;
  }
  for (i64 k = TERMS; k < COLUMNS; k++) {
    const void **buffers = block->address;
    no_buffer(block);
    if (k == LATE) next_bits(block, made->rows);
    else put_buffer(block, k == START ? made->start : made->end, WORD * made->rows);
    children[k] = put_array(block, buffers, 2, made->rows, 0);
  }
}

/* Returns the bytes of the block, or -1 if the arrays are too short for it. */
static i64 measure_batch(const Argument *in, const Occurrences *made) {
  i64 rows = made->rows, terms = 0, bytes = 0;
  i64 size = (i64)sizeof(BatchHead) + 2 * WORD * rows + (TERMS + 1) * bytes_of_bits(rows) + TERMS * padded(4 * rows);
  if (in[3].view.count != 2 * TERMS || in[0].view.count != TERMS * rows || in[5].view.count != rows) return -1;
  for (i64 k = 0; k < TERMS; k++) {
    if (made->sizes[2 * k] < 0 || made->sizes[2 * k + 1] < 0) return -1;
    terms += made->sizes[2 * k] + 1;
    bytes += made->sizes[2 * k + 1];
    size += padded(4 * (made->sizes[2 * k] + 1)) + padded(made->sizes[2 * k + 1]);
  }
  return terms > in[1].view.count || bytes > in[2].view.count ? -1 : size;
}

/* indices: a row for each of s, p, o and g, below 0 for null; the offsets into their dictionaries' texts, from 0 each; these texts; sizes; start;
 * end; a struct to make a batch of occurrences that are not late */
static int make_batch(const Argument *in, i64 *out) {
  Occurrences made = {in[0].view.at, in[1].view.at, in[2].view.at, in[3].view.at, in[4].view.at, in[5].view.at, in[4].view.count};
  i64 size = measure_batch(in, &made);
  (void)out;
  if (size < 0) return OUT_OF_BOUNDS;
  BatchHead *head = malloc((size_t)size);
  if (head == NULL) return NO_MEMORY;
  Block block = {head->arrays, head->addresses, (uint8_t *)(head + 1)};
  put_columns(&block, head->children, &made);
  put_batch((ArrowArray *)in[6].number, head, &block, made.rows, head->children, COLUMNS);
  return FINE;
}
