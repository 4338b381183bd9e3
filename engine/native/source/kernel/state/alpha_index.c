/* The alpha index leads from predicate and object to the list of what is made of such triples.
 * It is a hash table with linear probing, at most half full. */

/* Returns the place where a predicate and object stand, or would; `mask` is one less than how many places there are. */
static inline i64 find_place(const PostedRecord *posted, i64 mask, i64 p, i64 o) {
  i64 place = mix_hash(mix_hash(0, p), o) & mask;
  while (posted[place].p != NONE && (posted[place].p != p || posted[place].o != o)) place = (place + 1) & mask;
  return place;
}

static inline i64 find_list(const PostedRecord *posted, i64 mask, i64 p, i64 o) {
  const PostedRecord *found = &posted[find_place(posted, mask, p, o)];
  return found->p != NONE ? found->list : 0;
}

/* the index; predicates and objects of some pairs; found: the list of each, 0 for none */
static int find_lists(const Argument *in, i64 *out) {
  const i64 *predicates = in[1].view.at, *objects = in[2].view.at;
  i64 *found = in[3].view.at, pairs = in[3].view.count, mask = in[0].view.count / POSTED_WIDTH - 1;
  (void)out;
  if (in[1].view.count < pairs || in[2].view.count < pairs) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < pairs; k++) found[k] = find_list(in[0].view.at, mask, predicates[k], objects[k]);
  return FINE;
}

/* the index; predicates and objects of some pairs; the list of each. Gives how many of the pairs had no place before. */
static int enter_lists(const Argument *in, i64 *out) {
  PostedRecord *posted = in[0].view.at;
  const i64 *predicates = in[1].view.at, *objects = in[2].view.at, *lists = in[3].view.at;
  i64 pairs = in[3].view.count, mask = in[0].view.count / POSTED_WIDTH - 1;
  if (in[1].view.count < pairs || in[2].view.count < pairs) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < pairs; k++) {
    PostedRecord *place = &posted[find_place(posted, mask, predicates[k], objects[k])];
    out[0] += place->p == NONE;
    *place = (PostedRecord){predicates[k], objects[k], lists[k]};
  }
  return FINE;
}
