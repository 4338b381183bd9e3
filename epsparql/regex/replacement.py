r"""This module reads what fn:replace puts in place of a match: text, $N for what group N has captured, \$ and \\."""

import re

from epsparql.regex.syntax import PatternFault

_PIECE = re.compile(r"\\([\\$])|\$([0-9]+)|([^\\$]+)|(.)", re.DOTALL)


def parse_replacement(replacement: str, flags: str, groups: int) -> tuple[str | int, ...]:
    """Return texts and the numbers of groups. A group that the pattern does not have is left out. Raises: PatternFault."""
    if "q" in flags:
        return (replacement,)
    found = list[str | int]()
    for piece in _PIECE.finditer(replacement):
        escaped, digits, text, stray = piece.groups()
        if stray is not None:
            message = rf"the character {stray} is written \{stray} in a replacement" + (", and a group $1" if stray == "$" else "")
            raise PatternFault(message, piece.start() + 1)
        if digits is None:
            found.append(escaped or text)
            continue
        kept = digits
        while len(kept) > 1 and int(kept[:9]) > groups:  # $12 is group 1 and a 2 where there are fewer than 12 groups
            kept = kept[:-1]
        found += [int(kept)] if int(kept) <= groups else []
        found += [digits[len(kept) :]] if len(kept) < len(digits) else []
    return tuple(found)
