"""Marks of the terms that are still in use. Numbers are taken on suspicion: what is none, or is a column or -term in a program, does no harm."""

from engine.dictionary.native import entry_point, inlined


@inlined
def mark(held, number):
    number = abs(number)
    if 0 <= number < len(held):  # the least integer has no absolute value
        held[number] = True


@entry_point
def mark_all(held, numbers):
    """Marks the numbers in a flat array."""
    for k in range(len(numbers)):
        mark(held, numbers[k])


@entry_point
def mark_rows(held, rows, free, first):
    """Marks what stands in the columns from `first` on of all rows whose numbers are not `free`; they are told apart by `free` alone."""
    for row in range(len(rows)):
        if not free[row]:
            for column in range(first, rows.shape[1]):
                mark(held, rows[row, column])
