"""Generation with llama.cpp (package xllamacpp), in this process.

Usage::

    with LocalServer(weights.require()) as server:
        reply = server.chat({
            "messages": [{"role": "user", "content": "Name three colours."}],
            "max_tokens": 60, "temperature": 0.7, "seed": 1,
            "response_format": {"type": "json_schema", "json_schema": {"schema": {...}}},
        })
        reply["choices"][0]["message"]["content"], reply["usage"]
        openai.OpenAI(base_url=server.base_url, api_key="none")      # the same model by HTTP

`chat` takes what llama.cpp's `/v1/chat/completions` takes (also `grammar` in GBNF, `logprobs`,
`top_logprobs`, `cache_prompt`) and returns the same object, without a socket. It releases the
interpreter lock while it computes and may be called from many threads. By default one request is
computed at a time and the others wait: together four requests were only 15 % faster on 2 cores,
and requests that are computed together influence each other's rounding, so that a seed would no
longer give the same text.

llama.cpp opens its HTTP server always, on a free port of 127.0.0.1; web pages of other origins
are refused by CORS, the web page of the server and its slot list are off.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from agenteval.errors import BadRequest, ModelError, ModelUnavailable
from agenteval.models.embedded.convert import require_gguf

_SILENT = -1  # below llama.cpp's lowest level, which prints errors


class LocalServer:
    """One GGUF file, loaded. Use it as a context manager, or call `close`."""

    def __init__(
        self,
        gguf_path: Path | str,
        *,
        threads: int | None = None,
        context: int = 8192,
        parallel: int = 1,
    ) -> None:
        """Load the model (about a second for SmolLM2).

        threads: default all physical cores that this process may use, at most OMP_NUM_THREADS.
        context: tokens of prompt and answer together, shared by `parallel` requests.
        Raises ModelUnavailable, one line: no such file, not GGUF, xllamacpp not installed, a model
        that llama.cpp refuses.
        """
        path = Path(gguf_path)
        require_gguf(path)
        try:
            import xllamacpp
        except ImportError as error:
            raise ModelUnavailable(
                f"generation needs xllamacpp ({error}): install agenteval[local]"
            ) from error
        self.model = path.stem
        """Name of the model in replies and in the list of models."""
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.model_alias = {self.model}
        params.verbosity = _SILENT
        params.n_ctx, params.n_parallel = context, parallel
        params.cpuparams.n_threads = threads or physical_cores()
        params.cpuparams_batch.n_threads = threads or physical_cores()
        params.ui = params.endpoint_slots = False
        params.cors_origins = "http://127.0.0.1"
        try:
            self._server: Any = xllamacpp.Server(params)
            # The constructor may return before the loop that serves requests has begun; freed in
            # that moment, the server would wait for it for ever. One token proves that it runs.
            self._server.handle_completions({"prompt": " ", "max_tokens": 1})
        except (RuntimeError, ValueError) as error:
            raise ModelUnavailable(f"llama.cpp cannot load {path}: {error}") from error
        self.base_url: str = f"{self._server.listening_address}/v1"
        """Of the OpenAI-compatible server; valid until `close`."""

    def chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """One chat completion in the form of the OpenAI API (not streamed).

        Raises BadRequest with llama.cpp's message (unknown schema, too long a prompt, no
        messages), ModelError when llama.cpp itself failed, ModelUnavailable after `close`.
        """
        server = self._server  # a local name keeps the model alive if `close` comes meanwhile
        if server is None:
            raise ModelUnavailable(f"the local model {self.model} is closed")
        if body.get("stream"):
            raise BadRequest("chat() does not stream; use base_url for that")
        try:
            reply = server.handle_chat_completions(dict(body))
        except (ValueError, RuntimeError, TypeError) as error:
            raise BadRequest(f"{self.model}: {error}") from error
        if "choices" not in reply:
            raise _refusal(self.model, reply)
        return cast("dict[str, Any]", reply)

    def close(self) -> None:
        """Stop the HTTP server and free the model; waits for a request under way. Idempotent."""
        self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _refusal(model: str, reply: Mapping[str, Any]) -> ModelError:
    """The error that a reply without choices stands for."""
    error = reply.get("error")
    if not isinstance(error, Mapping):
        return ModelError(f"{model}: a reply without choices: {str(reply)[:200]}")
    kind = BadRequest if error.get("code") in range(400, 500) else ModelError
    return kind(f"{model}: {error.get('message')}")


def physical_cores() -> int:
    """Cores that this process may use, without the second threads of a core, at least 1.

    More threads than cores slow llama.cpp down (its threads spin while they wait). OMP_NUM_THREADS,
    where set, is an upper limit, as for torch.
    """
    if hasattr(os, "sched_getaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        cores = len({_siblings(cpu) for cpu in allowed})
    else:
        cores = os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(cores, int(limit)) if limit.isdecimal() and int(limit) > 0 else cores)


def _siblings(cpu: int) -> str:
    """The hardware threads of the core that `cpu` belongs to, or `cpu` alone when unknown."""
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return path.read_text("ascii").strip() if path.is_file() else str(cpu)
