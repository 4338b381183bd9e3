/* Runs GROUP BY and runs of events in tables, many instants of one node at once. */
#include "entry.h"
#include <stdlib.h>
#include <string.h>

#include "groups_layout.h"
#include "runs_layout.h"
#include "chains_layout.h"

#include "aggregation/tables.c"
#include "aggregation/exact_double_sum.c"
#include "aggregation/chains/weights.c"
#include "aggregation/sums.c"
#include "aggregation/min_max.c"
#include "aggregation/hash_groups.c"
#include "aggregation/sweep.c"
#include "aggregation/decimal_literals.c"
#include "aggregation/chains/chain_tables.c"
#include "aggregation/chains/stacks.c"
#include "aggregation/chains/ways.c"
#include "aggregation/chains/chain_sweep.c"
#include "aggregation/runs/run_tables.c"
#include "aggregation/runs/links.c"
#include "aggregation/runs/open_runs.c"
#include "aggregation/runs/run_sweep.c"

const Entry aggregation_entries[] = {
    {"spread_groups", "LnnL", 0, spread_groups},
    {"sweep", "LlLLLLlllLL", 1, sweep},
    {"read_decimals", "biBLL", 0, read_decimals},
    {"sum_exactly", "Llnnn", 1, sum_exactly},
    {"find_deadline", "llll", 1, find_deadline},
    {"place_elements", "LlLLLLLLLllllLLlldbdL", 0, place_elements},
    {"judge_elements", "LlLLLLllllllLldbdl", 0, judge_elements},
    {"sweep_runs", "LlLLLLLLLlllllllldbdLLL", 1, sweep_runs},
    {"spread_chains", "LLLLLlll", 0, spread_chains},
    {"scale_values", "LLLLLlllnnn", 1, scale_values},
    {"sweep_chains", "LLLLLlllllllLLL", 1, sweep_chains},
    {"", "", 0, NULL},
};
