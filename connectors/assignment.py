"""A connector's process reads this on the first line of its stdin, as JSON.

The exit code tells that it is hopeless to start it again.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from connectors.configuration import Connector, parse_connector
from connectors.credentials import CredentialPlaces
from epsparql.deferred_methods import dataclass

HOPELESS = 3
"""The exit code of a connector that another start would not help: its options or its library are at fault."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Holds what a worker is told by whoever starts it."""

    connector: Connector
    server: str
    token: str | None
    credentials: Mapping[str, str]
    trust: tuple[str, bool] | None = None
    """The file of certificates that count, and whether they may be for any name."""
    keys: str | None = None
    """The file of the keys of sent alerts, for `once_per`."""

    def encode(self) -> str:
        places = self.connector.places
        directory = None if places.directory is None else str(places.directory)
        given = {"name": self.connector.name, "given": dict(self.connector.given), "places": [places.prefix, directory, places.limited]}
        secrets = {"token": self.token, "credentials": dict(self.credentials)}
        return json.dumps(given | secrets | {"server": self.server, "trust": self.trust, "keys": self.keys})


def decode_assignment(line: str) -> Assignment:
    """Return what an assignment's line says. Raises: WrongOption for files that lead to other places by now."""
    found = json.loads(line)
    prefix, directory, limited = found["places"]
    places = CredentialPlaces(prefix, None if directory is None else Path(directory), limited)
    connector = parse_connector(found["name"], found["given"], places)
    return Assignment(connector, found["server"], found["token"], found["credentials"], found["trust"], found["keys"])
