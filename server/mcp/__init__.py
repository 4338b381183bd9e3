"""Serves a server's streams and queries to assistants, by the Model Context Protocol. It is a client of the server."""
