"""Reads credentials from where the options say they are, and takes them out of messages.

An option gives the name of an environment variable or of a file, never the credential itself: options are stored,
listed and logged.
"""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from connectors.errors import WrongOption
from epsparql.deferred_methods import dataclass

MOST_BYTES = 64 << 10
"""A file with a credential has at most this many bytes."""
_USER_INFO = re.compile(r"(?<=://)[^/@\s]*@")
_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class CredentialPlaces:
    """Limits where credentials and files may be: variables by the beginning of their names, files by their directory.

    Options that come over HTTP are limited. Otherwise an admin of the server could send any variable and any file of
    its machine elsewhere.
    """

    prefix: str = ""
    directory: Path | None = None
    limited: bool = False

    def check_variable(self, option: str, name: str) -> None:
        """Check the name of a variable. Raises: WrongOption."""
        if self.limited and not name.startswith(self.prefix):
            raise WrongOption(f"{option}: over HTTP, only variables whose names begin with {self.prefix} may be named, not {name!r}")

    def check_file(self, option: str, path: str) -> None:
        """Check the path of a file. Raises: WrongOption."""
        if not self.limited:
            return
        if self.directory is None:
            raise WrongOption(f"{option}: over HTTP, files may be named only below the directory of the setting connector_files, which is not set")
        if not self.allows(Path(path)):
            raise WrongOption(f"{option}: over HTTP, files may be named only below the directory of the setting connector_files")

    def allows(self, path: Path) -> bool:
        """Return whether a file may be read, wherever links lead now."""
        return not self.limited or (self.directory is not None and path.resolve().is_relative_to(self.directory.resolve()))


ANYWHERE = CredentialPlaces()


def read_credentials(
    options: Mapping[str, object],
    names: Collection[str],
    environment: Mapping[str, str] = os.environ,
    places: CredentialPlaces = ANYWHERE,
) -> dict[str, str]:
    """Return the credentials that `NAME_env` and `NAME_file` lead to. Raises: WrongOption, which names the place alone."""
    found = {}
    for name in names:
        variable, path = options.get(f"{name}_env"), options.get(f"{name}_file")
        if variable is not None:
            if str(variable) not in environment:
                raise WrongOption(f"{name}_env: the environment has no variable {variable!r}")
            found[name] = environment[str(variable)]
        elif path is not None:
            places.check_file(f"{name}_file", str(path))
            found[name] = _read_credential(f"{name}_file", Path(str(path)))
    return found


def _read_credential(option: str, path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise WrongOption(f"{option}: {path} cannot be read: {error.strerror}") from None
    if len(text) > MOST_BYTES:
        raise WrongOption(f"{option}: {path} has more than {MOST_BYTES} bytes, which is no credential")
    try:
        return text.decode().strip()
    except UnicodeDecodeError:
        raise WrongOption(f"{option}: {path} is not UTF-8") from None


def redact(message: str, credentials: Collection[str]) -> str:
    """Return a message without these credentials, and without what stands before the host of a URL."""
    for credential in sorted(credentials, key=len, reverse=True):
        if credential:
            message = message.replace(credential, _HIDDEN)
    return _USER_INFO.sub(f"{_HIDDEN}@", message)
