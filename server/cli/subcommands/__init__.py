"""The package holds what all commands share, and the commands that are clients of a running server."""
