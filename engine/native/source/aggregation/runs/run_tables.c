/* The open runs of one node stand in tables beside its groups, as Python hands them over (engine/aggregation/native/runs/tables.py). */

typedef struct {
  ClockRecord *clock;
  i64 *links, links_width, links_room; /* a row a group: LinksRecord, then the values of PREV */
  i64 *heap, heap_room;                /* of groups, by when WITHIN ends their runs */
} Runs;

typedef struct { /* an operation of WHILE, and the column or set function that it looks at */
  i64 op, place;
} LinkStep;

/* A number, and how far it may be off: NaN for an operand without value. A verdict is a number, too; a term's kind stands as `slack`. */
typedef struct {
  double x, slack;
} Bounded;

typedef struct { /* what comes, a row a moment, and what WHILE looks at */
  Moments moments;
  const i64 *previous; /* what PREV will be after the element */
  i64 previous_n;
  i64 *row, row_width; /* what PREV is at the element, then its own terms, constants, and verdicts on parts of WHILE */
  i64 *group, *linked; /* its row of groups; FALSE, TRUE, or UNSURE where the code has to say whether it may continue a run */
  const LinkStep *code;
  i64 code_n;
  const Bounded *numbers; /* of terms */
  const int8_t *kinds;
  const double *powers; /* the scale of each set function's sums */
  BegunRecord *begun;
} Elements;

enum { RUN_ARGUMENTS = 3, ELEMENT_ARGUMENTS = 12 };

static inline LinksRecord *links_at(const Runs *runs, i64 g) { return (LinksRecord *)(runs->links + g * runs->links_width); }

/* Returns the values of PREV in the links of a group. */
static inline i64 *previous_at(const Runs *runs, i64 g) { return runs->links + g * runs->links_width + PREVIOUS; }

/* Takes clock, links and heap. Returns whether each has room for so many groups, and the heap for the runs that are in it. */
static int take_runs(const Argument *in, i64 groups, Runs *runs) {
  *runs = (Runs){in[0].view.at, in[1].view.at, in[1].view.width, rows_of(in[1].view), in[2].view.at, in[2].view.count};
  if (in[0].view.count < CLOCK_WIDTH || runs->links_width < PREVIOUS || runs->links_room < groups) return 0;
  return runs->clock->heaped >= 0 && runs->clock->heaped <= runs->heap_room;
}

/* Takes the columns of elements, `moments` first. Returns whether each has a row a moment. */
static int take_elements(const Argument *in, const Tables *t, Elements *came) {
  *came = (Elements){
      .previous = in[3].view.at,
      .previous_n = in[3].view.width,
      .row = in[4].view.at,
      .row_width = in[4].view.width,
      .group = in[5].view.at,
      .linked = in[6].view.at,
      .code = in[7].view.at,
      .code_n = in[7].view.count / 2,
      .numbers = in[8].view.at,
      .kinds = in[9].view.at,
      .powers = in[10].view.at,
      .begun = in[11].view.at,
  };
  if (!take_moments(in, t, &came->moments)) return 0;
  i64 n = came->moments.count;
  if (in[3].view.count < n * came->previous_n || in[4].view.count < n * came->row_width || came->row_width < came->previous_n) return 0;
  return in[5].view.count >= n && in[6].view.count >= n && in[10].view.count >= t->held && in[11].view.count >= BEGUN_WIDTH;
}
