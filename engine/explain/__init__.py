"""A query's plan for people: operators with their keys, windows, filters, what is stored and for how long, what the host is asked."""

from engine.explain.model import Explanation, explain, reads_over
from engine.explain.render import document, mermaid, text
from engine.planner.operators.join_order import rates_given

__all__ = ["Explanation", "document", "explain", "mermaid", "rates_given", "reads_over", "text"]
