"""Defines what the operator chooses, by flag, by EPSPARQL_* variable, or in a TOML file.

server/cli/settings_doc.py makes docs/configuration.md from this.
"""

import ipaddress
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from epsparql.deferred_methods import dataclass
from epsparql.errors import explain_unreadable
from pipeline.partition_count import MOST_PARTITIONS
from pipeline.spark.spark_conf import chosen_settings

RUNNERS = ("spark", "inprocess")
LOG_FORMATS = ("text", "json")
ENTAILMENTS = ("rdfs", "owl-rl")  # engine.messages has them too, but loads pyarrow
SHAPES = OFF, REPORT, REFUSE = "off", "report", "refuse"
EVERY_ORIGIN = "*"
ENVIRONMENT_PREFIX = "EPSPARQL_"
CONFIG = "config"
"""The flag of this name, or the variable EPSPARQL_CONFIG, names the file."""
RENAMED = {
    "partitions": "buckets",
    "max_partial_matches": "max_goals",
    "max_webhooks": "max_observers",
    "max_background": "max_ontology",
    "sparql_processes": "askers",
    "sparql_timeout_s": "asking_s",
    "max_sparql_memory": "max_asking",
    "max_sparql_answer": "max_answer",
}
"""The former name of a setting, by its present name.

Both are taken until the next release, with a warning for the former one.
"""
REMOVED = ("low_latency",)
"""These switches have no effect any more. They are taken until the next release, with a warning."""


class SettingsError(Exception):
    """Reports a setting that cannot be used; the message names it and the remedy."""


def _one_of(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text

    return read


_AGES = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SIZES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def age(text: str) -> float:
    """Return the seconds of `90s`, `15m`, `12h` or `30d`. Raises: ValueError."""
    number, unit = text[:-1], text[-1:]
    if unit not in _AGES or not number.replace(".", "", 1).isdigit():
        raise ValueError(f"{text!r} is no time such as 90s, 15m, 12h or 30d")
    return float(number) * _AGES[unit]


def size(text: str) -> int:
    """Return the bytes of `500000`, `500k`, `20M`, `50G` or `1T`. Raises: ValueError."""
    number, unit = (text, "") if text.isdigit() else (text[:-1], text[-1:])
    if unit not in _SIZES or not number.isdigit():
        raise ValueError(f"{text!r} is no size such as 500k, 20M or 50G")
    return int(number) * _SIZES[unit]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _networks(text: str) -> tuple[str, ...]:
    """Parse networks; an address is a network of one. Raises: ValueError."""
    try:
        return tuple(str(ipaddress.ip_network(word.strip("[]"), strict=False)) for word in _words(text))
    except ValueError as error:
        raise ValueError(f"{error}; expected addresses or networks such as 10.0.0.2 or 10.0.0.0/24") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _count(text: str) -> int:
    number = _whole(text)
    if number < 0:
        raise ValueError("must not be negative")
    return number


def _partitions(text: str) -> int:
    number = _whole(text)
    if not 1 <= number <= MOST_PARTITIONS:
        raise ValueError(f"must be a number from 1 to {MOST_PARTITIONS}")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1e9:  # NaN fails this test too
        raise ValueError("must be a number of seconds that is not negative")
    return number


def _spark_conf(text: str) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in chosen_settings(text).items())


def _setting(default: Any, read: Callable[[str], Any], about: str, *, form: str | None = None, told: bool = True) -> Any:
    """Define a setting.

    `form` is the form of its values in the help; `told` says that it holds no secrets, so that it may be printed.
    """
    return field(default=default, repr=told, metadata={"read": read, "about": about, "form": form})


# `_setting` is dataclasses.field with the reader of the variable's text, and what the setting is
@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the settings. Sizes are in bytes, settings whose names end in `_s` in seconds."""

    host: str = _setting("127.0.0.1", str, "The server listens on this address. Any address but loopback needs `token_file` or `oidc_issuer`.")
    port: int = _setting(8080, _count, "The server listens on this port. 0 takes any free port.")
    data: Path = _setting(Path("epsparql-data"), Path, "This directory holds the log, the solutions and the snapshots.")
    runner: str = _setting(
        "spark", _one_of(*RUNNERS), "This runner evaluates the queries: spark (in a Spark task) or inprocess (in the server's process, without Java)."
    )
    master: str = _setting(
        "local[*,4]", str, "With the runner spark, the queries run on the Spark cluster of this master URL. `local[*,4]` means this machine's cores."
    )
    spark_conf: tuple[str, ...] = _setting(
        (),
        _spark_conf,
        "This sets one of Spark's settings, such as spark.executor.memory=2g. It overrides spark-defaults.conf in SPARK_CONF_DIR.",
        form="KEY=VALUE",
        told=False,
    )
    partitions: int | None = _setting(
        None,
        _partitions,
        "The events are divided among this many engines, each in its own thread, or its own task on Spark. The default is the number that "
        "the data directory already uses, or 1.",
    )
    token_file: Path | None = _setting(None, Path, "Each line of this file holds the SHA-256 of a token in hex, and the token's scopes.")
    oidc_issuer: str | None = _setting(
        None, str, "Tokens may also be JWTs of the OpenID Connect provider with this URL. It needs `oidc_audience` and `oidc_scopes`."
    )
    oidc_audience: tuple[str, ...] = _setting((), _words, "A JWT has to be for one of these audiences (`aud`). Separate them by commas.")
    oidc_scopes: Path | None = _setting(
        None, Path, "Each line of this file gives scopes to the JWTs whose claim has a value, such as `groups=operators read:*`."
    )
    oidc_leeway_s: float = _setting(30.0, _seconds, "A JWT is taken for this many seconds more, because clocks differ.")
    oidc_client_id: str | None = _setting(
        None, str, "Users of the console sign in at the issuer, where this public client is registered for the code flow with PKCE."
    )
    oidc_request: str = _setting(
        "scope=openid", str, "The console adds these parameters when it asks the issuer for a token, such as scope=openid&audience=epsparql."
    )
    tls_cert: Path | None = _setting(None, Path, "The server speaks TLS with the certificate of this PEM file, which may hold a chain.")
    tls_key: Path | None = _setting(None, Path, "This PEM file holds the key of `tls_cert`. Without it, the key is in the file of `tls_cert`.")
    store: str | None = _setting(
        None,
        str,
        "The server keeps a copy of the data directory in this object store, for example s3://bucket/prefix. An event is acknowledged "
        "once the store has it. "
        "An empty data directory is filled from the store.",
        told=False,
    )
    takeover_s: float | None = _setting(
        None,
        _seconds,
        "The server stands by, and takes over when another server's lease in the store has not been renewed for this many seconds. "
        "Without this setting, the server takes the store as soon as it starts.",
    )
    export: str | None = _setting(
        None,
        str,
        "Solutions are also written to this target as Parquet files, by query and date. The target is a directory, or a URI such as s3://bucket/prefix.",
        told=False,
    )
    export_every_s: float = _setting(60.0, _seconds, "The server exports new solutions at intervals of this many seconds.")
    retain_age: float | None = _setting(
        None,
        age,
        "Entries of both logs that are older than this, such as 90s, 15m, 12h or 30d, are removed. By default, none are.",
    )
    retain_bytes: int | None = _setting(
        None,
        size,
        "Each log may take at most this many bytes, such as 500M or 50G. The oldest part is removed. By default, there is no limit.",
    )
    retain_every_s: float = _setting(30.0, _seconds, "The server checks the age and the size of the logs at intervals of this many seconds.")
    connectors: Path | None = _setting(
        None,
        Path,
        "The server runs the connectors of this TOML file, each in its own process.",
    )
    connector_files: Path | None = _setting(
        None, Path, "Connectors that are created over HTTP may name files below this directory. By default, they may name none."
    )
    max_connectors: int = _setting(100, _count, "At most this many connectors may be created.")
    origins: tuple[str, ...] = _setting(
        (),
        _words,
        "Browser pages of these origins may use the server, beside its own pages. `*` stands for all; it needs `token_file` or `oidc_issuer`.",
    )
    allow_hosts: tuple[str, ...] = _setting((), _words, "Webhooks may use these hosts, addresses or networks, even if they are not public.")
    proxies: tuple[str, ...] = _setting(
        (),
        _networks,
        "These are the addresses or networks of proxies in front of the server. Only their `X-Forwarded-For` is used.",
    )
    log_format: str = _setting("text", _one_of(*LOG_FORMATS), "The server writes its log to stderr in this format: text or json.")
    max_body: int = _setting(64 << 20, size, "A body of events may have at most this many bytes.")
    max_bodies: int = _setting(
        512 << 20,
        size,
        "All bodies and WebSocket frames that are not yet answered may take at most this many bytes. Above it, bodies are refused with "
        "429, and frames wait.",
    )
    max_frame: int = _setting(16 << 20, size, "A WebSocket frame may have at most this many bytes.")
    max_query: int = _setting(256 << 10, size, "A query, or a JSON body, may have at most this many bytes.")
    max_background: int = _setting(256 << 20, size, "A request body that loads background triples may have at most this many bytes.")
    entailment: str = _setting(
        "rdfs", _one_of(*ENTAILMENTS), "The server infers triples from the background's schema by these rules: rdfs or owl-rl."
    )
    background: tuple[str, ...] = _setting(
        (), _words, "At each start, each of these background graphs is replaced by the content of its file.", form="[GRAPH=]FILE"
    )
    shapes: str = _setting(
        OFF,
        _one_of(*SHAPES),
        "Shapes of SHACL in the background are checked at each load and change: off, report or refuse. It needs the extra shacl.",
    )
    sparql_processes: int = _setting(4, _count, "At most this many queries of /sparql run at a time.")
    sparql_timeout_s: float = _setting(30.0, _seconds, "A query of /sparql may take at most this many seconds of processor time.")
    max_sparql_memory: int = _setting(2 << 30, size, "A query of /sparql may use at most this many bytes of memory.")
    max_sparql_answer: int = _setting(64 << 20, size, "An answer of /sparql may have at most this many bytes.")
    trial_processes: int = _setting(1, _count, "At most this many trials run at a time; the others wait.")
    trial_cores: int = _setting(0, _count, "A trial uses this many cores while no events come, and one core while events come. 0 means all cores.")
    max_trials: int = _setting(20, _count, "At most this many trials are kept until they are deleted, including those that run.")
    max_trial_memory: int = _setting(2 << 30, size, "A trial may use at most this many bytes of memory.")
    max_trial_solutions: int = _setting(
        10_000, _count, "A trial stores at most this many solutions of each kind: new, old and both. Further solutions are only counted."
    )
    promotion_timeout_s: float = _setting(3600.0, _seconds, "A promotion is withdrawn if the new text has not caught up within this many seconds.")
    max_queries: int = _setting(10_000, _count, "At most this many queries may be registered.")
    max_instances: int = _setting(1_000_000, _count, "A query with PARAMETERS may have at most this many instances.")
    max_webhooks: int = _setting(1_000, _count, "All queries together may have at most this many webhooks.")
    max_subscribers: int = _setting(10_000, _count, "All queries together may have at most this many WebSocket and event-stream subscribers.")
    max_subscribers_per_query: int = _setting(
        5_000, _count, "One query, or one stream, may have at most this many WebSocket and event-stream subscribers."
    )
    max_feeds: int = _setting(1_000, _count, "At most this many WebSockets may send events to streams.")
    max_lag: int = _setting(
        100_000, _count, "Events are refused with 429 while the runner is more than this many log entries behind. 0 means no limit."
    )
    max_lag_rows: int = _setting(
        10_000_000,
        _count,
        "Events are refused with 429 while the runner is more than this many rows behind, counted since the server's start. 0 means no limit.",
    )
    max_waiting: int = _setting(
        5_000_000,
        _count,
        "While this many events of a stream wait for one of its declared sources, events of its other sources are refused with 429. 0 "
        "means no limit.",
    )
    max_derivations: int = _setting(
        100_000, _count, "A rule may derive at most this many triples at one instant. Each KiB of their text counts as one more triple."
    )
    max_partial_matches: int = _setting(10_000_000, _count, "A query fails when it stores more than this many partial matches. 0 means no limit.")
    max_state_bytes: int = _setting(2 << 30, size, "A query fails when its state takes more than this many bytes. 0 means no limit.")
    header_s: float = _setting(10.0, _seconds, "The request line and headers must arrive within this many seconds.")
    body_s: float = _setting(30.0, _seconds, "The server waits this many seconds for the next byte of an incomplete body.")
    body_total_s: float = _setting(300.0, _seconds, "A whole body must arrive within this many seconds.")
    buffer_solutions: int = _setting(10_000, _count, "A subscriber that receives solutions live may be at most this many solutions behind.")
    slow_after_s: float = _setting(2.0, _seconds, "A subscriber with a full buffer counts as slow when a send to it waits this many seconds.")
    stall_s: float = _setting(60.0, _seconds, "The server ends a subscription when a send to its subscriber waits this many seconds.")
    comment_s: float = _setting(15.0, _seconds, "An idle event stream gets a comment at intervals of this many seconds.")
    progress_s: float = _setting(1.0, _seconds, "An idle subscriber gets a progress message at intervals of this many seconds.")
    max_wait_s: float = _setting(60.0, _seconds, "The parameter `wait` of a request for solutions may be at most this many seconds.")
    webhook_attempts: int = _setting(12, _count, "After this many failed attempts to deliver a solution, a webhook skips it.")
    webhook_first_s: float = _setting(
        1.0, _seconds, "After the first failure, a webhook retries the delivery after this many seconds. The pause doubles with each further failure."
    )
    webhook_longest_s: float = _setting(3600.0, _seconds, "The pause between two attempts of a webhook delivery is at most this many seconds.")
    webhook_timeout_s: float = _setting(15.0, _seconds, "A webhook's receiver must answer within this many seconds.")
    audit_bytes: int = _setting(16 << 20, size, "When the audit file reaches this many bytes, a new file is started. One older file is kept.")

    @property
    def loopback(self) -> bool:
        """Return whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def asks_for_tokens(self) -> bool:
        """Return whether a request needs a token."""
        return self.token_file is not None or self.oidc_issuer is not None

    @property
    def away(self) -> bool:
        """Return whether engines run on machines that see the data directory in its store alone."""
        return self.store is not None and self.runner == "spark" and not self.master.startswith("local")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def without_effect(shown: str) -> str:
    """Return the warning for a switch that is still taken (REMOVED)."""
    return f"{shown} has no effect any more, and goes with the next release; leave it out"


def variable_of(name: str) -> str:
    return ENVIRONMENT_PREFIX + name.upper()


_Named: TypeAlias = Callable[[str], str]


def settings_from(flags: Mapping[str, Any], environment: Mapping[str, str], warn: Callable[[str], None] = lambda _: None) -> Settings:
    """Return the settings: flags (None: not given) go before variables, those before the file, and that before
    defaults.

    `warn` is told of each former name (RENAMED) and each switch without effect (REMOVED) that is used. Raises:
    SettingsError, also for an address that others can reach without a token file.
    """
    file = flags.get(CONFIG) or environment.get(variable_of(CONFIG))
    written = _written(Path(file)) if file else {}
    chosen: dict[str, Any] = {}
    sources: tuple[tuple[Mapping[str, Any], _Named, _Named, Callable[[str, Any, Callable[[str], Any]], Any]], ...] = (
        (flags, str, flag_of, _given),
        (environment, variable_of, variable_of, _read_value),
        (written, str, lambda name: f"{file}: {name}", _read_value),
    )
    for setting in fields(Settings):
        names = [setting.name, *([RENAMED[setting.name]] if setting.name in RENAMED else [])]
        for values, key, shown, reader in sources:
            name = next((name for name in names if values.get(key(name)) is not None), None)
            if name is None:
                continue
            if name != setting.name:
                warn(f"{shown(name)} is deprecated and goes with the next release; use {shown(setting.name)}")
            chosen[setting.name] = reader(shown(name), values[key(name)], setting.metadata["read"])
            break
    for name in REMOVED:
        for values, key, shown, _ in sources:
            if values.get(key(name)) is not None:
                warn(without_effect(shown(name)))
    settings = Settings(**chosen)
    if not settings.loopback and not settings.asks_for_tokens:
        raise SettingsError(
            f"--host {settings.host} can be reached from other machines; give --token-file (lines of '<sha256 of the token> <scopes>'), "
            "or listen on 127.0.0.1"
        )
    if settings.oidc_issuer is None and (settings.oidc_audience or settings.oidc_scopes is not None or settings.oidc_client_id is not None):
        raise SettingsError("--oidc-audience, --oidc-scopes and --oidc-client-id are about an issuer; give --oidc-issuer too")
    if EVERY_ORIGIN in settings.origins and not settings.asks_for_tokens:
        raise SettingsError("--origins '*' lets every web page use this server; give --token-file too, or name the origins")
    if settings.takeover_s is not None and (settings.store is None or settings.takeover_s < 1):
        raise SettingsError("--takeover-s is the time of a lease in a store: give --store too, and 1 s or more")
    if settings.tls_key is not None and settings.tls_cert is None:
        raise SettingsError("--tls-key is the key of a certificate; give --tls-cert too")
    return settings


def _given(flag: str, value: Any, read: Callable[[str], Any]) -> Any:
    match value:
        case str():
            return _read_value(flag, value, read)
        case list() if read is _spark_conf:
            return _read_value(flag, shlex.join(value), read)
        case list():
            return tuple(value)
        case _:  # a caller's own value
            return value


def _read_value(place: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise SettingsError(f"{place}={text!r}: {error}") from None


def _written(file: Path) -> dict[str, str]:
    """Return the file's settings as text, in the form of the variables. Raises: SettingsError."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"--config {file} cannot be read: {explain_unreadable(error)}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"--config {file} is no TOML: {error}") from None
    present = [setting.name for setting in fields(Settings)]
    for name in found:
        if name not in {*present, *RENAMED.values(), *REMOVED}:
            near = get_close_matches(name, present, n=1, cutoff=0.0)[0]
            raise SettingsError(f"{file}: there is no setting {name!r}; the nearest one is {near!r} (docs/configuration.md)")
    return {name: _as_text(file, name, value) for name, value in found.items()}


def _as_text(file: Path, name: str, value: object) -> str:
    match value:
        case bool() if name not in REMOVED:
            pass
        case str() | int() | float():
            return str(value)
        case list() if all(isinstance(each, str) for each in value):
            return shlex.join(value) if name == "spark_conf" else " ".join(value)
    raise SettingsError(f"{file}: {name} must be a string, a number or an array of strings")
