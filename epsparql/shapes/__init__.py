"""Writes SHACL's shapes as queries whose solutions are the violations of a stream's nodes."""

from epsparql.shapes.shapes_graph import NotCovered, ShapesFault, read_shapes
from epsparql.shapes.violation_query import write_violation_query

__all__ = ["NotCovered", "ShapesFault", "read_shapes", "write_violation_query"]
