/* Groups, sums, windows and runs. */
#include "entry.h"
#include <stdlib.h>

const Entry aggregation_entries[] = {
    {"", "", 0, NULL},
};
