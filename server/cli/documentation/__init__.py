"""Builds the documentation site from docs/, and the pages of its reference from the interface, the commands and the
docstrings.
"""
