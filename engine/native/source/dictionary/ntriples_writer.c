/* The triples that a rule derives become lines of N-Triples: each row's statements, in order and each once. */

enum { IRI_KIND = 1, LITERAL_KIND = 3 }; /* of `kinds`; a literal's are not less */
enum { AROUND = 4 };                     /* bytes of a line beside its terms: three spaces and a point */

/* Returns whether a triple is a statement: all of it is bound, the subject is no literal, and the predicate is an IRI. */
static inline int is_statement(const int8_t *kinds, Statement triple) {
  const i64 *part = triple.part;
  return part[0] != NONE && part[1] != NONE && part[2] != NONE && kinds[part[0]] < LITERAL_KIND && abs(kinds[part[1]]) == IRI_KIND;
}

/* Returns below 0, 0 or above as a triple stands to another one.
 * Term by term is the order of lines too: no term goes on with a space or less where a shorter one ends. */
static int compare_statements(const Terms *terms, const Statement *triple, const Statement *other) {
  for (int k = 0; k < 3; k++)
    if (triple->part[k] != other->part[k]) return is_text_before(terms, triple->part[k], other->part[k]) ? -1 : 1;
  return 0;
}

/* Puts a triple into its place among n statements, unless it is there, and returns how many there are then. */
static i64 insert_statement(const Terms *terms, Statement *statements, i64 n, Statement triple) {
  i64 place = n;
  for (; place > 0; place--) {
    int order = compare_statements(terms, &triple, &statements[place - 1]);
    if (order == 0) return n;
    if (order > 0) break;
  }
  memmove(&statements[place + 1], &statements[place], (size_t)(n - place) * sizeof triple);
  statements[place] = triple;
  return n + 1;
}

static inline i64 length_of_line(const Terms *terms, const Statement *statement) {
  const i64 *part = statement->part;
  return AROUND + length_of(terms, part[0]) + length_of(terms, part[1]) + length_of(terms, part[2]);
}

/* Writes a statement's line to an address, and returns the address behind it. */
static uint8_t *write_line(const Terms *terms, const Statement *statement, uint8_t *at) {
  for (int k = 0; k < 3; k++) {
    Text term = text_of(terms, statement->part[k]);
    memcpy(at, term.at, (size_t)term.length);
    at += term.length;
    *at++ = ' ';
  }
  *at = '.';
  return at + 1;
}
