/* Text is handled eight bytes at a time. The first byte of a word is its lowest one, as little-endian machines load it. */

typedef uint8_t byte;

typedef struct {
  const byte *at;
  i64 size;
} Text;

#define TEXT(literal) {(const byte *)(literal), sizeof(literal) - 1}

enum { ABSENT = -1 }; /* instead of a place or a number */

static const u64 ONES = 0x0101010101010101u, TOPS = 0x8080808080808080u, SPACES = 0x2020202020202020u, FACTOR = 0x9E3779B97F4A7C15u;

static inline Text text_of(View view) { return (Text){view.at, view.count}; }

/* Returns the eight bytes from i on; beyond the end of the text they are 0. */
static inline u64 word_at(Text text, i64 i) {
  u64 word = 0;
  if (i + 8 <= text.size)
    memcpy(&word, text.at + i, 8);
  else
    for (i64 k = 0; i + k < text.size; k++) word |= (u64)text.at[i + k] << (8 * k);
  return word;
}

/* Writes eight bytes; the room for a text is larger by as many as the caller means to be there. */
static inline void put_word(byte *to, u64 word) { memcpy(to, &word, 8); }

/* Returns a word that is not 0 if the word has the byte. The lowest mark is the first such byte; those above it may be mistaken. */
static inline u64 marks(u64 word, byte wanted) {
  u64 other = word ^ wanted * ONES;
  return (other - ONES) & ~other & TOPS;
}

/* Returns a word that marks the bytes below 0x20, as `marks` does for one byte. */
static inline u64 marks_of_controls(u64 word) { return (word - SPACES) & ~word & TOPS; }

static inline u64 beyond_ascii(u64 word) { return word & TOPS; }

/* Returns the number of the byte in the word that the lowest mark stands for. */
static inline i64 first_of(u64 found) { return __builtin_ctzll(found) >> 3; }

/* Returns the word with its first `count` bytes (1 to 8) alone. */
static inline u64 leading(u64 word, i64 count) { return word & ~(u64)0 >> (56 - (count - 1) * 8); }

/* Returns a hash of what was hashed to `key`, followed by `word`. */
static inline u64 mixed(u64 key, u64 word) {
  u64 found = (key ^ word) * FACTOR;
  return found ^ found >> 32;
}

/* Returns whether two pieces of the text are equal. */
static inline int are_same(Text text, i64 i, i64 j, i64 size) {
  i64 k = 0;
  for (; k + 8 <= size; k += 8)
    if (word_at(text, i + k) != word_at(text, j + k)) return 0;
  return k == size || leading(word_at(text, i + k), size - k) == leading(word_at(text, j + k), size - k);
}

/* Returns whether `other` stands at i. */
static inline int starts_with(Text text, i64 i, Text other) {
  return i + other.size <= text.size && memcmp(text.at + i, other.at, (size_t)other.size) == 0;
}

/* Copies a piece and returns the place after it. Up to seven bytes beyond that are written, too. */
static inline byte *copy_piece(byte *to, Text text, i64 i, i64 size) {
  for (i64 k = 0; k < size; k += 8) put_word(to + k, word_at(text, i + k));
  return to + size;
}

/* Returns whether a piece of this place and size lies in the text. */
static inline int has_piece(Text text, i64 start, i64 size) { return start >= 0 && size >= 0 && start <= text.size && size <= text.size - start; }
