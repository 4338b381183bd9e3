"""Reads the changes of PostgreSQL, or the rows of a query."""
