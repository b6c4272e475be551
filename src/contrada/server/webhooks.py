"""Calls the webhooks of one broker: each in a task of its own, while it has something to do.

A task sends one request at a time: first a ping if the target is new, then dead letters that were
made due, then deliveries from the cursor on, in batches, each after the 2xx of the one before. What
an answer means is decided in `contrada.broker.webhook_rules`; state and cursor are on disk before
the next request goes out. So delivery is at least once, and in order for each subscriber.

No task waits for another: a receiver that is slow, dead or lying delays nobody but itself. While it
is down there is no task either, only a timer, and what waits for it is on disk. A webhook without
anything to send costs one entry among those who are woken by commits.
"""

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import ParamSpec, TypeVar

import httpx

from contrada.broker.broker import Broker
from contrada.broker.deliveries import Delivery
from contrada.broker.webhook_rules import (
    Verdict,
    WebhookPhase,
    WebhookReply,
    WebhookState,
    settle,
)
from contrada.broker.webhook_store import Webhook, WebhookResult
from contrada.errors import ContradaError
from contrada.server.public_addresses import CheckedConnections, NameLookups, Resolve
from contrada.server.webhook_posts import (
    WebhookLine,
    WebhookOptions,
    WebhookPost,
    make_deliveries,
    make_gap,
    make_letter,
    make_ping,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")

_LOG = logging.getLogger("contrada.webhooks")
_AHEAD = 50  # deliveries that are read at once, if batches are not larger
_FRESH_S = 60.0  # for which a webhook is not read anew: old secrets end


class Webhooks:
    """All webhooks of one broker, from `start` to `stop`."""

    def __init__(
        self,
        broker: Broker,
        threads: ThreadPoolExecutor,
        options: WebhookOptions | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
        random: Random | None = None,
    ) -> None:
        """Take the broker, and the threads in which it is read."""
        self.broker, self.options = broker, options or WebhookOptions()
        self.random = random or Random()  # noqa: S311 - it spreads waits, and guards nothing
        self.tls = tls or httpx.create_ssl_context()
        self.backend = CheckedConnections(self.options.addresses, resolve or NameLookups())
        self.is_stopping = False
        self.counts = dict.fromkeys(("webhook_accepted", "webhook_failed", "webhook_dead"), 0)
        self._threads = threads
        self._callers: dict[str, _Caller] = {}
        self._stop_watching: Callable[[], None] | None = None

    async def start(self) -> None:
        """Begin to call all webhooks that there are, and those that come to be."""
        loop = asyncio.get_running_loop()

        def wake(name: str) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._look_at, name)

        self.broker.webhooks.check_url = self.options.addresses.check_url
        self._stop_watching = self.broker.webhooks.watch(wake)
        for name in await self.read(self.broker.webhooks.list_names):
            self._look_at(name)

    async def stop(self) -> None:
        """Let requests under way end for a moment, then end them."""
        self.is_stopping = True
        if self._stop_watching is not None:
            self._stop_watching()
        callers = list(self._callers.values())
        tasks = [task for caller in callers if (task := caller.stop()) is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self.options.stop_s_max)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._callers.clear()

    def count_tasks(self) -> int:
        """Count the webhooks that have something to do at this moment."""
        return sum(caller.is_busy for caller in self._callers.values())

    def _look_at(self, name: str) -> None:
        if self.is_stopping:
            return
        if name not in self._callers:
            self._callers[name] = _Caller(self, name)
        self._callers[name].look_again()

    def forget(self, name: str) -> None:
        """Forget a subscriber that has no webhook."""
        self._callers.pop(name, None)

    async def read(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run what may block for some milliseconds in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: function(*args, **kwargs))


@dataclass(slots=True)
class _Ahead:
    """Deliveries that were read and not yet sent, and where to go on reading."""

    deliveries: deque[Delivery] = field(default_factory=deque)
    after: str | None = None
    gap: WebhookPost | None = None


class _Caller:
    """Calls the webhook of one subscriber; all of it runs in the event loop.

    Either a task runs, or a timer waits for an endpoint that is down, or neither: then there is
    nothing to send. `_is_changed` says that the webhook is to be read anew, `_wake` that there may
    be more to do than was seen.
    """

    def __init__(self, all_: Webhooks, name: str) -> None:
        self._all, self._name = all_, name
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._wake = asyncio.Event()
        self._is_wake_due = self._is_changed = self._is_paused = False
        self._fresh_until = 0.0
        self._ahead = _Ahead()
        self._line: WebhookLine | None = None
        self._stop_watching: Callable[[], None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a task runs."""
        return self._task is not None

    def look_again(self) -> None:
        """Read the webhook anew, and do what there is to do."""
        self._is_changed = True
        self._go_on()

    def stop(self) -> "asyncio.Task[None] | None":
        """End after the request under way, and return the task that may still run."""
        self._drop_timer()
        self._wake.set()
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        return self._task

    def _on_commit(self) -> None:
        """Hear, in another thread, that there are deliveries; wakes that come together are one."""
        if not self._is_wake_due:
            self._is_wake_due = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._take_wake)

    def _take_wake(self) -> None:
        self._is_wake_due = False
        if self._timer is None and not self._is_paused:
            self._go_on()

    def _go_on(self) -> None:
        """Let the task look again, or begin one."""
        self._drop_timer()
        self._wake.set()
        if self._task is None and not self._all.is_stopping:
            self._task = self._loop.create_task(self._run())

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # The task

    async def _run(self) -> None:
        wait_s: float | None = None
        try:
            wait_s = await self._work()
        except Exception as fault:
            wait_s = self._all.options.fault_s
            is_ours = isinstance(fault, ContradaError)
            if not self._all.is_stopping:
                reason = str(fault) if is_ours else "unexpected error"
                _LOG.error("webhook of %r: %s", self._name, reason, exc_info=not is_ours)
        finally:
            self._ahead = _Ahead()
            await self._close_line()
            self._task = None
            if self._all.is_stopping:
                self.stop()
        if self._all.is_stopping:
            return
        if self._is_changed:
            self._go_on()
        elif wait_s is not None:
            self._timer = self._loop.call_later(wait_s, self._go_on)
        elif self._wake.is_set() and self._stop_watching is not None:
            self._go_on()

    async def _work(self) -> float | None:
        """Send what there is to send; return for how long to wait, None where nothing is left."""
        webhook = await self._find()
        while webhook is not None and not self._all.is_stopping:
            if self._is_changed or self._loop.time() > self._fresh_until:
                webhook = await self._find()
                continue
            self._is_paused = webhook.state.phase is WebhookPhase.PAUSED
            if self._is_paused:
                return None
            wait_s = webhook.state.wait_s(time.time(), self._all.options.timing)
            if wait_s > 0:
                return wait_s
            post = await self._choose(webhook)
            if post is not None:
                webhook = await self._send(webhook, post)
            elif not await self._has_more():
                return None
        return None

    async def _find(self) -> Webhook | None:
        """Read the webhook, to begin from its cursor; forget all if there is none."""
        webhook: Webhook | None = None
        self._is_changed = True
        while self._is_changed:
            self._is_changed = False
            self._wake.clear()
            find = self._all.broker.webhooks.find
            webhook = await self._all.read(find, self._name, time.time())
        self._ahead = _Ahead()
        self._fresh_until = self._loop.time() + _FRESH_S
        if webhook is None:
            self._all.forget(self._name)
            self.stop()
        elif self._stop_watching is None:
            watch = self._all.broker.watch
            self._stop_watching = await self._all.read(watch, self._name, self._on_commit)
        return webhook

    async def _choose(self, webhook: Webhook) -> WebhookPost | None:
        """Choose what to send next; None where nothing is there yet."""
        if webhook.state.phase is WebhookPhase.NEW:
            return make_ping(webhook)
        if webhook.letters_due:
            letters = self._all.broker.webhooks.letters
            letter = await self._all.read(letters.find_due, self._name)
            if letter is not None:
                return make_letter(webhook, letter)
        ahead = self._ahead
        if not ahead.deliveries and ahead.gap is None:
            await self._read_ahead(webhook)
        if ahead.gap is not None:
            return ahead.gap
        count = webhook.state.count_to_send(webhook.batch)
        batch: list[Delivery] = []
        nbytes = 0
        for delivery in ahead.deliveries:
            nbytes += len(delivery.json)
            if len(batch) == count or (batch and nbytes > self._all.options.request_bytes_max):
                break
            batch.append(delivery)
        return make_deliveries(webhook, batch) if batch else None

    async def _read_ahead(self, webhook: Webhook) -> None:
        ahead = self._ahead
        self._wake.clear()
        page = await self._all.read(
            self._all.broker.read_deliveries,
            self._name,
            after=ahead.after,
            limit=max(_AHEAD, webhook.batch),
        )
        ahead.after = page.next
        nbytes = 0
        for delivery in page.deliveries:
            nbytes += len(delivery.json)
            if ahead.deliveries and nbytes > self._all.options.request_bytes_max:
                ahead.after = ahead.deliveries[-1].position
                break
            ahead.deliveries.append(delivery)
        if not page.is_end:
            self._wake.set()
        if page.gap is not None and page.gap.deliveries:
            ahead.gap = make_gap(webhook, page.gap)

    async def _has_more(self) -> bool:
        """Wait for more to send for as long as the connection is kept."""
        try:
            async with asyncio.timeout(self._all.options.unused_s_max):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True

    async def _send(self, webhook: Webhook, post: WebhookPost) -> Webhook:
        """Send what was chosen, store what became of it, and return the webhook as it is then."""
        line = await self._open_line(webhook)
        reply = await line.send(post, webhook.secrets)
        verdict, state = settle(
            webhook.state,
            post.request,
            reply,
            batch=webhook.batch,
            now=time.time(),
            random=self._all.random,
            timing=self._all.options.timing,
        )
        self._note(webhook, reply, verdict, state)
        result = _make_result(post, verdict, state)
        stored = self._all.broker.webhooks.settle(webhook, result)
        is_current = await asyncio.shield(asyncio.wrap_future(stored))
        is_done = verdict in {Verdict.ACCEPTED, Verdict.DEAD}
        if not is_current or not is_done or post.request.is_letter:
            self._is_changed = True
            return webhook
        self._pass_over(post)
        return replace(webhook, state=state, cursor=result.cursor or webhook.cursor)

    def _pass_over(self, post: WebhookPost) -> None:
        """Go on after what was accepted, or given up."""
        for _ in range(post.request.count):
            self._ahead.deliveries.popleft()
        if post is self._ahead.gap:
            self._ahead.gap = None

    def _note(
        self, webhook: Webhook, reply: WebhookReply, verdict: Verdict, state: WebhookState
    ) -> None:
        """Count an answer, and log what somebody may have to look after."""
        counts = self._all.counts
        if verdict is Verdict.ACCEPTED:
            counts["webhook_accepted"] += 1
            if webhook.state.is_breaker_open:
                _LOG.info("the webhook of %r answers again", self._name)
            return
        counts["webhook_failed"] += 1
        if verdict is Verdict.DEAD:
            counts["webhook_dead"] += 1
            _LOG.warning("the webhook of %r refused a delivery: %s", self._name, reply.problem)
        elif verdict is Verdict.PAUSE:
            _LOG.warning("the webhook of %r is gone (410), and paused", self._name)
        elif state.is_breaker_open and not webhook.state.is_breaker_open:
            _LOG.warning("the webhook of %r is down: %s", self._name, reply.problem)

    async def _open_line(self, webhook: Webhook) -> WebhookLine:
        if self._line is not None and self._line.url != webhook.url:
            await self._close_line()
        if self._line is None:
            all_ = self._all
            self._line = WebhookLine(webhook.url, all_.options, all_.backend, all_.tls)
        return self._line

    async def _close_line(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            await line.close()


def _make_result(post: WebhookPost, verdict: Verdict, state: WebhookState) -> WebhookResult:
    """Return what is to be stored of an answer."""
    request = post.request
    is_done = verdict in {Verdict.ACCEPTED, Verdict.DEAD}
    dead = post.last if verdict is Verdict.DEAD and (request.count or request.is_letter) else None
    if request.is_letter:
        accepted = post.last if verdict is Verdict.ACCEPTED else None
        return WebhookResult(state, dead=dead, accepted=accepted)
    if not is_done:
        return WebhookResult(state)
    return WebhookResult(state, cursor=post.last, dead=dead, told=post.told)
