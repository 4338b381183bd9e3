"""The alpha index leads from predicate and object to the list of what is made of such triples.

It is a hash table with linear probing, at most half full.
"""

from engine.kernel import entry_point, inlined
from engine.kernel.state.hash_table import mix_hash
from engine.kernel.state.layout import NONE, POSTED_LIST, POSTED_O, POSTED_P


@inlined
def find_place(posted, p, o):
    """Return the place where a predicate and object stand, or would."""
    place = mix_hash(mix_hash(0, p), o) & (len(posted) - 1)
    while posted[place, POSTED_P] != NONE and (posted[place, POSTED_P] != p or posted[place, POSTED_O] != o):
        place = (place + 1) & (len(posted) - 1)
    return place


@inlined
def find_list(posted, p, o):
    place = find_place(posted, p, o)
    return posted[place, POSTED_LIST] if posted[place, POSTED_P] != NONE else 0


@entry_point
def find_lists(posted, predicates, objects, found):
    """Fill `found` with the lists of some pairs, 0 for none."""
    for k in range(len(found)):
        found[k] = find_list(posted, predicates[k], objects[k])


@entry_point
def enter_lists(posted, predicates, objects, lists):
    """Give lists to some pairs and return how many of the pairs had no place before."""
    new = 0
    for k in range(len(lists)):
        place = find_place(posted, predicates[k], objects[k])
        new += posted[place, POSTED_P] == NONE
        posted[place, POSTED_P], posted[place, POSTED_O], posted[place, POSTED_LIST] = predicates[k], objects[k], lists[k]
    return new
