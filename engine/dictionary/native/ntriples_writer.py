"""The triples that a rule derives become lines of N-Triples: each row's statements, in order and each once."""

from engine.dictionary.native import entry_point, inlined, jit
from engine.dictionary.native.collation import text_before
from engine.dictionary.native.layout import LENGTH, NONE, START
from engine.dictionary.native.memory import address_of, copy

IRI_KIND, LITERAL_KIND = 1, 3  # of `kinds`; a literal's are not less
AROUND = 4  # bytes of a line beside its terms: two spaces, and " ."


@inlined
def is_statement(kinds, triple):
    """Return whether a triple is a statement: all of it is bound, the subject is no literal, and the predicate is an IRI."""
    bound = triple[0] != NONE and triple[1] != NONE and triple[2] != NONE
    return bound and kinds[triple[0]] < LITERAL_KIND and kinds[triple[1]] == IRI_KIND


@jit
def compared(cells, text, triple, other):
    """Compare two triples: -1, 0 or 1.

    Term by term is the order of lines too: no term goes on with a space or less where a shorter one ends.
    """
    for k in range(3):
        if triple[k] != other[k]:
            return -1 if text_before(cells, text, triple[k], other[k]) else 1
    return 0


@jit
def insert(cells, text, triples, n, triple):
    """Put a triple into its place among the first n, unless it is there, and return how many there are then."""
    place = n
    while place > 0:
        order = compared(cells, text, triple, triples[place - 1])
        if order == 0:
            return n
        if order > 0:
            break
        place -= 1
    s, p, o = triple[0], triple[1], triple[2]  # which the shift may write over
    for k in range(n, place, -1):
        triples[k] = triples[k - 1]
    triples[place, 0], triples[place, 1], triples[place, 2] = s, p, o
    return n + 1


@entry_point
def settle(cells, kinds, text, triples, counts):
    """Leave in each row of `triples` (rows x templates x 3) its statements in front, and in `counts` how many.

    Return the bytes of all lines.
    """
    size = 0
    for row in range(len(triples)):
        n = 0
        for k in range(triples.shape[1]):
            if is_statement(kinds, triples[row, k]):
                n = insert(cells, text, triples[row], n, triples[row, k])
        counts[row] = n
        for k in range(n):
            size += AROUND + cells[triples[row, k, 0], LENGTH] + cells[triples[row, k, 1], LENGTH] + cells[triples[row, k, 2], LENGTH]
    return size


@entry_point
def write(cells, text, triples, counts, offsets, data):
    """Write the lines of all rows, as Arrow has strings."""
    at, line = 0, 0
    for row in range(len(triples)):
        for k in range(counts[row]):
            offsets[line] = at
            for part in range(3):
                cell = cells[triples[row, k, part]]
                copy(address_of(data) + at, address_of(text) + cell[START], cell[LENGTH])
                at += cell[LENGTH]
                data[at] = ord(" ")
                at += 1
            data[at] = ord(".")
            at += 1
            line += 1
    offsets[line] = at
