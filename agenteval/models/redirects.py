"""No redirect takes a prompt or a key to another host.

Libraries take the Authorization header off for another host, but not other headers with keys, and
a 307 or 308 carries the whole body along: the prompt, which may hold private data.
"""

from __future__ import annotations

from typing import Any, NoReturn

from agenteval.errors import BadRequest

_WAY = "agenteval.way"  # in a request's extensions: the URLs asked for so far
_MOST = 3  # redirects in a row; the body goes out again with each


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
            f"{_shown(home)} redirects to {_shown(here)}; nothing was sent there: another host "
            "must be named as the endpoint itself"
        )
    if here.userinfo != home.userinfo:
        _refuse(f"{_shown(home)} redirects to another user of itself; nothing was sent there")
    if len(way) > 1 + _MOST:
        _refuse(f"{_shown(home)} redirects more than {_MOST} times")


def _refuse(message: str) -> NoReturn:
    import openai

    raise openai.OpenAIError(message) from Redirected(message)


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port  # the port is None when it is that of the scheme


def _is_upgrade(home: Any, here: Any) -> bool:
    return _origin(home) == ("http", here.host, None) and _origin(here)[::2] == ("https", None)


def _shown(url: Any) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii')}"  # no user, no password, no path
