"""The alpha index leads from predicate and object to the list of what is made of such triples.

It is a hash table with linear probing, at most half full.
"""

from engine.kernel import entry_point, inlined
from engine.kernel.state.goal_store import mixed
from engine.kernel.state.layout import *


@inlined
def place_of(posted, p, o):
    """Return the place where a predicate and object stand, or would."""
    place = mixed(mixed(0, p), o) & (len(posted) - 1)
    while posted[place, POSTED_P] != NONE and (posted[place, POSTED_P] != p or posted[place, POSTED_O] != o):
        place = (place + 1) & (len(posted) - 1)
    return place


@inlined
def list_of(posted, p, o):
    place = place_of(posted, p, o)
    return posted[place, POSTED_LIST] if posted[place, POSTED_P] != NONE else 0


@entry_point
def lists_of(posted, predicates, objects, found):
    """Fill `found` with the lists of some pairs, 0 for none."""
    for k in range(len(found)):
        found[k] = list_of(posted, predicates[k], objects[k])


@entry_point
def post(posted, predicates, objects, lists):
    """Give lists to some pairs and return how many of the pairs had no place before."""
    new = 0
    for k in range(len(lists)):
        place = place_of(posted, predicates[k], objects[k])
        new += posted[place, POSTED_P] == NONE
        posted[place, POSTED_P], posted[place, POSTED_O], posted[place, POSTED_LIST] = predicates[k], objects[k], lists[k]
    return new
