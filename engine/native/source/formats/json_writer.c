/* Solutions are written as JSON text, with what stands around each of them in a page, a message or an event. Each function returns the place
 * after what it writes. */

enum { ROW_ROOM = 256, FRAME_HEADER = 4, TEXT_FRAME = 0x81 };
enum {
  MORE_AT = 2,
  SETTLED_AT = 4,
  END_AT = SETTLED_AT + INSTANT_WIDTH + 1,
  ID_AT = END_AT + INSTANT_WIDTH + 1
}; /* in a header, each after a blank */

static const Text ID_OF = TEXT("{\"id\":\""), START_OF = TEXT("\",\"start\":\""), END_OF = TEXT("\",\"end\":\""), END_OF_HEAD = TEXT("\"}");
static const Text BINDING_OF = TEXT("\",\"binding\":{"), TRIPLES_OF = TEXT("\",\"triples\":\""), VERDICT_OF = TEXT("\",\"boolean\":");
static const Text TRUE_TERM = TEXT("\"true\"^^<http://www.w3.org/2001/XMLSchema#boolean>");
static const Text SOLUTION_OF = TEXT("{\"solution\":"), CHANGE_OF = TEXT("{\"change\":"), EVENT_ID = TEXT("id: "), EVENT_DATA = TEXT("\ndata: ");
static const Text ADDED = TEXT("\",\"added\":[{\"id\":\""), WITHDRAWN = TEXT("\",\"added\":[],\"withdrawn\":[{\"id\":\"");
static const Text AFTER_ADDED = TEXT("],\"withdrawn\":[],\"settled\":"), AFTER_WITHDRAWN = TEXT("],\"settled\":"), MORE = TEXT(",\"more\":true");
static const Text INSTANCE_OF = TEXT("{\"instance\":"), ID_BEHIND = TEXT(",\"id\":\"");
static const Text FINISHED = TEXT("\"finished\"");

typedef struct { /* a query: its form, its first fragment (what a line begins with, up to the id), and the one after its last */
  i64 form, first, after;
} QueryForm;

typedef struct { /* what is written; values: lists of texts, by offsets, with validity bits (none: all valid) of which `first` is the first text's */
  const int32_t *lists, *offsets;
  Text nulls, text;
  i64 first, texts, rows;
  const i64 *start, *end, *ordinal;
  const int32_t *query;
  Text fragments;
  const i64 *places; /* offsets of the fragments */
  i64 fragment_count;
  const QueryForm *forms;
  i64 form_count;
} Page;

typedef struct { /* one solution: its form without CHANGED, its header if it is a change, and its values; the place of its instance's id, or -1 */
  i64 row;
  QueryForm query;
  int is_change;
  i64 instance;
  i64 header, header_end;
  i64 begin, after;
} Row;

/* ---------------------------------------------------------------- values */
static inline int is_null(const Page *page, i64 k) {
  return page->nulls.size > 0 && !(page->nulls.at[(page->first + k) >> 3] >> ((page->first + k) & 7) & 1);
}

/* Writes an object of the values by variable, whose names are `"v":`. Returns NULL for a value that is no term. */
static byte *put_binding(byte *to, const Page *page, const Row *row) {
  const i64 *names = page->places + row->query.first + 1 - row->begin;
  int bound = 0;
  for (i64 k = row->begin; k < row->after; k++) {
    if (is_null(page, k)) continue;
    if (bound) to = put_byte(to, ',');
    to = copy_piece(to, page->fragments, names[k], names[k + 1] - names[k]);
    if (page->offsets[k] == page->offsets[k + 1]) return NULL;
    to = put_term_json(to, page->text, page->offsets[k], page->offsets[k + 1]);
    if (to == NULL) return NULL;
    bound = 1;
  }
  return put_byte(to, '}');
}

static byte *put_triples(byte *to, const Page *page, const Row *row) {
  int written = 0;
  for (i64 k = row->begin; k < row->after; k++) {
    if (is_null(page, k)) continue;
    if (written) to = put_byte(put_byte(to, '\\'), 'n');
    to = put_quoted(to, page->text, page->offsets[k], page->offsets[k + 1]);
    written = 1;
  }
  return put_byte(to, '"');
}

static byte *put_verdict(byte *to, const Page *page, const Row *row) {
  i64 k = row->begin;
  int is_true = k < row->after && page->offsets[k + 1] - page->offsets[k] == TRUE_TERM.size && starts_with(page->text, page->offsets[k], TRUE_TERM);
  return put(to, is_true ? TRUE_VALUE : FALSE_VALUE);
}

/* ---------------------------------------------------------------- ids and times */
/* Writes the id of a solution: its end, so that ids sort as ends do, and its ordinal. */
static byte *put_id(byte *to, const Page *page, i64 row) {
  to = put_hex(to, (u64)page->end[row] ^ (u64)1 << 63, 16);
  return put_hex(put_byte(to, '-'), (u64)page->ordinal[row], 8);
}

/* Writes `<id>","start":"…","end":"…`. */
static byte *put_times(byte *to, const Page *page, i64 row) {
  to = put_instant(put(put_id(to, page, row), START_OF), page->start[row]);
  return put_instant(put(to, END_OF), page->end[row]);
}

/* ---------------------------------------------------------------- changes */
/* Returns the instant that a header has from i on, behind blanks. */
static i64 header_instant(Text text, i64 i) {
  i64 value = 0, sign = 1;
  for (i64 k = i; k < i + INSTANT_WIDTH; k++)
    if (text.at[k] == '-')
      sign = -1;
    else if (text.at[k] != ' ')
      value = 10 * value + text.at[k] - '0';
  return sign * value;
}

/* Writes `<seq>","added":[{"id":"…","start":"…","end":"…` of a change. */
static byte *begin_change(byte *to, const Page *page, const Row *row) {
  to = put_id(to, page, row->row);
  to = put(to, page->text.at[row->header] == '+' ? ADDED : WITHDRAWN);
  to = copy_piece(to, page->text, row->header + ID_AT, row->header_end - row->header - ID_AT);
  to = put_instant(put(to, START_OF), page->start[row->row]);
  return put_instant(put(to, END_OF), header_instant(page->text, row->header + END_AT));
}

/* Writes what comes after a change's solution, but for the last brace. `settled` is null before there is such an instant, and "finished" once nothing
 * can change any more. */
static byte *end_change(byte *to, const Page *page, const Row *row) {
  i64 settled = header_instant(page->text, row->header + SETTLED_AT);
  to = put(to, page->text.at[row->header] == '+' ? AFTER_ADDED : AFTER_WITHDRAWN);
  if (settled == UNSETTLED)
    to = put(to, NULL_VALUE);
  else if (settled >= END_OF_TIME)
    to = put(to, FINISHED);
  else
    to = put_byte(put_instant(put_byte(to, '"'), settled), '"');
  return page->text.at[row->header + MORE_AT] == '1' ? put(to, MORE) : to;
}

/* ---------------------------------------------------------------- messages to subscribers */
/* Writes what stands before the object of a solution or change. */
static byte *put_opening(byte *to, i64 kind, const Page *page, const Row *row) {
  if (kind == EVENTS) return put(put_id(put(to, EVENT_ID), page, row->row), EVENT_DATA);
  if (kind != FRAMES && kind != MESSAGES) return to;
  return put(kind == FRAMES ? to + FRAME_HEADER : to, row->is_change ? CHANGE_OF : SOLUTION_OF);
}

/* Writes a text frame's header before its payload, which ends at `to`. Source: RFC 6455 section 5.2.
 * A solution takes at least 126 bytes, so its header has FRAME_HEADER bytes or more. A longer one moves the payload. */
static byte *put_header(byte *begin, byte *to) {
  i64 size = to - begin - FRAME_HEADER;
  int digits = size < 1 << 16 ? 2 : 8, moved = 2 + digits - FRAME_HEADER;
  memmove(begin + FRAME_HEADER + moved, begin + FRAME_HEADER, (size_t)size);
  begin[0] = TEXT_FRAME;
  begin[1] = digits == 2 ? 126 : 127;
  for (int k = 0; k < digits; k++) begin[2 + k] = (byte)(size >> 8 * (digits - 1 - k));
  return to + moved;
}

/* Writes what stands after a solution's object. `begin` is the place before its opening. */
static byte *put_ending(byte *begin, byte *to, i64 kind) {
  if (kind == FRAMES || kind == MESSAGES) to = put_byte(to, '}');
  if (kind == FRAMES) return put_header(begin, to);
  to = put_byte(to, '\n');
  return kind == EVENTS ? put_byte(to, '\n') : to;
}

/* ---------------------------------------------------------------- whole pages */
/* Returns whether offsets ascend from the first to the last of them, and all lie in a text of this size. */
static inline int ascend(const int32_t *offsets, i64 first, i64 last, i64 size) {
  if (offsets[first] < 0 || offsets[last] > size) return 0;
  for (i64 k = first; k < last; k++)
    if (offsets[k] > offsets[k + 1]) return 0;
  return 1;
}

/* Returns whether a row's arrays hold what they name, and fills `found`. */
static int find_row(const Page *page, i64 row, i64 kind, Row *found) {
  i64 begin = page->lists[row], after = page->lists[row + 1], query = page->query[row];
  if (query < 0 || query >= page->form_count || begin < 0 || begin > after || after >= page->texts) return 0;
  if (page->nulls.size > 0 && page->first + after > 8 * page->nulls.size) return 0;
  if (!ascend(page->offsets, begin, after, page->text.size)) return 0;
  QueryForm form = page->forms[query];
  if (form.first < 0 || form.first >= form.after || form.after > page->fragment_count) return 0;
  for (i64 k = form.first; k < form.after; k++)
    if (page->places[k] < 0 || page->places[k] > page->places[k + 1] || page->places[k + 1] > page->fragments.size) return 0;
  int is_change = form.form >= CHANGED && form.form < OF_INSTANCE;
  *found = (Row){.row = row, .query = form, .is_change = is_change, .instance = -1, .begin = begin, .after = after};
  if (form.form == OF_INSTANCE) {
    if (begin == after || is_null(page, begin)) return 0;
    found->query.form = BINDINGS;
    found->instance = found->begin++;
  }
  if (found->is_change) {
    if (begin == after || page->offsets[begin + 1] - page->offsets[begin] < ID_AT) return 0;
    found->query.form -= CHANGED;
    found->header = page->offsets[begin];
    found->header_end = page->offsets[++found->begin];
  }
  int named = kind == OBJECTS || (kind != HEADS && found->query.form == BINDINGS);
  return !named || found->after - found->begin <= form.after - form.first - 1;
}

/* Returns the bytes that a solution takes at most: a character becomes six at most, and the punctuation of a triple term ten times as much. */
static inline i64 room_for(const Page *page, const Row *row) {
  i64 begin = page->lists[row->row], values = row->after - begin, text = (i64)page->offsets[row->after] - page->offsets[begin];
  return 16 * text + page->places[row->query.after] - page->places[row->query.first] + TERM_ROOM * values + ROW_ROOM;
}

/* Writes a solution's values as its form says. */
static byte *put_values(byte *to, const Page *page, const Row *row) {
  if (row->query.form == BINDINGS) return put_binding(put(to, BINDING_OF), page, row);
  if (row->query.form == TRIPLES) return put_triples(put(to, TRIPLES_OF), page, row);
  return put_verdict(put(to, VERDICT_OF), page, row);
}

/* Writes the id of a solution's instance, and what stands before its own id. */
static byte *put_instance(byte *to, const Page *page, const Row *row) {
  i64 at = page->offsets[row->instance];
  return put(copy_piece(to, page->text, at, page->offsets[row->instance + 1] - at), ID_BEHIND);
}

/* Writes a solution or change with its envelope. Returns NULL for a value that is no term. */
static byte *put_line(byte *to, i64 kind, const Page *page, const Row *row) {
  const i64 *places = page->places + row->query.first;
  byte *begin = to;
  to = put_opening(to, kind, page, row);
  to = copy_piece(to, page->fragments, places[0], places[1] - places[0]);
  if (row->instance >= 0) to = put_instance(to, page, row);
  to = row->is_change ? begin_change(to, page, row) : put_times(to, page, row->row);
  to = put_values(to, page, row);
  if (to == NULL) return NULL;
  if (row->is_change) to = end_change(put_byte(to, '}'), page, row);
  return put_ending(begin, put_byte(to, '}'), kind);
}

/* Writes a binding alone, or an id with its times, after a comma if it is not the first. */
static byte *put_part(byte *to, i64 kind, const Page *page, const Row *row) {
  if (row->row) to = put_byte(to, ',');
  if (kind == OBJECTS) return put_binding(put_byte(to, '{'), page, row);
  to = row->instance >= 0 ? put_instance(put(to, INSTANCE_OF), page, row) : put(to, ID_OF);
  return put(put_times(to, page, row->row), END_OF_HEAD);
}

/* Writes solutions from `row` on while there is room, and gives the next row and the place after the text. */
static int put_rows(const Page *page, i64 kind, View out, i64 *ends_at, i64 *row, i64 *at) {
  byte *to = (byte *)out.at + *at;
  for (; *row < page->rows; ++*row) {
    Row next;
    if (!find_row(page, *row, kind, &next)) return OUT_OF_BOUNDS;
    if (*at + room_for(page, &next) > out.count) return FINE;
    to = kind == OBJECTS || kind == HEADS ? put_part(to, kind, page, &next) : put_line(to, kind, page, &next);
    if (to == NULL) return OUT_OF_BOUNDS;
    ends_at[*row] = *at = to - (byte *)out.at;
  }
  return FINE;
}

/* kind; out, at, row: where the text goes on, and with which solution; ends: the place after each; lists, offsets, nulls, first, text: values;
 * start, end, ordinal, query of each solution; fragments, places; forms. Gives the row after the last one written, and the place after its text. */
static int put_solutions(const Argument *in, i64 *out) {
  i64 rows = in[13].view.count;
  Page page = {
      .lists = in[5].view.at, .offsets = in[6].view.at, .nulls = text_of(in[7].view), .first = in[8].number, .text = text_of(in[9].view),
      .texts = in[6].view.count, .rows = rows, .start = in[10].view.at, .end = in[11].view.at, .ordinal = in[12].view.at, .query = in[13].view.at,
      .fragments = text_of(in[14].view), .places = in[15].view.at, .fragment_count = in[15].view.count - 1,
      .forms = in[16].view.at, .form_count = in[16].view.count / 3,
  };
  out[0] = in[3].number;
  out[1] = in[2].number;
  if (out[0] < 0 || out[1] < 0 || out[1] > in[1].view.count || page.first < 0 || (rows > 0 && in[5].view.count <= rows)) return OUT_OF_BOUNDS;
  if (in[4].view.count < rows || in[10].view.count < rows || in[11].view.count < rows || in[12].view.count < rows) return OUT_OF_BOUNDS;
  return put_rows(&page, in[0].number, in[1].view, in[4].view.at, &out[0], &out[1]);
}
