"""HTTP clients for the SDK of openai: certificates are read once, redirects stay at home.

Also tells which failed connections no retry can heal.
"""

from __future__ import annotations

import functools
import importlib
import os
import ssl
from collections.abc import Callable
from types import ModuleType
from typing import Any

from agenteval.errors import BadRequest, InputError
from agenteval.models.redirects import Redirected, stay_at_home


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
