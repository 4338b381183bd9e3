/* The terms of a server by number: their texts, values and order, and what is answered about them. */
#include "entry.h"
#include "needle_trie.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answers_layout.h"
#include "batch_layout.h"
#include "powers_of_five.h"
#include "terms_layout.h"

#include "dictionary/terms.c"

#include "dictionary/numeric_literals.c"

#include "dictionary/intern.c"

#include "dictionary/arrow_import.c"

#include "dictionary/collation.c"

#include "dictionary/solution_order.c"

#include "dictionary/ntriples_writer.c"

#include "dictionary/arrow_writer.c"

#include "dictionary/decode.c"

#include "dictionary/needle_trie.c"

#include "dictionary/number_writer.c"

#include "dictionary/answers/sha256.c"

#include "dictionary/answers/instants.c"

#include "dictionary/answers/arithmetic.c"

#include "dictionary/answers/answer.c"

const Entry dictionary_entries[] = {
    {"intern_one", "nb", 1, intern_one},
    {"intern_strings", "nnnnL", 1, intern_strings},
    {"value_from", "nn", 1, value_from},
    {"spread_terms", "n", 0, spread_terms},
    {"enter_terms", "nl", 0, enter_terms},
    {"sweep_terms", "nbB", 0, sweep_terms},
    {"taken", "nnnnL", 1, taken},
    {"make_batch", "iibllln", 0, make_batch},
    {"sort_places", "nlnnllLL", 0, sort_places},
    {"sort_rows", "nllLL", 0, sort_rows},
    {"emit", "nlnnn", 1, emit},
    {"measure", "nlI", 2, measure},
    {"gather", "nlB", 0, gather},
    {"mark_bound", "lB", 0, mark_bound},
    {"mark_all", "Bl", 0, mark_all},
    {"mark_rows", "Bib", 0, mark_rows},
    {"write_integers", "lBI", 0, write_integers},
    {"write_quotients", "llnnBI", 0, write_quotients},
    {"write_doubles", "biBI", 0, write_doubles},
    {"add_needles", "nlln", 1, add_needles},
    {"spread_edges", "nl", 0, spread_edges},
    {"answer_address", "", 1, answer_address},
    {"", "", 0, NULL},
};
