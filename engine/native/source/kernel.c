/* The engine's kernel: an interpreter of operator networks over the tables of one network (docs/ARCHITECTURE.md). */
#include "kernel/net.h"
#include "needle_trie.h"
#include <math.h>
#include <string.h>

#include "kernel/state/rows.c"

#include "kernel/state/hash_table.c"

#include "kernel/state/alpha_index.c"
#include "kernel/state/local_nodes.c"
#include "kernel/state/seen_solutions.c"
#include "kernel/state/star.c"
#include "kernel/state/tasks.c"
#include "kernel/state/temporal_relations.c"
#include "kernel/state/work_queues.c"

#include "kernel/state/goal_store.c"

#include "kernel/operators/background_lookup.c"
#include "kernel/operators/filter.c"
#include "kernel/operators/scan.c"
#include "kernel/operators/timers.c"

#include "kernel/operators/batched_groups.c"
#include "kernel/operators/construct.c"
#include "kernel/operators/emission.c"

#include "kernel/operators/output.c"
#include "kernel/operators/projection.c"

#include "kernel/operators/instances.c"
#include "kernel/operators/join.c"

#include "kernel/operators/negation.c"

#include "kernel/operators/policies.c"

#include "kernel/operators/once.c"

#include "kernel/goal_maintenance.c"
#include "kernel/scheduler.c"

const Entry kernel_entries[] = {
    {"run", "n", 1, run},
    {"sweep_stores", "nnn", 0, sweep_stores},
    {"clear_stores", "nnn", 0, clear_stores},
    {"free_timeless_goals", "nnl", 0, free_timeless_goals},
    {"read_goals", "nlnnLLL", 0, read_goals},
    {"read_ages", "nL", 0, read_ages},
    {"enter_rows", "nllL", 0, enter_rows},
    {"enter_goals", "nllillI", 0, enter_goals},
    {"store_goals_in_order", "nll", 0, store_goals_in_order},
    {"restore_seen", "nll", 0, restore_seen},
    {"spread_goals", "nI", 0, spread_goals},
    {"spread_timeless_goals", "nI", 0, spread_timeless_goals},
    {"spread_seen", "nL", 0, spread_seen},
    {"spread_questions", "nL", 0, spread_questions},
    {"link_instances", "LLlnn", 0, link_instances},
    {"unlink_instances", "LLln", 0, unlink_instances},
    {"find_lists", "lllL", 0, find_lists},
    {"enter_lists", "Llll", 1, enter_lists},
    {"", "", 0, NULL},
};
