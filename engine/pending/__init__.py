"""Occurrences that wait for time."""

from engine.pending.waiting import Waiting

__all__ = ["Waiting"]
