"""This package changes the queries of an engine: they fall behind and catch up, another text takes their place, they
are read again, and they move.
"""
