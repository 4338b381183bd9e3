"""The groups of GROUP BY stand in tables, which compiled code takes through many instants at once
(engine/native/source/aggregation.c).
"""
