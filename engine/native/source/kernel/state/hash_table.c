/* Hash tables with chains: the table has the newest item of each chain, and an item's `hash` and `next` stand in its row.
 * Their size is a power of two, and the least bits of the hash choose the chain. */

static inline i64 mix_hash(i64 hash, i64 term) {
  hash = (hash ^ term) * MIX;
  return hash ^ hash >> 29;
}

/* Makes an item the newest of its chain; `number` is what the chains know it by. */
static inline void enter_item(Buckets heads, Item *item, i64 number) {
  i64 *head = &heads.at[item->hash & heads.mask];
  item->next = *head;
  *head = number;
}

/* Enters the first n items of a table, whose rows have `width` cells, into the empty, larger `heads`; the chains know them by numbers from
 * `first` on. */
static void spread_items(Buckets heads, i64 *table, i64 width, i64 n, i64 first) {
  for (i64 k = 0; k < n; k++) enter_item(heads, (Item *)&table[k * width], first + k);
}

static inline Buckets buckets_in(View heads) { return (Buckets){heads.at, heads.count - 1}; }
static inline Chains chains_in(View heads) { return (Chains){heads.at, heads.count - 1}; }
