"""This package evaluates revised queries ahead of the horizon, and keeps the solutions of theirs that stand."""
