"""Compiled scanners and writers (engine/native/source/formats.c) share these columns and codes with Python."""

START, SIZE, KEY, CLOSE, SPAN_WIDTH = range(5)
"""Columns of `spans`, a row a term: where it stands first, its bytes, its hash; CLOSE is the place of its closing
quote where that is escaped, or 0. If it is negative, the term is a value of JSON of that kind
(engine/native/source/formats/json_values.c).
"""
VALUE_ROOM = 64
"""The term of a value takes at most so many bytes more than the value."""
NODE_SIZE = 48
"""The node of an event is an IRI of so many bytes, with its brackets."""
RECORDS = {"span": {"start": START, "size": SIZE, "key": KEY, "close": CLOSE}}

PLAIN, ODD = 0, 1
"""Flags of terms: canonical as they stand, or for the exact path to judge."""

OTHERWISE = -1
"""Instead of a count: the body is not of the usual shape, and what it says is for the exact path to tell."""

BINDINGS, TRIPLES, VERDICT, CHANGED = range(4)
"""Forms: what a solution's values are (pipeline/solutions/result_kinds.py, `Form`). CHANGED is added to that of a
revised query, whose first value is a change's header (engine/revision/change_rows.py).
"""
OF_INSTANCE = 2 * CHANGED
"""This form is BINDINGS behind the id of an instance, a plain literal without characters that JSON escapes."""

LINES, OBJECTS, HEADS, MESSAGES, FRAMES, EVENTS = range(6)
"""Kinds of text: ndjson; bindings alone, with commas between them; ids and times, likewise; lines that are messages
to subscribers; each such message as a WebSocket frame; Server-Sent Events.
"""

INSTANT_WIDTH = 20
"""A change's header has so many characters for an instant."""
UNSETTLED, END_OF_TIME = -(1 << 62), 1 << 61
"""Instants of a change's header: nothing is settled yet, and nothing can change any more."""
