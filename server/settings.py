"""Defines what the operator chooses, by flag, by EPSPARQL_* variable, or in a TOML file.

server/cli/settings_doc.py makes docs/configuration.md from this.
"""

import ipaddress
import shlex
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pipeline.partition_count import MOST_BUCKETS
from pipeline.spark.spark_conf import chosen_settings

RUNNERS = ("spark", "inprocess")
LOG_FORMATS = ("text", "json")
ENTAILMENTS = ("rdfs", "owl-rl")  # engine.messages has them too, but loads pyarrow
ENVIRONMENT_PREFIX = "EPSPARQL_"
CONFIG = "config"
"""The flag of this name, or the variable EPSPARQL_CONFIG, names the file."""


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


def _buckets(text: str) -> int:
    number = _whole(text)
    if not 1 <= number <= MOST_BUCKETS:
        raise ValueError(f"must be a number from 1 to {MOST_BUCKETS}")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1e9:  # NaN fails this test too
        raise ValueError("must be a number of seconds that is not negative")
    return number


def _yes(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def _spark_conf(text: str) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in chosen_settings(text).items())


def _setting(default: Any, read: Callable[[str], Any], about: str, *, told: bool = True) -> Any:
    """Define a setting. `told` says that it holds no secrets, so that it may be printed."""
    return field(default=default, repr=told, metadata={"read": read, "about": about})


# ruff: noqa: RUF009 - `_setting` is dataclasses.field with the reader of the variable's text, and what the setting is
@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the settings. Sizes are in bytes, settings whose names end in `_s` in seconds."""

    host: str = _setting("127.0.0.1", str, "address to listen on; another than loopback needs `token_file`")
    port: int = _setting(8080, _count, "port; 0 for any free one")
    data: Path = _setting(Path("epsparql-data"), Path, "directory of the log, solutions and snapshots")
    runner: str = _setting("spark", _one_of(*RUNNERS), "what evaluates: spark or inprocess")
    master: str = _setting("local[*,4]", str, "Spark's master")
    spark_conf: tuple[str, ...] = _setting(
        (),
        _spark_conf,
        "KEY=VALUE: settings of Spark's, such as spark.executor.memory=2g; they go before those of spark-defaults.conf in SPARK_CONF_DIR",
        told=False,
    )
    low_latency: bool = _setting(False, _yes, "on Spark: one task that stays, a few milliseconds from event to solution, in place of micro-batches")
    buckets: int | None = _setting(
        None,
        _buckets,
        "engines that share the events, on threads of their own: as before on this data, else 1; with several, queries cannot be paused nor read the past",
    )
    token_file: Path | None = _setting(None, Path, "per line the SHA-256 of a token in hex, and its scopes")
    store: str | None = _setting(
        None,
        str,
        "where the data directory is kept too, before anything is acknowledged: s3://bucket/prefix and the like; an empty data directory is copied from there",
        told=False,
    )
    export: str | None = _setting(
        None,
        str,
        "where solutions are written to as Parquet files too, by query and date: a directory, or s3://bucket/prefix and the like",
        told=False,
    )
    export_every_s: float = _setting(60.0, _seconds, "between such writes, while there are new solutions")
    retain_age: float | None = _setting(
        None, age, "what is older may go from both logs, from the log of events with one bucket only: 90s, 15m, 12h, 30d; else all is kept"
    )
    retain_bytes: int | None = _setting(None, size, "of each log; the oldest goes beyond it: 500M, 50G; else all is kept")
    retain_every_s: float = _setting(30.0, _seconds, "how often that is looked at")
    origins: tuple[str, ...] = _setting((), _words, "origins that browsers may come from, beside the server's own")
    allow_hosts: tuple[str, ...] = _setting(
        (), _words, "hosts, addresses or networks that webhooks may go to although they are loopback, private or otherwise not public"
    )
    proxies: tuple[str, ...] = _setting(
        (), _networks, "addresses or networks of proxies in front of the server, whose `X-Forwarded-For` tells who asks; nobody else's is believed"
    )
    log_format: str = _setting("text", _one_of(*LOG_FORMATS), "lines of the server's log on stderr: text or json")
    max_body: int = _setting(64 << 20, size, "bytes of a body of events")
    max_bodies: int = _setting(
        512 << 20,
        size,
        "bytes of all bodies and WebSocket frames not yet answered; beyond it bodies get 429 and frames wait; max_body and max_ontology fit in any case",
    )
    max_frame: int = _setting(16 << 20, size, "bytes of a WebSocket frame")
    max_query: int = _setting(256 << 10, size, "bytes of a query, or of a JSON body")
    max_ontology: int = _setting(256 << 20, size, "bytes of a body that loads background")
    entailment: str = _setting("rdfs", _one_of(*ENTAILMENTS), "what the background's schema entails: rdfs or owl-rl")
    background: tuple[str, ...] = _setting((), _words, "[GRAPH=]FILE: graphs of the background, which are what their files say at each start")
    askers: int = _setting(4, _count, "queries of /sparql that run at a time")
    asking_s: float = _setting(30.0, _seconds, "time that one of them may take")
    max_asking: int = _setting(2 << 30, size, "bytes of memory that one of them may take")
    max_answer: int = _setting(64 << 20, size, "bytes of its answer")
    max_queries: int = _setting(10_000, _count, "registered queries")
    max_observers: int = _setting(1_000, _count, "webhooks, of all queries together")
    max_subscribers: int = _setting(10_000, _count, "WebSocket and event-stream subscribers of all queries together")
    max_subscribers_per_query: int = _setting(5_000, _count, "likewise, of one query")
    max_feeds: int = _setting(1_000, _count, "WebSockets that feed streams")
    max_lag: int = _setting(100_000, _count, "entries of the log that the runner may be behind before events are refused with 429; 0: no limit")
    max_lag_rows: int = _setting(10_000_000, _count, "rows of them likewise, of those that came since the start; 0: no limit")
    max_derivations: int = _setting(100_000, _count, "triples that a rule may derive at one instant; each KiB of their text counts as another")
    max_goals: int = _setting(10_000_000, _count, "partial solutions that a query may keep before it fails; 0: no limit")
    max_state_bytes: int = _setting(2 << 30, size, "bytes of a query's state likewise; 0: no limit")
    header_s: float = _setting(10.0, _seconds, "for a request's head to come")
    body_s: float = _setting(30.0, _seconds, "without a byte of a body that is not complete")
    body_total_s: float = _setting(300.0, _seconds, "for a whole body to come")
    buffer_solutions: int = _setting(10_000, _count, "how far a live subscriber may fall behind")
    slow_after_s: float = _setting(2.0, _seconds, "a send that waits this long, with the buffer full, marks a slow reader")
    stall_s: float = _setting(60.0, _seconds, "a send that waits this long ends the subscription in any case")
    comment_s: float = _setting(15.0, _seconds, "between comments of an idle event stream")
    progress_s: float = _setting(1.0, _seconds, "between progress messages of an idle subscription")
    max_wait_s: float = _setting(60.0, _seconds, "the longest `wait` of a pull")
    webhook_attempts: int = _setting(12, _count, "tries of a delivery before it is given up")
    webhook_first_s: float = _setting(1.0, _seconds, "pause after a delivery's first failure; it doubles with each further one")
    webhook_longest_s: float = _setting(3600.0, _seconds, "the longest such pause")
    webhook_timeout_s: float = _setting(15.0, _seconds, "for a receiver to answer")
    audit_bytes: int = _setting(16 << 20, size, "of the audit log before it is begun anew; one older file is kept")

    @property
    def loopback(self) -> bool:
        """Return whether only this machine can reach the server."""
        return is_loopback(self.host)

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


def settings_from(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Return the settings: flags (None: not given) go before variables, those before the file, and that before defaults.

    Raises: SettingsError, also for an address that others can reach without a token file.
    """
    file = flags.get(CONFIG) or environment.get(ENVIRONMENT_PREFIX + CONFIG.upper())
    written = _written(Path(file)) if file else {}
    chosen: dict[str, Any] = {}
    for setting in fields(Settings):
        variable, read = ENVIRONMENT_PREFIX + setting.name.upper(), setting.metadata["read"]
        if flags.get(setting.name) is not None:
            chosen[setting.name] = _given(f"--{setting.name.replace('_', '-')}", flags[setting.name], read)
        elif variable in environment:
            chosen[setting.name] = _read(variable, environment[variable], read)
        elif setting.name in written:
            chosen[setting.name] = _read(f"{file}: {setting.name}", written[setting.name], read)
    settings = Settings(**chosen)
    if settings.low_latency and settings.runner != "spark":
        raise SettingsError(f"low_latency is a mode of the runner spark, and the runner is {settings.runner}, which has no other: leave it out")
    if settings.low_latency and settings.away:
        raise SettingsError(
            "low_latency on a cluster needs a data directory on storage that all machines share, and with --store they see the store alone: leave out one of them"
        )
    if not settings.loopback and settings.token_file is None:
        raise SettingsError(
            f"--host {settings.host} can be reached from other machines, so it needs --token-file (one '<sha256 of the token> <scopes>' per line); "
            "or bind to 127.0.0.1"
        )
    return settings


def _given(flag: str, value: Any, read: Callable[[str], Any]) -> Any:
    match value:
        case str():
            return _read(flag, value, read)
        case list() if read is _spark_conf:
            return _read(flag, shlex.join(value), read)
        case list():
            return tuple(value)
        case _:  # a switch
            return value


def _read(place: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise SettingsError(f"{place}={text!r}: {error}") from None


def _written(file: Path) -> dict[str, str]:
    """Return the file's settings as text, in the form of the variables. Raises: SettingsError."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"--config {file}: {error}") from None
    known = {setting.name: isinstance(setting.default, bool) for setting in fields(Settings)}
    for name in found:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.0)[0]
            raise SettingsError(f"{file}: there is no setting {name!r}; the nearest one is {near!r} (docs/configuration.md)")
    return {name: _as_text(file, name, value, known[name]) for name, value in found.items()}


def _as_text(file: Path, name: str, value: object, switch: bool) -> str:
    match value:
        case bool():
            if switch:
                return str(value).lower()
        case str() | int() | float():
            return str(value)
        case list() if all(isinstance(each, str) for each in value):
            return shlex.join(value) if name == "spark_conf" else " ".join(value)
    raise SettingsError(f"{file}: {name} must be {'true or false' if switch else 'a string, a number or an array of strings'}")
