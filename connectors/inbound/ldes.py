"""Follows a Linked Data Event Stream over HTTP, from its root along a chain of pages; the last page is asked again
for new members.

A position is `PAGE MEMBER`: the address of a page, and the name of the last member that was read of it.
"""

import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from connectors.configuration import Connector
from connectors.errors import SystemFault
from connectors.inbound.ldes_page import EventPage, parse_page
from connectors.inbound.source import Message, Source
from epsparql.events.media_types import LD_JSON, N_QUADS, N_TRIPLES, TRIG, TURTLE

if TYPE_CHECKING:
    import httpx

MOST_BYTES = 64 << 20
"""A page has at most this many bytes."""
_ACCEPT = f"{TRIG}, {N_QUADS};q=0.9, {TURTLE};q=0.8, {N_TRIPLES};q=0.7, {LD_JSON};q=0.6"
_MAX_AGE = re.compile(r"max-age=(\d{1,9})", re.IGNORECASE)
_LONGEST_S = 3_600.0  # a page is asked for again after this time, whatever its max-age says
_TIMEOUT_S, _MOST_REDIRECTS, _LOOK_S = 30.0, 5, 0.1
_GONE = (404, 410)
_GZIP = 16 + zlib.MAX_WBITS  # zlib's number for the format of gzip


class LdesSource(Source):
    """Follows one event stream, whose pages all have the scheme and host of its root: the token is sent there alone."""

    def __init__(self, connector: Connector, credentials: Mapping[str, str]) -> None:
        options = connector.options
        self._root, self._poll_s = options["url"], options["poll_s"]
        self._headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip"} | (
            {"Authorization": f"Bearer {credentials['token']}"} if "token" in credentials else {}
        )
        self._client: httpx.Client | None = None
        self._timestamp: str | None = None
        self._address = ""
        self._last: str | None = None
        """The last member that was read of the page at the present address."""
        self._tag: Mapping[str, str] = {}
        self._again_s = 0.0
        self._passed: set[str] = set()
        self._waiting = list[Message]()

    def seek(self, position: str | None) -> None:
        import httpx

        self.close()
        self._client = httpx.Client(headers=self._headers, timeout=_TIMEOUT_S)
        self._timestamp, self._passed, self._waiting = None, set(), []
        self._enter(self._root, None)
        root = self._fetch()
        self._timestamp = None if root is None else root.timestamp
        self._passed.clear()
        address, _, last = (position or f"{self._root} ").rpartition(" ")
        self._enter(address, last or None)

    def _enter(self, address: str, last: str | None) -> None:
        """Make a page the present one. Raises: SystemFault for one of another host, and for one that was left before."""
        self._check_host(address)
        if address in self._passed:
            raise SystemFault(f"{self._address} leads back to {address}, so its pages have no end")
        self._passed.add(address)
        self._address, self._last, self._tag, self._again_s = address, last, {}, 0.0

    def _check_host(self, address: str) -> None:
        if urlsplit(address)[:2] != urlsplit(self._root)[:2]:
            raise SystemFault(f"{self._root} leads to {address}, which is on another host; give the address there as url")

    def read(self, most: int, wait_s: float) -> Sequence[Message]:
        deadline = time.monotonic() + wait_s
        while not self._waiting:
            if time.monotonic() >= self._again_s:
                self._load()
            elif time.monotonic() < deadline:
                time.sleep(_LOOK_S)
            else:
                break
        found, self._waiting = self._waiting[:most], self._waiting[most:]
        return found

    def _load(self) -> None:
        """Take the new members of the present page, and go on to the next page if there is one."""
        page = self._fetch()
        if page is not None:
            names = [member.name for member in page.members]
            if self._last is not None and self._last not in names:
                raise SystemFault(
                    f"{self._address} has no member {self._last} any more; give the connector another source, and it begins at the root"
                )
            new = page.members[0 if self._last is None else names.index(self._last) + 1 :]
            self._waiting = [Message(member.text, f"{self._address} {member.name}", origin=f"page {self._address}") for member in new]
            if new:
                self._last = new[-1].name
            if page.following is not None:
                self._enter(page.following, None)

    # ------------------------------------------------------------ HTTP
    def _fetch(self) -> EventPage | None:
        """Return the present page; None where it is the one that was read. Raises: SystemFault."""
        address = self._address
        for _ in range(_MOST_REDIRECTS):
            with _faults(address), self._open_client.stream("GET", address, headers=dict(self._tag)) as answer:
                if answer.has_redirect_location:
                    address = urljoin(address, answer.headers.get("location", ""))
                    self._check_host(address)
                    continue
                self._again_s = time.monotonic() + max(self._poll_s, _find_max_age(answer.headers))
                if answer.status_code == 304:
                    return None
                if answer.status_code in _GONE:
                    raise SystemFault(f"{address} is gone ({answer.status_code}); give the connector another source, and it begins at the root")
                if answer.status_code != 200:
                    raise SystemFault(f"{address} answers with {answer.status_code} {answer.reason_phrase}")
                self._tag = {"If-None-Match": answer.headers["etag"]} if "etag" in answer.headers else {}
                media_type = answer.headers.get("content-type", "").partition(";")[0].strip()
                return parse_page(_read_body(answer, address), media_type, address, self._timestamp)
        raise SystemFault(f"{self._address} is redirected more than {_MOST_REDIRECTS} times")

    @property
    def _open_client(self) -> "httpx.Client":
        assert self._client is not None
        return self._client

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _find_max_age(headers: Mapping[str, str]) -> float:
    """Return for how long an answer is fresh, in seconds."""
    found = _MAX_AGE.search(headers.get("cache-control", ""))
    return 0.0 if found is None else min(float(found[1]), _LONGEST_S)


def _read_body(answer: "httpx.Response", address: str) -> bytes:
    """Return the body of an answer, unpacked piece by piece.

    Raises: SystemFault for one that is too large, or is packed in another way than gzip.
    """
    encoding = answer.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise SystemFault(f"{address} answers with the Content-Encoding {encoding!r}, although only gzip was asked for")
    unpack = zlib.decompressobj(_GZIP) if encoding == "gzip" else None
    body = bytearray()
    try:
        for part in answer.iter_raw():
            body += part if unpack is None else unpack.decompress(part, MOST_BYTES + 1 - len(body))
            if len(body) > MOST_BYTES:
                raise SystemFault(f"{address} has more than {MOST_BYTES} bytes; ask its publisher for smaller pages")
    except zlib.error as fault:
        raise SystemFault(f"{address} is no gzip: {fault}") from None
    if unpack is not None and not unpack.eof:
        raise SystemFault(f"{address} is no gzip: it ends too early")
    return bytes(body)


@contextmanager
def _faults(address: str) -> Iterator[None]:
    """Turn faults of HTTP into SystemFault."""
    import httpx

    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL) as fault:
        raise SystemFault(f"{address} does not answer: {str(fault) or type(fault).__name__}") from None
