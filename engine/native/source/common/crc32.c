/* CRC-32 as zlib has it. Eight bytes are taken a step: table j gives the effect of a byte that j more bytes follow.
 * Source: Kounavis and Berry, "A Systematic Approach to Building High Performance Software-Based CRC Generators" (2005). */

enum { SLICE = 8, NO_PARTITION = -1, UNSEEN = -2 };
/* SPREADING: texts that differ in a digit or two have CRCs that are too alike. */
static const uint32_t POLYNOMIAL = 0xEDB88320, SPREADING = 0x9E3779B1;

typedef uint32_t CrcTables[SLICE][256];

static void fill_tables(CrcTables tables) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
    tables[0][byte] = crc;
  }
  for (int j = 1; j < SLICE; j++)
    for (int byte = 0; byte < 256; byte++) tables[j][byte] = tables[j - 1][byte] >> 8 ^ tables[0][tables[j - 1][byte] & 0xFF];
}

static uint32_t find_crc(CrcTables tables, const uint8_t *data, i64 length) {
  uint32_t crc = UINT32_MAX;
  i64 k = 0;
  for (; k + SLICE <= length; k += SLICE) {
    uint32_t low = crc ^ ((uint32_t)data[k] | (uint32_t)data[k + 1] << 8 | (uint32_t)data[k + 2] << 16 | (uint32_t)data[k + 3] << 24);
    crc = tables[7][low & 0xFF] ^ tables[6][low >> 8 & 0xFF] ^ tables[5][low >> 16 & 0xFF] ^ tables[4][low >> 24] ^ tables[3][data[k + 4]] ^
          tables[2][data[k + 5]] ^ tables[1][data[k + 6]] ^ tables[0][data[k + 7]];
  }
  for (; k < length; k++) crc = crc >> 8 ^ tables[0][(crc ^ data[k]) & 0xFF];
  return ~crc;
}

/* offsets, data: the texts; indices: which text each row has, below 0 for none; the number of partitions; found: the partition of each row */
static int mark_partitions(const Argument *in, i64 *out) {
  const int32_t *offsets = in[0].view.at, *indices = in[2].view.at;
  const uint8_t *data = in[1].view.at;
  i64 texts = in[0].view.count - 1, rows = in[2].view.count, partitions = in[3].number;
  int16_t *found = in[4].view.at, *seen = malloc((size_t)(texts > 0 ? texts : 1) * sizeof *seen);
  CrcTables tables;
  int status = FINE;
  (void)out;
  if (seen == NULL) return NO_MEMORY;
  fill_tables(tables);
  for (i64 k = 0; k < texts; k++) seen[k] = UNSEEN;
  if (in[4].view.count < rows) status = OUT_OF_BOUNDS;
  for (i64 row = 0; row < rows && status == FINE; row++) {
    i64 which = indices[row];
    found[row] = NO_PARTITION;
    if (which < 0) continue;
    if (which >= texts || offsets[which] < 0 || offsets[which] > offsets[which + 1] || offsets[which + 1] > in[1].view.count) {
      status = OUT_OF_BOUNDS;
      continue;
    }
    if (seen[which] == UNSEEN) {
      uint32_t mixed = find_crc(tables, data + offsets[which], offsets[which + 1] - offsets[which]) * SPREADING;
      seen[which] = (int16_t)((u64)mixed * (u64)partitions >> 32);
    }
    found[row] = seen[which];
  }
  free(seen);
  return status;
}

/* Returns the product of two polynomials modulo the CRC's; the highest bit is the constant term. */
static uint32_t multiply_polynomials(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
    if (a & bit) product ^= b;
    b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
  }
  return product;
}

/* first, second: the CRCs of some bytes and of those that follow; how many bytes these are. Gives the CRC of all. */
static int join_crcs(const Argument *in, i64 *out) {
  uint32_t power = 1u << 23, factor = 1u << 31; /* x to the 8th, for a byte, and 1 */
  for (i64 length = in[2].number; length > 0; length >>= 1) {
    if (length & 1) factor = multiply_polynomials(power, factor);
    power = multiply_polynomials(power, power);
  }
  out[0] = multiply_polynomials(factor, (uint32_t)in[0].word) ^ (uint32_t)in[1].word;
  return FINE;
}
