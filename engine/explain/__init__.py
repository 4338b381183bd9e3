"""This package shows a query's plan to people: operators with keys, windows and filters, what is stored and for how
long, and what the host is asked.
"""

from engine.explain.live_counts import match_counts
from engine.explain.model import Declared, Explanation, explain, reads_over
from engine.explain.render import mermaid, render_document, render_text
from engine.planner.builder.join_order import rates_given

__all__ = ["Declared", "Explanation", "explain", "match_counts", "mermaid", "rates_given", "reads_over", "render_document", "render_text"]
