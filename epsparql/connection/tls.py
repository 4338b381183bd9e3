"""This module says which certificates of servers a client trusts."""

import os
import ssl
from pathlib import Path


class TrustedFile:
    """Makes contexts that trust the certificates of a PEM file alone.

    A file that has changed is read again, so certificates may be replaced.
    """

    def __init__(self, path: str | Path, any_name: bool) -> None:
        """Read the file; with `any_name`, a certificate of it may be for any name.

        Raises: OSError, ssl.SSLError for a file without certificates.
        """
        self._path, self._any_name = Path(path), any_name
        self._signature: tuple[int, int] | None = None
        self.context()

    def context(self) -> ssl.SSLContext:
        """Return a context for connections from now on. Raises: as the constructor."""
        stat = os.stat(self._path)
        if self._signature != (stat.st_mtime_ns, stat.st_ino):
            self._context = ssl.create_default_context(cafile=str(self._path))
            self._context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the file may hold the server's own certificate
            self._context.check_hostname = not self._any_name
            self._signature = stat.st_mtime_ns, stat.st_ino
        return self._context
