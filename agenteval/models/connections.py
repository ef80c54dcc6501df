"""HTTP clients for the SDK of openai: certificates are read once, redirects stay at home.

No redirect takes a prompt or a key to another host. Libraries take the Authorization header off for
another host, but not other headers with keys, and a 307 or 308 carries the whole body along: the
prompt, which may hold private data. Also tells which failed connections no retry can heal.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import ssl
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from agenteval.errors import BadRequest, InputError
from agenteval.text import keep_secret

_WAY = "agenteval.way"  # in a request's extensions: the URLs asked for so far
_MOST = 3  # redirects in a row; the body goes out again with each


HEADERS = "AGENTEVAL_HEADERS"  # environment variable: Name=value, one a line


def extra_headers() -> dict[str, str]:
    """Headers that every request to an endpoint carries besides its own, such as those of a
    gateway, from the environment. Their values are kept out of messages. Raises InputError."""
    headers: dict[str, str] = {}
    for line in filter(None, map(str.strip, os.environ.get(HEADERS, "").splitlines())):
        name, sign, value = (part.strip() for part in line.partition("="))
        if not sign or not re.fullmatch(r"[A-Za-z0-9-]+", name) or not value.isascii():
            raise InputError(f"{name[:40]!r}: write NAME=VALUE, NAME of letters, digits, hyphens",
                             "--header")  # fmt: skip
        keep_secret([value])
        headers[name] = value
    return headers


class Redirected(BadRequest):
    """The endpoint redirects to where nothing is sent; a retry cannot heal it."""


def stay_at_home(http: Any) -> None:
    """Have a client of httpx or httpx2, sync or async, follow no redirect to another origin.

    Scheme, host and port must be those of the URL that was asked for, and so the user it names;
    https in the place of http on the same host is allowed, both at their usual ports. At most three
    redirects are followed. Every request is looked at as it is
    about to be sent, so however a redirect is written makes no difference. What is refused raises
    an OpenAIError (openai's SDK does not retry those) with a Redirected as its cause.
    """
    hooks, check = http.event_hooks["request"], _check_async if hasattr(http, "aclose") else _check
    if check not in hooks:  # a client may be wrapped more than once
        hooks.append(check)


async def _check_async(request: Any) -> None:
    _check(request)


def _check(request: Any) -> None:
    here = request.url
    way = (*request.extensions.get(_WAY, ()), here)  # a redirect takes the extensions over
    request.extensions[_WAY] = way
    home = way[0]
    if _origin(here) != _origin(home) and not _is_upgrade(home, here):
        _refuse(
            f"{_shown_url(home)} redirects to {_shown_url(here)}; nothing was sent there: another "
            "host must be named as the endpoint itself"
        )
    if here.userinfo != home.userinfo:
        _refuse(f"{_shown_url(home)} redirects to another user of itself; nothing was sent there")
    if len(way) > 1 + _MOST:
        _refuse(f"{_shown_url(home)} redirects more than {_MOST} times")


def _refuse(message: str) -> NoReturn:
    import openai

    raise openai.OpenAIError(message) from Redirected(message)


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port  # the port is None when it is that of the scheme


def _is_upgrade(home: Any, here: Any) -> bool:
    return _origin(home) == ("http", here.host, None) and _origin(here)[::2] == ("https", None)


def _shown_url(url: Any) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii')}"  # no user, no password, no path


class Untrusted(BadRequest):
    """The endpoint's certificate was not accepted, or none can be checked. Nothing was sent."""


def http_library() -> ModuleType:
    """What the installed SDK speaks HTTP with: httpx, from openai 3 on httpx2."""
    import openai

    base = openai.DefaultAsyncHttpxClient.__base__
    assert base is not None
    return importlib.import_module(base.__module__.partition(".")[0])


def open_connections(url: str) -> Any:
    """An asynchronous client for one endpoint, to be closed by the SDK that gets it.

    aiohttp takes half the CPU time of the SDK's own pool, which polls every idle connection at each
    request; it refuses a URL with credentials beside a key.
    """
    import openai

    named = "@" in url.partition("://")[2].partition("/")[0]
    pool = openai.DefaultAsyncHttpxClient if named else openai.DefaultAioHttpClient
    return _opened(lambda: pool(base_url=url, verify=_trusted()))


def open_plain_connections() -> Any:
    """A synchronous client, for calls that are few."""
    import openai

    return _opened(lambda: openai.DefaultHttpxClient(verify=_trusted()))


def _opened(make: Callable[[], Any]) -> Any:
    """Raises InputError for a proxy that cannot be spoken to."""
    try:
        http = make()
    except (ValueError, ImportError) as error:  # an unknown scheme; SOCKS without its package
        raise InputError(str(error), "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY") from None
    stay_at_home(http)
    return http


def hopeless(error: BaseException) -> Redirected | Untrusted | None:
    """What no retry can heal among the causes of an SDK's exception; None when there is none."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, Redirected):
            return cause
        words = getattr(cause, "verify_message", None)  # aiohttp's own kind of it has none
        if isinstance(cause, ssl.SSLCertVerificationError) and words:
            return Untrusted(
                f"the endpoint's certificate is not trusted ({words}); "
                "SSL_CERT_FILE can name a file with others"
            )
        cause = cause.__cause__ or cause.__context__
    return None


def _trusted() -> Any:
    """The certificates that a client trusts: those it would read itself, 40 ms of CPU each time.

    Raises Untrusted when the file that the environment names cannot be read.
    """
    file = os.environ.get("SSL_CERT_FILE")
    try:
        return _read_certificates(file, os.environ.get("SSL_CERT_DIR"))
    except OSError as error:  # that of the system names no file, that of OpenSSL neither
        raise Untrusted(
            f"no certificates can be read from SSL_CERT_FILE={file} ({error.strerror or error})"
        ) from error


@functools.cache
def _read_certificates(file: str | None, folder: str | None) -> Any:  # what the library reads
    return http_library().create_ssl_context()
