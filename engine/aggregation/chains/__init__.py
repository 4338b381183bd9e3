"""Aggregates over all matches of a chain of SEQs are computed without making the matches
(docs/decisions/0136-sums-over-chains.md).
"""

from engine.aggregation.chains.chain_collector import ChainCollector
from engine.aggregation.chains.chain_tables import ChainShape, count_parts

__all__ = ["ChainCollector", "ChainShape", "count_parts"]
