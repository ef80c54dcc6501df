"""The server in a thread of the test itself."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from typing import Any

from agenteval.testing.engine import Answer, Engine, Recorded, Settings
from agenteval.testing.faults import Fault, Latency, Rule, as_rules
from agenteval.testing.http import run


class Server:
    """A server in a thread with its own event loop; see `serve`."""

    def __init__(self, settings: Settings) -> None:
        self.engine = Engine(settings)
        self.base_url = ""
        self._ready: asyncio.AbstractEventLoop | None = None
        self._up = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="fault-server", daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        if not self._up.wait(10):
            raise RuntimeError("the test server did not start within 10 s")
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._ready is not None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended already
                self._ready.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        if self._thread.is_alive():
            raise RuntimeError("the test server did not stop within 10 s")
        trouble = self._failed or self.engine.error
        if trouble is not None and kind is None:
            raise trouble

    def _work(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception as error:  # noqa: BLE001  (raised again in the thread that waits for us)
            self._failed = error
        finally:
            self._up.set()

    async def _main(self) -> None:
        self._ready, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set_exception_handler(self._broken)
        await run(self.engine, 0, self._stop, self._listening)

    def _broken(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # A defect of the server itself: asyncio would only log it.
        error = context.get("exception") or RuntimeError(str(context.get("message")))
        self.engine.error = self.engine.error or error
        loop.default_exception_handler(context)

    def _listening(self, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self._up.set()

    @property
    def requests(self) -> list[Recorded]:
        """The last `record` requests, in order of arrival."""
        return list(self.engine.log.copy())

    @property
    def count(self) -> int:
        """Requests to the model endpoints, faulty and rejected ones included."""
        return self.engine.count

    @property
    def max_in_flight(self) -> int:
        """Most requests that were being answered at once; rejected ones do not count."""
        return self.engine.max_in_flight


def serve(
    answer: Answer | None = None,
    faults: Sequence[Fault | Rule] = (),
    latency: float | Latency = 0.0,
    **more: Any,
) -> Server:
    """A server to be entered with `with`; Settings explains these and all other options.

    Leaving the block raises the first error of `answer` or `key`, if there was one. Raises
    InputError for values out of bounds, TypeError for an option there is none of.
    """
    waits = latency if isinstance(latency, Latency) else Latency(a=latency)
    return Server(Settings(answer=answer, faults=as_rules(faults), latency=waits, **more))
