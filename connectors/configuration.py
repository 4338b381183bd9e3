"""Reads what connectors are to do, from a TOML file or from JSON, and checks it against the table of systems.py."""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from connectors.credentials import ANYWHERE, CredentialPlaces
from connectors.errors import MissingLibrary, WrongOption
from connectors.systems import COMMON, IN, OUT, SYSTEMS, Option, System
from epsparql.deferred_methods import dataclass

_SHOWN = 100  # a message shows this many characters of a value
_LONGEST_NAME = 200
_HEAD = ("server", "ca_file", "token_env", "token_file", "state", "connectors")


@dataclass(frozen=True, slots=True)
class Connector:
    """Describes a connector: `given` is what its operator wrote, `options` the same with defaults.

    Neither holds a credential.
    """

    name: str
    system: str
    direction: str
    given: Mapping[str, Any]
    options: Mapping[str, Any]
    places: CredentialPlaces = ANYWHERE
    """Files are checked by these again when they are opened, since links may lead elsewhere by then."""

    @property
    def credentials(self) -> tuple[str, ...]:
        """Return the names of the credentials that the system may ask for."""
        return SYSTEMS[self.system].credentials

    @property
    def scope(self) -> str:
        """Return what the connector needs to be allowed to do at the server."""
        return f"ingest:{self.options['stream']}" if self.direction == IN else f"read:{self.options['query']}"


@dataclass(frozen=True, slots=True)
class ConnectorFile:
    """Holds what a file says: connectors, and for `epsparql connect` the server with the place of a token.

    `state` is the directory in which connectors with `once_per` keep the keys of sent alerts.
    """

    connectors: tuple[Connector, ...]
    server: str
    token: Mapping[str, str]
    ca_file: str | None = None
    state: str | None = None


def read_connector_file(path: Path) -> ConnectorFile:
    """Read a TOML file of connectors. Raises: WrongOption, which names the file."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WrongOption(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WrongOption(f"{path} is not UTF-8; save it in that encoding") from None
    except tomllib.TOMLDecodeError as error:
        raise WrongOption(f"{path} is no TOML: {error}") from None
    try:
        for name in found:
            if name not in _HEAD:
                raise WrongOption(f"there is no setting {_quote_value(name)}; it may have {', '.join(_HEAD)}")
        tables = found.get("connectors", {})
        if not isinstance(tables, dict) or not tables:
            raise WrongOption("it has no connector; a connector is a table such as [connectors.readings]")
        server = found.get("server", "http://127.0.0.1:8080")
        if not isinstance(server, str) or urlsplit(server).scheme not in ("http", "https"):
            raise WrongOption("server must be a URL such as http://127.0.0.1:8080")
        if "@" in urlsplit(server).netloc:
            raise WrongOption("server holds a credential; give the place of a token with token_env or token_file")
        token: dict[str, str] = {name: str(found[name]) for name in ("token_env", "token_file") if name in found}
        ca_file = found.get("ca_file")
        if ca_file is not None and not isinstance(ca_file, str):
            raise WrongOption("ca_file must be the path of a PEM file")
        state = found.get("state")
        if state is not None and not (isinstance(state, str) and state and "\0" not in state):
            raise WrongOption("state must be the path of a directory")
        return ConnectorFile(tuple(parse_connector(name, table) for name, table in tables.items()), server, token, ca_file, state)
    except WrongOption as fault:
        raise WrongOption(f"{path}: {fault}") from None


def parse_connector(name: str, given: object, places: CredentialPlaces | None = None) -> Connector:
    """Return the connector that a table describes. Raises: WrongOption, which names the connector and the option."""
    try:
        return _parse_table(name, given, places or ANYWHERE)
    except WrongOption as fault:
        raise WrongOption(f"connector {_quote_value(name)}: {fault}") from None


def check_library(system: str) -> None:
    """Check that a system's client library is installed. Raises: MissingLibrary."""
    try:
        found = find_spec(SYSTEMS[system].module)
    except ModuleNotFoundError:  # not even the package above the module is there
        found = None
    if found is None:
        raise MissingLibrary(SYSTEMS[system].library, SYSTEMS[system].extra)


def _parse_table(name: str, given: object, places: CredentialPlaces) -> Connector:
    if not 0 < len(name) <= _LONGEST_NAME:
        raise WrongOption(f"its name must have 1 to {_LONGEST_NAME} characters")
    if not isinstance(given, dict):
        raise WrongOption("it must be a table of options")
    kind = given.get("type")
    if not isinstance(kind, str) or kind not in SYSTEMS:
        raise WrongOption(f"type must be one of {', '.join(SYSTEMS)}, not {_quote_value(kind)}")
    direction = _find_direction(kind, given)
    known = {**COMMON[direction], **SYSTEMS[kind].options[direction]}
    options: dict[str, Any] = {}
    for option, description in known.items():
        options[option] = _read_option(option, description, given.get(option))
    _check_names(given, known, SYSTEMS[kind])
    _check_credentials(given, SYSTEMS[kind], places)
    if "url" in options:
        _check_url(options["url"], SYSTEMS[kind], places)
    for option, description in known.items():
        if description.is_file and options[option] is not None:
            places.check_file(option, options[option])
    options |= {key: value for key, value in given.items() if key not in known and key != "type"}
    return Connector(name, kind, direction, dict(given), options, places)


def _find_direction(kind: str, given: Mapping[str, Any]) -> str:
    if ("stream" in given) == ("query" in given):
        raise WrongOption("give either stream, to send events to it, or query, to follow its solutions")
    direction = IN if "stream" in given else OUT
    if direction not in SYSTEMS[kind].options:
        raise WrongOption(f"the type {kind} takes {'stream' if direction == OUT else 'query'} only")
    return direction


def _read_option(name: str, option: Option, value: object) -> Any:
    if value is None:
        if option.needed:
            raise WrongOption(f"{name} is missing: {option.about}")
        return option.default
    if option.read is not None:
        try:
            return option.read(value)
        except ValueError as fault:
            raise WrongOption(str(fault)) from None
    if option.kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, option.kind) or isinstance(value, bool) != (option.kind is bool):
        words = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", dict: "a table of strings"}
        raise WrongOption(f"{name} must be {words[option.kind]}, not {_quote_value(value)}")
    if isinstance(value, str) and (not value or "\0" in value):
        raise WrongOption(f"{name} must not be empty, nor hold a null character")
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not option.least <= value < 1e9:
        raise WrongOption(f"{name} must be at least {option.least:g}, not {_quote_value(value)}")
    if isinstance(value, dict) and not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise WrongOption(f"{name} must be a table of strings")
    if option.other_names is not None and isinstance(value, str):
        value = option.other_names.get(value, value)
    if option.allowed and value not in option.allowed:
        raise WrongOption(f"{name} must be one of {', '.join(option.allowed)}, not {_quote_value(value)}")
    return value


def _check_names(given: Mapping[str, Any], known: Mapping[str, Option], system: System) -> None:
    allowed = {"type", *known, *(f"{name}_{place}" for name in system.credentials for place in ("env", "file"))}
    for name in given:
        if name in system.credentials:
            raise WrongOption(f"{name} must not be written here; name its place with {name}_env or {name}_file")
        if name not in allowed:
            near = get_close_matches(name, allowed, n=1, cutoff=0.0)[0]
            raise WrongOption(f"there is no option {_quote_value(name)}; the nearest one is {near!r}")


def _check_credentials(given: Mapping[str, Any], system: System, places: CredentialPlaces) -> None:
    for name in system.credentials:
        variable, path = given.get(f"{name}_env"), given.get(f"{name}_file")
        if variable is not None and path is not None:
            raise WrongOption(f"give {name}_env or {name}_file, and not both")
        for option, value in ((f"{name}_env", variable), (f"{name}_file", path)):
            if value is not None and not (isinstance(value, str) and value and "\0" not in value):
                raise WrongOption(f"{option} must be a string that is not empty")
        if variable is not None:
            places.check_variable(f"{name}_env", variable)
        if path is not None:
            places.check_file(f"{name}_file", path)


def _scheme_list(system: System) -> str:
    return " or ".join(f"{scheme}://" for scheme in system.schemes)


def _check_url(url: str, system: System, places: CredentialPlaces) -> None:
    try:
        parts = urlsplit(url)
        host, password, user = parts.hostname, parts.password, parts.username
    except ValueError:
        raise WrongOption(f"url is no URL; expected {_scheme_list(system)} and a host") from None
    if parts.scheme not in system.schemes or not host:
        raise WrongOption(f"url must begin with {_scheme_list(system)} and name a host")
    if password is not None or (user is not None and not system.user_in_url):
        raise WrongOption(
            "url holds a credential; give user here, and the place of the rest with " + ", ".join(f"{each}_env" for each in system.credentials)
        )
    allowed = system.url_parameters
    for name, value in parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True):  # to clients of databases, a plus is a plus
        if allowed is not None and name not in allowed:
            raise WrongOption(f"url has the parameter {_quote_value(name)}; it may have {', '.join(allowed) or 'none'}")
        if name in system.file_parameters and value != "system":
            places.check_file(f"url: {name}", value)


def _quote_value(value: object) -> str:
    return repr(value)[:_SHOWN]
