"""The cells of the tables by which the kernel's questions are answered have names."""

# context: the term table, the table of recipes by number of question, memory to work in, and OpenSSL's functions for SHA-256, all by address
TERMS, RECIPES, WORDS, TEXT, SHA256, CONTEXT_WIDTH = range(6)
WORDS_ROOM, TEXT_ROOM = 256, 1 << 13
"""The words and bytes of that memory."""
NO_ANSWER = -1
"""The host has to answer."""

# recipe: first its kind; a question without a recipe has address 0
ARITHMETIC, DIGEST, INSTANT = range(3)
STEPS = 1  # of ARITHMETIC: the number of steps, which follow
OPERATION, FIRST, SECOND, THIRD, STEP_WIDTH = range(5)  # a step, and what it is about
ARGUMENT, CONSTANT, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, CANONICAL = range(8)
# ARGUMENT: its place; CONSTANT: kind, mantissa, scale; CANONICAL: a decimal that is whole becomes an integer
DEEPEST = 16
"""The most values that wait for others."""

# DIGEST: the byte between parts, the place of start and end among the arguments (NONE without them), whether an unbound argument is an error, how
# many digits the name has, and the address and length of what stands before all parts, before the digits and after them; then the number of parts,
# which follow: an argument, or NONE for constant text, by its address and length
SEPARATOR, TIMED_AT, STRICT, DIGITS, PREFIX, PREFIX_N, HEAD, HEAD_N, TAIL, TAIL_N, PARTS = range(1, 12)
PART_ARGUMENT, PART_TEXT, PART_LENGTH, PART_WIDTH = range(4)
NONE = -1

# INSTANT: the place of start and end among the arguments, and which of them is written
PAIR_AT, WHICH = 1, 2
