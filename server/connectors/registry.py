"""Runs the connectors of a server: those of the file that the settings name, and those that came over HTTP."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

from connectors.configuration import Connector, ConnectorFile
from connectors.credentials import CredentialPlaces
from connectors.status import STOPPED, Status
from connectors.supervisor import Supervisor
from pipeline.errors import PipelineError, StoreFailed
from pipeline.replication.restore import SENT_KEYS
from server.connectors.registrations import ConnectorFiles
from server.service import Service

VARIABLES = "EPSPARQL_CONNECTOR_"
_log = logging.getLogger("epsparql.connectors")


class ConnectorRegistry:
    """Holds a server's connectors.

    Its methods wait for processes and for the disk, so they run in threads; `changing` lets one change at a time.
    """

    def __init__(self, service: Service, url: str, file: ConnectorFile | None) -> None:
        self._service, self._files = service, ConnectorFiles(service.settings.data)
        certificate = service.settings.tls_cert
        self._supervisor = Supervisor(
            url,
            lambda connector: service.admission.gate.issue_token(connector.name, connector.scope),
            None if certificate is None else (str(certificate.absolute()), True),  # its name is seldom that of the loopback address
            service.settings.data.absolute() / SENT_KEYS,
        )
        self._connectors: dict[str, Connector] = {}
        self._fixed = {connector.name: connector for connector in (file.connectors if file is not None else ())}
        self.places = CredentialPlaces(VARIABLES, service.settings.connector_files, limited=True)
        self.changing = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._connectors)

    def __iter__(self) -> Iterator[tuple[Connector, Status]]:
        """Iterate over connectors in the order of their names, with their present status."""
        return iter([(connector, self.get_status(name)) for name, connector in sorted(self._connectors.items())])

    def find_connector(self, name: str) -> Connector | None:
        return self._connectors.get(name)

    def get_status(self, name: str) -> Status:
        return self._supervisor.get_status(name) or Status(state=STOPPED)

    def is_fixed(self, name: str) -> bool:
        """Return whether a connector stands in the file, so that HTTP cannot change it."""
        return name in self._fixed

    def start(self) -> None:
        """Start all connectors. Raises: ValueError for a stored file that holds none."""
        stored = [replace(connector, places=self.places) for connector in self._files.load()]
        for connector in (*stored, *self._fixed.values()):
            self._connectors[connector.name] = connector
            self._supervisor.start(connector)

    def stop(self) -> None:
        self._supervisor.stop_all()

    def put_connector(self, connector: Connector) -> None:
        """Store a connector, and start it, in place of one of its name.

        It is durable when this returns. Raises: StoreFailed, StoreTaken, OSError.
        """
        before = self._connectors.get(connector.name)
        self._files.save(connector)
        try:
            self._replicate(connector.name)
        except PipelineError:
            if before is None:
                self._files.delete(connector.name)
            else:
                self._files.save(before)
            raise
        self._connectors[connector.name] = connector
        self._supervisor.start(connector)

    def delete_connector(self, name: str) -> None:
        """Stop a connector, and delete it.

        Its position stays with the stream, or with the system. Raises: StoreFailed, StoreTaken.
        """
        self._connectors.pop(name, None)
        self._supervisor.stop(name)
        keys = self._supervisor.find_keys(name)
        if keys is not None:
            keys.unlink(missing_ok=True)
        self._files.delete(name)
        self._replicate(name)

    def _replicate(self, name: str) -> None:
        """Copy the connector's file to the store, if the data directory is in one."""
        keeper = self._service.lifecycle.keeper
        if keeper is not None:
            try:
                keeper.write_files([self._files.path(name)])
            except StoreFailed as fault:
                raise StoreFailed(f"the store does not take the change of the connector: {fault}") from None


@asynccontextmanager
async def run_connectors(service: Service, url: str, file: ConnectorFile | None) -> AsyncIterator[ConnectorRegistry]:
    """Run a server's connectors until the block is left."""
    registry = ConnectorRegistry(service, url, file)
    registry.start()
    try:
        yield registry
    finally:
        await asyncio.to_thread(registry.stop)
