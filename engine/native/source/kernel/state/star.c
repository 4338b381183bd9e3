/* A *star* is what one entry says of a local subject, in columns side by side and on one interval: all that there will ever be. Operators whose sides
 * describe this subject alone find all partners of its rows in the star. So each store lists these rows by themselves, and frees them with the star's
 * end; no key is looked up, and nothing is kept. Rows of other subjects are goals as ever, even at the same operators.
 *
 *     feed   … │ n a :Obs │ n :by s │ n :value v │ …        left   right
 *                └──────────── a star ─────────┘   ───▶    [n s] ⋈ [n v]  ───▶  one row, and both lists are empty again */

/* Begins a star, if its subject may be local. */
static inline void open_star(Net net, i64 stream, i64 subject) {
  AtRecord *at = net->at;
  if (at->stars == 0 || at->foreign != 0 || stream_at(net, stream)->local == 0) return;
  i64 kind = kind_at(net, subject);
  at->star_subject = subject;
  at->star_stream = stream;
  at->star_named = kind == MESSAGE_BLANK_KIND || kind == EVENT_KIND;
  at->star_waiting = at->waiting;
}

/* Returns whether all partners of a row at a node are in the open star. */
static inline int is_of_star(Net net, const NodesRecord *here, const Row *row) {
  const AtRecord *at = net->at;
  if (here->star == 0 || at->star_subject == UNBOUND || here->source != at->star_stream) return 0;
  return (at->star_named != 0 || here->local != 0) && term_of(net, row, here->subject) == at->star_subject;
}

/* Lists a row of the star in a store. The hash is that of a goal there. */
static inline void store_in_star(Net net, i64 store, i64 hash, i64 x) {
  StoresRecord *here = store_at(net, store);
  Row *row = row_at(net, x);
  row->hash = hash;
  row->older = (int32_t)here->star_head;
  if (here->star_head == NONE) {
    here->star_next = net->at->star_store;
    net->at->star_store = store;
  }
  here->star_head = x;
}

/* Frees the rows of the star. */
static void close_star(Net net) {
  AtRecord *at = net->at;
  for (; at->star_store != NONE; at->star_store = store_at(net, at->star_store)->star_next) {
    StoresRecord *here = store_at(net, at->star_store);
    for (i64 row = here->star_head, older; row != NONE; row = older) {
      older = row_at(net, row)->older;
      free_row(net, row);
    }
    here->star_head = NONE;
  }
  at->star_subject = UNBOUND;
}
