"""Defines the words of `on_error`, which say what becomes of events that cannot be read or do not map: one set for
all that read events.
"""

ON_ERROR = REFUSE, SKIP, DEAD_LETTER = ("refuse", "skip", "dead_letter")
"""All is refused; or such events are left out and counted; or they are kept aside, with the reason of each."""
OTHER_NAMES = {"reject": REFUSE, "stop": REFUSE}
"""Streams and connectors take these words too."""
DEAD_LETTERS = "dead-letters.ndjson"
"""A run without a server keeps such events in this file, where no other is named."""


def read_on_error(text: object) -> str | None:
    """Return the word that a setting means; None where it is none of them."""
    word = OTHER_NAMES.get(text, text) if isinstance(text, str) else ""
    return word if word in ON_ERROR else None
