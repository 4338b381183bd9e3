/* A heap of occurrences, a row each, by end and then by the number in which they came. A call costs what it takes in or gives out. */

enum { MOST_LEVELS = 64 }; /* of a heap that fits into memory */

typedef struct { /* the table of rows: how many cells a row has, and which of them have its end and its number */
  i64 *cells, width, end, number;
} Heap;

static int comes_before(const Heap *heap, i64 i, i64 j) {
  const i64 *a = heap->cells + i * heap->width, *b = heap->cells + j * heap->width;
  return a[heap->end] < b[heap->end] || (a[heap->end] == b[heap->end] && a[heap->number] < b[heap->number]);
}

static void swap_rows(const Heap *heap, i64 i, i64 j) {
  i64 *a = heap->cells + i * heap->width, *b = heap->cells + j * heap->width;
  for (i64 column = 0; column < heap->width; column++) {
    i64 cell = a[column];
    a[column] = b[column];
    b[column] = cell;
  }
}

static void rise(const Heap *heap, i64 k) {
  for (; k > 0 && comes_before(heap, k, (k - 1) / 2); k = (k - 1) / 2) swap_rows(heap, k, (k - 1) / 2);
}

/* Puts the first of n rows, which may be any, where it belongs. */
static void sink(const Heap *heap, i64 n) {
  for (i64 k = 0, least = 1; least < n; least = 2 * least + 1) {
    if (least + 1 < n && comes_before(heap, least + 1, least)) least++;
    if (!comes_before(heap, least, k)) return;
    swap_rows(heap, k, least);
    k = least;
  }
}

/* rows, n: the heap, which has room for more; columns: those of a feed; which cells have end and number; the number of the first that comes */
static int add_to_heap(const Argument *in, i64 *out) {
  View rows = in[0].view, columns = in[2].view;
  Heap heap = {rows.at, rows.width, in[3].number, in[4].number};
  i64 n = in[1].number, came = columns.width, height = came > 0 ? columns.count / came : 0;
  const i64 *cells = columns.at;
  (void)out;
  if (height > heap.width || (n + came) * heap.width > rows.count) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < came; k++) {
    i64 *row = heap.cells + (n + k) * heap.width;
    for (i64 column = 0; column < height; column++) row[column] = cells[column * came + k];
    row[heap.number] = in[5].number + k;
    rise(&heap, n + k);
  }
  return FINE;
}

/* rows, n: the heap; a time; which cell has the end. Gives how many rows end then or before. */
static int count_due(const Argument *in, i64 *out) {
  const i64 *cells = in[0].view.at;
  i64 stack[MOST_LEVELS], depth = 1, n = in[1].number;
  if (n * in[0].view.width > in[0].view.count) return OUT_OF_BOUNDS;
  stack[0] = 0;
  while (depth > 0) {
    i64 k = stack[--depth];
    if (k >= n || cells[k * in[0].view.width + in[3].number] > in[2].number) continue;
    out[0]++;
    stack[depth++] = 2 * k + 2;
    stack[depth++] = 2 * k + 1;
  }
  return FINE;
}

/* rows, n: the heap; columns: a feed's, to be filled with the first rows in order, which leave; which cells have end and number */
static int take_from_heap(const Argument *in, i64 *out) {
  View rows = in[0].view, columns = in[2].view;
  Heap heap = {rows.at, rows.width, in[3].number, in[4].number};
  i64 n = in[1].number, leaving = columns.width, height = leaving > 0 ? columns.count / leaving : 0;
  i64 *cells = columns.at;
  (void)out;
  if (height > heap.width || leaving > n || n * heap.width > rows.count) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < leaving; k++) {
    for (i64 column = 0; column < height; column++) cells[column * leaving + k] = heap.cells[column];
    swap_rows(&heap, 0, --n);
    sink(&heap, n);
  }
  return FINE;
}
