"""Stores the webhooks of queries, with what was delivered to each.

Each has one small file, so that a restart continues where deliveries were.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from pathlib import Path

import msgspec

from epsparql.deferred_methods import dataclass
from epsparql.durable_files import replace_file, sync_path
from epsparql.solutions.once_per import OncePer, SentKeys, SolutionKey
from server.webhook_delivery.templates import Template

KEPT = 100
"""At most this many deliveries that were given up are listed; `given_up` counts all of them."""
_DETAIL = 700  # characters of an error, with what the receiver said


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Describes a solution that its receiver did not take; it is still in the solution log."""

    id: str
    attempts: int
    error: str
    at: str


@dataclass(slots=True)
class Webhook:
    """Describes a webhook and its deliveries.

    `registered` is the registration to which `last` belongs: the id of the newest solution delivered or given up.

    `state` is active or disabled, the latter after the receiver answered 410 Gone. `attempts` are those of the
    present delivery.

    With `once_per`, `sent` holds the keys of the solutions up to `last` that were taken, and `suppressed` counts
    those that were not sent.
    """

    query: str
    id: str
    url: str
    secret: str
    registered: int
    last: str | None
    created: str
    state: str = "active"
    delivered: int = 0
    given_up: int = 0
    attempts: int = 0
    error: str | None = None
    next_try: str | None = None
    dead: list[GivenUp] = field(default_factory=list)
    template: Template | None = None
    once_per: OncePer | None = None
    sent: SentKeys = field(default_factory=SentKeys)
    suppressed: int = 0

    def hide_secrets(self, text: str) -> str:
        """Return a text without the secrets of this webhook, which a receiver may have repeated."""
        for secret in (self.secret, *(self.template.secrets() if self.template else ())):
            text = text.replace(secret, "…")
        return text

    def record_failure(self, error: str, next_try: str | None) -> None:
        self.attempts += 1
        self.error, self.next_try = error[:_DETAIL], next_try

    def record_delivery(self, solution: str, *, key: SolutionKey | None = None, count: bool = True) -> None:
        """Record that a solution was taken, with its key under `once_per`; or a notice, which does not `count`."""
        if key is not None and self.once_per is not None:
            self.sent.record_sent(key, self.once_per.within)
        self.last, self.attempts, self.error, self.next_try = solution, 0, None, None
        self.delivered += count

    def record_suppressed(self, solution: str) -> None:
        self.last = solution
        self.suppressed += 1

    def begin_registration(self, registered: int) -> None:
        """Follow another registration of the query from its first solution. Keys of the earlier one suppress nothing."""
        self.registered, self.last, self.attempts, self.sent = registered, None, 0, SentKeys()

    def record_given_up(self, solution: str, at: str) -> None:
        """Give up the present delivery. The error stays, so that the reason can be seen."""
        self.dead = [*self.dead[1 - KEPT :], GivenUp(solution, self.attempts, self.error or "", at)]
        self.last, self.attempts, self.next_try = solution, 0, None
        self.given_up += 1


class WebhookFiles:
    """Stores the webhooks of a data directory. Their files hold secrets, so only the owner may read them."""

    def __init__(self, data: Path) -> None:
        self._directory = data / "observers"

    def load(self) -> Iterator[Webhook]:
        """Yield all webhooks. Raises: ValueError, naming the file, for a file that holds no webhook."""
        for path in sorted(self._directory.glob("*.json")):
            try:
                yield msgspec.json.decode(path.read_bytes(), type=Webhook)
            except msgspec.MsgspecError as error:
                raise ValueError(f"{path} holds no webhook: {error}; delete it, or restore it from a copy") from None

    def save(self, webhook: Webhook, *, durable: bool = False) -> None:
        """Replace the webhook's file in one step.

        If a crash of the machine takes back a position, solutions are only delivered again. What a client asked for
        must not be lost, so it is saved `durable`.
        """
        self._directory.mkdir(mode=0o700, exist_ok=True)
        replace_file(self.path(webhook.query, webhook.id), msgspec.json.encode(webhook), mode=0o600, durable=durable)

    def delete(self, query: str, id_: str) -> None:
        with suppress(FileNotFoundError):
            self.path(query, id_).unlink()
            sync_path(self._directory)

    def path(self, query: str, id_: str) -> Path:
        """Return the webhook's path, named by a digest: names may be too long for a file's, or hold characters that
        it may not.
        """
        digest = hashlib.sha256(f"{query}\0{id_}".encode()).hexdigest()
        return self._directory / f"{digest[:32]}.json"
