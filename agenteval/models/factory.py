"""The model a user means: `provider:model`, `embedded`, `recorded`, `replay:FILE`, ..., and
`decisions:` before one of them, that judges by probabilities."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from agenteval.errors import InputError, ModelUnavailable
from agenteval.models.adaptation import LIMITS
from agenteval.models.client import Client, ReplyCache
from agenteval.models.limits import Limiter, Limits
from agenteval.models.openai import OPENAI, ClientTransport, DecisionsTransport, OpenAITransport
from agenteval.models.replay import ReplayTransport
from agenteval.models.windows import longest_reply, reasons
from agenteval.models.wire import Transport
from agenteval.text import keep_secret, public_url, url_secrets

# name: (base URL, environment variable of the key or None)
PROVIDERS: dict[str, tuple[str, str | None]] = {
    "openai": (OPENAI, "OPENAI_API_KEY"),
    "azure": ("", "AZURE_OPENAI_API_KEY"),
    "anthropic": ("https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY"),
    "gemini": ("https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "deepseek": ("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": ("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "ollama": ("http://127.0.0.1:11434/v1", None),
    "lmstudio": ("http://127.0.0.1:1234/v1", None),
}

Kind = Literal["embedded", "chat", "decisions"]
DECISIONS = "decisions:"
PARAMETERS = "AGENTEVAL_PARAMETERS"  # environment variable: a JSON object

NO_MODEL = (
    "the embedded critic needs `pip install 'agenteval[local]'`; or name an endpoint with "
    "--model PROVIDER:MODEL (or --base-url), or --model recorded for the tasks that have replies"
)


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A chat model for the Python API, accepted wherever the name of a model is.

    `client` is an `AsyncOpenAI` or `AsyncAzureOpenAI` object that sends the requests. Without it,
    `model` is a name like "openai:gpt-4o", or None for AGENTEVAL_MODEL. `parameters` are added to
    every request and are part of the judge's identity: {"max_tokens": None} removes the limit,
    {"reasoning_effort": "low"} sets the effort.
    """

    model: str | None
    client: Any = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


Model = str | ChatModel | None


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The requested model: a local one, a chat model, or one that answers questions with
    probabilities.

    `parameters` are added to every request; `client` is an SDK client that sends them.
    """

    kind: Kind
    name: str
    provider: str = ""
    base_url: str | None = None
    api_key: str | None = None
    path: Path | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    client: Any = None

    @property
    def key_header(self) -> str:
        """The header that the key goes into."""
        return "api-key" if self.provider == "azure" else "Authorization"

    @property
    def query(self) -> str:
        """Query string of each URL: the version of Azure's API."""
        version = _variable("OPENAI_API_VERSION") if self.provider == "azure" else None
        return f"api-version={version}" if version else ""

    def __repr__(self) -> str:  # the key never reaches a log or a traceback
        url = self.base_url and public_url(self.base_url)
        return f"ModelChoice({self.kind}, {self.name!r}, {url!r})"


def choose_model(
    spec: Model, base_url: str | None = None, *, need_key: bool = True, decides: bool = False
) -> ModelChoice:
    """The model meant by `--model` and `--base-url`, else by the environment, else `embedded`.

    Environment: AGENTEVAL_MODEL, AGENTEVAL_BASE_URL, AGENTEVAL_API_KEY, the providers' own key
    variables, OPENAI_BASE_URL for openai:NAME, and for azure:DEPLOYMENT AZURE_OPENAI_ENDPOINT,
    AZURE_OPENAI_API_KEY and OPENAI_API_VERSION (without one: the v1 endpoint).
    AGENTEVAL_PARAMETERS, a JSON object, holds the parameters of every model; those of the model
    itself win.

    Raises InputError for an unknown provider or a missing file, and for a missing key unless
    `need_key` is False: a dry run, for example, sends no requests and needs none. `recorded` has no
    path yet: which recording is meant depends on the task (`readers.tasks.with_recording`).

    `decisions:` before a model, or before the name of one of OpenAI's, means that it answers
    questions with probabilities; InputError unless that is enough for what is asked (`decides`).
    """
    model = spec if isinstance(spec, ChatModel) else ChatModel(spec)
    if model.client is not None:
        if model.model is None:
            raise InputError("a client object needs a model name", "ChatModel")
        url = str(getattr(model.client, "base_url", ""))
        choice = ModelChoice("chat", model.model, "client", url, client=model.client)
    else:
        choice = _choose(model.model, base_url, need_key=need_key, decides=decides)
    try:
        parameters = json.loads(_variable(PARAMETERS) or "{}")
    except ValueError as error:
        raise InputError(f"not a JSON object ({error})", PARAMETERS) from None
    if not isinstance(parameters, dict):
        raise InputError("not a JSON object", PARAMETERS)
    return replace(choice, parameters={**parameters, **model.parameters})


def _choose(
    spec: str | None, base_url: str | None, *, need_key: bool, decides: bool
) -> ModelChoice:
    explicit = bool(spec and not base_url)  # a model asked for, and no URL beside it
    spec = spec or _variable("AGENTEVAL_MODEL") or ""
    base_url = base_url or _variable("AGENTEVAL_BASE_URL")
    if spec.lower().startswith(DECISIONS):
        inner = _deciding(spec, decides=decides)
        name = inner if base_url or _split(inner)[0] else f"openai:{inner}"
        choice = _choose(name, base_url, need_key=need_key, decides=False)
        return replace(choice, kind="decisions")
    base_url = _url(base_url) if base_url else None
    if not spec and base_url:
        raise InputError("a base URL needs a model as well", "--model")
    spec = spec or "embedded"
    provider, name = _split(spec)
    if spec == "embedded" and (explicit or not base_url):
        return ModelChoice("embedded", spec, "embedded")
    if spec == "recorded":
        return ModelChoice("chat", spec, spec)
    if provider in ("replay", "autogen"):
        path = Path(name).expanduser()
        if not path.is_file():
            raise InputError(f"no file {path}", f"--model {spec}")
        return ModelChoice("chat", spec, provider, path=path)
    if not (base_url or provider):
        raise InputError(
            f"no provider in {spec!r}; write it as PROVIDER:MODEL with one of "
            f"{', '.join(PROVIDERS)}, or give --base-url; `embedded` needs neither",
            "--model",
        )
    if base_url:
        if spec.lower() == f"{provider}/{name}".lower():
            name = spec  # servers use such names: openai/gpt-oss-20b
        return _remote(provider or "openai", name, base_url)
    return _remote(provider, name, need_key=need_key)


def _deciding(spec: str, *, decides: bool) -> str:
    """The model after `decisions:`. Raises InputError where such a model is not supported."""
    inner = spec[len(DECISIONS) :]
    if not decides:
        why = "writes no text: it can only judge runs, in quantify and verify"
        raise InputError(f"{spec} {why}", "--model")
    if inner in ("", "embedded", "recorded") or inner.lower().startswith("autogen:"):
        raise InputError(f"{spec} cannot decide; write decisions:NAME", "--model")
    return inner


def _remote(
    provider: str, name: str, base_url: str | None = None, *, need_key: bool = False
) -> ModelChoice:
    """A model of an endpoint, by default of its provider's, with the key from the environment."""
    url, variable = PROVIDERS[provider]
    if base_url is None and provider in ("openai", "azure"):
        url = _url(_azure_url(name) if provider == "azure" else openai_url())
    key = _variable("AGENTEVAL_API_KEY") or (_variable(variable) if variable else None)
    if variable and not key and need_key:
        raise InputError(f"{provider} needs a key in {variable} or AGENTEVAL_API_KEY", "--model")
    keep_secret([key])
    return ModelChoice("chat", name, provider, base_url or url, key)


def openai_url() -> str:
    """Return the URL of OpenAI's models: OPENAI_BASE_URL, else the public API."""
    return _variable("OPENAI_BASE_URL") or OPENAI


def _azure_url(deployment: str) -> str:
    """The base URL of a deployment. Raises InputError without AZURE_OPENAI_ENDPOINT."""
    resource = (_variable("AZURE_OPENAI_ENDPOINT") or "").rstrip("/")
    if not resource:
        what = "azure:DEPLOYMENT needs the URL of the resource in AZURE_OPENAI_ENDPOINT"
        raise InputError(what, "--model")
    resource = re.sub(r"/openai(/v1|/deployments/.*)?$", "", resource)
    version = _variable("OPENAI_API_VERSION")
    return f"{resource}/openai/" + (f"deployments/{deployment}" if version else "v1")


def _split(spec: str) -> tuple[str, str]:
    """(provider, model); the provider is empty when the text before : or / is not a known one."""
    prefixes = {*PROVIDERS, "replay", "autogen"}
    for mark in (":", "/"):
        head, separator, tail = spec.partition(mark)
        if separator and head.lower() in prefixes and tail:
            return head.lower(), tail
    return "", spec


def _variable(name: str) -> str | None:
    """The environment variable, without the line end that `$(cat key)` leaves; None when empty."""
    return os.environ.get(name, "").strip() or None


def _url(text: str) -> str:
    """The URL, when it is one. A wrong one is not shown in full: it may hold a key."""
    keep_secret(url_secrets(text))
    if re.search(r"\s", text):
        raise InputError("give one URL; for several endpoints use a router", "--base-url")
    start, _, address = text.partition("://")
    if start.lower() not in ("http", "https"):
        shown = text.rpartition("@")[2].partition("?")[0]
        raise InputError(f"{shown!r} must start with http:// or https://", "--base-url")
    if "?" in text or "#" in text or not _readable(text, address):
        raise InputError(
            "write http://HOST/PATH without ? and #; a key goes into AGENTEVAL_API_KEY, Azure's "
            "api-version into OPENAI_API_VERSION (--model azure:DEPLOYMENT); in a user name or "
            "password, write @ as %40, / as %2F, : as %3A, # as %23, ? as %3F",
            "--base-url",
        )
    return text


def _readable(url: str, address: str) -> bool:
    """False without a host, and where a password with a slash would be taken for host and path."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    in_path = "@" not in parts.netloc and "@" in address.partition("?")[0]
    return bool(parts.hostname) and not (port is not None and in_path)


def make_transport(choice: ModelChoice) -> Transport:
    """The transport of a chat model. Raises InputError for a file it cannot use."""
    if choice.provider == "recorded" and choice.path is None:
        raise InputError(
            "replies are recorded for tasks, to criteria, quantify and verify", "--model"
        )
    if choice.provider in ("recorded", "replay") and choice.path:
        return ReplayTransport(choice.path, "recorded" if choice.provider == "recorded" else None)
    if choice.provider == "autogen" and choice.path:
        from agenteval.models.autogen import AutogenTransport

        return AutogenTransport.from_config(choice.path)
    if choice.client is not None:
        return ClientTransport(choice.client, choice.name)
    kind = DecisionsTransport if choice.kind == "decisions" else OpenAITransport
    variables = ("AGENTEVAL_API_KEY", PROVIDERS.get(choice.provider, ("", None))[1])
    return kind(
        choice.name,
        base_url=choice.base_url,
        api_key=choice.api_key,
        key_variables=" or ".join(filter(None, variables)),
        key_header=choice.key_header,
        query=choice.query,
    )


def make_client(choice: ModelChoice, limits: Limits, store: ReplyCache | None) -> Client:
    """Return a client for a chat model, with the store as its cache.

    Raises InputError for a file that the model cannot be read from, and for a cap on cost where no
    reply has a known length.
    """
    unlimited = reasons(choice.name) and LIMITS.isdisjoint(choice.parameters)
    unlimited |= any(choice.parameters.get(name, 0) is None for name in LIMITS)
    if limits.max_cost is not None and unlimited and longest_reply(choice.name) is None:
        what = f"the longest reply of {choice.name} is not known, so no cap on cost "
        raise InputError(f"{what}holds: give --max-tokens N", "--max-cost")
    transport = make_transport(choice)
    return Client(
        transport,
        cache=store,
        budget=limits.budget(),
        limiter=Limiter(limits.concurrency),
        timeout=limits.timeout,
        secret=store.secret if store else b"",
        parameters=choice.parameters,
    )


def no_model(error: Exception) -> ModelUnavailable:
    """Return a one-line error for a missing local part, with both remedies."""
    return ModelUnavailable(f"{NO_MODEL} ({error})")


def notes_on(choice: ModelChoice | None) -> tuple[str, ...]:
    """Return a note where the replies come from a recording."""
    if choice is None or choice.provider not in ("replay", "recorded"):
        return ()
    return ("the replies come from a recording: no requests are sent and nothing is paid",)
