"""Delivers solutions to webhooks: to each in order, one at a time, at least once.

A delivery that the receiver does not take is retried after growing pauses.
"""

import asyncio
import json
import logging
import random
import ssl
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from typing import Any

import httpx

from epsparql.deferred_methods import dataclass
from epsparql.solutions.once_per import OncePer, check_variables
from pipeline.errors import PipelineError, StoreFailed
from pipeline.formats.batches.timestamps import iso
from pipeline.log.catalog import Registration
from pipeline.registrations.query_cache import find_form
from pipeline.solutions.json_encoder import Envelope
from pipeline.solutions.result_kinds import Bindings
from server.http.problem_details import Fault, Problem
from server.query_output.page_cache import Notice, SolutionLine
from server.query_output.watermark_progress import QueryProgress
from server.service import Service
from server.subscriptions.query_follower import End, Idle, follow_query
from server.webhook_delivery.registrations import Webhook, WebhookFiles
from server.webhook_delivery.signing import sign_delivery
from server.webhook_delivery.target_policy import TargetPolicy, TargetRefused, parse_target
from server.webhook_delivery.templates import DeliveryContent, MessageTooLarge, render_message, render_notice

_ANSWER_BYTES = 1 << 16  # this much of an answer is read, so that the connection can be used again
_WORDS = 500  # characters of an answer that are shown
_ANSWERS_LOOK_S = 60.0
_AFTER_FAULT_S = 2.0
_SAVED_EACH = 1_000  # a position is saved after so many solutions in a row that were not sent
_HERE = "the change is stored here, and in the store once that answers"
_NOWHERE = "the webhook is not created, because the store does not take it"
_FINAL = frozenset(
    (
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.REQUEST_URI_TOO_LONG,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    )
)
"""With these, a receiver refuses the message itself, which would be the same at each try."""
_log = logging.getLogger("epsparql.webhooks")


@dataclass(frozen=True, slots=True)
class DeliveryFailure:
    """Describes why a delivery was not taken.

    `after_s` is when the receiver asks for another try. `gone` says that it wants nothing more, and `final` that
    another try of this message cannot succeed.
    """

    reason: str
    after_s: float = 0.0
    gone: bool = False
    final: bool = False


@dataclass(frozen=True, slots=True)
class ReceiverAnswer:
    """Holds what a receiver answered: the status, the first words of the body, and the seconds after which it asks
    for another try.
    """

    status: int
    words: str
    after_s: float

    def describe_failure(self) -> DeliveryFailure | None:
        """Return why the delivery was not taken; None if it was."""
        if 200 <= self.status < 300:
            return None
        redirect = "; redirects are not followed" if 300 <= self.status < 400 else ""
        words = f": {self.words}" if self.words else ""
        reason = f"answered {self.status}{redirect}{words}"
        return DeliveryFailure(reason, self.after_s, self.status == HTTPStatus.GONE, self.status in _FINAL)


class Deliveries:
    """Holds all webhooks and their tasks. Runs on the event loop only."""

    def __init__(self, service: Service) -> None:
        self._service, self._files = service, WebhookFiles(service.settings.data)
        self.targets = TargetPolicy(service.settings.allow_hosts)
        self._webhooks: dict[tuple[str, str], Webhook] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    # ------------------------------------------------------------ what there is
    def __iter__(self) -> Iterator[Webhook]:
        return iter(list(self._webhooks.values()))

    def __len__(self) -> int:
        return len(self._webhooks)

    def list_webhooks(self, query: str) -> list[Webhook]:
        return [webhook for webhook in self if webhook.query == query]

    def find_webhook(self, query: str, id_: str) -> Webhook | None:
        return self._webhooks.get((query, id_))

    async def put_webhook(self, before: Webhook, **changed: Any) -> Webhook:
        """Start deliveries, or continue them as is now wished. Return the changed webhook, which is durable.

        A new webhook that a store does not take is not created. Where the disk does not take it, nothing changes.
        Raises: StoreFailed, StoreTaken, OSError.
        """
        known = self.find_webhook(before.query, before.id) is not None
        await self._stop_delivery(before.query, before.id)
        webhook = replace(before, **changed)  # not sooner: a delivery that ended meanwhile has moved it
        try:
            await asyncio.to_thread(self._files.save, webhook, durable=True)
        except OSError:
            if known:
                self._start_delivery(before)
            raise
        try:
            await self._replicate(webhook.query, [webhook.id], _HERE if known else _NOWHERE)
        except PipelineError:
            if known:
                self._start_delivery(webhook)
            else:  # a client learns its secret only from the answer that it was created
                await asyncio.to_thread(self._files.delete, webhook.query, webhook.id)
            raise
        self._start_delivery(webhook)
        return webhook

    async def delete_webhooks(self, query: str, ids: Sequence[str]) -> None:
        """Delete webhooks, also unknown ones: a store may not have taken their end before.

        Raises: StoreFailed, StoreTaken; they have ended here nevertheless.
        """
        for id_ in ids:
            await self._stop_delivery(query, id_)
            self._webhooks.pop((query, id_), None)
            await asyncio.to_thread(self._files.delete, query, id_)
        await self._replicate(query, ids, _HERE)

    async def _replicate(self, query: str, ids: Sequence[str], otherwise: str) -> None:
        """Copy the webhooks' files to the store, if the data directory is in one."""
        keeper = self._service.lifecycle.keeper
        if keeper is not None and ids:
            try:
                await asyncio.to_thread(keeper.write_files, [self._files.path(query, id_) for id_ in ids])
            except StoreFailed as fault:
                raise StoreFailed(f"{otherwise}: {fault}") from None

    def find_needed_position(self) -> int:
        """Return the position from which on solutions are yet to be delivered. Any thread may call this."""
        solutions = self._service.solutions
        return min((solutions.needed(each.registered, each.last) for each in self if each.state == "active"), default=solutions.position)

    # ------------------------------------------------------------ life
    def start(self) -> None:
        for webhook in self._files.load():
            if webhook.query in self._service.log.catalogue.queries:
                self._start_delivery(webhook)
            else:  # the server crashed while the query was dropped
                self._files.delete(webhook.query, webhook.id)

    async def stop(self) -> None:
        for query, id_ in list(self._tasks):
            await self._stop_delivery(query, id_)

    def _start_delivery(self, webhook: Webhook) -> None:
        key = webhook.query, webhook.id
        self._webhooks[key] = webhook
        if webhook.state == "active":
            self._tasks[key] = asyncio.create_task(self._run_delivery(webhook), name=f"webhook {key}")

    async def _stop_delivery(self, query: str, id_: str) -> None:
        task = self._tasks.pop((query, id_), None)
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run_delivery(self, webhook: Webhook) -> None:
        """Deliver until the webhook is deleted, disabled or the server stops.

        After a fault of ours, such as a full disk, it begins anew after the last delivered solution.
        """
        while webhook.state == "active" and not self._service.lifecycle.stopping.is_set() and (webhook.query, webhook.id) in self._webhooks:
            try:
                await self._deliver_solutions(webhook)
            except Exception:  # noqa: BLE001 - one webhook's fault must not be silent, nor end the others
                _log.exception("webhook %s of query %s continues in %g s", webhook.id, webhook.query, _AFTER_FAULT_S)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AFTER_FAULT_S):
                        await self._service.lifecycle.stopping.wait()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Read the certification authorities when there is something to deliver, because it takes 50 ms of CPU."""
        return httpx.create_ssl_context(trust_env=False)

    def _create_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(verify=self._tls, trust_env=False, follow_redirects=False, limits=httpx.Limits(max_connections=1))

    async def _deliver_solutions(self, webhook: Webhook) -> None:
        async with self._create_client() as client:
            while webhook.state == "active" and not self._service.lifecycle.stopping.is_set():
                registration = self._service.log.catalogue.queries.get(webhook.query)
                if registration is None:
                    await self._drop_webhook(webhook)
                    return
                if registration.registered != webhook.registered:  # the query was replaced, so its solution log is another one
                    webhook.begin_registration(registration.registered)
                await self._follow_registration(client, webhook, registration)

    async def _drop_webhook(self, webhook: Webhook) -> None:
        """Delete the webhook of a query that was dropped."""
        del self._webhooks[webhook.query, webhook.id], self._tasks[webhook.query, webhook.id]
        await asyncio.to_thread(self._files.delete, webhook.query, webhook.id)

    async def _follow_registration(self, client: httpx.AsyncClient, webhook: Webhook, registration: Registration) -> None:
        once_per = _find_once_per(webhook, registration)
        async with aclosing(follow_query(self._service, registration, webhook.last, Envelope.LINE)) as items:
            async for item in items:
                match item:
                    case QueryProgress() | Idle():
                        pass
                    case End.COMPLETED | End.FAILED:
                        await self._wait_until_replaced(registration)
                        return
                    case End():
                        return
                    case page:
                        if isinstance(page, Notice):  # the query has another text from here on
                            once_per = _find_once_per(webhook, self._service.log.catalogue.queries.get(webhook.query, registration))
                        for line in (page,) if isinstance(page, Notice) else page.list_lines():
                            if not await self._deliver_solution(client, webhook, line, once_per):
                                return

    async def _wait_until_replaced(self, registration: Registration) -> None:
        service = self._service
        while service.catalog.is_current(registration) and not service.lifecycle.stopping.is_set():
            await service.notifier.wait_for_news(service.notifier.generation, _ANSWERS_LOOK_S)

    # ------------------------------------------------------------ one solution
    async def _deliver_solution(self, client: httpx.AsyncClient, webhook: Webhook, line: SolutionLine | Notice, once_per: OncePer | None) -> bool:
        """Try until the solution is taken or given up. One that repeats another of its key under `once_per` is not
        sent.

        Returns False where there is nothing more to do: the server stops, or the webhook is disabled.
        """
        settings = self._service.settings
        key = None if once_per is None or isinstance(line, Notice) else once_per.make_key(json.loads(line.text))
        if key is not None and once_per is not None and webhook.sent.is_repeat(key, once_per.within):
            await self._suppress_solution(webhook, line.id)
            return True
        while True:
            is_skipped = isinstance(line, Notice) and webhook.template is not None  # a template is for solutions
            failure = None if is_skipped else await self._try_delivery(client, webhook, line)
            if failure is None:
                webhook.record_delivery(line.id, key=key, count=not isinstance(line, Notice))
                self._files.save(webhook)  # not in a thread, which would not end with this task
                return True
            if failure.gone:
                webhook.record_failure(failure.reason, None)
                webhook.state = "disabled"
                self._files.save(webhook)
                return False
            pause_s = self._pause_s(webhook.attempts, failure)
            webhook.record_failure(failure.reason, iso(self._service.clock() + round(pause_s * 1e6)))
            if failure.final or webhook.attempts >= settings.webhook_attempts:
                _log.warning("webhook %s of query %s: solution %s given up: %s", webhook.id, webhook.query, line.id, failure.reason)
                webhook.record_given_up(line.id, iso(self._service.clock()))
                self._files.save(webhook)
                return True
            self._files.save(webhook)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._service.lifecycle.stopping.wait()
            if self._service.lifecycle.stopping.is_set():
                return False

    async def _suppress_solution(self, webhook: Webhook, id_: str) -> None:
        """Leave a solution out.

        A restart decides on those since the last saved position again, in the same way, so few need saving.
        """
        webhook.record_suppressed(id_)
        if webhook.suppressed % _SAVED_EACH == 0:
            self._files.save(webhook)
            await asyncio.sleep(0)  # other tasks have their turn

    def _pause_s(self, attempts: int, failure: DeliveryFailure) -> float:
        """Return a pause that doubles with each failure.

        It is shortened at random, so that receivers that come back are not met by all at once.
        """
        settings = self._service.settings
        growing = min(settings.webhook_first_s * 2.0 ** min(attempts, 40), settings.webhook_longest_s) * random.uniform(0.5, 1.0)
        return max(growing, min(failure.after_s, settings.webhook_longest_s))

    async def _try_delivery(self, client: httpx.AsyncClient, webhook: Webhook, line: SolutionLine | Notice) -> DeliveryFailure | None:
        answer = await self._post_solution(client, webhook, f"{webhook.registered}-{line.id}", line)
        return answer if isinstance(answer, DeliveryFailure) else answer.describe_failure()

    async def send_test(self, webhook: Webhook, line: SolutionLine) -> ReceiverAnswer | DeliveryFailure:
        """Send a made-up solution once, marked as a test; the webhook's state stays as it is."""
        async with self._create_client() as client:
            return await self._post_solution(client, webhook, line.id, line, is_test=True)

    async def _post_solution(
        self, client: httpx.AsyncClient, webhook: Webhook, message_id: str, line: SolutionLine | Notice, *, is_test: bool = False
    ) -> ReceiverAnswer | DeliveryFailure:
        """Post a solution, and return what the receiver answered, or why it did not."""
        try:
            async with asyncio.timeout(self._service.settings.webhook_timeout_s):
                if isinstance(line, Notice):
                    message = render_notice(message_id, line.text)
                else:
                    message = render_message(webhook.template, message_id, line.text, is_test=is_test)
                return await self._connect_and_post(client, webhook, message)
        except TimeoutError:
            return DeliveryFailure(f"no answer within {self._service.settings.webhook_timeout_s:g} s")
        except MessageTooLarge as error:
            return DeliveryFailure(str(error), final=True)
        except (TargetRefused, httpx.HTTPError, OSError) as error:
            return DeliveryFailure(str(error) or type(error).__name__)

    async def _connect_and_post(self, client: httpx.AsyncClient, webhook: Webhook, message: DeliveryContent) -> ReceiverAnswer:
        target = parse_target(webhook.url)
        addresses = await self.targets.resolve_target(target)
        now_s = self._service.clock() // 1_000_000
        headers = {
            **message.headers,
            "Host": target.authority,
            "User-Agent": "epsparql",
            "Accept-Encoding": "identity",  # an answer is shown as it comes
            "webhook-id": message.id,
            "webhook-timestamp": str(now_s),
            "webhook-signature": sign_delivery(webhook.secret, message.id, now_s, message.body),
        }
        for address in addresses:
            url, extensions = target.at(address), {"sni_hostname": target.host}
            request = client.build_request("POST", url, content=message.body, headers=headers, extensions=extensions)
            try:
                return await _read_answer(client, request, webhook)
            except httpx.ConnectError:
                if address == addresses[-1]:
                    raise
        raise TargetRefused(f"the host {target.host!r} has no address")


def _find_once_per(webhook: Webhook, registration: Registration) -> OncePer | None:
    """Return the webhook's setting; None without one, and where the query was replaced by one without its variables."""
    if webhook.once_per is None:
        return None
    try:
        check_variables(webhook.once_per, list_variables(registration))
    except ValueError as fault:
        _log.warning("webhook %s of query %s is sent every solution: %s; put the webhook again", webhook.id, webhook.query, fault)
        return None
    return webhook.once_per


def list_variables(registration: Registration) -> tuple[str, ...]:
    """Return the variables of a SELECT; other queries have none, nor has a revised one, whose changes are no solutions."""
    form = find_form(registration.text, registration.emit)
    return form.variables if isinstance(form, Bindings) and not form.events else ()


async def _read_answer(client: httpx.AsyncClient, request: httpx.Request, webhook: Webhook) -> ReceiverAnswer:
    response = await client.send(request, stream=True)
    body = b""
    try:
        async for part in response.aiter_raw():
            body += part
            if len(body) > _ANSWER_BYTES:
                break
    finally:
        await response.aclose()
    after = response.headers.get("retry-after", "")
    words = "" if "content-encoding" in response.headers else _read_words(webhook.hide_secrets(body.decode(errors="replace")))
    return ReceiverAnswer(response.status_code, words, float(after) if after.isascii() and after.isdigit() else 0.0)


def _read_words(text: str) -> str:
    """Return the first characters of an answer, on one line and without control characters."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())[:_WORDS]


@asynccontextmanager
async def run_deliveries(service: Service) -> AsyncIterator[Deliveries]:
    """Run the deliveries to all webhooks until the block is left."""
    deliveries = Deliveries(service)
    service.lifecycle.retention.solution_holds.append(deliveries.find_needed_position)
    deliveries.start()
    try:
        yield deliveries
    finally:
        await deliveries.stop()


def too_many_webhooks(limit: int) -> Fault:
    return Fault(
        Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-observers", f"there are {limit} webhooks already; delete one, or raise max_webhooks")
    )
