"""Tests of queries, as `epsparql test` runs them: events go in, and the solutions are compared with those that are
expected.
"""
