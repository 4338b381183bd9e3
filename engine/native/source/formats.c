/* Reads bodies of RDF streams and writes solutions: the usual content at native speed; the rest is for the exact path (pipeline/formats). */
#include "entry.h"
#include "formats_layout.h"
#include <stdlib.h>
#include <string.h>

#include "formats/text.c"
#include "formats/terms.c"
#include "formats/timestamps.c"
#include "formats/json_values.c"
#include "formats/interning.c"
#include "formats/ndjson.c"
#include "formats/nquads.c"
#include "dictionary/answers/sha256.c"
#include "formats/etalis.c"
#include "formats/json_terms.c"
#include "formats/json_writer.c"

const Entry formats_entries[] = {
    {"events_of", "bunnnnILLLB", 4, events_of},
    {"cells_of", "bnuILB", 2, cells_of},
    {"clauses_of", "bunnIIILLLB", 3, clauses_of},
    {"rows_of_events", "BnLniiillnlILL", 1, rows_of_events},
    {"renamed", "bullLnI", 1, renamed},
    {"lines_of", "blniuB", 1, lines_of},
    {"timed", "blninnnnILL", 2, timed},
    {"columns_of", "blinIIBL", 0, columns_of},
    {"flags_of", "biB", 0, flags_of},
    {"put_solutions", "nBnnLiibnblllibll", 2, put_solutions},
    {"", "", 0, NULL},
};
