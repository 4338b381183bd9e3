"""The triples that a rule derives become lines of N-Triples: each row's statements, in order and each once."""

from engine.dictionary.native import borrowing, inlined
from engine.dictionary.native.collation import text_before
from engine.dictionary.native.handle import length_of, text_at
from engine.dictionary.native.layout import NONE
from engine.dictionary.native.memory import bytes_at, copy

IRI_KIND, LITERAL_KIND = 1, 3  # of `kinds`; a literal's are not less
AROUND = 4  # bytes of a line beside its terms: three spaces and a point
SPACE, POINT = ord(" "), ord(".")


@inlined
def is_statement(kinds, s, p, o):
    """Return whether a triple is a statement: all of it is bound, the subject is no literal, and the predicate is an IRI."""
    return s != NONE and p != NONE and o != NONE and kinds[s] < LITERAL_KIND and kinds[p] == IRI_KIND


@inlined
def compare_terms(table, a, b):
    """Compare two terms' texts: -1, 0 or 1."""
    return 0 if a == b else -1 if text_before(table.cells, table.text, a, b) else 1


@borrowing
def compare_statements(table, triple, other):
    """Compare two triples: -1, 0 or 1.

    Term by term is the order of lines too: no term goes on with a space or less where a shorter one ends.
    """
    order = compare_terms(table, triple[0], other[0])
    if order == 0:
        order = compare_terms(table, triple[1], other[1])
    return compare_terms(table, triple[2], other[2]) if order == 0 else order


@borrowing
def insert_statement(table, statements, first, n, triple):
    """Put a triple into its place among the n statements from `first` on, unless it is there, and return how many there are then."""
    place = first + n
    while place > first:
        order = compare_statements(table, triple, (statements[place - 1, 0], statements[place - 1, 1], statements[place - 1, 2]))
        if order == 0:
            return n
        if order > 0:
            break
        place -= 1
    for k in range(first + n, place, -1):
        for part in range(3):
            statements[k, part] = statements[k - 1, part]
    for part in range(3):
        statements[place, part] = triple[part]
    return n + 1


@inlined
def measure_line(cells, statements, k):
    """Return the bytes of a statement's line."""
    return AROUND + length_of(cells, statements[k, 0]) + length_of(cells, statements[k, 1]) + length_of(cells, statements[k, 2])


@borrowing
def write_line(cells, text, statements, k, at):
    """Write a statement's line to an address, and return the address behind it."""
    for part in range(3):
        term = statements[k, part]
        length = length_of(cells, term)
        copy(at, text_at(cells, text, term), length)
        bytes_at(at, length + 1)[length] = SPACE
        at += length + 1
    bytes_at(at, 1)[0] = POINT
    return at + 1
