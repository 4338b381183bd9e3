/* Texts are searched for many needles in one pass (engine/instances/needle_trie.py).
 *
 * The needles are a trie. An edge has all bytes up to where two needles part, of which its key has the first. So a walk from each place of the text
 * ends where no needle goes on. At each place it takes at most as many steps as there are needles, however long they are, and compares the bytes of
 * one needle.
 *
 * Texts and needles are searched as they are written, with escapes: each character has one way of writing, and none begins another. So a needle
 * stands in a text where it does so in what is written, from the beginning of a character on. */

typedef struct { /* a string: its characters as written, and what follows the quotation mark, with @ */
  Text text, language;
} String;

/* Returns the string that a term is; its text stands at NULL if it is none. */
static String string_of_term(const Terms *terms, i64 number) {
  Text whole = text_of(terms, number);
  i64 end = whole.length - 1;
  if (whole.length < 2 || whole.at[0] != '"') return (String){{NULL, 0}, {NULL, 0}};
  while (whole.at[end] != '"') end--;
  Text rest = {whole.at + end + 1, whole.length - end - 1};
  if (rest.length > 0 && rest.at[0] != '@') return (String){{NULL, 0}, {NULL, 0}};
  return (String){{whole.at + 1, end - 1}, rest};
}

static inline int is_same_text(Text a, Text b) { return a.length == b.length && memcmp(a.at, b.at, (size_t)a.length) == 0; }

static inline NeedleRecord *needle_in(const SearchRecord *search, i64 k) { return (NeedleRecord *)search->needles + k; }
static inline BranchRecord *branch_in(const SearchRecord *search, i64 node) { return (BranchRecord *)search->branches + node; }
static inline Text text_of_needle(const SearchRecord *search, i64 k) {
  return string_of_term((const Terms *)search->terms, needle_in(search, k)->text).text;
}

/* ---------------------------------------------------------------- edges, by node and byte */
static inline i64 key_of_edge(i64 node, uint8_t byte) { return (node << 8 | byte) + 1; }

/* Returns the edge of a key, or the free place where it is to stand. */
static inline EdgeRecord *find_edge(const SearchRecord *search, i64 key) {
  EdgeRecord *edges = (EdgeRecord *)search->edges;
  u64 hash = (u64)key * 0x9E3779B97F4A7C15u;
  for (u64 place = hash ^ hash >> 32;; place++) {
    EdgeRecord *edge = &edges[place & (u64)(search->edges_room - 1)];
    if (edge->key == key || edge->key == 0) return edge;
  }
}

static void add_edge(SearchRecord *search, i64 node, uint8_t byte, i64 child) {
  i64 key = key_of_edge(node, byte);
  *find_edge(search, key) = (EdgeRecord){key, child};
  search->edges_n++;
}

/* the search's address; edges: what stands in them goes to the search's own, which are free and more */
static int spread_edges(const Argument *in, i64 *out) {
  const SearchRecord *search = (const SearchRecord *)in[0].number;
  const EdgeRecord *edges = in[1].view.at;
  (void)out;
  for (i64 k = 0; k < in[1].view.count / EDGE_WIDTH; k++)
    if (edges[k].key != 0) *find_edge(search, edges[k].key) = edges[k];
  return FINE;
}

/* ---------------------------------------------------------------- needles come */
/* Returns how many bytes two texts share, of which `depth` are known to be equal, and no more than `most`. */
static i64 count_shared(Text a, Text b, i64 depth, i64 most) {
  while (depth < most && a.at[depth] == b.at[depth]) depth++;
  return depth;
}

/* Puts a node onto an edge, at a depth, where the bytes of a needle lead. Returns the node. */
static i64 part_edge(SearchRecord *search, EdgeRecord *edge, i64 needle, i64 depth) {
  i64 node = search->branches_n++, child = edge->child;
  Text text = text_of_needle(search, needle);
  edge->child = node;
  *branch_in(search, node) = (BranchRecord){NO_NEEDLE, needle, depth};
  if (text.length == depth) branch_in(search, node)->ends = needle;
  else add_edge(search, node, text.at[depth], child);
  return node;
}

/* Returns whether one more node and its edges fit. */
static inline int has_room_for_node(const SearchRecord *search) {
  return search->branches_n < search->branches_room && 2 * (search->edges_n + 2) <= search->edges_room;
}

/* Puts needle k into the trie. Returns 0 if there is no room for all of its nodes; those made stay, and change nothing. */
static int link_needle(SearchRecord *search, i64 k) {
  Text text = text_of_needle(search, k);
  NeedleRecord *needle = needle_in(search, k);
  i64 node = 0;
  for (i64 depth = 0; depth < text.length;) {
    if (!has_room_for_node(search)) return 0;
    EdgeRecord *edge = find_edge(search, key_of_edge(node, text.at[depth]));
    if (edge->key == 0) {
      needle->next = NO_NEEDLE;
      add_edge(search, node, text.at[depth], -1 - k);
      return 1;
    }
    int is_leaf = edge->child < 0;
    i64 other = is_leaf ? -1 - edge->child : branch_in(search, edge->child)->needle;
    Text its = text_of_needle(search, other);
    i64 most = is_leaf ? its.length : branch_in(search, edge->child)->depth;
    depth = count_shared(text, its, depth + 1, text.length < most ? text.length : most);
    if (is_leaf && depth == text.length && depth == its.length) {
      needle->next = needle_in(search, other)->next;
      needle_in(search, other)->next = k;
      return 1;
    }
    node = is_leaf || depth < most ? part_edge(search, edge, other, depth) : edge->child;
  }
  needle->next = branch_in(search, node)->ends;
  branch_in(search, node)->ends = k;
  return 1;
}

/* the search's address; texts: terms that are sought, those that are no strings are passed over; values: what each stands for; done: so many
 * have been added. Gives how many have been added when room is wanting, or all. */
static int add_needles(const Argument *in, i64 *out) {
  SearchRecord *search = (SearchRecord *)in[0].number;
  const i64 *texts = in[1].view.at, *values = in[2].view.at;
  i64 k = in[3].number;
  for (; k < in[1].view.count; k++) {
    if (string_of_term((const Terms *)search->terms, texts[k]).text.at == NULL) continue;
    if (search->needles_n == search->needles_room) break;
    *needle_in(search, search->needles_n) = (NeedleRecord){texts[k], values[k], NO_NEEDLE, 0};
    if (!link_needle(search, search->needles_n)) break;
    search->needles_n++;
  }
  out[0] = k;
  return FINE;
}

/* ---------------------------------------------------------------- texts are searched */
typedef struct { /* one search: the string, and where the values found stand */
  SearchRecord *search;
  String string;
  i64 *values, n;
} Finding;

/* Notes the needles of one text, each once, and where a needle has a language, in strings of that language alone (SPARQL 1.1, 17.4.3.1.2). */
static void note_needles(Finding *finding, i64 k) {
  const SearchRecord *search = finding->search;
  for (; k != NO_NEEDLE; k = needle_in(search, k)->next) {
    NeedleRecord *needle = needle_in(search, k);
    if (needle->found == search->searches) continue;
    Text language = string_of_term((const Terms *)search->terms, needle->text).language;
    if (language.length > 0 && !is_same_text(language, finding->string.language)) continue;
    needle->found = search->searches;
    finding->values[finding->n++] = needle->value;
  }
}

static inline int may_end(const Finding *finding, i64 at) { return finding->search->mode != TEXT_END || at == finding->string.text.length; }

/* Returns whether the text has a needle's bytes from place `first` on, up to the needle's depth `upto`; those before `at` are known to be there. */
static inline int goes_on(Text text, i64 first, i64 at, Text needle, i64 upto) {
  return upto <= text.length - first && memcmp(needle.at + (at - first), text.at + at, (size_t)(upto - (at - first))) == 0;
}

/* Notes all needles that stand at one place of the text. */
static void find_from(Finding *finding, i64 first) {
  const SearchRecord *search = finding->search;
  Text text = finding->string.text;
  i64 at = first, node = 0;
  for (;;) {
    const BranchRecord *branch = branch_in(search, node);
    if (branch->ends != NO_NEEDLE && may_end(finding, at)) note_needles(finding, branch->ends);
    if (at == text.length) return;
    const EdgeRecord *edge = find_edge(search, key_of_edge(node, text.at[at]));
    if (edge->key == 0) return;
    if (edge->child < 0) {
      Text sought = text_of_needle(search, -1 - edge->child);
      if (may_end(finding, first + sought.length) && goes_on(text, first, at, sought, sought.length)) note_needles(finding, -1 - edge->child);
      return;
    }
    node = edge->child;
    branch = branch_in(search, node);
    if (!goes_on(text, first, at, text_of_needle(search, branch->needle), branch->depth)) return;
    at = first + branch->depth;
  }
}

/* Returns the place of the next character as it is written. */
static inline i64 after_character(Text text, i64 at) { return at + (text.at[at] != '\\' ? 1 : text.at[at + 1] == 'u' ? 6 : 2); }

i64 search_text(i64 at, i64 term, const i64 **values) {
  SearchRecord *search = (SearchRecord *)at;
  MemoRecord *memo = (MemoRecord *)search->memo + (term & (search->memo_room - 1));
  i64 *all = (i64 *)search->values;
  if (memo->term != term || memo->first + search->values_room < search->found) {
    i64 first = search->found % search->values_room + search->needles_n <= search->values_room
                    ? search->found
                    : (search->found / search->values_room + 1) * search->values_room; /* no text's values go around the end of the table */
    Finding finding = {search, string_of_term((const Terms *)search->terms, term), all + first % search->values_room, 0};
    search->searches++;
    if (finding.string.text.at != NULL) {
      Text text = finding.string.text;
      find_from(&finding, 0);
      if (search->mode != TEXT_START)
        for (i64 place = 0; place < text.length;) find_from(&finding, place = after_character(text, place));
    }
    search->found = first + finding.n;
    *memo = (MemoRecord){term, first, finding.n};
  }
  *values = all + memo->first % search->values_room;
  return memo->n;
}
