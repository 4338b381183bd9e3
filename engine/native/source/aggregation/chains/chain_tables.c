/* The live events of a chain of SEQs, and what is known of each key, as Python hands them over (engine/aggregation/chains/chain_tables.py).
 *
 * Events have numbers in the order of their coming, and stand in a ring by them. Those of a key and operand are linked, oldest first. So are those
 * of one label, which is an event's terms: the table `labels` finds the newest one. */

typedef struct {
  ChainAtRecord *at;
  i64 *events, event_width, event_mask;
  i64 *keys, key_width, key_room;
  i64 *heads, head_mask;   /* of keys by hash */
  i64 *labels, label_mask; /* of events by hash, the newest of each label alone */
  const i64 *key_columns, *group_columns;
  i64 key_n, group_n; /* the columns of a row that are the key of the chain, and of its groups */
  const LinkRecord *links;
  i64 held;           /* set functions */
  i64 parts, cell_n;  /* of a weight; of a row */
  i64 prefix, place, cells;  /* where an event has the weight of the first events before it, its place in the front, and its terms */
  i64 gone, products, stacks; /* where a key has the weight of the first events that have left, its products and its stacks */
  i64 cuts;                   /* a bit for each gap with WITHOUT */
  i64 has_ring, has_stacks;   /* whether products are in use, and stacks */
  i64 entry_parts, bests;     /* of an entry of the stacks: how many sums it has, and how many events that have the best value */
  i64 entry;                  /* how many cells it has */
  i64 extreme_ops[MOST_EXTREMES];
} Chains;

typedef struct { /* what comes, a row a moment; of one instant the last operand comes first, and the first one last */
  const MomentRecord *moments;
  const i64 *steps, *values, *rows;
  i64 count;
} ChainInput;

typedef struct { /* solutions, each a moment: sums with their groups' keys, or matches with their terms in `keys` */
  i64 *moments, *keys, *values;
  i64 room, key_n, value_width;
  int sums;
} ChainOutput;

enum { CHAIN_TABLE_ARGUMENTS = 8, CHAIN_INPUT_ARGUMENTS = 4, CHAIN_OUTPUT_ARGUMENTS = 3 };

static inline EventRecord *event_at(const Chains *c, i64 e) { return (EventRecord *)(c->events + (e & c->event_mask) * c->event_width); }
static inline ChainKeyRecord *chain_key_at(const Chains *c, i64 k) { return (ChainKeyRecord *)(c->keys + k * c->key_width); }
static inline i64 *event_values(const Chains *c, i64 e) { return (i64 *)event_at(c, e) + EVENT_WIDTH; }
static inline ValueRecord *event_extreme(const Chains *c, i64 e, i64 x) { return (ValueRecord *)(event_values(c, e) + 2 * (c->parts - 1)) + x; }
static inline PlaceRecord *place_of(const Chains *c, i64 e) { return (PlaceRecord *)((i64 *)event_at(c, e) + c->place); }
static inline i64 *event_prefix(const Chains *c, i64 e) { return (i64 *)event_at(c, e) + c->prefix; }
static inline i64 *event_cells(const Chains *c, i64 e) { return (i64 *)event_at(c, e) + c->cells; }
static inline i64 *key_cells(const Chains *c, i64 k) { return (i64 *)chain_key_at(c, k) + KEY_WIDTH; }
static inline i64 *gone_at(const Chains *c, i64 k) { return (i64 *)chain_key_at(c, k) + c->gone; }
static inline i64 *oldest_of(const Chains *c, i64 k, i64 step) { return (i64 *)chain_key_at(c, k) + KEY_OLDEST + step; }
static inline i64 *newest_of(const Chains *c, i64 k, i64 step) { return (i64 *)chain_key_at(c, k) + KEY_NEWEST + step; }

/* Returns the weight of the ways to do the steps `from` to `to` (exclusive), one event each. */
static inline i64 *product_at(const Chains *c, i64 k, i64 from, i64 to) {
  i64 before = from * (c->at->steps - 1) - from * (from - 1) / 2;
  return (i64 *)chain_key_at(c, k) + c->products + 2 * c->parts * (before + to - from - 1);
}

static inline StacksRecord *stacks_of(const Chains *c, i64 k) { return (StacksRecord *)((i64 *)chain_key_at(c, k) + c->stacks); }
static inline i64 *applied_at(const Chains *c, i64 k, i64 gap) { return (i64 *)stacks_of(c, k) + APPLIED + gap; }
static inline i64 *blocker_at(const Chains *c, i64 k, i64 gap) { return (i64 *)stacks_of(c, k) + BLOCKER + gap; }
/* An event that is no operand's blocks a gap, which is that between operand `gap` and the next one. */
static inline int is_blocker(const Chains *c, i64 step) { return step >= c->at->steps; }

/* Returns the key that has the blockers of a gap for key k, NONE if there is none. */
static inline i64 owner_of(const Chains *c, i64 k, i64 gap) {
  if (c->cuts >> gap & 1) return c->at->cuts_all >> gap & 1 ? c->at->common_key : k;
  return NONE;
}

static inline i64 values_of(const Chains *c) { return 2 * (c->parts - 1) + c->at->extremes * VALUE_WIDTH; }

static inline int is_live(const Chains *c, i64 e) { return e >= c->at->oldest_event; }

static inline i64 hash_cells(const i64 *cells, const i64 *columns, i64 n) {
  i64 hash = 0;
  for (i64 k = 0; k < n; k++) {
    hash = (hash ^ cells[columns == NULL ? k : columns[k]]) * MIX;
    hash ^= hash >> 29 & 0x7FFFFFFFF;
  }
  return hash;
}

/* ---------------------------------------------------------------- keys */
/* Brings the stacks of a key to where it has no events. */
static void clear_stacks(const Chains *c, i64 k) {
  *stacks_of(c, k) = (StacksRecord){.stale = 1, .turned = NONE, .open = -1, .pending = 0, .newest = NONE};
  for (i64 gap = 0; gap < MOST_STEPS - 1; gap++) *applied_at(c, k, gap) = *blocker_at(c, k, gap) = NONE;
}

static inline int has_cells(const Chains *c, i64 k, const i64 *row) {
  for (i64 n = 0; n < c->key_n; n++)
    if (key_cells(c, k)[n] != row[c->key_columns[n]]) return 0;
  return 1;
}

/* Returns the key of a row, NONE if it has no events. */
static i64 find_chain(const Chains *c, const i64 *row) {
  i64 k = c->heads[hash_cells(row, c->key_columns, c->key_n) & c->head_mask];
  while (k != NONE && !has_cells(c, k, row)) k = chain_key_at(c, k)->chained;
  return k;
}

/* Makes the key of a row, for which there is room. */
static i64 make_chain(const Chains *c, const i64 *row) {
  i64 k = c->at->free_key, *head = &c->heads[hash_cells(row, c->key_columns, c->key_n) & c->head_mask];
  if (k == NONE)
    k = c->at->keys_top++;
  else
    c->at->free_key = chain_key_at(c, k)->chained;
  memset(chain_key_at(c, k), 0, (size_t)c->key_width * sizeof(i64));
  for (i64 step = 0; step < MOST_STEPS - 1; step++) *oldest_of(c, k, step) = *newest_of(c, k, step) = NONE;
  for (i64 n = 0; n < c->key_n; n++) key_cells(c, k)[n] = row[c->key_columns[n]];
  if (c->has_stacks) clear_stacks(c, k);
  chain_key_at(c, k)->chained = *head;
  *head = k;
  c->at->live_keys++;
  return k;
}

/* Frees a key without events. */
static void free_chain(const Chains *c, i64 k) {
  if (c->at->common_key == k) c->at->common_key = NONE;
  i64 *link = &c->heads[hash_cells(key_cells(c, k), NULL, c->key_n) & c->head_mask];
  while (*link != k) link = &chain_key_at(c, *link)->chained;
  *link = chain_key_at(c, k)->chained;
  chain_key_at(c, k)->chained = c->at->free_key;
  c->at->free_key = k;
  c->at->live_keys--;
}

/* ---------------------------------------------------------------- labels */
static inline i64 *label_head(const Chains *c, i64 e) { return &c->labels[hash_cells(event_cells(c, e), NULL, c->cell_n) & c->label_mask]; }

static void enter_label(const Chains *c, i64 e) {
  i64 *head = label_head(c, e);
  event_at(c, e)->bucket = *head;
  *head = e;
}

/* Takes out the event that is the newest of its label. */
static void remove_label(const Chains *c, i64 e) {
  i64 *link = label_head(c, e);
  while (*link != e) link = &event_at(c, *link)->bucket;
  *link = event_at(c, e)->bucket;
}

/* Returns the newest live event with the label of e, NONE if there is none. */
static i64 find_label(const Chains *c, i64 e) {
  i64 other = *label_head(c, e);
  while (other != NONE && memcmp(event_cells(c, other), event_cells(c, e), (size_t)c->cell_n * sizeof(i64)) != 0) other = event_at(c, other)->bucket;
  return other;
}


/* ---------------------------------------------------------------- what Python hands over */
static int are_columns(View view, i64 cells) {
  const i64 *column = view.at;
  for (i64 n = 0; n < view.count; n++)
    if (column[n] < 0 || column[n] >= cells) return 0;
  return 1;
}

static int is_power(i64 count) { return count > 0 && (count & (count - 1)) == 0; }

/* Says where the columns of events and keys begin. Returns whether rows are as wide as they must be. */
static int lay_out(Chains *c) {
  i64 steps = c->at->steps;
  if (steps < 2 || steps > MOST_STEPS || c->parts < 1 || c->parts > MOST_PARTS || c->at->extremes < 0 || c->at->extremes > MOST_EXTREMES) return 0;
  c->cuts = c->at->cuts_by_key | c->at->cuts_all;
  if (c->cuts < 0 || c->cuts >> (steps - 1)) return 0;
  c->has_ring = c->at->counts && !c->cuts;
  c->has_stacks = c->cuts || c->at->extremes > 0;
  c->entry_parts = c->cuts ? c->parts : 1;
  c->bests = c->at->extremes + (c->cuts != 0);
  c->entry = 2 * c->entry_parts + c->bests;
  c->prefix = EVENT_WIDTH + values_of(c);
  c->place = c->prefix + 2 * c->parts;
  c->cells = c->place + (c->has_stacks ? PLACE_WIDTH + (steps - 1) * c->entry : 0);
  c->cell_n = c->event_width - c->cells;
  c->gone = KEY_WIDTH + c->key_n;
  c->products = c->gone + 2 * c->parts;
  c->stacks = c->products + c->parts * steps * (steps - 1);
  return c->cell_n >= 0 && c->key_width == c->stacks + (c->has_stacks ? STACKS_WIDTH + steps * (steps - 1) / 2 * c->entry : 0);
}

/* Returns whether the links of the set functions fit the weights, whose extremes they name. */
static int take_links(Chains *c) {
  for (i64 a = 0; a < c->held; a++) {
    const LinkRecord *link = &c->links[a];
    int extreme = link->op == MIN || link->op == MAX;
    if (link->part < 0 || link->part >= (extreme ? c->at->extremes : c->parts) || link->wide < 0 || link->wide >= c->parts) return 0;
    if (extreme) c->extreme_ops[link->part] = link->op;
  }
  return 1;
}

/* Takes at, events, keys, heads, labels, the columns of the key and of the groups, and links. */
static int take_chains(const Argument *in, Chains *c) {
  *c = (Chains){
      .at = in[0].view.at, .events = in[1].view.at, .event_width = in[1].view.width, .event_mask = rows_of(in[1].view) - 1,
      .keys = in[2].view.at, .key_width = in[2].view.width, .key_room = rows_of(in[2].view),
      .heads = in[3].view.at, .head_mask = in[3].view.count - 1, .labels = in[4].view.at, .label_mask = in[4].view.count - 1,
      .key_columns = in[5].view.at, .group_columns = in[6].view.at, .key_n = in[5].view.count, .group_n = in[6].view.count,
      .links = in[7].view.at, .held = in[7].view.count / LINK_WIDTH,
  };
  if (in[0].view.count < CHAIN_AT_WIDTH || !is_power(in[3].view.count) || !is_power(in[4].view.count) || !is_power(rows_of(in[1].view))) return 0;
  c->parts = c->at->parts;
  if (!lay_out(c) || !are_columns(in[5].view, c->cell_n) || !are_columns(in[6].view, c->cell_n)) return 0;
  i64 live = c->at->next_event - c->at->oldest_event;
  if (!take_links(c) || c->at->common_key < NONE || c->at->common_key >= c->key_room) return 0;
  return live >= 0 && live <= c->event_mask + 1 && c->at->keys_top >= 0 && c->at->keys_top <= c->key_room;
}

/* Takes moments, steps, values and rows. Returns whether each has a row a moment, and whether the tables have room for as many events and keys. */
static int take_chain_input(const Argument *in, const Chains *c, ChainInput *came) {
  i64 count = in[0].view.count / MOMENT_WIDTH;
  *came = (ChainInput){in[0].view.at, in[1].view.at, in[2].view.at, in[3].view.at, count};
  if (in[1].view.count < count || in[2].view.count < count * values_of(c) || in[3].view.count < count * c->cell_n) return 0;
  for (i64 i = 0; i < count; i++)
    if (came->moments[i].side == SOLUTION && (came->steps[i] < 0 || came->steps[i] > 2 * (c->at->steps - 1))) return 0;
  i64 live = c->at->next_event - c->at->oldest_event, coming = count - c->at->moment;
  return c->at->moment >= 0 && live + coming <= c->event_mask + 1 && c->at->keys_top + coming <= c->key_room;
}

/* Takes moments, keys and values, or moments, terms and nothing. */
static int take_chain_output(const Argument *in, const Chains *c, ChainOutput *out) {
  *out = (ChainOutput){in[0].view.at, in[1].view.at, in[2].view.at, in[0].view.count / MOMENT_WIDTH, in[1].view.width, in[2].view.width, 0};
  out->sums = in[2].view.count > 0;
  i64 keys = out->sums ? c->group_n : c->cell_n;
  if (out->key_n < keys || in[1].view.count < out->room * out->key_n || c->at->given < 0) return 0;
  return !out->sums || (out->value_width >= c->held * VALUE_WIDTH && in[2].view.count >= out->room * out->value_width);
}

/* tables: enters keys and events into tables of heads, which are empty. */
static int spread_chains(const Argument *in, i64 *out) {
  Chains c;
  (void)out;
  if (!take_chains(in, &c)) return OUT_OF_BOUNDS;
  for (i64 k = 0; k < c.at->keys_top; k++) {
    if (chain_key_at(&c, k)->events == 0) continue;
    i64 *head = &c.heads[hash_cells(key_cells(&c, k), NULL, c.key_n) & c.head_mask];
    chain_key_at(&c, k)->chained = *head;
    *head = k;
  }
  for (i64 e = c.at->oldest_event; e < c.at->next_event; e++)
    if (!event_at(&c, e)->repeated && !is_blocker(&c, event_at(&c, e)->step)) enter_label(&c, e);
  return FINE;
}

/* tables, a part, a factor. Multiplies the values of this part, and lets all products be made anew. Gives whether a value is too large. */
static int scale_values(const Argument *in, i64 *out) {
  Chains c;
  i64 fault = 0, part = in[CHAIN_TABLE_ARGUMENTS].number, shift = in[CHAIN_TABLE_ARGUMENTS + 1].number;
  i128 factor = in[CHAIN_TABLE_ARGUMENTS + 2].number;
  if (!take_chains(in, &c) || part < 1 || part >= c.parts || shift < 0 || shift > 100) return OUT_OF_BOUNDS;
  factor <<= shift;
  for (i64 e = c.at->oldest_event; e < c.at->next_event; e++) {
    i64 *value = event_values(&c, e) + 2 * (part - 1);
    write_wide(value, multiply(read_wide(value), factor, &fault));
  }
  for (i64 k = 0; k < c.at->keys_top; k++) {
    chain_key_at(&c, k)->stale = 1;
    if (c.has_stacks) stacks_of(&c, k)->stale = 1;
  }
  out[0] = fault;
  return FINE;
}
