"""Sends messages of other systems to streams."""
