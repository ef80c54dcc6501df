"""The one way to a model: cache, budget, concurrency, retries, usage; in this order, only here."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import tenacity

from agenteval.errors import RequestTimeout, Transient
from agenteval.models.limits import Budget, Limiter
from agenteval.models.wire import Reply, Request, Transport
from agenteval.records import Usage


class ReplyCache(Protocol):
    """Where paid replies are kept. The store is one."""

    def get_reply(self, key: str) -> dict[str, Any] | None:
        """The stored reply, or None."""
        ...

    def put_reply(self, key: str, reply: dict[str, Any]) -> None:
        """Queue the reply for the next commit; returns at once and does not raise for content."""
        ...


class Recorder(Protocol):
    """Writes replies so that they can be replayed."""

    def record(self, request: Request, reply: Reply) -> None:
        """Append one reply."""
        ...


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of the retries of one request; times in seconds."""

    attempts: int = 6
    total: float = 600.0
    first: float = 0.5
    longest: float = 30.0
    retry_after_longest: float = 120.0


class Client:
    """A model client over one transport.

    `complete` returns a Reply or raises a ModelError or BudgetExceeded. Replies cut short by
    length, filtered or refused are returned as what they are and are not cached.
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
        recorder: Recorder | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        seed: int = 0,
    ) -> None:
        self.transport = transport
        self.cache = cache
        self.budget = budget or Budget()
        self.limiter = limiter or Limiter(8)
        self.retry = retry or RetryPolicy()
        self.timeout = timeout
        self.secret = secret
        self.recorder = recorder
        self._sleep = sleep
        self._jitter = random.Random(seed)  # noqa: S311  spreads retries, guards nothing

    @property
    def model(self) -> str:
        """Name of the model as given by the user."""
        return self.transport.model

    @property
    def usage(self) -> Usage:
        """Everything counted so far, earlier sessions of the budget included."""
        return self.budget.spent

    async def complete(self, request: Request) -> Reply:
        """Answer one request. See the class for what it raises."""
        key = request.key(self.transport.endpoint, self.transport.model)
        if (reply := self._cached(key)) is not None:
            return reply
        sent = request.with_nonce(key, self.secret)
        held_tokens = estimate_tokens(sent)
        started = time.monotonic()
        attempts = 0

        async def attempt() -> Reply:
            nonlocal attempts
            async with self.limiter:
                held = self.budget.reserve(held_tokens, max_completion(sent))
                attempts += 1
                usage: Usage | None = None
                try:
                    reply = await self._send_once(sent)
                    usage = reply.usage
                finally:
                    counted = self.budget.settle(held, usage)
                return replace(reply, usage=counted)

        reply = await self._with_retries(attempt)
        reply = replace(reply, key=key, attempts=attempts, latency=time.monotonic() - started)
        self._keep(request, key, reply)
        return reply

    def _cached(self, key: str) -> Reply | None:
        if self.cache is None or (stored := self.cache.get_reply(key)) is None:
            return None
        try:
            return Reply.from_json(stored, key=key, cached=True)
        except (KeyError, TypeError, ValueError):
            return None  # a damaged entry is a miss; the fresh reply replaces it

    async def _send_once(self, request: Request) -> Reply:
        try:
            async with asyncio.timeout(self.timeout):
                reply = await self.transport.send(request)
        except TimeoutError:
            raise RequestTimeout(f"no complete answer within {self.timeout:g} s") from None
        except Transient as error:
            if error.overload:
                self.limiter.overloaded()
            raise
        self.limiter.answered()
        return reply

    async def _with_retries(self, attempt: Callable[[], Awaitable[Reply]]) -> Reply:
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(self._can_heal),
            stop=tenacity.stop_after_attempt(self.retry.attempts)
            | tenacity.stop_before_delay(self.retry.total),
            wait=self._wait,
            sleep=self._sleep,
            reraise=True,
        )
        result: Reply = await retrying(attempt)
        return result

    def _can_heal(self, error: BaseException) -> bool:
        if not isinstance(error, Transient):
            return False
        asked = error.retry_after
        return asked is None or asked <= self.retry.retry_after_longest

    def _wait(self, state: tenacity.RetryCallState) -> float:
        """Full jitter, random(0, min(cap, first * 2^n)), unless the endpoint named a time."""
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, Transient) and error.retry_after is not None:
            return error.retry_after + self._jitter.uniform(0, 0.1 * error.retry_after + 0.01)
        cap = min(self.retry.longest, self.retry.first * 2.0 ** (state.attempt_number - 1))
        return self._jitter.uniform(0, cap)

    def _keep(self, request: Request, key: str, reply: Reply) -> None:
        if reply.finish not in ("stop", "tool_calls", "unknown") or reply.refusal:
            return
        if self.cache is not None:
            self.cache.put_reply(key, reply.to_json())
        if self.recorder is not None:
            self.recorder.record(request, reply)

    async def close(self) -> None:
        """Close the transport."""
        await self.transport.close()


def estimate_tokens(request: Request) -> int:
    """Rough number of prompt tokens: UTF-8 bytes / 3, an overestimate for English prose.

    It bounds reservations and feeds `--dry-run`; what is reported as used comes from endpoints.
    """
    size = sum(
        len(str(m.get("content") or "").encode("utf-8", "replace")) for m in request.messages
    )
    return size // 3 + 8 * len(request.messages) + 3


def max_completion(request: Request) -> int:
    """Longest reply in tokens that the request allows; 4,096 when it does not say."""
    limit = request.parameters.get("max_tokens") or request.parameters.get("max_completion_tokens")
    return int(limit) if limit else 4096


__all__ = ["Client", "Recorder", "ReplyCache", "RetryPolicy", "estimate_tokens", "max_completion"]
