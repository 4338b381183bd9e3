"""What the operator chooses, by flag or by EPSPARQL_* variable."""

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

RUNNERS = ("spark", "inprocess")
ENVIRONMENT_PREFIX = "EPSPARQL_"


class SettingsError(Exception):
    """A setting that cannot be; the message names it and the remedy."""


def _runner(text: str) -> str:
    if text not in RUNNERS:
        raise ValueError(f"must be one of {', '.join(RUNNERS)}")
    return text


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _setting(default: Any, read: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={"read": read})


# ruff: noqa: RUF009 - `_setting` is dataclasses.field with the reader of the variable's text
@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes are in bytes."""

    host: str = _setting("127.0.0.1", str)
    port: int = _setting(8080, int)
    data: Path = _setting(Path("epsparql-data"), Path)
    runner: str = _setting("spark", _runner)
    master: str = _setting("local[*,4]", str)
    token_file: Path | None = _setting(None, Path)
    origins: tuple[str, ...] = _setting((), _words)  # beside the server's own origin
    max_body: int = _setting(64 << 20, int)
    max_frame: int = _setting(16 << 20, int)
    max_derivations: int = _setting(100_000, int)  # triples that a rule may derive at one instant
    max_goals: int = _setting(10_000_000, int)  # partial solutions that a query may keep; 0 for no limit
    max_state_bytes: int = _setting(2 << 30, int)  # of a query's state, as they are counted; 0 for no limit
    max_query: int = _setting(256 << 10, int)
    buffer_solutions: int = _setting(10_000, int)  # how far a live subscriber may fall behind
    slow_after_s: float = _setting(2.0, float)  # a send that waits this long, with the buffer full, marks a slow reader
    stall_s: float = _setting(60.0, float)  # a send that waits this long ends the subscription in any case
    comment_s: float = _setting(15.0, float)  # between comments of an idle event stream
    progress_s: float = _setting(1.0, float)  # between progress messages of an idle subscription
    max_wait_s: float = _setting(60.0, float)  # the longest `wait` of a pull

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def settings_from(flags: Mapping[str, Any], environment: Mapping[str, str]) -> Settings:
    """Flags (None: not given) before variables before defaults.

    Raises: SettingsError, also for an address that others can reach without a token file.
    """
    chosen: dict[str, Any] = {}
    for setting in fields(Settings):
        variable = ENVIRONMENT_PREFIX + setting.name.upper()
        if flags.get(setting.name) is not None:
            chosen[setting.name] = flags[setting.name]
        elif variable in environment:
            chosen[setting.name] = _read(variable, environment[variable], setting.metadata["read"])
    settings = Settings(**chosen)
    if not settings.loopback and settings.token_file is None:
        raise SettingsError(
            f"--host {settings.host} can be reached from other machines, so it needs --token-file (one '<sha256 of the token> <scopes>' per line); "
            "or bind to 127.0.0.1"
        )
    return settings


def _read(variable: str, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise SettingsError(f"{variable}={text!r}: {error}") from None
