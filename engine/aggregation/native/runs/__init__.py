"""Compiled functions link the elements of groups to runs and end runs, many instants of one node at once (semantics.md section 13)."""
