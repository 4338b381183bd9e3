"""Names what all Server-Sent Events of this server have in common. Source: HTML Living Standard, section 9.2."""

EVENT_STREAM = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
RETRY = "retry: 1000\n\n"
"""A browser connects again after this many milliseconds."""
IDLE = ": \n\n"
"""The comment keeps a connection without events open."""
