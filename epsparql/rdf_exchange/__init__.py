"""This package converts terms between the language's classes and those that programs exchange with a client, which
are rdflib's.
"""
