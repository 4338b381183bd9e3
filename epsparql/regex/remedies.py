r"""This table says what XPath has instead of what other languages write in regular expressions."""

_CODE = r"write the character itself, which a query may write as \u0041"
LETTERS = {
    "b": r"write (^|\W) before a word, and (\W|$) after it",
    "B": r"write \w on both sides of the place",
    "A": "write ^ without the flag m, which is the start of the text",
    "Z": "write $ without the flag m, which is the end of the text",
    "z": "write $ without the flag m, which is the end of the text",
    "G": "write ^ or leave it out",
    "h": r"write [ \t]",
    "H": r"write [^ \t]",
    "v": r"write [\n\r]",
    "V": r"write [^\n\r]",
    "R": r"write (\r\n|\n|\r)",
    "N": r"write [^\n]",
    "X": "write .",
    "Q": 'write the pattern as plain text, with the flag "q"',
    "E": 'write the pattern as plain text, with the flag "q"',
    "K": "capture what follows in a group",
    "k": r"write the group's number, such as \1",
    "g": r"write the group's number, such as \1",
    **dict.fromkeys("xuUoaef", _CODE),
}
"""The remedies for an escape, by its letter."""

QUESTIONS = (
    ("=", "a second REGEX joined by && looks ahead"),
    ("!", "a second REGEX joined by && ! excludes"),
    ("<=", "a second REGEX joined by && looks behind"),
    ("<!", "a second REGEX joined by && ! excludes"),
    ("P<", "a group has a number instead of a name: write ("),
    ("P=", r"write the group's number, such as \1"),
    ("P>", "a pattern cannot contain itself"),
    ("<", "a group has a number instead of a name: write ("),
    ("'", "a group has a number instead of a name: write ("),
    (">", "write (?: instead of an atomic group"),
    ("#", "a comment of the query begins with # outside of its strings"),
    ("|", "write each branch as a group of its own"),
    ("(", "write both branches with |"),
)
"""The remedies for what follows `(?`, the longest first where one begins with another."""
