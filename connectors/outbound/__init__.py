"""Writes solutions of queries to other systems."""
