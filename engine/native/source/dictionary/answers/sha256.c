/* SHA-256 (FIPS 180-4), for names that are digests of terms.
 * OpenSSL computes it, which Python's hashlib has loaded, by the processor's own instructions. Where Python is linked otherwise, this file does. */

enum { BLOCK_BYTES = 64, STATE_WORDS = 8, DIGEST_BYTES = 4 * STATE_WORDS };

typedef struct { /* SHA256_Init, SHA256_Update and SHA256_Final */
  int (*begin)(void *state);
  int (*update)(void *state, const void *data, size_t n);
  int (*finish)(uint8_t *digest, void *state);
} OpenSsl;

static const uint32_t ROUNDS[BLOCK_BYTES] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
static const uint32_t FIRST_STATE[STATE_WORDS] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static inline uint32_t turned(uint32_t value, int by) { return value >> by | value << (32 - by); }

/* Mixes a word into the state, whose values have moved j places on instead of being copied. */
static inline void mix_word(uint32_t *s, int j, uint32_t word) {
  uint32_t a = s[-j & 7], b = s[(1 - j) & 7], c = s[(2 - j) & 7], e = s[(4 - j) & 7], f = s[(5 - j) & 7], g = s[(6 - j) & 7];
  uint32_t first = s[(7 - j) & 7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + (g ^ (e & (f ^ g))) + word;
  s[(3 - j) & 7] += first;
  s[(7 - j) & 7] = first + (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) | (c & (a | b)));
}

/* Mixes a block into the state. */
static void mix_block(uint32_t *state, const uint8_t *block) {
  uint32_t words[BLOCK_BYTES], s[STATE_WORDS];
  for (int k = 0; k < 16; k++)
    words[k] = (uint32_t)block[4 * k] << 24 | (uint32_t)block[4 * k + 1] << 16 | (uint32_t)block[4 * k + 2] << 8 | block[4 * k + 3];
  for (int k = 16; k < BLOCK_BYTES; k++) {
    uint32_t early = words[k - 15], late = words[k - 2], mixed = turned(early, 7) ^ turned(early, 18) ^ early >> 3;
    words[k] = words[k - 16] + mixed + words[k - 7] + (turned(late, 17) ^ turned(late, 19) ^ late >> 10);
  }
  memcpy(s, state, sizeof s);
  for (int k = 0; k < BLOCK_BYTES; k += 8) { /* written out, so that the state stays in registers */
    mix_word(s, 0, ROUNDS[k] + words[k]);
    mix_word(s, 1, ROUNDS[k + 1] + words[k + 1]);
    mix_word(s, 2, ROUNDS[k + 2] + words[k + 2]);
    mix_word(s, 3, ROUNDS[k + 3] + words[k + 3]);
    mix_word(s, 4, ROUNDS[k + 4] + words[k + 4]);
    mix_word(s, 5, ROUNDS[k + 5] + words[k + 5]);
    mix_word(s, 6, ROUNDS[k + 6] + words[k + 6]);
    mix_word(s, 7, ROUNDS[k + 7] + words[k + 7]);
  }
  for (int k = 0; k < STATE_WORDS; k++) state[k] += s[k];
}

/* Leaves the digest of n bytes, behind which there is room for BLOCK_BYTES + 8 more. */
static void digest_here(uint8_t *data, i64 n, uint8_t *digest) {
  uint32_t state[STATE_WORDS];
  i64 length = (n + 8) / BLOCK_BYTES * BLOCK_BYTES + BLOCK_BYTES;
  memset(data + n, 0, (size_t)(length - n));
  data[n] = 0x80;
  for (int k = 0; k < 8; k++) data[length - 1 - k] = (uint8_t)(8 * (u64)n >> 8 * k);
  memcpy(state, FIRST_STATE, sizeof state);
  for (i64 block = 0; block < length; block += BLOCK_BYTES) mix_block(state, data + block);
  for (int k = 0; k < DIGEST_BYTES; k++) digest[k] = (uint8_t)(state[k >> 2] >> (24 - 8 * (k & 3)));
}

/* Leaves the digest of n bytes, by OpenSSL if its functions are there. */
static void find_digest(const OpenSsl *openssl, uint8_t *data, i64 n, uint8_t *digest) {
  u64 state[32]; /* SHA256_CTX has 112 bytes */
  if (openssl == NULL) {
    digest_here(data, n, digest);
    return;
  }
  openssl->begin(state);
  openssl->update(state, data, (size_t)n);
  openssl->finish(digest, state);
}
