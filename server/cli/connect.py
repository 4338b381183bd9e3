"""Runs the connectors of a file in the foreground, until a signal."""

import signal
import threading
from pathlib import Path

from connectors.configuration import check_library, read_connector_file
from connectors.credentials import read_credentials
from connectors.errors import WrongOption
from connectors.status import FAILED
from connectors.supervisor import Supervisor
from server.observability.logging import log_to_stderr

_LOOK_S = 0.5


def connect(path: Path) -> int:
    """Run the connectors of a file until a signal, and return 0.

    Raises: WrongOption for a file or a credential that cannot be used; MissingLibrary.
    """
    file = read_connector_file(path)
    for connector in file.connectors:
        check_library(connector.system)
        if connector.options.get("once_per") is not None and file.state is None:
            raise WrongOption(f"{path}: connector {connector.name!r} has once_per; give state too, a directory for the keys of sent alerts")
        read_credentials(connector.options, connector.credentials)  # what is missing now is told at once
    token = read_credentials(file.token, ("token",)).get("token")
    log_to_stderr("text")
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    trust, state = None if file.ca_file is None else (file.ca_file, False), None if file.state is None else Path(file.state).absolute()
    supervisor = Supervisor(file.server, lambda _: token, trust, state)
    for connector in file.connectors:
        supervisor.start(connector)
    print(f"epsparql connects {len(file.connectors)} connectors to {file.server}", flush=True)
    states: dict[str, str] = {}
    try:
        while not stopping.wait(_LOOK_S):
            for connector, status in supervisor:
                if states.get(connector.name) != status.state:
                    states[connector.name] = status.state
                    fault = f": {status.fault}" if status.state == FAILED else ""
                    print(f"{connector.name}: {status.state}{fault}", flush=True)
    finally:
        supervisor.stop_all()
    return 0
