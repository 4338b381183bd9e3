/* The templates of a rule make triples of its solutions (CONSTRUCT). They occur in the stream that the rule writes. */

/* Returns the term of a template's part, which is a term or -column. */
static inline i64 resolve_term(Net net, i64 part, const Row *row) { return part >= 0 ? part : term_of(net, row, -part); }

/* Returns the triple that a template makes of a row, on its interval. */
static inline TimedTriple fill_template(Net net, i64 t, const Row *row) {
  const TemplatesRecord *template = template_at(net, t);
  return (TimedTriple){
      resolve_term(net, template->s, row), resolve_term(net, template->p, row), resolve_term(net, template->o, row), UNBOUND, row->start, row->end,
  };
}

static inline int is_iri(Net net, i64 term) { return kind_at(net, term) == IRI_KIND || kind_at(net, term) == EVENT_KIND; }

/* Returns whether a template triple is a triple under a row: all its terms are bound, and each stands where RDF allows it, or the node does.
 * Else it is left out alone, as in SPARQL. */
static int is_triple(Net net, i64 node, i64 t, const Row *row) {
  TimedTriple made = fill_template(net, t, row);
  if (made.s == UNBOUND || made.p == UNBOUND || made.o == UNBOUND) return 0;
  return (kind_at(net, made.s) <= BLANK_KIND || node_at(net, node)->any_subject != 0) && is_iri(net, made.p);
}

static inline void show_column(Net net, i64 part) {
  if (part < 0) net->shown[place_in(net, TABLE_SHOWN, -part)] = 1;
}

/* Unbinds the variables of a row that only left-out triples would show, since they distinguish no solutions of a rule. */
static void hide_left_out(Net net, i64 node, Row *row) {
  i64 first = node_at(net, node)->template_at, after = first + node_at(net, node)->template_n;
  int left_out = 0;
  for (i64 t = first; t < after && !left_out; t++) left_out = !is_triple(net, node, t, row);
  if (!left_out) return;
  for (i64 column = 0; column < height_of(net, TABLE_SHOWN); column++) net->shown[column] = 0;
  for (i64 t = first; t < after; t++) {
    if (!is_triple(net, node, t, row)) continue;
    show_column(net, template_at(net, t)->s);
    show_column(net, template_at(net, t)->p);
    show_column(net, template_at(net, t)->o);
  }
  for (i64 column = VAR; column < VAR + net->width; column++)
    if (net->shown[column] == 0) *term_at(net, row, column) = UNBOUND;
}

/* Returns the bytes of a term's text. */
static inline i64 length_of(Net net, i64 term) { return text_at(net, term)->link >> TERM_LINK_BITS; }

/* Counts a triple that a rule derives; a rule that derives more at one instant than its bound allows is marked as endless.
 * Long texts count as several triples, so that the bound is one of bytes too. */
static inline void count_derived(Net net, i64 number, const TimedTriple *made) {
  QueriesRecord *query = query_at(net, number);
  if (query->instant != net->at->now) {
    query->instant = net->at->now;
    query->derived = 0;
  }
  query->derived += 1 + divide_down(length_of(net, made->s) + length_of(net, made->p) + length_of(net, made->o), LONG);
  if (query->derived > query->bound) {
    net->at->endless = number;
    net->at->credit = 0;
  }
}

/* Adds a rule's triples, with its solution's interval, to the stream that the rule writes. An outward rule's own query does not read them. */
static void derive_triples(Net net, i64 node, const Row *row) {
  const NodesRecord *here = node_at(net, node);
  QueriesRecord *query = query_at(net, here->query);
  i64 reads_after = query->from_;
  if (here->outward != 0) query->from_ = FOREVER;
  for (i64 t = here->template_at; t < here->template_at + here->template_n; t++) {
    if (!is_triple(net, node, t, row)) continue;
    TimedTriple made = fill_template(net, t, row);
    i64 stream = template_at(net, t)->stream;
    if (!enter_occurrence(net, stream, &made, net->at->entry)) continue;
    count_derived(net, here->query, &made);
    scan_occurrence(net, stream, &made, net->at->entry);
  }
  query->from_ = reads_after;
}
