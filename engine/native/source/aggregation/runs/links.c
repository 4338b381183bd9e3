/* WHILE is decided for one element at a time, by code that computes in float64 with error bounds, as the kernel's filters do.
 * Where the bounds leave a comparison unsure, the host decides that element exactly. */

/* ---------------------------------------------------------------- operators */
/* Returns the bound of a result: NaN if an operand has no value, infinite where the result or its bound is beyond float64. */
static inline double bound_error(double result, double operands, double bound) {
  if (operands != operands) return __builtin_nan("");
  return __builtin_isfinite(result) && __builtin_isfinite(bound) ? bound : __builtin_inf();
}

/* Returns AND (dominant FALSE) or OR (dominant TRUE) of SPARQL's logic, with UNSURE above FAILED. */
static inline double join_verdicts(double dominant, double x, double y) {
  if (x == dominant || y == dominant) return dominant;
  if (x == UNSURE || y == UNSURE) return UNSURE;
  return x == FAILED || y == FAILED ? FAILED : 1.0 - dominant;
}

/* Returns whether two terms are equal; if both are literals with values, these decide. */
static inline double match_terms(Bounded left, Bounded right) {
  if (left.x == 0.0 || right.x == 0.0) return FAILED;
  if (left.slack >= LITERAL_KIND && right.slack >= LITERAL_KIND && (left.slack == LITERAL_KIND || right.slack == LITERAL_KIND)) return UNSURE;
  return left.x == right.x ? TRUE : FALSE;
}

/* Compares numbers, where their error bounds allow it. A NaN bound is an operand without value. */
static inline double compare_bounded(i64 op, double x, double y, double slack) {
  if (slack != slack) return FAILED;
  if (slack != 0.0 && !(__builtin_fabs(x - y) > slack)) return UNSURE;
  switch (op) {
  case LESS: return x < y;
  case LESS_OR_EQUAL: return x <= y;
  case GREATER: return x > y;
  case GREATER_OR_EQUAL: return x >= y;
  default: return (x != y) == (op == UNEQUAL);
  }
}

static inline int is_whole(double x) { return x == __builtin_floor(x); }

static inline Bounded multiply_bounded(Bounded left, Bounded right) {
  double product = left.x * right.x;
  int exact = left.slack == 0.0 && right.slack == 0.0 && __builtin_fabs(product) < EXACT && is_whole(left.x) && is_whole(right.x);
  double bound = __builtin_fabs(left.x) * right.slack + __builtin_fabs(right.x) * left.slack + left.slack * right.slack;
  bound += __builtin_fabs(product) * ULP + TINY;
  return (Bounded){product, exact ? 0.0 : bound_error(product, left.slack + right.slack, bound)};
}

static inline Bounded add_bounded(double x, double y, double slack) {
  double total = x + y, part = total - x, error = (x - (total - part)) + (y - part); /* Knuth's two-sum */
  return (Bounded){total, error == 0.0 ? slack : bound_error(total, slack, slack + __builtin_fabs(total) * ULP)};
}

/* Returns the number that two make with its error bound, or a verdict. */
static inline Bounded calculate_link(i64 op, Bounded left, Bounded right) {
  double slack = left.slack + right.slack;
  switch (op) {
  case AND: return (Bounded){join_verdicts(FALSE, left.x, right.x), 0.0};
  case OR: return (Bounded){join_verdicts(TRUE, left.x, right.x), 0.0};
  case SAME: return (Bounded){match_terms(left, right), 0.0};
  case ELSE: return (Bounded){left.x == UNSURE ? right.x : left.x, 0.0};
  case ADD: return add_bounded(left.x, right.x, slack);
  case SUBTRACT: return add_bounded(left.x, -right.x, slack);
  case MULTIPLY: return multiply_bounded(left, right);
  default: return (Bounded){compare_bounded(op, left.x, right.x, slack), 0.0};
  }
}

/* ---------------------------------------------------------------- aggregates */
static inline double double_of(i64 bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Returns (high * 2**32 + rest) / power, which is exact where it is a whole number that a double holds. */
static inline Bounded divide_units(i64 high, i64 rest, double power) {
  double whole = (double)high * 4294967296.0 + (double)rest, total = whole / power;
  int exact = __builtin_fabs(whole) < EXACT && is_whole(total) && total * power == whole;
  return (Bounded){total, exact ? 0.0 : __builtin_fabs(total) * 2.0 * ULP};
}

/* Returns the sum of the run with a value: a NaN bound for an error, an infinite one for what is no number. */
static inline Bounded grown_sum(const Tables *t, const SumRecord *sum, const ValueRecord *value, double power) {
  if (value->kind == ERROR || sum->errors > 0) return (Bounded){0.0, __builtin_nan("")};
  if (value->kind > DOUBLE || sum->nans > 0 || sum->rises > 0 || sum->falls > 0) return (Bounded){0.0, __builtin_inf()};
  if (value->kind <= DECIMAL && sum->doubles == 0) return divide_units(sum->high + (value->value >> 32), sum->rest + (value->value & MASK), power);
  Bounded before = divide_units(sum->high, sum->rest, 1.0);
  if (sum->doubles > 0) {
    before.x = double_of(total_double(t, sum));
    before.slack = __builtin_fabs(before.x) * ULP;
  }
  double total = before.x + (value->kind == DOUBLE ? double_of(value->value) : (double)value->value);
  return (Bounded){total, bound_error(total, before.slack, before.slack + __builtin_fabs(total) * ULP + TINY)};
}

/* Returns set function a of the run with element i as a number with its error bound: NaN for an error, infinite for what is no number. */
static inline Bounded grown_number(const Tables *t, const Elements *came, i64 g, i64 i, i64 a, int mean) {
  const ValueRecord *value = value_at(&came->moments, i, a);
  const void *state = state_at(t, g, t->program[a].in_group);
  i64 op = t->program[a].op;
  if (op == COUNT) return (Bounded){(double)(*(const i64 *)state + (value->term != 0)), 0.0};
  if (op == SUM) {
    Bounded total = grown_sum(t, state, value, came->powers[a]);
    double n = (double)(group_at(t, g)->n + 1), quotient = total.x / n;
    if (!mean) return total;
    int exact = total.slack == 0.0 && is_whole(quotient) && quotient * n == total.x;
    return (Bounded){quotient, exact ? 0.0 : total.slack / n + __builtin_fabs(quotient) * ULP + TINY};
  }
  const ValueRecord *best = state;
  int better = value->term != 0 && (best->term == 0 || beats(op, value, best));
  return came->numbers[better ? value->term : best->term];
}

/* ---------------------------------------------------------------- code */
static inline Bounded link_operand(const Tables *t, const Elements *came, i64 g, i64 i, LinkStep step) {
  const i64 *row = came->row + i * came->row_width;
  switch (step.op) {
  case NUMBER: return came->numbers[row[step.place]];
  case IDENTITY: return (Bounded){(double)row[step.place], (double)came->kinds[row[step.place]]};
  case VERDICT: return (Bounded){(double)row[step.place], 0.0};
  default: return grown_number(t, came, g, i, step.place, step.op == MEAN);
  }
}

/* Returns whether WHILE lets element i continue the run of group g: TRUE, FALSE, FAILED or UNSURE. The code needs at most DEPTH places. */
static i64 judge_link(const Tables *t, const Elements *came, i64 g, i64 i) {
  Bounded stack[DEPTH + 1];
  i64 top = 0;
  for (i64 k = 0; k < came->code_n; k++) {
    LinkStep step = came->code[k];
    if (step.op == NOT) {
      if (stack[top - 1].x <= TRUE) stack[top - 1].x = 1.0 - stack[top - 1].x;
    } else if (step.op > NOT) {
      top--;
      stack[top - 1] = calculate_link(step.op, stack[top - 1], stack[top]);
    } else
      stack[top++] = link_operand(t, came, g, i, step);
  }
  return (i64)stack[0].x;
}

/* Returns whether the code is one that `judge_link` may follow: operands where there are to be some, places that exist, one result. */
static int is_code(const Tables *t, const Elements *came) {
  i64 top = 0;
  for (i64 k = 0; k < came->code_n; k++) {
    LinkStep step = came->code[k];
    i64 places = step.op <= VERDICT ? came->row_width : t->held;
    if (step.op < NUMBER || (step.op < NOT && (step.place < 0 || step.place >= places))) return 0;
    if (step.op == NOT && top < 1) return 0;
    if (step.op > NOT && --top < 1) return 0;
    if (step.op < NOT && ++top > DEPTH) return 0;
  }
  return came->code_n == 0 || top == 1;
}
