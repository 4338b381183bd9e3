/* Solutions have one order of emission: by entry, end and start, then by query, the query's own ORDER BY, and terms.
 * The order within an instant decides the ids of solutions too, because `pipeline/solutions/solution_ids.py` numbers them as they come. */

enum { FEW_ROWS = 32 }; /* the rows of most instants are so few that they are sorted by insertion */

typedef struct { /* as `handle_of` of term_dictionary.py writes them: how the solutions of a network's queries are shown */
  const i64 *places; /* the query of each node */
  i64 places_n;
  const QueryRecord *queries;
  i64 queries_n;
  const i64 *wanted;
  i64 wanted_n;
  const uint8_t *names;
  i64 names_n;
  i64 *marks; /* one a query, 0 between calls */
  i64 marks_n;
  const i64 *constants;
  i64 constants_n;
} Forms;
_Static_assert(sizeof(Forms) == 2 * N_FORMS * sizeof(i64), "the table has the address and the length of each array");

typedef struct { /* a triple of terms */
  i64 part[3];
} Statement;

/* Rows that the kernel found, and the query of each. `order` has the n rows that are shown, first as they came, then as they are emitted.
 * The statements of a row, if its query makes triples, stand between its end and that of the row before. */
typedef struct {
  const Terms *terms;
  const Forms *forms;
  const i64 *rows;
  i64 height, width, n;
  i64 *which, *order, *ends;
  Statement *statements;
  i64 widest; /* the most terms that a row's query shows */
  int rising; /* in entry and end, as the rows came */
} Solutions;

typedef struct { /* room to sort in: by row, what decides first, and terms; and rows as they came */
  i64 *by, *numbers, *spare, *came;
} SortRoom;

static inline const i64 *row_of(const Solutions *found, i64 row) { return found->rows + row * found->width; }

static inline const SolutionRecord *head_at(const Solutions *found, i64 row) { return (const SolutionRecord *)row_of(found, row); }

static inline const QueryRecord *query_of(const Solutions *found, i64 row) { return &found->forms->queries[found->which[row]]; }

/* Returns a row's cell, NONE for a column below zero. */
static inline i64 cell_of(const i64 *row, i64 column) { return column >= 0 ? row[column] : NONE; }

/* Notes what an instant's rows are sorted by, and returns whether a query has an order of its own. A rank, which counts from 1, stands for the
 * start. */
static int note_keys(const Solutions *found, const SortRoom *room, i64 first, i64 after) {
  int ranked = 0;
  for (i64 k = first; k < after; k++) {
    i64 row = found->order[k];
    const QueryRecord *query = query_of(found, row);
    const i64 *cells = row_of(found, row), *wanted = found->forms->wanted + query->first;
    i64 rank = cell_of(cells, wanted[0]), *numbers = room->numbers + row * found->widest;
    ranked |= rank != 0;
    room->by[row] = rank != 0 ? rank : head_at(found, row)->begin;
    for (i64 m = 0; m < found->widest; m++) numbers[m] = m < query->shown ? cell_of(cells, wanted[1 + m]) : NONE;
  }
  return ranked;
}

/* Sorts the rows that one entry brought at one end: by start, by query where starts are equal, then by terms.
 * A query's own order, by rank, goes before. So a start is raised to those of the query's solutions before it. */
static void sort_instant(const Solutions *found, const SortRoom *room, i64 first, i64 after) {
  i64 *by = room->by, *which = found->which, *order = found->order;
  if (!note_keys(found, room, first, after)) {
    sort_order(&(RowKeys){by, which, room->numbers, found->widest, found->terms}, order, room->spare, first, after);
    return;
  }
  sort_order(&(RowKeys){which, by, room->numbers, found->widest, found->terms}, order, room->spare, first, after);
  for (i64 k = first; k < after; k++) {
    i64 row = order[k], begin = head_at(found, row)->begin;
    int follows = k > first && which[order[k - 1]] == which[row];
    by[row] = follows && by[order[k - 1]] > begin ? by[order[k - 1]] : begin;
  }
  sort_order(&(RowKeys){by, which, NULL, 0, found->terms}, order, room->spare, first, after);
}

/* Returns whether row i comes before row j of the same instant, where no query has an order of its own. */
static inline int comes_first(const Solutions *found, i64 i, i64 j) {
  if (head_at(found, i)->begin != head_at(found, j)->begin) return head_at(found, i)->begin < head_at(found, j)->begin;
  if (found->which[i] != found->which[j]) return found->which[i] < found->which[j];
  const QueryRecord *query = query_of(found, i);
  const i64 *wanted = found->forms->wanted + query->first + 1, *these = row_of(found, i), *those = row_of(found, j);
  for (i64 m = 0; m < query->shown; m++) {
    i64 a = cell_of(these, wanted[m]), b = cell_of(those, wanted[m]);
    if (a != b) return is_text_before(found->terms, a, b);
  }
  return 0;
}

/* Sorts the few rows of an instant, came[first:after], into `order`, which fills from its end.
 * Joins meet the newest goal first, so most rows come before all that were found before them, and none has to make room. */
static void insert_instant(const Solutions *found, const i64 *came, i64 first, i64 after) {
  i64 *order = found->order;
  for (i64 k = first; k < after; k++) {
    i64 row = came[k], at = after - (k - first);
    for (; at < after && !comes_first(found, row, order[at]); at++) order[at - 1] = order[at];
    order[at - 1] = row;
  }
}

/* Sorts the rows of each instant, which stand together in `came` and in `order`, into `order`. */
static void sort_instants(const Solutions *found, const SortRoom *room) {
  const i64 *came = room->came;
  for (i64 first = 0, after; first < found->n; first = after) {
    const SolutionRecord *head = head_at(found, came[first]);
    int ranked = 0;
    for (after = first; after < found->n; after++) {
      const SolutionRecord *other = head_at(found, came[after]);
      if (other->end != head->end || other->entry != head->entry) break;
      ranked |= found->forms->wanted[query_of(found, came[after])->first] >= 0;
    }
    if (after - first <= FEW_ROWS && !ranked) insert_instant(found, came, first, after);
    else sort_instant(found, room, first, after);
  }
}

/* Brings `order` into the order of emission.
 * The kernel gives rows by entry and end, except that rows of queries that decide when the feed is done come last. */
static void sort_solutions(const Solutions *found, const SortRoom *room) {
  if (!found->rising) {
    for (i64 k = 0; k < found->height; k++) {
      room->by[k] = head_at(found, k)->entry;
      room->came[k] = head_at(found, k)->end;
    }
    sort_order(&(RowKeys){room->by, room->came, NULL, 0, found->terms}, found->order, room->spare, 0, found->n);
  }
  memcpy(room->came, found->order, (size_t)found->n * sizeof(i64));
  sort_instants(found, room);
}
