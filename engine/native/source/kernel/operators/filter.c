/* Filters compute in float64 with an error bound; the cases that they cannot decide are asked of the host and remembered. */

static inline double of_verdict(i64 verdict) { return (double)verdict; }

/* Compares in three values, and UNSURE where |a - b| is within the error bound; a nan bound is an unbound operand. */
static inline i64 compare_numbers(i64 op, double a, double b, double slack) {
  if (slack != slack) return ERROR;
  if (slack != 0.0 && !(fabs(a - b) > slack)) return UNSURE;
  switch (op) {
  case LT: return a < b ? TRUE : FALSE;
  case LE: return a <= b ? TRUE : FALSE;
  case GT: return a > b ? TRUE : FALSE;
  case GE: return a >= b ? TRUE : FALSE;
  case NE: return a != b ? TRUE : FALSE;
  default: return a == b ? TRUE : FALSE;
  }
}

/* Returns whether two terms of these kinds are equal (SPARQL 1.1, 17.4.1.7), or UNSURE where their values have to decide.
 * An unbound term gives ERROR. */
static i64 compare_terms(i64 a, i64 b, i64 kind_a, i64 kind_b) {
  if (a == UNBOUND || b == UNBOUND) return ERROR;
  if (kind_a >= LITERAL_KIND && kind_b >= LITERAL_KIND && (kind_a == LITERAL_KIND || kind_b == LITERAL_KIND)) return UNSURE;
  return a == b ? TRUE : FALSE;
}

/* Returns AND (dominant FALSE) or OR (dominant TRUE) of SPARQL's logic, with UNSURE above ERROR. */
static inline i64 combine_verdicts(i64 dominant, i64 a, i64 b) {
  if (a == dominant || b == dominant) return dominant;
  if (a == UNSURE || b == UNSURE) return UNSURE;
  if (a == ERROR || b == ERROR) return ERROR;
  return 1 - dominant;
}

/* Returns the error bound of a result: nan if an operand is unbound, inf where the result or its bound is beyond float64. */
static inline double bound_result(double result, double operands, double bound) {
  if (operands != operands) return NAN;
  return isfinite(result) && isfinite(bound) ? bound : INFINITY;
}

/* Returns the error bound of a + b: none is added where the sum is exact (Knuth's two-sum). */
static inline double bound_sum(double a, double b, double slack) {
  double sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
  return error == 0.0 ? slack : bound_result(sum, slack, slack + fabs(sum) * ULP);
}

static inline double bound_product(double a, double b, double slack_a, double slack_b) {
  double product = fabs(a * b);
  if (slack_a == 0.0 && slack_b == 0.0 && product < EXACT && a == floor(a) && b == floor(b)) return 0.0;
  return bound_result(a * b, slack_a + slack_b, fabs(a) * slack_b + fabs(b) * slack_a + slack_a * slack_b + product * ULP + TINY);
}

/* Returns the number that two make, with its error bound, or the verdict on a comparison. */
static inline Number apply_operator(i64 op, Number a, Number b) {
  switch (op) {
  case MUL: return (Number){a.value * b.value, bound_product(a.value, b.value, a.slack, b.slack)};
  case ADD: return (Number){a.value + b.value, bound_sum(a.value, b.value, a.slack + b.slack)};
  case SUB: return (Number){a.value - b.value, bound_sum(a.value, -b.value, a.slack + b.slack)};
  default: return (Number){of_verdict(compare_numbers(op, a.value, b.value, a.slack + b.slack)), 0.0};
  }
}

static Number apply_binary(i64 op, Number a, Number b) {
  switch (op) {
  case AND: return (Number){of_verdict(combine_verdicts(FALSE, (i64)a.value, (i64)b.value)), 0.0};
  case OR: return (Number){of_verdict(combine_verdicts(TRUE, (i64)a.value, (i64)b.value)), 0.0};
  case SAME: return (Number){of_verdict(compare_terms((i64)a.value, (i64)b.value, (i64)a.slack, (i64)b.slack)), 0.0};
  case IDENTICAL: {
    int bound = (i64)a.value != UNBOUND && (i64)b.value != UNBOUND;
    return (Number){of_verdict(!bound ? ERROR : a.value == b.value ? TRUE : FALSE), 0.0};
  }
  case ELSE: return (Number){a.value == UNSURE ? b.value : a.value, 0.0};
  default: return apply_operator(op, a, b);
  }
}

/* Returns getDURATION() in µs; an error for a timeless row. */
static inline Number measure_duration(const Row *row) {
  double micros = (double)(row->end - row->start);
  return (Number){micros, is_timeless(row) ? NAN : micros < EXACT ? 0.0 : micros * ULP};
}

static Number read_operand(Net net, i64 op, i64 argument, const Row *row) {
  switch (op) {
  case PUSH_VAR: return *number_at(net, term_of(net, row, argument));
  case PUSH_CONST: return *const_at(net, argument);
  case PUSH_DURATION: return measure_duration(row);
  case PUSH_TERM:
  case PUSH_KNOWN: {
    i64 term = op == PUSH_TERM ? term_of(net, row, argument) : argument;
    return (Number){(double)term, (double)kind_at(net, term)};
  }
  case BOUND_VAR: return (Number){of_verdict(term_of(net, row, argument) != UNBOUND ? TRUE : FALSE), 0.0};
  default: return (Number){of_verdict(UNSURE), 0.0};
  }
}

/* Returns the verdict of the code at `pc` for a row.
 * The top of the stack is at hand; the rest stands in `scratch`, above a place that nothing reads. */
static i64 evaluate_code(Net net, i64 pc, const Row *row) {
  Number x = {0.0, 0.0};
  for (i64 top = 0;; pc++) {
    i64 op = code_at(net, pc)->op, argument = code_at(net, pc)->argument;
    if (op >= WITH_CONST) x = apply_operator(op - WITH_CONST, x, *const_at(net, argument));
    else if (op >= WITH_VAR) x = apply_operator(op - WITH_VAR, x, *number_at(net, term_of(net, row, argument)));
    else if (op == STOP) return (i64)x.value;
    else if (op == NOT) x.value = x.value <= TRUE ? 1.0 - x.value : x.value;
    else if (op >= LT) x = apply_binary(op, *scratch_at(net, top--), x);
    else {
      *scratch_at(net, ++top) = x;
      x = read_operand(net, op, argument, row);
    }
  }
}

/* ---------------------------------------------------------------- questions */
static inline int has_same_arguments(Net net, i64 question, const Row *row, const AsksRecord *ask) {
  const i64 *arguments = arguments_of(net, question);
  for (i64 k = 0; k < ask->slots; k++)
    if (arguments[k] != read_cell(net, row, slot_at(net, ask->slot + k))) return 0;
  return 1;
}

static void write_arguments(Net net, i64 question, const Row *row, const AsksRecord *ask) {
  i64 *arguments = arguments_of(net, question);
  for (i64 k = 0; k < ask->slots; k++) arguments[k] = read_cell(net, row, slot_at(net, ask->slot + k));
}

/* Returns the number of the question `who` about a row; a new one is put on the host's list. */
static i64 find_question(Net net, i64 who, const Row *row) {
  const AsksRecord *ask = ask_at(net, who);
  i64 hash = who * SALT;
  for (i64 k = 0; k < ask->slots; k++) hash = mix_hash(hash, read_cell(net, row, slot_at(net, ask->slot + k)));
  for (i64 q = net->question_heads.at[hash & net->question_heads.mask]; q != NONE; q = question_at(net, q)->next)
    if (question_at(net, q)->hash == hash && question_at(net, q)->who == who && has_same_arguments(net, q, row, ask)) return q;
  i64 number = net->at->asked++;
  QuestionsRecord *fresh = question_at(net, number);
  fresh->hash = hash;
  fresh->who = who;
  fresh->answer = OPEN_QUESTION;
  write_arguments(net, number, row, ask);
  enter_item(net->question_heads, (Item *)fresh, number);
  return number;
}

/* Returns the answer to the question `who` about a row, or OPEN_QUESTION if the host has to give it.
 * Compiled code answers at less cost than an answer is found again. It gets the arguments where the next new question would have them. */
static i64 find_answer(Net net, i64 who, const Row *row) {
  if (net->answers[0] != 0) {
    i64 (*answer)(i64 context, i64 who, i64 arguments) = (i64(*)(i64, i64, i64))(intptr_t)net->answers[0];
    write_arguments(net, net->at->asked, row, ask_at(net, who));
    i64 found = answer(net->answers[1], who, (i64)(intptr_t)arguments_of(net, net->at->asked));
    if (found != OPEN_QUESTION) return found;
  }
  return question_at(net, find_question(net, who, row))->answer;
}

/* the handle; heads: a larger table for the memo's questions */
static int spread_questions(const Argument *in, i64 *out) {
  struct Tables tables = read_handle(in[0].number);
  (void)out;
  spread_items(buckets_in(in[1].view), tables.questions, tables.handle[TABLE_QUESTIONS].width, tables.at->asked, 0);
  return FINE;
}

/* Returns TRUE, FALSE, ERROR or PENDING: the host has been asked. The code at `filter` begins with its question. */
static i64 judge_exactly(Net net, i64 filter, const Row *row) {
  i64 verdict = evaluate_code(net, filter + 1, row);
  if (verdict != UNSURE) return verdict;
  i64 answer = question_at(net, find_question(net, code_at(net, filter)->op, row))->answer;
  if (answer == OPEN_QUESTION) return PENDING;
  net->at->spent += ANSWER_COST;
  return answer;
}

/* Does as `judge_exactly`, with FALSE for an error. */
static inline i64 judge_filter(Net net, i64 filter, const Row *row) {
  i64 verdict = judge_exactly(net, filter, row);
  return verdict == ERROR ? FALSE : verdict;
}
