"""GROUP BY in tables: many instants of one node at once, by compiled functions."""
