"""Publishes solutions to a subject that a JetStream stream stores.

The last message of the subject is the cursor: a header tells which solution it is. `Nats-Msg-Id` is the solution's
key, and each message is published only after the subject's last one. So neither a repeat nor a second connector sends
a solution twice.
"""

from collections.abc import Mapping, Sequence

from connectors.configuration import Connector
from connectors.connections.nats import NatsConnection, faults
from connectors.errors import SystemFault
from connectors.outbound.sink import Cursor, Sink, SolutionMessage, parse_cursor

_CURSOR, _MESSAGE_ID, _LAST = "Epsparql-Cursor", "Nats-Msg-Id", "Nats-Expected-Last-Subject-Sequence"


class JetStreamSink(Sink):
    """Publishes to one subject, of which it is the only publisher."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options = connector.options
        self._subject = options["subject"]
        self._connection = NatsConnection(options, credentials)
        self._last = 0

    def fetch_cursor(self) -> Cursor | None:
        from nats.js.errors import NotFoundError

        self._connection.connect()
        with faults():
            streams = self._connection.jetstream
            stream = self._connection.run(streams.find_stream_name_by_subject(self._subject))
            try:
                found = self._connection.run(streams.get_last_msg(stream, self._subject))
            except NotFoundError:
                self._last = 0
                return None
        self._last = found.seq or 0
        text = (found.headers or {}).get(_CURSOR)
        if text is None:
            raise SystemFault(f"the last message of the subject {self._subject!r} is not the connector's; give it a subject of its own")
        return parse_cursor(text)

    def write(self, solutions: Sequence[SolutionMessage]) -> None:
        with faults():
            self._connection.run(self._publish(solutions))

    async def _publish(self, solutions: Sequence[SolutionMessage]) -> None:
        streams = self._connection.jetstream
        for each in solutions:
            headers = {_MESSAGE_ID: each.key, _CURSOR: str(each.cursor), _LAST: str(self._last)}
            acknowledged = await streams.publish(self._subject, each.text, headers=headers)
            self._last = acknowledged.seq

    def close(self) -> None:
        self._connection.close()
