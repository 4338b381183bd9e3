"""Stores the connectors that came over HTTP, a small file for each in the data directory.

They name the places of credentials, and hold none.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from connectors.configuration import Connector, parse_connector
from connectors.errors import WrongOption
from epsparql.durable_files import replace_file, sync_path

FOLDER = "connectors"


class ConnectorFiles:
    """Stores connectors below a data directory, for its owner alone."""

    def __init__(self, data: Path) -> None:
        self._directory = data / FOLDER

    def load(self) -> Iterator[Connector]:
        """Yield all connectors. Raises: ValueError, naming the file, for a file that holds none."""
        for path in sorted(self._directory.glob("*.json")):
            try:
                found = json.loads(path.read_bytes())
                yield parse_connector(found["name"], found["options"])
            except (ValueError, KeyError, TypeError, WrongOption) as error:
                raise ValueError(f"{path} holds no connector: {error}; delete it, or restore it from a copy") from None

    def save(self, connector: Connector) -> None:
        """Replace the connector's file in one step; it is durable when this returns."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        data = json.dumps({"name": connector.name, "options": dict(connector.given)}).encode()
        replace_file(self.path(connector.name), data, mode=0o600)

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.path(name).unlink()
            sync_path(self._directory)

    def path(self, name: str) -> Path:
        """Return the connector's path, named by a digest: names may hold characters that a file's may not."""
        return self._directory / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
