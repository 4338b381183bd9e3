"""Reads the server's certificate, again when its files have changed."""

import logging
import ssl
from pathlib import Path

from server.settings import SettingsError

_log = logging.getLogger("epsparql.tls")


class Certificate:
    """Represents the files of a certificate and its key."""

    def __init__(self, path: Path, key: Path | None) -> None:
        """Read the files. Raises: SettingsError."""
        self.path, self.key = path, key
        self._signature = self._signature_now()
        fault = self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        if fault:
            raise SettingsError(
                f"--tls-cert {path}{f' with --tls-key {key}' if key else ''} cannot be used: {fault}; give PEM files that belong together"
            )

    def renew(self, context: ssl.SSLContext) -> None:
        """Let new connections of a context have the certificate that is in the files now, if they have changed and
        can be used.
        """
        signature = self._signature_now()
        if signature != self._signature:
            fault = self._load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)) or self._load(context)  # a pair that does not fit spoils no context
            if not fault:
                _log.info("the certificate in %s was read again", self.path)
            else:
                _log.error("the certificate of before holds, because the new one in %s cannot be used: %s", self.path, fault)
            self._signature = signature

    def _load(self, context: ssl.SSLContext) -> str:
        """Return what is wrong with the files, or an empty text."""
        try:
            context.load_cert_chain(self.path, self.key, password="")  # an encrypted key is refused instead of asked for
        except OSError as error:  # also what ssl raises
            return str(error.strerror or error)
        return ""

    def _signature_now(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(_signature(each) for each in (self.path, self.key) if each is not None)


def _signature(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino
