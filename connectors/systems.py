"""Lists the systems that connectors know, with the classes that read and write each, and the options that these take.

This is the one table: the check of options, the worker and the tests of the documentation follow it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from epsparql.deferred_methods import dataclass
from epsparql.events.on_error import DEAD_LETTER, ON_ERROR, OTHER_NAMES
from epsparql.solutions.once_per import read_once_per

IN, OUT = "in", "out"


@dataclass(frozen=True, slots=True)
class Option:
    """Describes an option: the type of its value, what it says, and its default. An option without a default is needed."""

    kind: type
    about: str
    default: Any = None
    needed: bool = False
    least: float = 0
    allowed: tuple[str, ...] = ()
    read: Callable[[object], Any] | None = None
    """This reads the value where the type does not say all. Raises: ValueError."""
    other_names: Mapping[str, str] | None = None
    is_file: bool = False


@dataclass(frozen=True, slots=True)
class System:
    """Describes a system: its client library and the extra that installs it, its URLs' schemes, its credentials, and
    its options by direction.

    `source` and `sink` name classes, as `module:class`; they are imported by the process of a connector alone. Both
    are created with the connector and its credentials.
    """

    library: str
    module: str
    extra: str
    options: Mapping[str, Mapping[str, Option]]
    source: str | None = None
    sink: str | None = None
    schemes: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    user_in_url: bool = True
    url_parameters: tuple[str, ...] | None = ()
    """A URL may have these parameters; None allows all."""
    file_parameters: tuple[str, ...] = ()
    """These parameters of a URL name files, or are `system`."""


_MEMORY = Option(int, "The connector's process may take at most this many bytes of memory.", default=1 << 30, least=128 << 20)

COMMON: Mapping[str, Mapping[str, Option]] = {
    IN: {
        "stream": Option(str, "The connector sends events to this stream.", needed=True),
        "format": Option(str, "This is the media type of the messages.", default="application/x-ndjson"),
        "source": Option(str, "The stream stores the connector's position under this id. The default is the connector's name."),
        "on_error": Option(
            str,
            "A message that cannot be read or does not map goes to the stream's dead-letter feed (dead_letter), or is left out and "
            "counted (skip). With "
            "refuse it is tried again until it is mended.",
            DEAD_LETTER,
            allowed=ON_ERROR,
            other_names=OTHER_NAMES,
        ),
        "batch": Option(int, "At most this many messages go into one body.", default=500, least=1),
        "max_memory": _MEMORY,
    },
    OUT: {
        "query": Option(str, "The connector follows this query's solutions.", needed=True),
        "batch": Option(int, "At most this many solutions are written at a time.", default=500, least=1),
        "once_per": Option(dict, "One solution of each key is written within a duration, and its repeats are left out.", read=read_once_per),
        "max_memory": _MEMORY,
    },
}
_NATS = {
    "url": Option(str, "This is the URL of a NATS server, such as nats://127.0.0.1:4222.", needed=True),
    "user": Option(str, "The connector logs in as this user."),
}
_POSTGRESQL_PARAMETERS, _POSTGRESQL_FILES = ("sslmode", "sslrootcert", "target_session_attrs"), ("sslrootcert",)
_POSTGRESQL = {"url": Option(str, "This is the URL of a database, such as postgresql://user@127.0.0.1/readings.", needed=True)}
_MQTT = {
    "url": Option(str, "This is the URL of a broker, such as mqtt://127.0.0.1:1883, or mqtts://broker:8883 for TLS.", needed=True),
    "version": Option(str, "This is the version of MQTT.", "5", allowed=("5", "3.1.1")),
    "user": Option(str, "The connector logs in as this user."),
    "client_id": Option(str, "The broker knows the connector by this id. The default is epsparql- and the connector's name."),
    "ca_file": Option(str, "The broker's certificate is checked by these, in place of the system's.", is_file=True),
    "cert_file": Option(str, "The connector shows this certificate.", is_file=True),
    "key_file": Option(str, "This is the key of the certificate, where its file does not hold it.", is_file=True),
}
_KAFKA = {
    "url": Option(str, "These are brokers of Kafka, such as kafka://127.0.0.1:9092, or kafkas://one:9093,two:9093 for TLS.", needed=True),
    "user": Option(str, "The connector logs in as this user, by SASL."),
    "mechanism": Option(str, "This is the mechanism of SASL.", "SCRAM-SHA-512", allowed=("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")),
    "ca_file": Option(str, "The brokers' certificates are checked by these, in place of the system's.", is_file=True),
    "cert_file": Option(str, "The connector shows this certificate.", is_file=True),
    "key_file": Option(str, "This is the key of the certificate.", is_file=True),
    "topic": Option(str, "The connector reads this topic, or writes solutions to it.", needed=True),
}
SYSTEMS: Mapping[str, System] = {
    "nats": System(
        library="nats-py",
        module="nats",
        extra="nats",
        schemes=("nats", "tls"),
        credentials=("password", "token"),
        user_in_url=False,
        source="connectors.inbound.nats:JetStreamSource",
        sink="connectors.outbound.nats:JetStreamSink",
        options={
            IN: _NATS
            | {
                "jetstream": Option(str, "The connector reads this JetStream stream.", needed=True),
                "subject": Option(str, "Only messages of subjects that match this are read, such as sensors.>."),
            },
            OUT: _NATS | {"subject": Option(str, "Solutions are published to this subject, which a JetStream stream must store.", needed=True)},
        },
    ),
    "mqtt": System(
        library="paho-mqtt",
        module="paho.mqtt.client",
        extra="mqtt",
        schemes=("mqtt", "mqtts"),
        credentials=("password",),
        user_in_url=False,
        source="connectors.inbound.mqtt:MqttSource",
        sink="connectors.outbound.mqtt:MqttSink",
        options={
            IN: _MQTT
            | {
                "topic": Option(str, "The connector subscribes to this topic, which may have wildcards, such as sensors/#.", needed=True),
                "envelope": Option(bool, "Each message becomes an object of JSON with the members topic and payload.", False),
                "session_s": Option(
                    int, "With version 5, the broker keeps messages this long while the connector is away, in seconds.", 86_400, least=1
                ),
            },
            OUT: _MQTT
            | {
                "topic": Option(str, "Solutions are published to this topic.", needed=True),
                "retain": Option(bool, "The broker keeps the last solution for whoever subscribes later.", False),
                "cursor_topic": Option(str, "A retained message of this topic says how far the connector is. The default is topic and /cursor."),
            },
        },
    ),
    "kafka": System(
        library="confluent-kafka",
        module="confluent_kafka",
        extra="kafka",
        schemes=("kafka", "kafkas"),
        credentials=("password",),
        user_in_url=False,
        source="connectors.inbound.kafka:KafkaSource",
        sink="connectors.outbound.kafka:KafkaSink",
        options={
            IN: _KAFKA | {"envelope": Option(bool, "Each message becomes an object of JSON with the members key, timestamp and payload.", False)},
            OUT: _KAFKA
            | {
                "key": Option(str, "The key of each message is the value of this variable, such as ?station. The default is the solution's key."),
                "cursor_topic": Option(str, "A message of this topic says how far the connector is.", "epsparql-cursors"),
                "transactional_id": Option(str, "Kafka knows the connector by this id. The default is epsparql- and the connector's name."),
            },
        },
    ),
    "postgresql": System(
        library="psycopg",
        module="psycopg",
        extra="postgresql",
        schemes=("postgresql", "postgres"),
        url_parameters=_POSTGRESQL_PARAMETERS,
        file_parameters=_POSTGRESQL_FILES,
        credentials=("password",),
        source="connectors.inbound.postgresql.changes:PostgresqlChangeSource",
        sink="connectors.outbound.postgresql:PostgresqlSink",
        options={
            IN: _POSTGRESQL
            | {
                "format": Option(str, "This is the media type of the rows.", default="application/json"),
                "publication": Option(str, "The connector reads the changes of this publication's tables.", needed=True),
                "slot": Option(str, "This is the name of the replication slot. The default is epsparql_ and the connector's name."),
                "initial": Option(bool, "The rows that are there at the start are sent first, as inserts.", True),
                "metadata": Option(bool, "Each row also tells op, table, lsn and commit_time.", True),
            },
            OUT: _POSTGRESQL
            | {
                "table": Option(str, "Solutions are rows of this table, which is created if there is none.", needed=True),
                "columns": Option(dict, "This says what each column holds."),
            },
        },
    ),
    "postgresql-polling": System(
        library="psycopg",
        module="psycopg",
        extra="postgresql",
        schemes=("postgresql", "postgres"),
        url_parameters=_POSTGRESQL_PARAMETERS,
        file_parameters=_POSTGRESQL_FILES,
        credentials=("password",),
        source="connectors.inbound.postgresql.polling:PostgresqlPollingSource",
        options={
            IN: _POSTGRESQL
            | {
                "format": Option(str, "This is the media type of the rows.", default="application/json"),
                "select": Option(str, "The connector reads the rows of this query of SQL.", needed=True),
                "cursor": Option(str, "Rows are read in order of this column, and a row that comes later has no lesser value in it.", needed=True),
                "poll_s": Option(float, "The connector looks for new rows this often, in seconds.", default=1.0, least=0.01),
            },
        },
    ),
    "files": System(
        library="pyarrow",
        module="pyarrow",
        extra="engine",
        source="connectors.inbound.files:FileSource",
        options={
            IN: {
                "path": Option(str, "The connector reads this file, or the files of this directory in order of name.", needed=True, is_file=True),
                "pattern": Option(str, "Only files of the directory that match this are read, such as *.csv or **/*.parquet.", default="*"),
                "format": Option(str, "This is the media type of the files. The default is that of each file's suffix."),
                "tail": Option(bool, "The last file may grow, so a row counts once its line break is there.", default=True),
            },
        },
    ),
    "ldes": System(
        library="httpx and pyoxigraph",
        module="httpx",
        extra="server",
        schemes=("http", "https"),
        credentials=("token",),
        user_in_url=False,
        url_parameters=None,
        source="connectors.inbound.ldes:LdesSource",
        options={
            IN: {
                "url": Option(str, "This is the address of an event stream's root, such as http://127.0.0.1:8080/queries/hot/ldes.", needed=True),
                "format": Option(
                    str, "This is the media type in which members are sent.", default="application/n-quads", allowed=("application/n-quads",)
                ),
                "poll_s": Option(float, "The connector looks for new members this often, in seconds.", default=5.0, least=0.01),
            },
        },
    ),
    "sse": System(
        library="httpx",
        module="httpx",
        extra="server",
        schemes=("http", "https"),
        credentials=("token",),
        user_in_url=False,
        url_parameters=None,
        source="connectors.inbound.sse.sse_source:SseSource",
        options={
            IN: {
                "url": Option(
                    str, "This is the address of Server-Sent Events, such as https://stream.wikimedia.org/v2/stream/recentchange.", needed=True
                ),
                "format": Option(str, "This is the media type of each event's data.", default="application/json"),
                "event": Option(str, "Events of this type are read, and others are left out. The default is all types."),
                "rdf_changes": Option(bool, "Each event's data is a change of a graph, in the form of Wikidata's mutation stream.", False),
                "resume": Option(bool, "Each event has an id, after which the connector resumes. Otherwise events are lost while it is away.", True),
            },
        },
    ),
    "delta": System(
        library="deltalake",
        module="deltalake",
        extra="delta",
        sink="connectors.outbound.delta:DeltaSink",
        options={
            OUT: {
                "path": Option(
                    str, "Solutions are appended to the Delta table in this directory, which is created if there is none.", needed=True, is_file=True
                ),
                "columns": Option(dict, "This says what each column holds."),
                "every_s": Option(float, "The connector waits this long between two commits, in seconds.", default=10.0),
            },
        },
    ),
}
