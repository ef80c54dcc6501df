"""HTTP for one endpoint, on aiohttp: POST a body, get status, headers and a bounded body.

No redirect takes a prompt or a key to another host. Certificates are read once, and proxies are
those that the environment names. Imported with the first request, since aiohttp takes time to load.
"""

from __future__ import annotations

import asyncio
import functools
import os
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from agenteval.errors import BadRequest, InputError, ModelError, Redirected, Transient, Untrusted
from agenteval.models.wire import Resend, one_line
from agenteval.text import keep_secret, public_url, url_secrets

CONNECT_SECONDS = 15.0
MOST_BYTES = 16 * 2**20  # of one answer; more is not a reply
_MOST_REDIRECTS = 3  # in a row; each sends the body again
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An HTTP response with any status."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """The pool of connections to one endpoint; it opens with the first request.

    `headers` go out with every request. A user name and password in the URL are sent as Basic
    authentication, in the place of an Authorization header.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = {"User-Agent": "agenteval", "Content-Type": "application/json", **headers}
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._proxy: str | None = None

    async def post(self, url: str, body: bytes) -> HttpAnswer:
        """Send the body, following redirects on the same host only.

        Raises Redirected, Untrusted, InputError for an unusable proxy, Resend when a connection
        that had been idle turned out to be closed, and Transient for every other failure.
        """
        session, where = self._opened(), public_url(self._url)
        home = target = URL(url)
        for _ in range(1 + _MOST_REDIRECTS):
            trace = {"reused": False}
            options: dict[str, Any] = {"allow_redirects": False, "trace_request_ctx": trace}
            if self._proxy:
                options["proxy"] = self._proxy
            try:
                async with session.post(target, data=body, **options) as response:
                    received = await _read_bounded(response, where)
            except (aiohttp.ClientError, OSError, ValueError) as error:
                # `from None`: the error holds the headers
                raise self._explained(error, where, reused=trace["reused"]) from None
            location = response.headers.get("location")
            if response.status not in _REDIRECTS or not location:
                return HttpAnswer(response.status, response.headers, received)
            target = redirect_target(home, target, location)
        raise Redirected(f"{home.origin()} redirects more than {_MOST_REDIRECTS} times")

    def _opened(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            url = URL(self._url)
            self._proxy = proxy_for(url)
            headers = dict(self._headers)
            if url.user is not None:
                headers.pop("Authorization", None)
            trace = aiohttp.TraceConfig()
            trace.on_connection_reuseconn.append(_note_reuse)
            certificates = trusted() if url.scheme == "https" else True
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=certificates),
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
                trace_configs=[trace],
            )
            self._loop = loop
        return self._session

    def _explained(self, error: Exception, where: str, *, reused: bool) -> ModelError:
        if (refused := untrusted(error)) is not None:
            return Untrusted(f"{where}: {refused}")
        # a system's error number in the system's words
        system: Any = getattr(error, "os_error", None) or error
        number = getattr(system, "errno", None)
        words = os.strerror(number) if number and number > 0 else number and system.strerror
        reason = one_line(words or error or type(error).__name__)
        if "WRONG_VERSION" in reason:
            reason += "; the endpoint seems to speak http, not https"
        proxy = public_url(self._proxy or "")
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            return Transient(f"{where}: cannot connect to the proxy {proxy} ({reason})")
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return BadRequest(f"{where}: the proxy {proxy} answers HTTP {error.status} ({reason})")
        if isinstance(error, TimeoutError | aiohttp.ClientConnectorError):
            if isinstance(error, TimeoutError):
                reason = f"no connection within {CONNECT_SECONDS:g} s"
            return Transient(f"{where}: cannot connect ({reason})")
        if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
            return BadRequest(f"{where}: the URL cannot be used ({reason})")
        lost = f"{where}: connection lost ({reason})"
        closed = aiohttp.ServerDisconnectedError | aiohttp.ClientOSError | ConnectionError
        return Resend(lost) if reused and isinstance(error, closed) else Transient(lost)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()


async def _note_reuse(_: Any, context: Any, __: Any) -> None:
    context.trace_request_ctx["reused"] = True


async def _read_bounded(response: aiohttp.ClientResponse, where: str) -> bytes:
    chunks, size = [], 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > MOST_BYTES:
            response.close()
            if response.status < 400:
                limit = MOST_BYTES // 2**20
                raise BadRequest(f"{where}: the answer is longer than {limit} MiB; stopped reading")
            break
    return b"".join(chunks)


def redirect_target(home: URL, here: URL, location: str) -> URL:
    """The target of a redirect. Raises Redirected for another scheme, host, port or user.

    A change from http to https on the same host, both on default ports, is followed.
    """
    try:
        target = here.join(URL(location))
        end = (target.scheme, target.host, target.port)
        shown = target.origin()
    except ValueError:
        raise Redirected(f"{home.origin()} redirects to something that is not a URL") from None
    start = (home.scheme, home.host, home.port)
    upgrade = start == ("http", target.host, 80) and end == ("https", target.host, 443)
    if end != start and not upgrade:
        raise Redirected(
            f"{home.origin()} redirects to {shown}; nothing was sent there: another host must be "
            "named as the endpoint itself"
        )
    if target.user is None and home.user is not None:
        target = target.with_user(home.user).with_password(home.password)
    if (target.user, target.password) != (home.user, home.password):
        raise Redirected(
            f"{home.origin()} redirects to itself with another user; nothing was sent there"
        )
    return target


def proxy_for(url: URL) -> str | None:
    """The proxy that the environment names for a URL; None for a direct connection.

    Raises InputError for a kind of proxy that is not supported.
    """
    proxies = urllib.request.getproxies()
    scheme = url.scheme if url.scheme in proxies else "all"
    address = proxies.get(scheme)
    if not address or urllib.request.proxy_bypass(f"{url.host}:{url.port}"):
        return None
    address = address if "://" in address else f"http://{address}"
    kind = address.partition("://")[0].lower()
    if kind not in ("http", "https"):
        name = f"{scheme.upper()}_PROXY"
        why = f"a proxy of the scheme {kind} is not supported; use an HTTP proxy, or unset {name}"
        raise InputError(why, name)
    keep_secret(url_secrets(address))
    return address


def untrusted(error: BaseException) -> str | None:
    """Why a certificate was not accepted, from an exception or its causes; None when it was."""
    cause: BaseException | None = error
    while cause is not None:
        refused = getattr(cause, "certificate_error", cause)
        if isinstance(refused, ssl.SSLCertVerificationError):
            words = getattr(refused, "verify_message", None) or one_line(refused)
            return (
                f"the endpoint's certificate is not trusted ({words}); SSL_CERT_FILE can name a "
                "file with others"
            )
        cause = cause.__cause__ or cause.__context__
    return None


def trusted() -> ssl.SSLContext:
    """The certificates to trust: those of SSL_CERT_FILE and SSL_CERT_DIR, else certifi's or the
    system's. Raises Untrusted when the file that the environment names cannot be read."""
    file = os.environ.get("SSL_CERT_FILE")
    try:
        return _read_certificates(file, os.environ.get("SSL_CERT_DIR"))
    except OSError as error:  # that of the system names no file, that of OpenSSL neither
        raise Untrusted(
            f"no certificates can be read from SSL_CERT_FILE={file} ({error.strerror or error})"
        ) from error


@functools.cache
def _read_certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    if file or folder:
        return ssl.create_default_context(cafile=file, capath=folder)
    context = ssl.create_default_context()
    try:
        import certifi
    except ImportError:
        return context
    context.load_verify_locations(certifi.where())
    return context
