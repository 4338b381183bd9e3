/* The search of a text for the values of a parameter, which the kernel asks of the table of terms. */
#pragma once
#include "entry.h"

/* Gives the numbers of the values that the text of a term has, until the next search, and returns how many. `search` is the address of a
 * SearchRecord (engine/dictionary/layout.py). */
i64 search_text(i64 search, i64 term, const i64 **values);
