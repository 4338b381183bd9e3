"""Decides where webhooks may go: to nothing that only this machine or its network can reach, unless the operator
allows it.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import SplitResult, urlsplit

from epsparql.deferred_methods import dataclass
from server.http.problem_details import Fault, Problem, bad_request

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_PORTS = {"http": 80, "https": 443}
_LONGEST = 2048
_RESOLVING_S = 10.0
_GLOBAL = ipaddress.IPv6Network("2000::/3")
"""This network is all of IPv6 that is handed out for the internet: site-local, unique local and unused addresses are
elsewhere.
"""
_SPECIAL: tuple[tuple[str, tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]], ...] = (
    (
        "an address that a gateway turns into another one",  # NAT64, 6to4, Teredo, IPv4-compatible and IPv4-translated
        tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::/96", "::ffff:0:0:0/96", "192.88.99.0/24"))),
    ),
    ("an address of a special purpose", tuple(map(ipaddress.ip_network, ("2001::/23", "3fff::/20", "192.0.0.0/24")))),
)
"""IANA's registries of special addresses have these beyond those that the oldest supported Python knows."""
_ISATAP = (0x00005EFE, 0x02005EFE)  # the third 32 bits of an address whose last 32 bits are IPv4 (RFC 5214)


@dataclass(frozen=True, slots=True)
class WebhookTarget:
    """Holds a webhook's URL in parts. `path` holds the query string too."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Return host and port in the form of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def at(self, address: Address) -> str:
        """Return the URL with an address in the host's place."""
        host = f"[{address}]" if address.version == 6 else str(address)
        return f"{self.scheme}://{host}:{self.port}{self.path}"


class TargetRefused(Exception):
    """Reports a target that webhooks may not go to, or that cannot be found; the message names it and the remedy."""


def parse_target(url: str) -> WebhookTarget:
    """Parse the URL of a webhook. Raises: Fault 400 for what is no such URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise bad_request("invalid-url", f"url: {error}", expected="an http or https URL") from None
    if len(url) > _LONGEST or not url.isascii() or any(character <= " " or character == "\x7f" for character in url):
        raise bad_request("invalid-url", f"url must be ASCII without blanks, of at most {_LONGEST} characters", expected="an http or https URL")
    if parts.scheme not in _PORTS or not parts.hostname:
        raise bad_request("invalid-url", "url must begin with https:// or http:// and name a host", expected="an http or https URL")
    if parts.username is not None or parts.fragment:
        raise bad_request("invalid-url", "url must have no user name, password or fragment; deliveries are signed with the secret instead")
    if port == 0:
        raise bad_request("invalid-url", "url names port 0", expected="a port from 1 to 65535")
    return WebhookTarget(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], _path(parts))


def _path(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


class TargetPolicy:
    """Checks targets, except the host names, addresses and networks that are `allowed`."""

    def __init__(self, allowed: Sequence[str] = ()) -> None:
        self._names: set[str] = set()
        self._networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for each in allowed:
            try:
                self._networks.append(ipaddress.ip_network(each.strip("[]"), strict=False))
            except ValueError:
                self._names.add(each.lower())

    async def resolve_target(self, target: WebhookTarget) -> tuple[Address, ...]:
        """Return all addresses that the target's host has now, each checked.

        Connect to these addresses, not to the name, because the name may stand for another one a moment later.

        Raises: TargetRefused.
        """
        try:
            async with asyncio.timeout(_RESOLVING_S):
                found = await asyncio.get_running_loop().getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError, TimeoutError) as error:
            raise TargetRefused(
                f"the host {target.host!r} is not found: {error or 'no answer'}; check its spelling, and this machine's name server"
            ) from None
        addresses = tuple(dict.fromkeys(ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found))
        if target.host not in self._names:
            for address in addresses:
                self._check(target.host, address)
        return addresses

    def _check(self, host: str, address: Address) -> None:
        """Check that webhooks may go to an address. Raises: TargetRefused."""
        if any(address.version == network.version and address in network for network in self._networks):
            return
        why = explain_non_public(address)
        if why:
            shown = host if host == str(address) else f"{host} ({address})"
            raise TargetRefused(f"{shown} is {why}; webhooks go to public addresses, and to what --allow-hosts names")


def explain_non_public(address: Address) -> str:
    """Return why an address is not one that anybody on the internet could have; empty if it is."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return explain_non_public(address.ipv4_mapped) and f"an IPv4 address inside an IPv6 address, {explain_non_public(address.ipv4_mapped)}"
        if address.is_loopback or address.is_unspecified:
            return "this machine"
        if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
            return _SPECIAL[0][0]
    for name, networks in _SPECIAL:
        if any(address.version == network.version and address in network for network in networks):
            return name
    for holds, name in (
        (address.is_unspecified or address.is_loopback, "this machine"),
        (address.is_link_local, "a link-local address"),
        (address.is_multicast, "a multicast address"),
        (address.is_reserved, "a reserved address"),
        (not address.is_global or (address.version == 6 and address not in _GLOBAL), "an address of a private or shared network"),
    ):
        if holds:
            return name
    return ""


def refusal_fault(refused: TargetRefused) -> Fault:
    return Fault(Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "target-refused", str(refused), expected="a public address, or one of --allow-hosts"))
