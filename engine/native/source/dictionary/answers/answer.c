/* The kernel calls `answer_question` for each new question; what it leaves open is asked of the host (docs/decisions/0099-compiled-answers.md). */

enum { TEXT_ROOM = 1 << 13, LONGEST_WHOLE = 20 /* digits of a word */ };
enum { MOST_OF_DIGEST = TEXT_ROOM - BLOCK_BYTES - 8 - 64 }; /* bytes of the parts of a digest, besides two instants */

typedef struct { /* as `Recipes` of engine/physical_plan/recipes.py writes it */
  const Terms *terms;
  const i64 *const *recipes; /* by number of question */
  const OpenSsl *openssl;
} Context;
_Static_assert(sizeof(Context) == CONTEXT_WIDTH * sizeof(i64), "the context has the cells of its layout");

static inline i64 append(uint8_t *text, i64 n, const void *source, i64 length) {
  memcpy(text + n, source, (size_t)length);
  return n + length;
}

/* Writes a whole number, and returns the place behind. */
static i64 write_whole(uint8_t *text, i64 n, i64 value) {
  uint8_t digits[LONGEST_WHOLE];
  i64 first = LONGEST_WHOLE;
  if (value < 0) text[n++] = '-';
  u64 rest = magnitude(value);
  do digits[--first] = (uint8_t)('0' + rest % 10);
  while ((rest /= 10) > 0);
  return append(text, n, digits + first, LONGEST_WHOLE - first);
}

/* Writes what a digest is of: prefix, interval and parts, and returns its length; -1 where the host has to say the name. */
static i64 write_parts(const Terms *terms, const DigestRecord *recipe, const i64 *arguments, uint8_t *text) {
  const PartRecord *parts = (const PartRecord *)(recipe + 1);
  i64 n = append(text, 0, (const void *)recipe->prefix, recipe->prefix_n);
  if (recipe->timed_at != NO_ARGUMENT) {
    const i64 *interval = arguments + recipe->timed_at;
    if (interval[0] > interval[1]) return -1; /* timeless */
    for (int k = 0; k < 2; k++) {
      text[n] = (uint8_t)recipe->separator;
      n = write_whole(text, n + 1, interval[k]);
    }
  }
  for (i64 k = 0; k < recipe->parts; k++) {
    Text part = {(const uint8_t *)parts[k].text, parts[k].length};
    if (parts[k].argument != NO_ARGUMENT) part = text_of(terms, arguments[parts[k].argument]);
    if (n + part.length >= MOST_OF_DIGEST || (part.length == 0 && recipe->strict)) return -1;
    if (n > 0) text[n++] = (uint8_t)recipe->separator;
    n = append(text, n, part.at, part.length);
  }
  return n;
}

/* Returns the number of the term whose name is a digest of the recipe's parts. Their texts are fetched first, so that they wait for memory
 * together. */
static i64 name_digest(const Context *context, const DigestRecord *recipe, const i64 *arguments) {
  static const char HEX[] = "0123456789abcdef";
  const PartRecord *parts = (const PartRecord *)(recipe + 1);
  uint8_t text[TEXT_ROOM], digest[DIGEST_BYTES];
  for (i64 k = 0; k < recipe->parts; k++)
    if (parts[k].argument != NO_ARGUMENT) __builtin_prefetch(text_of(context->terms, arguments[parts[k].argument]).at);
  i64 n = write_parts(context->terms, recipe, arguments, text);
  if (n < 0) return NO_ANSWER;
  find_digest(context->openssl, text, n, digest);
  n = append(text, 0, (const void *)recipe->head, recipe->head_n);
  for (i64 k = 0; k < recipe->digits; k++) text[n++] = (uint8_t)HEX[k & 1 ? digest[k >> 1] & 15 : digest[k >> 1] >> 4];
  n = append(text, n, (const void *)recipe->tail, recipe->tail_n);
  return intern_text(context->terms, (Text){text, n});
}

/* Returns the number of a string in small letters, or in capitals. The host says it where there are escapes, or characters beyond ASCII. */
static i64 change_letters(const Terms *terms, i64 number, i64 kind) {
  Text whole = text_of(terms, number), string = string_of_term(terms, number).text;
  uint8_t text[TEXT_ROOM], first = kind == CAPITALS ? 'a' : 'A';
  if (string.at == NULL || whole.length > TEXT_ROOM) return NO_ANSWER;
  append(text, 0, whole.at, whole.length);
  for (i64 k = 1; k <= string.length; k++) {
    if (text[k] >= 0x80 || text[k] == '\\') return NO_ANSWER;
    if (text[k] >= first && text[k] < first + 26) text[k] ^= 'a' ^ 'A';
  }
  return intern_text(terms, (Text){text, whole.length});
}

/* Returns the number of the term that answers a question about the arguments at an address, or NO_ANSWER where the host has to say it. */
static i64 answer_question(i64 context_at, i64 who, i64 arguments_at) {
  const Context *context = (const Context *)context_at;
  const i64 *recipe = context->recipes[who], *arguments = (const i64 *)arguments_at;
  if (recipe == NULL) return NO_ANSWER;
  if (*recipe == ARITHMETIC) return calculate(context->terms, (const ArithmeticRecord *)recipe, arguments);
  if (*recipe == DIGEST) return name_digest(context, (const DigestRecord *)recipe, arguments);
  if (*recipe != INSTANT) return change_letters(context->terms, arguments[((const LettersRecord *)recipe)->argument], *recipe);
  uint8_t text[LONGEST_NUMBER];
  const InstantRecord *instant = (const InstantRecord *)recipe;
  const i64 *interval = arguments + instant->pair_at;
  return intern_written(context->terms, text, interval[0] <= interval[1] ? write_instant(text, interval[instant->which]) : 0);
}

/* Gives where `answer_question` stands, for code that calls it by its address. */
static int answer_address(const Argument *in, i64 *out) {
  (void)in;
  out[0] = (i64)(intptr_t)answer_question;
  return FINE;
}
