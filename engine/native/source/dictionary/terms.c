/* The table of terms: arrays that term_dictionary.py owns, whose addresses and lengths stand in one table. Texts may stand at any address. */

#define XSD "http://www.w3.org/2001/XMLSchema#"

typedef struct { /* as `handle_of` of term_dictionary.py writes them; a length is a number of rows */
  TermCountsRecord *at;
  i64 at_n;
  TermRecord *cells;
  i64 cells_n;
  int32_t *heads; /* of the chains of equal hashes: a power of two */
  i64 heads_n;
  uint8_t *text;
  i64 text_n;
  int8_t *kinds;
  i64 kinds_n;
  double (*values)[2]; /* of a number, and its error bound */
  i64 values_n;
  i64 *hard;
  i64 hard_n;
  i64 *small;
  i64 small_n;
} Terms;
_Static_assert(sizeof(Terms) == 2 * N_ARRAYS * sizeof(i64), "the table has the address and the length of each array");

typedef struct { /* bytes of a text */
  const uint8_t *at;
  i64 length;
} Text;

static inline Terms *terms_of(const Argument *argument) { return (Terms *)argument->number; }

static inline i64 place_of(const Terms *terms, i64 number) { return terms->cells[number].place & (MOST_PLACES - 1); }

/* Returns the bytes of a term's text, 0 for a number that is free. */
static inline i64 length_of(const Terms *terms, i64 number) { return terms->cells[number].link >> LINK_BITS; }

static inline Text text_of(const Terms *terms, i64 number) { return (Text){terms->text + place_of(terms, number), length_of(terms, number)}; }

/* Returns what follows a term in its chain, or a free number among those. */
static inline i64 next_of(const Terms *terms, i64 number) { return terms->cells[number].link & ((1LL << LINK_BITS) - 1); }

static inline void set_link(const Terms *terms, i64 number, i64 length, i64 after) {
  terms->cells[number].link = (i64)((u64)length << LINK_BITS) | after;
}

/* Returns the 8 bytes at an address, little end first. */
static inline u64 load_word(const uint8_t *at) {
  u64 word;
  memcpy(&word, at, sizeof word);
  return word;
}

/* Returns the item k of an array of Arrow, whose buffers need not be aligned. */
static inline i64 load_index(const void *items, i64 k) {
  int32_t item;
  memcpy(&item, (const uint8_t *)items + 4 * k, sizeof item);
  return item;
}

static inline i64 load_number(const void *items, i64 k) {
  i64 item;
  memcpy(&item, (const uint8_t *)items + 8 * k, sizeof item);
  return item;
}

static inline int bit_of(const uint8_t *bits, i64 k) { return bits[k >> 3] >> (k & 7) & 1; }

static inline void set_bit(uint8_t *bits, i64 k) { bits[k >> 3] |= (uint8_t)(1 << (k & 7)); }

static inline int is_same(const uint8_t *a, const uint8_t *b, i64 n) {
  if (n < 8) {
    for (i64 k = 0; k < n; k++)
      if (a[k] != b[k]) return 0;
    return 1;
  }
  for (i64 k = 0; k + 8 <= n; k += 8)
    if (load_word(a + k) != load_word(b + k)) return 0;
  return load_word(a + n - 8) == load_word(b + n - 8); /* the last word, which may overlap the one before */
}
