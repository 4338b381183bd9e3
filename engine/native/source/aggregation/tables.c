/* The tables of the groups of one node, as Python hands them over (engine/aggregation/group_tables/tables.py). Rows have the cells of their records,
 * and after them those of the key and of each set function, whose columns stand in `program`. */

typedef struct {
  AtRecord *at;
  const ProgramRecord *program;
  i64 held; /* set functions */
  i64 *groups, group_width, group_room;
  i64 *heads, head_mask;
  i64 *solutions, solution_width, solution_room;
  i64 *limbs, limb_room;
} Tables;

typedef struct { /* what comes, a row a moment */
  const MomentRecord *moments;
  const i64 *keys, *values;
  i64 count, key_n, value_width;
} Moments;

typedef struct { /* room for reports, and how wide one is */
  i64 *cells, width, room;
} Reports;

enum { TABLE_ARGUMENTS = 6, MOMENT_ARGUMENTS = 3 };

static inline GroupRecord *group_at(const Tables *t, i64 g) { return (GroupRecord *)(t->groups + g * t->group_width); }

static inline SolutionRecord *solution_at(const Tables *t, i64 s) { return (SolutionRecord *)(t->solutions + s * t->solution_width); }

/* Returns the cells that a set function has in a group; those of a solution are `extreme_at`. */
static inline void *state_at(const Tables *t, i64 g, i64 column) { return t->groups + g * t->group_width + column; }

static inline i64 *key_at(const Tables *t, i64 g) { return state_at(t, g, KEY); }

/* Returns what a solution holds of a set function: COUNT holds the term alone, and SUM no neighbours. */
static inline ExtremeRecord *extreme_at(const Tables *t, i64 s, i64 column) {
  return (ExtremeRecord *)(t->solutions + s * t->solution_width + column);
}

static inline const i64 *moment_key(const Moments *came, i64 i) { return came->keys + i * came->key_n; }

/* Returns what set function a takes of moment i. */
static inline const ValueRecord *value_at(const Moments *came, i64 i, i64 a) {
  return (const ValueRecord *)(came->values + i * came->value_width + a * VALUE_WIDTH);
}

static inline i64 rows_of(View view) { return view.width > 0 ? view.count / view.width : 0; }

static inline i64 lesser(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 greater(i64 a, i64 b) { return a > b ? a : b; }

static inline int adds_totals(i64 op) { return op == SUM_TOTAL || op == DOUBLE_TOTAL; }

/* Returns whether groups and solutions have the columns of a set function. */
static inline int has_columns(const Tables *t, const ProgramRecord *function) {
  i64 op = function->op, counts = op == COUNT || op == COUNT_TOTAL;
  i64 in_group = counts ? 1 : op == SUM ? SUM_WIDTH : adds_totals(op) ? TOTAL_WIDTH : VALUE_WIDTH;
  i64 in_solution = counts ? 1 : op == SUM || adds_totals(op) ? VALUE_WIDTH : EXTREME_WIDTH;
  if (function->in_group < KEY || function->in_solution < SOLUTION_WIDTH) return 0;
  return function->in_group + in_group <= t->group_width && function->in_solution + in_solution <= t->solution_width;
}

/* Takes at, program, groups, heads, solutions and limbs. Returns whether each table has the rows that `at` says are in use. */
static int take_tables(const Argument *in, Tables *t) {
  *t = (Tables){
      .at = in[0].view.at,
      .program = in[1].view.at,
      .held = in[1].view.count / PROGRAM_WIDTH,
      .groups = in[2].view.at,
      .group_width = in[2].view.width,
      .group_room = rows_of(in[2].view),
      .heads = in[3].view.at,
      .head_mask = in[3].view.count - 1,
      .solutions = in[4].view.at,
      .solution_width = in[4].view.width,
      .solution_room = rows_of(in[4].view),
      .limbs = in[5].view.at,
      .limb_room = rows_of(in[5].view),
  };
  if (in[0].view.count < AT_WIDTH || in[3].view.count < 1 || in[3].view.count & t->head_mask) return 0;
  if (t->group_width < KEY || t->solution_width < SOLUTION_WIDTH || in[5].view.width != LIMBS_WIDTH) return 0;
  for (i64 a = 0; a < t->held; a++)
    if (!has_columns(t, &t->program[a])) return 0;
  return t->at->groups_top <= t->group_room && t->at->solutions_top <= t->solution_room && t->at->limbs_top <= t->limb_room && t->limb_room > 0;
}

/* Takes moments, keys and values. Returns whether each has as many rows as there are moments, and columns as there are keys and set functions. */
static int take_moments(const Argument *in, const Tables *t, Moments *came) {
  i64 count = in[0].view.count / MOMENT_WIDTH;
  *came = (Moments){in[0].view.at, in[1].view.at, in[2].view.at, count, in[1].view.width, in[2].view.width};
  if (came->value_width < VALUE_WIDTH * t->held || came->key_n + KEY > t->group_width) return 0;
  return in[1].view.count >= count * came->key_n && in[2].view.count >= count * came->value_width;
}

/* Takes room for reports. Returns whether a report is as wide as the key and the set functions need. */
static int take_reports(View view, const Tables *t, i64 key_n, Reports *out) {
  *out = (Reports){view.at, view.width, rows_of(view)};
  return out->width >= R_KEY + key_n + RESULT_WIDTH * t->held && t->at->found >= 0 && t->at->found <= out->room;
}
