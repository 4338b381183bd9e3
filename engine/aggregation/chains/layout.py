"""The columns of the tables of chains have names; all are int64.

A chain is the operands of `A SEQ B SEQ C` under an aggregate. The events of all operands but the last stand in a ring,
by the number of their coming. A number of 128 bits takes two cells, the low one first.
"""

MOST_STEPS, MOST_PARTS, MOST_EXTREMES = 5, 12, 8
"""A chain has at most this many operands, and a weight this many parts, the count first, then sums; and so many extremes."""

# chain_at: how many operands, and parts of a weight; how long a match lasts at most; the first event in the ring and the next one to come; the keys
# in use; where a sweep stands, what it has given and needs; how many matches it has made at this instant, and may make; how many events were
# answered by listing matches and by sums; what went wrong; how many extremes a weight has, and whether anything counts matches; a bit for each gap
# whose blockers have the key of the chain, and for each whose blockers have no key; the key that has the latter
(
    STEPS, PARTS, SPAN, OLDEST_EVENT, NEXT_EVENT, KEYS_TOP, FREE_KEY, LIVE_KEYS, AT_MOMENT, GIVEN, WANTED, MADE, MOST_MADE, ENUMERATED, SUMMED, FAULT,
    EXTREMES, COUNTS_MATCHES, CUTS_BY_KEY, CUTS_ALL, COMMON_KEY, CHAIN_AT_WIDTH,
) = range(22)  # fmt: skip
TOO_LARGE, TOO_MANY = 1, 2  # faults: a number of more than 125 bits, more matches than may be made at an instant

# events: its interval, operand and key; the next event of its key and operand; the last one of the next operand that was there before it; the one of
# its label before it, and whether one has come after it; the next of its chain in the table of labels
EVENT_START, EVENT_END, EVENT_STEP, EVENT_OWNER, EVENT_NEWER, EVENT_LATER, EVENT_SAME, EVENT_REPEATED, EVENT_BUCKET, EVENT_WIDTH = range(10)
# then the value of each part of a weight but the count, and of each extreme, the weight of all first events that came before it, its place in the
# front stack if there are stacks, and its terms
CUT, OLDER_EVENT, PLACE_WIDTH = range(3)
# of a place: a bit for each gap with a blocker just before the event, and the event before it; then the row of the front stack

# keys: the next of the chain of its hash, how many events it has, how many of them make sums wrong, and whether its products are out of date; the
# first and the last event of each operand
KEY_CHAINED, KEY_EVENTS, KEY_TROUBLE, KEY_STALE, KEY_OLDEST, KEY_NEWEST, KEY_WIDTH = *range(5), 4 + MOST_STEPS - 1, 4 + 2 * (MOST_STEPS - 1)
# then its terms, the weight of all first events that have left, its products, and its stacks if there are any
STACKS_STALE, TURNED, OPEN, PENDING, NEWEST_EVENT, APPLIED, BLOCKER, STACKS_WIDTH = *range(6), 5 + MOST_STEPS - 1, 5 + 2 * (MOST_STEPS - 1)
# of stacks: whether they are out of date; the newest event in the front; a bit for each state that no blocker in the back has emptied; the gaps with
# a blocker since the newest event; that event; for each gap the blocker that has been applied last, and the newest one; then the back's matrix

# links: of each set function its operation, the part of a weight that it takes, and the one that counts decimals or doubles
LINK_OP, LINK_PART, LINK_WIDE, LINK_WIDTH = range(4)

RECORDS = {
    "chain_at": {
        "steps": STEPS, "parts": PARTS, "span": SPAN, "oldest_event": OLDEST_EVENT, "next_event": NEXT_EVENT, "keys_top": KEYS_TOP,
        "free_key": FREE_KEY, "live_keys": LIVE_KEYS, "moment": AT_MOMENT, "given": GIVEN, "wanted": WANTED, "made": MADE, "most_made": MOST_MADE,
        "enumerated": ENUMERATED, "summed": SUMMED, "fault": FAULT, "extremes": EXTREMES, "counts": COUNTS_MATCHES, "cuts_by_key": CUTS_BY_KEY,
        "cuts_all": CUTS_ALL, "common_key": COMMON_KEY,
    },
    "event": {
        "start": EVENT_START, "end": EVENT_END, "step": EVENT_STEP, "owner": EVENT_OWNER, "newer": EVENT_NEWER, "later": EVENT_LATER,
        "same": EVENT_SAME, "repeated": EVENT_REPEATED, "bucket": EVENT_BUCKET,
    },
    "chain_key": {"chained": KEY_CHAINED, "events": KEY_EVENTS, "trouble": KEY_TROUBLE, "stale": KEY_STALE},
    "place": {"cut": CUT, "older": OLDER_EVENT},
    "stacks": {"stale": STACKS_STALE, "turned": TURNED, "open": OPEN, "pending": PENDING, "newest": NEWEST_EVENT},
    "link": {"op": LINK_OP, "part": LINK_PART, "wide": LINK_WIDE},
}  # fmt: skip
"""The fields by which compiled code names the columns (engine/native/headers.py)."""
