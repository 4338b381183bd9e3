"""This package leads from the entries of a log to the feeds of networks, and back: clocks, the order of events,
registered queries, results.
"""
