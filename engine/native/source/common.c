/* What several parts of the product use: checksums of partitions, the heap of occurrences that wait for their time, and numbers of terms by slice. */
#include "entry.h"
#include <stdlib.h> /* NULL, malloc */

#include "common/crc32.c"
#include "common/event_heap.c"
#include "common/renumber.c"
#include "common/row_sets.c"

/* Gives whether this processor has what the module for newer processors needs (x86-64-v3: AVX2, BMI2, FMA and their kin). */
static int has_avx2(const Argument *in, i64 *out) {
  (void)in;
  out[0] = 0;
#ifdef __x86_64__
  __builtin_cpu_init();
  out[0] = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("popcnt");
#endif
  return FINE;
}

const Entry common_entries[] = {
    {"has_avx2", "", 1, has_avx2},
    {"mark_partitions", "ibinS", 0, mark_partitions},
    {"join_crcs", "uun", 1, join_crcs},
    {"add_to_heap", "Lnlnnn", 0, add_to_heap},
    {"count_due", "lnnn", 1, count_due},
    {"take_from_heap", "LnLnn", 0, take_from_heap},
    {"renumber_slices", "illnIIL", 0, renumber_slices},
    {"spread_rows", "lInu", 0, spread_rows},
    {"unite_rows", "LInul", 1, unite_rows},
    {"", "", 0, NULL},
};
