"""Marks say which terms are still in use.

Numbers are marked on suspicion: one that is no term, or is a column or -term in a program, does no harm.
"""

from engine.dictionary.native import entry_point, inlined


@inlined
def mark(held, number):
    number = abs(number)
    if 0 <= number < len(held):  # the least integer has no absolute value
        held[number] = True


@entry_point
def mark_all(held, numbers):
    """Mark the numbers in a flat array."""
    for k in range(len(numbers)):
        mark(held, numbers[k])


@entry_point
def mark_rows(held, rows, free):
    """Mark the numbers in the columns of all rows but the free ones, which `free` alone tells apart."""
    for row in range(len(rows)):
        if not free[row]:
            for column in range(rows.shape[1]):
                mark(held, rows[row, column])
