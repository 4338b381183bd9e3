/* Interning finds a text's number by hash and bytes; a new text goes to the end of the arena.
 * Chains are of equal hashes modulo the heads. The hash has a seed that no client knows, so that nobody can make chains long. A cell has only the
 * first bits of the hash, which tell most other terms of a chain apart; a larger table of heads takes the hashes from the texts again. */

enum { TOGETHER = 32 /* strings that are looked up at the same time */, NO_ROOM = -1, BROKEN = -2 /* offsets that do not rise */ };
static const u64 FIRST_FACTOR = 0xA0761D6478BD642F, LAST_FACTOR = 0xE7037ED1A0B428DB; /* of wyhash */

static inline u64 fold_product(u64 a, u64 b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (u64)(product >> 64) ^ (u64)product;
}

/* The bytes are taken 8 at a time; the last word may overlap the one before. */
static inline i64 hash_text(Text text, i64 seed) {
  u64 hash = (u64)seed ^ (u64)text.length, last = 0;
  if (text.length < 8) {
    for (i64 k = 0; k < text.length; k++) last = last << 8 | text.at[k];
  } else {
    for (i64 k = 0; k + 8 < text.length; k += 8) hash = fold_product(hash ^ load_word(text.at + k), FIRST_FACTOR);
    last = load_word(text.at + text.length - 8);
  }
  return (i64)fold_product(hash ^ last, LAST_FACTOR);
}

/* Returns whether a term's hash begins as this one does. */
static inline int is_like(const Terms *terms, i64 number, i64 hash) { return (terms->cells[number].place ^ hash) >> PLACE_BITS == 0; }

static inline int32_t *head_of(const Terms *terms, i64 hash) { return &terms->heads[hash & (terms->heads_n - 1)]; }

/* Returns the number of a text, NONE if it is new. */
static inline i64 find_term(const Terms *terms, i64 hash, Text text) {
  i64 number = *head_of(terms, hash);
  while (number != NONE) {
    Text known = text_of(terms, number);
    if (is_like(terms, number, hash) && known.length == text.length && is_same(known.at, text.at, text.length)) return number;
    number = next_of(terms, number);
  }
  return NONE;
}

/* Writes the cell of a term of n bytes at a place of the arena, at the head of its chain. */
static inline void link_term(const Terms *terms, i64 number, i64 place, i64 n, i64 hash) {
  int32_t *head = head_of(terms, hash);
  terms->cells[number].place = (hash & -MOST_PLACES) | place;
  set_link(terms, number, n, *head);
  *head = (int32_t)number;
}

/* Returns whether a text has n hexadecimal digits from `from` on. */
static int has_digits(Text text, i64 from, i64 n) {
  if (text.length < from + n) return 0;
  for (i64 k = from; k < from + n; k++)
    if (!((text.at[k] >= '0' && text.at[k] <= '9') || (text.at[k] >= 'a' && text.at[k] <= 'f'))) return 0;
  return 1;
}

/* Returns the kind of a blank node: those that a message names, or a template, begin with a digest (`Labels`, `Inquiry.fresh`). */
static inline int8_t kind_of_blank(Text text) {
  if (text.length > 3 && text.at[2] == 'm' && has_digits(text, 3, NAME_DIGITS)) return -2;
  return text.length > 3 && text.at[2] == 'c' && has_digits(text, 3, OLD_NAME_DIGITS) ? -2 : 2;
}

/* Returns the kind of an IRI: nodes of ETALIS's events are named by a digest (`event_node`). */
static inline int8_t kind_of_iri(Text text) {
  static const char event[] = "<urn:ele:event:";
  i64 n = (i64)sizeof event - 1;
  return text.length == n + NAME_DIGITS + 1 && memcmp(text.at, event, (size_t)n) == 0 && has_digits(text, n, NAME_DIGITS) ? -1 : 1;
}

/* Returns a term's kind, as the kernel's `kinds` has it.
 * An IRI is 1, a blank node 2, a literal 3, or 4 if it is a string and no more. Below 0 are IRIs and blank nodes that one message alone describes. A
 * triple term is 3 as well: like a literal, it is no subject, and the host decides whether two of them are equal. */
static inline int8_t kind_of(Text text) {
  if (text.at[0] == '<') return text.length > 1 && text.at[1] == '<' ? 3 : kind_of_iri(text);
  return text.at[0] == '_' ? kind_of_blank(text) : text.at[text.length - 1] == '"' ? 4 : 3;
}

/* Returns whether one more term of n bytes surely fits. */
static inline int has_room(const Terms *terms, i64 n) {
  const TermCountsRecord *at = terms->at;
  int spare = at->free != NONE || at->used < terms->cells_n;
  return spare && at->bytes + n <= terms->text_n && at->live < 2 * terms->heads_n && at->hard < terms->hard_n;
}

/* Notes the numeric value and error bound of a term, or that the host must say them. */
static inline void note_value(const Terms *terms, i64 number, Text text) {
  if (!approximate(text, terms->values[number])) terms->hard[terms->at->hard++] = number;
}

/* Gives a new text, for which there is room, a number. */
static __attribute__((noinline)) i64 add_term(const Terms *terms, i64 hash, Text text) {
  TermCountsRecord *at = terms->at;
  i64 number = at->free;
  if (number != NONE) at->free = next_of(terms, number);
  else number = at->used++;
  link_term(terms, number, at->bytes, text.length, hash);
  memcpy(terms->text + at->bytes, text.at, (size_t)text.length);
  at->bytes += text.length;
  at->live++;
  terms->kinds[number] = kind_of(text);
  if (at->valued) note_value(terms, number, text);
  return number;
}

/* Returns the number of a text with this hash, or NO_ROOM if it is new and there is no room for it. No bytes are no term: the number is NONE. */
static inline i64 intern_hashed(const Terms *terms, i64 hash, Text text) {
  if (text.length == 0) return NONE;
  i64 number = find_term(terms, hash, text);
  if (number != NONE) return number;
  return has_room(terms, text.length) ? add_term(terms, hash, text) : NO_ROOM;
}

static i64 intern_text(const Terms *terms, Text text) { return intern_hashed(terms, hash_text(text, terms->at->seed), text); }

typedef struct { /* an Arrow array's strings */
  const uint8_t *offsets, *data;
} Strings;

static inline Text string_of(Strings strings, i64 k) {
  i64 begin = load_index(strings.offsets, k);
  return (Text){strings.data + begin, load_index(strings.offsets, k + 1) - begin};
}

/* Numbers n <= TOGETHER strings, and returns how many have numbers; if not all, room is wanting. BROKEN: they are no strings.
 * A table of many terms is in no cache. So the strings are looked up together, head by head, then cell by cell, then text by text: they wait for
 * memory at the same time. */
static i64 intern_together(const Terms *given, Strings strings, const i64 *which, i64 n, i64 *numbers) {
  const Terms terms = *given; /* the compiler then knows that no number that is written changes it */
  i64 hashes[TOGETHER];
  Text texts[TOGETHER];
  for (i64 k = 0; k < n; k++) {
    texts[k] = string_of(strings, which[k]);
    if (texts[k].length < 0) return BROKEN;
    hashes[k] = hash_text(texts[k], terms.at->seed);
    __builtin_prefetch(head_of(&terms, hashes[k]));
  }
  for (i64 k = 0; k < n; k++) {
    numbers[k] = *head_of(&terms, hashes[k]);
    __builtin_prefetch(&terms.cells[numbers[k]]);
  }
  for (i64 k = 0; k < n; k++) {
    if (!is_like(&terms, numbers[k], hashes[k])) numbers[k] = next_of(&terms, numbers[k]);
    __builtin_prefetch(&terms.cells[numbers[k]]);
  }
  for (i64 k = 0; k < n; k++) {
    Text likely = text_of(&terms, numbers[k]);
    __builtin_prefetch(likely.at);
    __builtin_prefetch(likely.at + likely.length);
  }
  for (i64 k = 0; k < n; k++) {
    i64 number = intern_hashed(&terms, hashes[k], texts[k]);
    if (number < 0) return k;
    numbers[k] = number;
  }
  return n;
}

/* Numbers some strings, whose places `which` has, and returns how many have numbers; if not all, room is wanting. BROKEN: they are no strings. */
static i64 intern_some(const Terms *terms, Strings strings, const i64 *which, i64 n, i64 *numbers) {
  for (i64 first = 0; first < n; first += TOGETHER) {
    i64 some = n - first < TOGETHER ? n - first : TOGETHER, done = intern_together(terms, strings, which + first, some, numbers + first);
    if (done < some) return done == BROKEN ? BROKEN : first + done;
  }
  return n;
}

/* terms; the bytes of a text. Gives its number, or NO_ROOM. */
static int intern_one(const Argument *in, i64 *out) {
  out[0] = intern_text(terms_of(&in[0]), (Text){in[1].view.at, in[1].view.count});
  return FINE;
}

/* terms; the addresses of strings' offsets and bytes; from which string on; the numbers of all. Gives how many have numbers. */
static int intern_strings(const Argument *in, i64 *out) {
  Strings strings = {(const uint8_t *)in[1].number, (const uint8_t *)in[2].number};
  i64 first = in[3].number, all = in[4].view.count, *numbers = in[4].view.at, which[TOGETHER];
  if (first < 0) return OUT_OF_BOUNDS;
  while (first < all) {
    i64 some = all - first < TOGETHER ? all - first : TOGETHER;
    for (i64 k = 0; k < some; k++) which[k] = first + k;
    i64 done = intern_together(terms_of(&in[0]), strings, which, some, numbers + first);
    if (done == BROKEN) return OUT_OF_BOUNDS;
    first += done;
    if (done < some) break;
  }
  out[0] = first;
  return FINE;
}

/* terms; from which number on. Notes numeric values, and gives the number from which to go on once the host has said its part. */
static int value_from(const Argument *in, i64 *out) {
  const Terms *terms = terms_of(&in[0]);
  i64 number = in[1].number;
  if (number < 0 || terms->at->used > terms->values_n) return OUT_OF_BOUNDS;
  for (; number < terms->at->used && terms->at->hard < terms->hard_n; number++)
    if (length_of(terms, number) > 0) note_value(terms, number, text_of(terms, number));
  out[0] = number;
  return FINE;
}

/* terms, whose heads are all NONE. Enters all into them; some together, so that they wait for their places at the same time. */
static int spread_terms(const Argument *in, i64 *out) {
  const Terms *terms = terms_of(&in[0]);
  i64 hashes[TOGETHER], used = terms->at->used;
  (void)out;
  for (i64 first = 1; first < used; first += TOGETHER) {
    i64 n = used - first < TOGETHER ? used - first : TOGETHER;
    for (i64 k = 0; k < n; k++) {
      hashes[k] = hash_text(text_of(terms, first + k), terms->at->seed);
      __builtin_prefetch(head_of(terms, hashes[k]));
    }
    for (i64 k = 0; k < n; k++) {
      i64 number = first + k, length = length_of(terms, number);
      if (length > 0) link_term(terms, number, place_of(terms, number), length, hashes[k]);
    }
  }
  return FINE;
}

/* terms without numbers, whose arena has texts one after the other; where that of each number ends. `spread_terms` enters them.
 * An empty text's number is free. */
static int enter_terms(const Argument *in, i64 *out) {
  const Terms *terms = terms_of(&in[0]);
  const i64 *ends = in[1].view.at;
  i64 begin = 0, n = in[1].view.count;
  (void)out;
  if (n >= terms->cells_n || n >= terms->kinds_n) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < n; k++) {
    i64 number = k + 1, length = ends[k] - begin;
    if (length < 0 || ends[k] > terms->text_n) return OUT_OF_BOUNDS;
    terms->cells[number].place = begin;
    if (length > 0) {
      set_link(terms, number, length, NONE);
      terms->kinds[number] = kind_of((Text){terms->text + begin, length});
      terms->at->live++;
    } else {
      set_link(terms, number, 0, terms->at->free);
      terms->at->free = number;
    }
    begin = ends[k];
  }
  terms->at->used = n + 1;
  terms->at->bytes = begin;
  return FINE;
}

/* terms; which of them are held; another arena. Frees the other numbers, and moves the texts to that arena in order. `spread_terms` enters them. */
static int sweep_terms(const Argument *in, i64 *out) {
  const Terms *terms = terms_of(&in[0]);
  const uint8_t *held = in[1].view.at;
  uint8_t *moved = in[2].view.at;
  TermCountsRecord *at = terms->at;
  i64 last_free = NONE;
  (void)out;
  if (in[1].view.count < at->used) return OUT_OF_BOUNDS;
  at->free = at->live = at->bytes = 0;
  for (i64 number = 1; number < at->used; number++) {
    Text text = text_of(terms, number);
    if (text.length > 0 && held[number]) {
      if (at->bytes + text.length > in[2].view.count) return OUT_OF_BOUNDS;
      memcpy(moved + at->bytes, text.at, (size_t)text.length);
      terms->cells[number].place = at->bytes;
      at->bytes += text.length;
      at->live++;
      continue;
    }
    set_link(terms, number, 0, NONE);
    terms->kinds[number] = 0;
    if (last_free == NONE) at->free = number;
    else set_link(terms, last_free, 0, number);
    last_free = number;
  }
  return FINE;
}
