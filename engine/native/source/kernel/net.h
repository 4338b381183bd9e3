/* The tables of one network as the kernel sees them. The handle is the address of a Table for each field of `Net`
 * (engine/kernel/state/arrays.py), in order. No table moves while the kernel runs, and no two share memory.
 * A checked build stops at a row that a table does not have. */
#pragma once
#include "../entry.h"
#include "kernel_layout.h"
#include <stddef.h>
#ifdef CHECKED
#include <stdio.h>
#include <stdlib.h>
#endif

typedef struct {
  i64 address, height, width;
} Table;

typedef struct __attribute__((packed, aligned(4))) { /* one solution: goals are many, so the cells from `older` on are short */
  i64 start, end, hash;
  int32_t older, newer, queue, terms[];
} Row;

typedef struct { /* what filters compute with, and the bound of its error */
  double value, slack;
} Number;

typedef struct { /* a hash table of goals: the newest of each chain */
  int32_t *restrict at;
  i64 mask;
} Chains;

typedef struct { /* a hash table of items that begin as Item does, by their numbers */
  i64 *restrict at;
  i64 mask;
} Buckets;

typedef struct {
  i64 next, hash;
} Item;

typedef FrameRecord Frame;

struct Tables {
  const Table *handle;
  i64 width, row_bytes; /* variables of a row, and its length */
  NodesRecord *restrict nodes;
  const EdgesRecord *restrict edges;
  const i64 *restrict slots;
  AlphaAtRecord *restrict alpha_at;
  const AlphaRecord *restrict alpha;
  const WantsRecord *restrict wants;
  const PostedRecord *restrict posted;
  const ListsRecord *restrict lists;
  const PostingsRecord *restrict postings;
  const CodeRecord *restrict code;
  const Number *restrict consts;
  const AsksRecord *restrict asks;
  const TemplatesRecord *restrict templates;
  const MovesRecord *restrict moves;
  TimersRecord *restrict timers;
  const ReadsRecord *restrict reads;
  const i64 *restrict facts;
  const LookupsRecord *restrict lookups;
  const MomentsRecord *restrict moments;
  const Number *restrict numbers;
  const int8_t *restrict kinds;
  const TermsRecord *restrict terms;
  const i64 *restrict feed;
  QueriesRecord *restrict queries;
  StreamsRecord *restrict streams;
  AtRecord *restrict at;
  char *restrict rows;
  LinksRecord *restrict links;
  int32_t *restrict free;
  Chains heads, timeless;
  StoresRecord *restrict stores;
  Frame *restrict stack;
  Frame *restrict waiting;
  Frame *restrict parked;
  Frame *restrict gathered;
  DeferredRecord *restrict deferred;
  const i64 *restrict reports;
  i64 *restrict out;
  i64 *restrict seen;
  Buckets seen_heads;
  i64 *restrict questions;
  Buckets question_heads;
  NestsRecord *restrict nests;
  Number *restrict scratch;
  i64 *restrict shown;
  const i64 *restrict answers;
};

typedef const struct Tables *restrict Net;

static inline void *address_in(const Table *handle, i64 table) { return (void *)(intptr_t)handle[table].address; }

static struct Tables read_handle(i64 address) {
  const Table *handle = (const Table *)(intptr_t)address;
  i64 width = handle[TABLE_ROWS].width - VAR;
  return (struct Tables){
      .handle = handle, .width = width, .row_bytes = (i64)sizeof(Row) + width * (i64)sizeof(int32_t),
      .nodes = address_in(handle, TABLE_NODES), .edges = address_in(handle, TABLE_EDGES), .slots = address_in(handle, TABLE_SLOTS),
      .alpha_at = address_in(handle, TABLE_ALPHA_AT), .alpha = address_in(handle, TABLE_ALPHA),
      .wants = address_in(handle, TABLE_WANTS), .posted = address_in(handle, TABLE_POSTED), .lists = address_in(handle, TABLE_LISTS),
      .postings = address_in(handle, TABLE_POSTINGS), .code = address_in(handle, TABLE_CODE),
      .consts = address_in(handle, TABLE_CONSTS), .asks = address_in(handle, TABLE_ASKS),
      .templates = address_in(handle, TABLE_TEMPLATES), .moves = address_in(handle, TABLE_MOVES),
      .timers = address_in(handle, TABLE_TIMERS), .reads = address_in(handle, TABLE_READS), .facts = address_in(handle, TABLE_FACTS),
      .lookups = address_in(handle, TABLE_LOOKUPS),
      .moments = address_in(handle, TABLE_MOMENTS), .numbers = address_in(handle, TABLE_NUMBERS),
      .kinds = address_in(handle, TABLE_KINDS), .terms = address_in(handle, TABLE_TERMS), .feed = address_in(handle, TABLE_FEED),
      .queries = address_in(handle, TABLE_QUERIES), .streams = address_in(handle, TABLE_STREAMS), .at = address_in(handle, TABLE_AT),
      .rows = address_in(handle, TABLE_ROWS), .links = address_in(handle, TABLE_LINKS), .free = address_in(handle, TABLE_FREE),
      .heads = {address_in(handle, TABLE_HEADS), handle[TABLE_HEADS].height - 1},
      .timeless = {address_in(handle, TABLE_TIMELESS), handle[TABLE_TIMELESS].height - 1}, .stores = address_in(handle, TABLE_STORES),
      .stack = address_in(handle, TABLE_STACK), .waiting = address_in(handle, TABLE_WAITING),
      .parked = address_in(handle, TABLE_PARKED), .gathered = address_in(handle, TABLE_GATHERED),
      .deferred = address_in(handle, TABLE_DEFERRED), .reports = address_in(handle, TABLE_REPORTS),
      .out = address_in(handle, TABLE_OUT), .seen = address_in(handle, TABLE_SEEN),
      .seen_heads = {address_in(handle, TABLE_SEEN_HEADS), handle[TABLE_SEEN_HEADS].height - 1},
      .questions = address_in(handle, TABLE_QUESTIONS),
      .question_heads = {address_in(handle, TABLE_QUESTION_HEADS), handle[TABLE_QUESTION_HEADS].height - 1},
      .nests = address_in(handle, TABLE_NESTS), .scratch = address_in(handle, TABLE_SCRATCH), .shown = address_in(handle, TABLE_SHOWN),
      .answers = address_in(handle, TABLE_ANSWERS),
  };
}

/* ---------------------------------------------------------------- rows of tables */
/* Returns k, a row that a table with `height` rows has. */
static inline i64 within(i64 k, i64 height) {
#ifdef CHECKED
  if (k < 0 || k >= height) {
    fprintf(stderr, "the kernel has come to row %lld of a table with %lld rows\n", (long long)k, (long long)height);
    abort();
  }
#endif
  (void)height;
  return k;
}

static inline i64 height_of(Net net, i64 table) { return net->handle[table].height; }
static inline i64 place_in(Net net, i64 table, i64 k) { return within(k, height_of(net, table)); }

static inline NodesRecord *node_at(Net net, i64 k) { return &net->nodes[place_in(net, TABLE_NODES, k)]; }
static inline const EdgesRecord *edge_at(Net net, i64 k) { return &net->edges[place_in(net, TABLE_EDGES, k)]; }
static inline i64 slot_at(Net net, i64 k) { return net->slots[place_in(net, TABLE_SLOTS, k)]; }
static inline AlphaAtRecord *predicate_at(Net net, i64 k) { return &net->alpha_at[within(k, height_of(net, TABLE_ALPHA_AT) / ALPHA_AT_WIDTH)]; }
static inline const AlphaRecord *alpha_at(Net net, i64 k) { return &net->alpha[place_in(net, TABLE_ALPHA, k)]; }
static inline const WantsRecord *want_at(Net net, i64 k) { return &net->wants[place_in(net, TABLE_WANTS, k)]; }
static inline const ListsRecord *list_at(Net net, i64 k) { return &net->lists[place_in(net, TABLE_LISTS, k)]; }
static inline const PostingsRecord *posting_at(Net net, i64 k) { return &net->postings[place_in(net, TABLE_POSTINGS, k)]; }
static inline const CodeRecord *code_at(Net net, i64 k) { return &net->code[place_in(net, TABLE_CODE, k)]; }
static inline const Number *const_at(Net net, i64 k) { return &net->consts[place_in(net, TABLE_CONSTS, k)]; }
static inline const AsksRecord *ask_at(Net net, i64 k) { return &net->asks[place_in(net, TABLE_ASKS, k)]; }
static inline const TemplatesRecord *template_at(Net net, i64 k) { return &net->templates[place_in(net, TABLE_TEMPLATES, k)]; }
static inline const MovesRecord *move_at(Net net, i64 k) { return &net->moves[place_in(net, TABLE_MOVES, k)]; }
static inline TimersRecord *timer_at(Net net, i64 k) { return &net->timers[place_in(net, TABLE_TIMERS, k)]; }
static inline const ReadsRecord *read_at(Net net, i64 k) { return &net->reads[place_in(net, TABLE_READS, k)]; }
static inline const LookupsRecord *lookup_at(Net net, i64 k) { return &net->lookups[place_in(net, TABLE_LOOKUPS, k)]; }
static inline const MomentsRecord *moment_at(Net net, i64 k) { return &net->moments[place_in(net, TABLE_MOMENTS, k)]; }
static inline const Number *number_at(Net net, i64 k) { return &net->numbers[place_in(net, TABLE_NUMBERS, k)]; }
static inline i64 kind_at(Net net, i64 k) { return net->kinds[place_in(net, TABLE_KINDS, k)]; }
static inline const TermsRecord *text_at(Net net, i64 k) { return &net->terms[place_in(net, TABLE_TERMS, k)]; }
static inline i64 fed(Net net, i64 column, i64 k) {
  i64 width = net->handle[TABLE_FEED].width;
  return net->feed[column * width + within(k, width)];
}
static inline QueriesRecord *query_at(Net net, i64 k) { return &net->queries[place_in(net, TABLE_QUERIES, k)]; }
static inline StreamsRecord *stream_at(Net net, i64 k) { return &net->streams[place_in(net, TABLE_STREAMS, k)]; }
static inline Row *row_at(Net net, i64 k) { return (Row *)(net->rows + place_in(net, TABLE_ROWS, k) * net->row_bytes); }
static inline LinksRecord *link_at(Net net, i64 k) { return &net->links[place_in(net, TABLE_LINKS, k)]; }
static inline StoresRecord *store_at(Net net, i64 k) { return &net->stores[place_in(net, TABLE_STORES, k)]; }
static inline Frame *frame_at(Net net, i64 k) { return &net->stack[place_in(net, TABLE_STACK, k)]; }
static inline Frame *waiting_at(Net net, i64 k) { return &net->waiting[place_in(net, TABLE_WAITING, k)]; }
static inline Frame *parked_at(Net net, i64 k) { return &net->parked[place_in(net, TABLE_PARKED, k)]; }
static inline Frame *gathered_at(Net net, i64 k) { return &net->gathered[place_in(net, TABLE_GATHERED, k)]; }
static inline DeferredRecord *deferred_at(Net net, i64 k) { return &net->deferred[place_in(net, TABLE_DEFERRED, k)]; }
static inline NestsRecord *nest_at(Net net, i64 k) { return &net->nests[place_in(net, TABLE_NESTS, k)]; }
static inline Number *scratch_at(Net net, i64 k) { return &net->scratch[place_in(net, TABLE_SCRATCH, k)]; }

/* Rows of these tables go on with terms, or arguments, as many as the network is wide. */
static inline const FactsRecord *fact_at(Net net, i64 k) {
  return (const FactsRecord *)&net->facts[place_in(net, TABLE_FACTS, k) * (F_VAR + net->width)];
}
static inline const ReportsRecord *report_at(Net net, i64 k) {
  return (const ReportsRecord *)&net->reports[place_in(net, TABLE_REPORTS, k) * (G_VAR + net->width)];
}
static inline OutRecord *out_at(Net net, i64 k) { return (OutRecord *)&net->out[place_in(net, TABLE_OUT, k) * (OUT_VAR + net->width)]; }
static inline SeenRecord *seen_at(Net net, i64 k) { return (SeenRecord *)&net->seen[place_in(net, TABLE_SEEN, k) * (SEEN_VAR + net->width)]; }
static inline QuestionsRecord *question_at(Net net, i64 k) {
  return (QuestionsRecord *)&net->questions[place_in(net, TABLE_QUESTIONS, k) * net->handle[TABLE_QUESTIONS].width];
}
static inline const i64 *fact_terms(Net net, i64 k) { return (const i64 *)fact_at(net, k) + F_VAR; }
static inline const i64 *report_terms(Net net, i64 k) { return (const i64 *)report_at(net, k) + G_VAR; }
static inline i64 *out_terms(Net net, i64 k) { return (i64 *)out_at(net, k) + OUT_VAR; }
static inline i64 *seen_terms(Net net, i64 k) { return (i64 *)seen_at(net, k) + SEEN_VAR; }
static inline i64 *arguments_of(Net net, i64 question) { return (i64 *)question_at(net, question) + ASK_ARG; }

/* The variable of a row in a column, from VAR on. */
static inline int32_t *term_at(Net net, Row *row, i64 column) { return &row->terms[within(column - VAR, net->width)]; }
static inline i64 term_of(Net net, const Row *row, i64 column) { return row->terms[within(column - VAR, net->width)]; }

/* ---------------------------------------------------------------- numbers */
static inline i64 lesser(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 greater(i64 a, i64 b) { return a > b ? a : b; }

/* Returns a / b rounded down; b is above 0. */
static inline i64 divide_down(i64 a, i64 b) { return a / b - (a % b < 0); }
