/* The terms of a server by number: their texts, values and order, and what is answered about them. */
#include "entry.h"
#include <stdlib.h>

const Entry dictionary_entries[] = {
    {"", "", 0, NULL},
};
