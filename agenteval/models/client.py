"""The only way to call a model: cache, concurrency, budget, retries and usage, in this order."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agenteval.errors import (
    AgentevalError,
    BadRequest,
    Filtered,
    ModelError,
    OutOfTime,
    RequestTimeout,
    Transient,
    Unauthorized,
)
from agenteval.models.adaptation import LIMITS, adaptation
from agenteval.models.dry_run import UnsentRequest, WouldSend, dry_run
from agenteval.models.limits import Budget, Limiter, Slot
from agenteval.models.windows import longest_reply, reasons
from agenteval.models.wire import Reply, Request, Resend, Simplified, Transport
from agenteval.records import Usage, canonical_json

MOST_RESENDS = 16  # per request; more than the forms and parameters that can be left out
MOST_SILENT = 5  # replies in a row that are cut off before they say anything
TURNED_AWAY = 3  # requests with a 401 or 403 before any is answered: then none will be


class ReplyCache(Protocol):
    """Keeps paid replies, and the secret that nonces of requests are made of. The store is one."""

    secret: bytes

    def get_reply(self, key: str) -> dict[str, Any] | None:
        """The stored reply, or None."""
        ...

    def put_reply(self, key: str, reply: dict[str, Any]) -> None:
        """Queue the reply for the next commit; returns at once and does not raise for content."""
        ...


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of the retries of one request; times in seconds.

    `total` runs from the first attempt, not from the time spent in the queue before it. An
    endpoint that asks for more than `retry_after_longest` is not waited for.
    """

    attempts: int = 6
    total: float = 600.0
    first: float = 0.5
    longest: float = 30.0
    retry_after_longest: float = 120.0


@dataclass(slots=True)
class _Effort:
    """Usage and failures of one request so far."""

    prompt: int  # most tokens it can have
    attempts: int = 0
    failures: int = 0
    resends: int = 0  # at once, in a simpler form or over another connection
    usage: Usage = Usage()  # noqa: RUF009  frozen
    started: float | None = None
    since: float | None = None  # of the attempt that is running
    latency: float = 0.0  # of the last attempt


class Client:
    """Client of one model over one transport.

    `complete` returns a Reply or raises a ModelError or BudgetExceeded. Replies that were cut by
    the length limit, filtered or refused are returned as such and are not cached.
    """

    def __init__(  # noqa: PLR0913  the parts of a client, each optional
        self,
        transport: Transport,
        *,
        cache: ReplyCache | None = None,
        budget: Budget | None = None,
        limiter: Limiter | None = None,
        retry: RetryPolicy = RetryPolicy(),
        timeout: float = 120.0,
        secret: bytes = b"",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        seed: int = 0,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.transport = transport
        self.cache = cache
        self.budget = budget or Budget()
        self.limiter = limiter or Limiter(8)
        self.retry = retry
        self.timeout = timeout
        self.secret = secret
        self._sleep = sleep
        self.clock = clock
        self.parameters = dict(parameters or {})
        self._adapted = adaptation(transport.endpoint, transport.model)
        self._dropping = asyncio.Lock()  # held by who finds out whether a limit is at fault
        self._said_nothing = 0  # replies in a row that were cut off before they said anything
        self._refusal: str | None = None  # why no further request may be sent
        self._answered = False  # whether any request was
        self._turned_away = 0  # requests that met a 401 or 403 before any was answered
        self._sending: set[asyncio.Task[Any] | None] = set()  # tasks with a request in flight
        self._waiting: set[asyncio.Task[Any] | None] = set()  # tasks between requests
        self._allowed: set[asyncio.Task[Any] | None] | None = None  # may send; None: all may
        self._jitter = random.Random(seed)  # noqa: S311  spreads retries, guards nothing

    @property
    def model(self) -> str:
        """Name of the model as given by the user."""
        return self.transport.model

    @property
    def address(self) -> str:
        """The endpoint with the parameters set by the user; part of the judge's identity."""
        if not self.parameters:
            return self.transport.endpoint
        return f"{self.transport.endpoint} with {canonical_json(self.parameters)}"

    @property
    def usage(self) -> Usage:
        """Total usage, including earlier sessions of the budget."""
        return self.budget.spent

    async def complete(self, request: Request, *, within: float | None = None) -> Reply:
        """Return the reply to one request.

        Raises OutOfTime after `within` seconds, and the errors listed at the class. A
        CancelledError also has `spent`. In a dry run (`models.dry_run`) only stored replies are
        returned, and WouldSend is raised for every other request.
        """
        original, request = request, self._parametrised(request)
        key, size = request.identify(self.transport.endpoint, self.transport.model)
        dry = dry_run.get()
        if (reply := self._cached(key)) is not None:
            if dry is not None:
                dry.answered += 1
            return reply
        if dry is not None:
            dry.drafts.append(self.draft(request))
            raise WouldSend("a dry run sends nothing")
        effort, began = _Effort(size), self.clock()
        try:
            # a recording knows requests without the nonce, which differs from store to store
            recorded = getattr(self.transport, "recorded", False)
            sent = request if recorded else request.with_nonce(key, self.secret)
            async with asyncio.timeout(within):
                reply = await self._ask_for_words(sent, effort)
        except (AgentevalError, TimeoutError, asyncio.CancelledError) as error:
            raised: Any = error
            if isinstance(error, TimeoutError):  # transports raise RequestTimeout
                lost = (effort.since or self.clock()) - began
                raised = OutOfTime(f"{self.transport.endpoint}: no reply within {within} s", lost)
            raised.spent = effort.usage if effort.usage.requests else None
            raise raised from None
        reply = replace(
            reply, key=key, usage=effort.usage, attempts=effort.attempts, latency=effort.latency
        )
        complete = reply.finish in ("stop", "tool_calls", "unknown") and not reply.refusal
        if complete and self.cache is not None:
            described = {**original.described(), "model": self.model, "address": self.address}
            self.cache.put_reply(key, {**reply.to_json(), "request": described})
        return reply

    def has_stored(self, request: Request) -> bool:
        """Return whether the cache has a reply to this request."""
        key, _ = request.identify(self.transport.endpoint, self.transport.model)
        return self._cached(key) is not None

    def draft(self, request: Request) -> UnsentRequest:
        """Return the request as it would be sent, with an upper bound of its tokens."""
        request = self._parametrised(request)
        key, size = request.identify(self.transport.endpoint, self.transport.model)
        longest = max_completion(request, self.model)
        where = f"{self.model} at {self.address}"
        return UnsentRequest(request, key, estimate_tokens(request), longest, size, where)

    def _parametrised(self, request: Request) -> Request:
        """Return the request with the user's parameters; a default length limit is not sent to a
        known reasoning model."""
        limited = not LIMITS.isdisjoint(self.parameters)
        recorded = getattr(self.transport, "recorded", False)  # recordings ignore the parameters
        if recorded or not (self.parameters or reasons(self.model)):
            return request
        if limited or reasons(self.model):
            request = _without_limit(request)
        return replace(request, parameters={**request.parameters, **self.parameters})

    async def _ask_for_words(self, request: Request, effort: _Effort) -> Reply:
        """A reply. If it was cut off before any text, it is requested again without the limit; if
        that helps, the limit is dropped for this endpoint and model."""
        adapted = self._adapted
        # only a limit of ours, and only where the cost of a reply without one is known
        is_bounded = self.budget.max_cost is None or longest_reply(self.model) is not None
        droppable = is_bounded and LIMITS.isdisjoint(self.parameters)
        limited = not LIMITS.isdisjoint(request.parameters)
        if droppable and adapted.unlimited:
            request, limited = _without_limit(request), False
        reply = await self._ask(request, effort)
        if reply.says_nothing and limited and droppable:
            async with self._dropping:  # the others learn from the first
                if not adapted.limit_is_blameless:
                    reply = await self._ask(_without_limit(request), effort)
                    adapted.limit_is_blameless = reply.says_nothing
                    adapted.unlimited = not reply.says_nothing
            if adapted.unlimited:
                adapted.say(
                    "gave replies that were cut off before they said anything: asking without a "
                    "limit on tokens, which --max-tokens can set"
                )
        self._said_nothing = self._said_nothing + 1 if reply.says_nothing else 0
        if self._said_nothing >= MOST_SILENT:
            self._refusal = (
                f"{self.transport.endpoint}: {MOST_SILENT} replies in a row were cut off by a "
                "length limit before they said anything; give --max-tokens N with a larger N or "
                "none, or --reasoning-effort low"
            )
            raise Unauthorized(self._refusal)
        return reply

    def _cached(self, key: str) -> Reply | None:
        if self.cache is None or (stored := self.cache.get_reply(key)) is None:
            return None
        try:
            return Reply.from_json(stored, key=key, cached=True)
        except (KeyError, TypeError, ValueError):
            return None  # a damaged entry is a miss; the fresh reply replaces it

    async def _ask(self, request: Request, effort: _Effort) -> Reply:
        """Attempts until one is answered; the pauses between them hold no slot."""
        while True:
            with self._cancellable():
                slot = await self.limiter.enter()
            try:
                return await self._attempt(request, effort, slot)
            except Transient as error:
                if isinstance(error, Resend) and effort.resends < MOST_RESENDS:
                    effort.resends += 1
                    continue
                effort.failures += 1
                effort.since = None
                pause = self._pause(error, effort)
                if pause is None:
                    raise
            finally:
                self.limiter.leave(slot)
            if self._allowed is not None:
                raise asyncio.CancelledError
            with self._cancellable():
                await self._sleep(pause)

    @contextmanager
    def _cancellable(self) -> Iterator[None]:
        """Let `wind_down` cancel this task within the block, where it has no request in flight.

        Raises CancelledError for a task that may no longer send.
        """
        task = asyncio.current_task()
        if self._allowed is not None and task not in self._allowed:
            raise asyncio.CancelledError
        self._waiting.add(task)
        try:
            yield
        finally:
            self._waiting.discard(task)

    def wind_down(self, *, repairs: bool = True) -> None:
        """Stop sending requests, except for repairs of pending replies.

        A task with a pending request gets its reply. Every other task that waits here, or sends
        later, is cancelled. Without `repairs`, no task may send again.
        """
        self._allowed = set(self._sending) if repairs else set()
        for task in self._waiting:
            if task is not None:
                task.cancel()

    @property
    def under_way(self) -> int:
        """Number of requests in flight."""
        return len(self._sending)

    async def _attempt(self, request: Request, effort: _Effort, slot: Slot) -> Reply:
        if self._refusal is not None:  # of a request that was answered while this one waited
            raise Unauthorized(self._refusal)
        with self._cancellable():
            held = await self.budget.hold(effort.prompt, max_completion(request, self.model))
        task = asyncio.current_task()
        self._sending.add(task)
        began = self.clock()
        if effort.started is None:
            effort.started = began
        effort.since = began
        effort.attempts += 1
        usage, charged = None, True
        try:
            async with asyncio.timeout(self.timeout):
                reply = await self.transport.send(request)
            usage = reply.usage
            effort.latency = self.clock() - began
            self._answered = True
            self.limiter.answered(slot)
            return reply
        except TimeoutError:
            message = f"{self.transport.endpoint}: no complete answer within {self.timeout:g} s"
            raise RequestTimeout(message) from None
        except (Unauthorized, BadRequest, Filtered, Simplified) as error:
            charged = False
            if self._is_turned_away(error):
                error = Unauthorized(str(error))
            if isinstance(error, Unauthorized):
                self._refusal = str(error)
            raise error from None
        except Transient as error:
            charged = not error.overload
            if error.overload:
                self.limiter.overloaded(slot)
            raise
        finally:
            self._sending.discard(task)
            counted = self.budget.settle(held, usage, charged=charged)
            effort.usage = effort.usage + counted

    def _is_turned_away(self, error: ModelError) -> bool:
        """Whether the first requests all got a 401 or 403: then the key is refused, although no
        message mentions a key."""
        if isinstance(error, Filtered) or error.said is None:
            return False
        if error.said.status not in (401, 403) or self._answered:
            return False
        self._turned_away += 1
        return self._turned_away >= TURNED_AWAY

    def _pause(self, error: Transient, effort: _Effort) -> float | None:
        """Return the seconds to the next attempt, or None if there is none.

        Full jitter, random(0, min(longest, first · 2^n)) (Brooker, "Exponential Backoff And
        Jitter", AWS 2015), and never less than what the endpoint asked for.
        """
        retry_after = error.retry_after or 0.0
        out_of_attempts = effort.failures >= self.retry.attempts
        if not error.again or out_of_attempts or retry_after > self.retry.retry_after_longest:
            return None
        cap = min(self.retry.longest, self.retry.first * 2.0 ** (effort.failures - 1))
        pause = self._jitter.uniform(0, cap)
        if error.retry_after is not None:
            pause = max(pause, retry_after + self._jitter.uniform(0, 0.1 * retry_after + 0.01))
        assert effort.started is not None
        late = self.clock() - effort.started + pause >= self.retry.total
        return None if late else pause

    async def close(self) -> None:
        """Close the transport."""
        await self.transport.close()


def estimate_tokens(request: Request) -> int:
    """Rough number of prompt tokens: UTF-8 bytes / 3, an overestimate for English prose.

    It feeds `--dry-run` and AutoGen; reservations use a true bound (`Request.identify`), and what
    is reported as used comes from endpoints.
    """
    texts = [str(m.get("content") or "") for m in request.messages]
    texts += [canonical_json(m["tool_calls"]) for m in request.messages if m.get("tool_calls")]
    parts = (request.schema, *request.tools, *request.questions)
    texts += [canonical_json(part) for part in parts if part]
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    return size // 3 + 8 * len(request.messages) + 3


def max_completion(request: Request, model: str = "") -> int:
    """Longest reply in tokens: the limit of the request, else what the model can write, else (for
    an unknown model) 4,096; 0 for replies without text."""
    if request.questions:
        return 0
    limits = (request.parameters.get(name) for name in LIMITS)
    limit = next((limit for limit in limits if limit), None)
    return int(limit or longest_reply(model) or 4096)


def _without_limit(request: Request) -> Request:
    parameters = {k: v for k, v in request.parameters.items() if k not in LIMITS}
    return replace(request, parameters=parameters)
