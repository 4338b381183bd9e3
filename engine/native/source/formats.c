/* Reads bodies of RDF streams and writes solutions. */
#include "entry.h"
#include <stdlib.h>

const Entry formats_entries[] = {
    {"", "", 0, NULL},
};
