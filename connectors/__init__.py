"""Moves events from other systems into streams, and solutions from queries into other systems."""
