"""The cells of the tables by which the kernel's questions are answered have names."""

# context: by address, the term table, the table of recipes by number of question, and OpenSSL's functions for SHA-256, or 0
TERM_TABLE, RECIPES, OPENSSL, CONTEXT_WIDTH = range(4)
NO_ANSWER = -1
"""The host has to answer."""

# recipe: first its kind; a question without a recipe has address 0
ARITHMETIC, DIGEST, INSTANT, SMALL_LETTERS, CAPITALS = range(5)

# ARITHMETIC: the number of steps, which follow: an operation, and what it is about.
# ARGUMENT: its place; CONSTANT: kind, mantissa, scale; CANONICAL: a decimal that is whole becomes an integer
ARGUMENT, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, CANONICAL = range(8)
DEEPEST = 16
"""The most values that wait for others."""
INTEGER, DECIMAL, DOUBLE = range(3)
MOST_MANTISSA = 10**17
"""A mantissa is at most so large, so that ten times a remainder by it fits into a word too."""
MOST_SCALE = 17
LONGEST_NUMBER = 160
"""The text of one number has at most so many bytes.

That is a quotient of 34 digits after as many zeros as a sum of MOST_SCALE places and its count can bring, and its type.
"""

# DIGEST: the byte between parts, the place of start and end among the arguments (NO_ARGUMENT without them), whether
# an unbound argument is an error, how many digits the name has, and the address and length of what stands before all
# parts, before the digits and after them; then the number of parts, which follow: an argument, or NO_ARGUMENT for
# constant text, by its address and length
NO_ARGUMENT = -1

# INSTANT: the place of start and end among the arguments, and which of them is written
# SMALL_LETTERS, CAPITALS: the place of the string among the arguments

RECORDS = {
    name: {field: k for k, field in enumerate(fields.split())}
    for name, fields in {
        "arithmetic": "kind steps",
        "step": "operation first second third",
        "digest": "kind separator timed_at strict digits prefix prefix_n head head_n tail tail_n parts",
        "part": "argument text length",
        "instant": "kind pair_at which",
        "letters": "kind argument",
    }.items()
}
"""These tables' columns are fields in C."""
