/* How Python calls a function of this module: numbers and views of memory go in, numbers come back, and the interpreter's lock is released
 * meanwhile. */
#pragma once
#include <stdint.h>

typedef int64_t i64;
typedef uint64_t u64;

typedef struct { /* an array of Python: where its items stand, how many, and how many a row has (all of them, if it has one dimension) */
  void *at;
  i64 count, width;
} View;

typedef union {
  i64 number;
  u64 word;
  double real;
  View view;
} Argument;

enum { FINE, NO_MEMORY, OUT_OF_BOUNDS }; /* what a call returns: OUT_OF_BOUNDS if an array is too short for what stands in another one */

typedef struct {
  const char *name;
  /* a letter an argument: n i64, u u64 (modulo 2 ** 64), x double; a view of b bytes, s i16, i i32, l i64, d double; a capital if it is written */
  const char *takes;
  int gives;         /* how many numbers come back; one is no tuple */
  int (*call)(const Argument *arguments, i64 *results);
} Entry;

enum { MOST_ARGUMENTS = 24, MOST_RESULTS = 8 };

extern const Entry common_entries[], formats_entries[], dictionary_entries[], aggregation_entries[], kernel_entries[]; /* an empty name ends each */
