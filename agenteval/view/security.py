"""Access to the viewer: one token, one cookie, one address, and no foreign page.

The viewer shows texts of users and, with labels, changes the store. Other pages in the same browser
and other programs on the machine must not reach it, see OWASP's cheat sheets on cross-site request
forgery and DNS rebinding.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SAFE = ("GET", "HEAD")
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, forms would have no origin
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass
class Access:
    """The secrets of one server.

    `token` is in the address that is printed. It works once, or with `reusable` (for other
    machines) any number of times. A request with it gets the `session` as a cookie.
    """

    port: int
    hosts: Collection[str] | None  # None: any
    reusable: bool = False
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    used: bool = False

    @property
    def cookie(self) -> str:
        """Name of the cookie; cookies are shared by all ports of a machine."""
        return f"agenteval_{self.port}"

    @property
    def form_token(self) -> str:
        """Token that every form must return."""
        return hmac.new(self.session.encode(), b"form", hashlib.sha256).hexdigest()

    def admits(self, token: str) -> bool:
        """Return whether this token opens the viewer, and use it up."""
        if (self.used and not self.reusable) or not _equal(token, self.token):
            return False
        self.used = True
        return True


class Guard:
    """ASGI middleware: refuse other hosts, foreign pages and requests without the cookie."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        if scope["type"] != "http":
            await PlainTextResponse("no websockets", 403)(scope, receive, send)
            return
        refused = self._answer(Request(scope))
        await (refused or self.app)(scope, receive, send_with_headers)

    def _answer(self, request: Request) -> Response | None:
        """Return the response instead of the page, or None for an allowed request."""
        access = self.access
        host = request.headers.get("host", "")
        name = host.rpartition(":")[0] if not host.endswith("]") else host
        if access.hosts is not None and (name or host) not in access.hosts:
            return PlainTextResponse(f"this viewer does not answer for the host {host!r}", 421)
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return PlainTextResponse("this page may not use the viewer", 403)
        if request.method not in _SAFE and origin is None:
            return PlainTextResponse("a form must be sent by a browser, with its origin", 403)
        if _equal(request.cookies.get(access.cookie, ""), access.session):
            return None
        token = request.query_params.get("token", "")
        if request.method == "GET" and token and access.admits(token):
            response = RedirectResponse(request.url.path, 303)
            response.set_cookie(access.cookie, access.session, httponly=True, samesite="strict")
            return response
        why = "its token was used already; " if token and access.used else ""
        return PlainTextResponse(
            f"{why}open the address that `agenteval view` printed, or start it again", 403
        )


def _equal(a: str, b: str) -> bool:
    return hmac.compare_digest(a.encode(), b.encode())
