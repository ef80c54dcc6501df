"""The model a user means: `provider:model`, `embedded`, `recorded`, `replay:FILE`, ..., and
`decisions:` before one of them, that judges by probabilities."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol
from urllib.parse import urlsplit

from agenteval.errors import InputError, ModelUnavailable
from agenteval.models.client import Client, ReplyCache
from agenteval.models.decisions import DecisionsTransport
from agenteval.models.endpoints import Endpoints
from agenteval.models.limits import Limiter, Limits
from agenteval.models.openai import OpenAITransport
from agenteval.models.replay import FileRecorder, ReplayTransport
from agenteval.models.wire import Transport
from agenteval.text import keep_secret, public_url, url_secrets

# name: (base URL, environment variable of the key or None)
PROVIDERS: dict[str, tuple[str, str | None]] = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
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

NO_MODEL = (
    "the embedded critic needs `pip install 'agenteval[local]'`; or name an endpoint with "
    "--model PROVIDER:MODEL (or --base-url), or --model recorded for the tasks that have replies"
)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What was asked for: what is computed on this machine, a chat model, or one that answers
    questions with probabilities.

    `others` are further base URLs of the same model; `base_url` names it in stored results.
    """

    kind: Kind
    name: str
    provider: str = ""
    base_url: str | None = None
    api_key: str | None = None
    path: Path | None = None
    others: tuple[str, ...] = ()

    @property
    def key_variables(self) -> str:
        """The environment variables that its key is read from, in words."""
        own = PROVIDERS.get(self.provider, ("", None))[1]
        return " or ".join(name for name in ("AGENTEVAL_API_KEY", own) if name)

    def __repr__(self) -> str:  # the key never reaches a log or a traceback
        url = self.base_url and public_url(self.base_url)
        return f"ModelChoice({self.kind}, {self.name!r}, {url!r})"


def choose_model(
    spec: str | None, base_url: str | None = None, *, need_key: bool = True, decides: bool = False
) -> ModelChoice:
    """The model meant by `--model` and `--base-url`, else by the environment, else `embedded`.

    Environment: AGENTEVAL_MODEL, AGENTEVAL_BASE_URL, AGENTEVAL_API_KEY, and the providers' own
    key variables. Several base URLs have blanks between them: endpoints of one model, of which the
    first stands for all in stored results. Raises InputError for an unknown provider or a missing
    file, and for a missing key unless `need_key` is False: what asks nobody, such as a dry run,
    needs none. `recorded` has no path yet: which recording is meant depends on the task
    (`readers.tasks.with_recording`).

    `decisions:` stands before a model, or the name of one of OpenAI's, that answers questions with
    probabilities; InputError unless that is enough for what it is asked for (`decides`).
    """
    asked = spec or _variable("AGENTEVAL_MODEL") or ""
    if asked.lower().startswith(DECISIONS):
        inner = _deciding(asked, decides=decides)
        named = base_url or _variable("AGENTEVAL_BASE_URL") or _split(inner)[0]
        choice = choose_model(inner if named else f"openai:{inner}", base_url, need_key=need_key)
        return replace(choice, kind="decisions")
    explicit = bool(spec and not base_url)  # a model asked for, and no URL beside it
    urls = _urls(base_url or _variable("AGENTEVAL_BASE_URL"))
    base_url = urls[0] if urls else None
    spec = spec or _variable("AGENTEVAL_MODEL") or ("" if base_url else "embedded")
    if not spec:
        raise InputError("a base URL needs a model as well", "--model")
    provider, name = _split(spec)
    if spec == "embedded" and (explicit or not base_url):
        return ModelChoice("embedded", spec, "embedded")
    if spec == "recorded":
        return ModelChoice("chat", spec, spec)
    if provider in ("replay", "autogen"):
        return ModelChoice("chat", spec, provider, path=_existing(name, spec))
    if base_url:
        key = _variable("AGENTEVAL_API_KEY") or _provider_key(provider)
        if spec.lower() == f"{provider}/{name}".lower():
            name = spec  # servers name their models so: openai/gpt-oss-20b
        keep_secret([key])
        return ModelChoice(
            "chat", name, provider or "openai", base_url, key, others=tuple(urls[1:])
        )
    if not provider:
        raise InputError(
            f"no provider in {spec!r}; write it as PROVIDER:MODEL with one of "
            f"{', '.join(PROVIDERS)}, or give --base-url; `embedded` needs neither",
            "--model",
        )
    url, variable = PROVIDERS[provider]
    key = _variable("AGENTEVAL_API_KEY") or _provider_key(provider)
    if variable and not key and need_key:
        raise InputError(f"{provider} needs a key in {variable} or AGENTEVAL_API_KEY", "--model")
    keep_secret([key])
    return ModelChoice("chat", name, provider, url, key)


def _deciding(asked: str, *, decides: bool) -> str:
    """What stands behind `decisions:`. Raises InputError where it cannot be asked."""
    if not decides:
        why = "writes no text: it judges runs, in quantify and verify, and does nothing else"
        raise InputError(f"{asked} {why}", "--model")
    inner = asked[len(DECISIONS) :]
    if inner in ("", "embedded", "recorded") or inner.lower().startswith("autogen:"):
        raise InputError(f"{asked} cannot decide; write decisions:NAME", "--model")
    return inner


def _split(spec: str) -> tuple[str, str]:
    """(provider, model); the provider is empty when the text before : or / is not a known one."""
    known = {*PROVIDERS, "replay", "autogen"}
    for mark in (":", "/"):
        head, found, tail = spec.partition(mark)
        if found and head.lower() in known and tail:
            return head.lower(), tail
    return "", spec


def _provider_key(provider: str) -> str | None:
    variable = PROVIDERS.get(provider or "openai", ("", None))[1]
    return _variable(variable) if variable else None


def _variable(name: str) -> str | None:
    """The environment variable, without the line end that `$(cat key)` leaves; None when empty."""
    return os.environ.get(name, "").strip() or None


def _urls(given: str | None) -> list[str]:
    """The URLs, which have blanks between them."""
    urls = [_url(text) for text in given.split() or [given]] if given else []
    if len(set(urls)) < len(urls):
        raise InputError("an endpoint is named twice", "--base-url")
    return urls


def _url(text: str) -> str:
    """The URL, when it is one. A wrong one is not repeated whole: it may hold a key."""
    keep_secret(url_secrets(text))
    start, _, rest = text.partition("://")
    if start.lower() not in ("http", "https"):
        shown = text.rpartition("@")[2].partition("?")[0]
        raise InputError(
            f"{shown!r} is no URL: it must start with http:// or https://", "--base-url"
        )
    if not _readable(text, rest):
        raise InputError(
            "the URL cannot be read; in a user name or password, write @ as %40, / as %2F, "
            ": as %3A, # as %23, ? as %3F",
            "--base-url",
        )
    if "?" in text or "#" in text:  # what follows is not shown: it may be a key
        raise InputError(
            "a base URL ends with its path, since the path of each request is put behind it: leave "
            "out what follows ? or #. A key goes into AGENTEVAL_API_KEY; an endpoint that needs a "
            "query, as Azure's api-version, needs a component config: --model autogen:FILE",
            "--base-url",
        )
    return text


def _readable(url: str, rest: str) -> bool:
    """False without a host, and where a password with a slash would be taken for host and path."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return bool(parts.hostname) and not (
        port is not None and "@" not in parts.netloc and "@" in rest.partition("?")[0]
    )


def _existing(name: str, spec: str) -> Path:
    path = Path(name).expanduser()
    if not path.is_file():
        raise InputError(f"no file {path}", f"--model {spec}")
    return path


def make_transport(choice: ModelChoice) -> Transport:
    """The transport of a chat model. Raises InputError for a file it cannot use."""
    if choice.provider == "recorded":
        if choice.path is None:
            raise InputError(
                "replies are recorded for tasks, to criteria, quantify and verify", "--model"
            )
        return ReplayTransport(choice.path, "recorded")
    if choice.provider == "replay" and choice.path:
        return ReplayTransport(choice.path)
    if choice.provider == "autogen" and choice.path:
        from agenteval.models.autogen import AutogenTransport

        return AutogenTransport.from_config(choice.path)
    kind = DecisionsTransport if choice.kind == "decisions" else OpenAITransport
    return kind(
        choice.name, base_url=choice.base_url, api_key=choice.api_key,
        key_variables=choice.key_variables,
    )  # fmt: skip


class Keeper(ReplyCache, Protocol):
    """A cache with the secret that nonces of requests are made of. The store is one."""

    secret: bytes


def make_client(
    choice: ModelChoice, limits: Limits, store: Keeper | None, *, record: Path | None = None
) -> Client:
    """A client for a chat model, with the store as its cache; replies are also appended to
    `record`. Raises InputError for a file that the model cannot be read from."""
    transport = make_transport(choice)
    others = [make_transport(replace(choice, base_url=url)) for url in choice.others]
    names = [one.endpoint for one in (transport, *others)]
    return Client(
        transport,
        others=others,
        cache=store,
        budget=limits.budget(),
        limiter=(Endpoints(names, limits.concurrency) if others else Limiter(limits.concurrency)),
        timeout=limits.timeout,
        secret=store.secret if store else b"",
        recorder=FileRecorder(record) if record else None,
    )


def no_model(error: Exception) -> ModelUnavailable:
    """A missing local part, said with both ways out in one line."""
    return ModelUnavailable(f"{NO_MODEL} ({error})")
