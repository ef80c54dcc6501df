"""A redirect to another host is not followed: neither prompt nor key arrives there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from autogen_ext.models.cache import ChatCompletionCache
from autogen_ext.models.openai import OpenAIChatCompletionClient
from yarl import URL

from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.openai_responses import ResponsesTransport
from agenteval.errors import Redirected
from agenteval.models.autogen import AutogenTransport
from agenteval.models.client import Client
from agenteval.models.connections import redirect_target
from agenteval.models.openai import OpenAITransport
from agenteval.models.wire import Request
from agenteval.testing import Server, serve
from agenteval.testing.engine import ServerExchange, refusal

CANARY = "sk-canary-51be09aa"
PRIVATE = "a prompt that is nobody's business"
ASK = Request(({"role": "user", "content": PRIVATE},))
STATUSES = (301, 302, 303, 307, 308)


async def no_pause(_: float) -> None:
    raise AssertionError("a redirect is not asked again")


def direct(url: str, folder: Path) -> Client:
    return Client(OpenAITransport("m", base_url=url, api_key=CANARY), sleep=no_pause)


def agents(url: str, folder: Path) -> Client:
    return connect(Endpoint("m", url, api_key=CANARY), sleep=no_pause)


def responses(url: str, folder: Path) -> Client:
    endpoint = Endpoint("m", url, api_key=CANARY)
    return connect(endpoint, transport=ResponsesTransport, sleep=no_pause)


def autogen(url: str, folder: Path) -> Client:
    config = {
        "provider": "autogen_ext.models.openai.OpenAIChatCompletionClient",
        "config": {
            "model": "m",
            "base_url": url,
            "api_key": CANARY,
            "default_headers": {"x-api-key": CANARY},
            "model_info": {
                "vision": False,
                "function_calling": True,
                "json_output": True,
                "family": "unknown",
                "structured_output": False,
            },
        },
    }
    path = folder / "client.json"
    path.write_text(json.dumps(config))
    return Client(AutogenTransport.from_config(path), sleep=no_pause)


def wrapped(url: str, folder: Path) -> Client:
    inner = OpenAIChatCompletionClient(
        model="gpt-4o-2024-08-06",
        max_retries=0,
        base_url=url,
        api_key=CANARY,
        default_headers={"x-api-key": CANARY},
    )
    return Client(AutogenTransport(ChatCompletionCache(inner), "mine"), sleep=no_pause)


OURS: list[Callable[[str, Path], Client]] = [direct, responses]
SDKS: list[Callable[[str, Path], Client]] = [autogen, wrapped]


class Heard(list[tuple[str, str, bytes]]):
    """Every request that a server got, whatever for: method, path, body. `location` gives where a
    request is sent on to, None where it is answered."""

    def __init__(self, server: Server, status: int = 307) -> None:
        super().__init__()
        self.location: Callable[[str], str | None] = lambda path: None
        answer = server.engine.handle

        def handle(method: str, path: str, headers: dict[str, str], raw: bytes) -> ServerExchange:
            self.append((method, path, raw))
            if (target := self.location(path)) is not None:
                return refusal(status, "moved", {"location": target})
            return answer(method, path, headers, raw)

        server.engine.handle = handle  # type: ignore[method-assign]


def base(server: Server) -> str:
    return server.base_url.removesuffix("/v1")


def line(here: str, there: str) -> str:
    return (
        f"{here} redirects to {there}; nothing was sent there: another host must be named as the "
        "endpoint itself"
    )


async def refused(client: Client) -> str:
    try:
        with pytest.raises(Redirected) as raised:
            await client.complete(ASK)
    finally:
        await client.close()
    assert client.usage.requests == 1
    assert CANARY not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("make", OURS)
@pytest.mark.parametrize("status", STATUSES)
async def test_another_host_gets_nothing(
    make: Callable[[str, Path], Client], status: int, tmp_path: Path
) -> None:
    with serve() as other, serve() as home:
        there, here = Heard(other), Heard(home, status)
        here.location = lambda path: base(other) + path
        said = await refused(make(home.base_url, tmp_path))
        assert there == []
        assert len(here) == 1
        assert PRIVATE.encode() in here[0][2]
    assert said == line(base(home), base(other))


@pytest.mark.parametrize("make", SDKS)
async def test_the_client_of_an_sdk_follows_no_redirect(
    make: Callable[[str, Path], Client], tmp_path: Path
) -> None:
    with serve() as other, serve() as home:
        there, here = Heard(other), Heard(home)
        for target in (f"{base(other)}/there", f"{base(home)}/there"):
            here.location = {"/v1/chat/completions": target}.get
            said = await refused(make(home.base_url, tmp_path))
            assert f"redirects to {target}; nothing was sent there" in said
        assert there == []
        assert len(here) == 2


@pytest.mark.parametrize("make", OURS)
async def test_another_path_of_the_same_host_is_followed(
    make: Callable[[str, Path], Client], tmp_path: Path
) -> None:
    with serve(lambda body, n: "moved, but here") as home:
        here = Heard(home)
        moved = {"/old/chat/completions": "/v1/chat/completions", "/old/responses": "/v1/gone"}
        here.location = moved.get
        client = make(f"{base(home)}/old", tmp_path)
        if make is responses:  # the server does not speak it: that it was asked there is enough
            with pytest.raises(Exception, match="no such path here: /v1/gone"):
                await client.complete(ASK)
        else:
            assert (await client.complete(ASK)).text == "moved, but here"
        await client.close()
        assert [path for _, path, _ in here] == list(
            next(pair for pair in moved.items() if pair[0] == here[0][1])
        )
        assert all(PRIVATE.encode() in body for _, _, body in here)


@pytest.mark.parametrize("make", [direct])
async def test_a_circle_is_left_after_three_and_not_entered_again(
    make: Callable[[str, Path], Client], tmp_path: Path
) -> None:
    with serve() as home:
        here = Heard(home)
        here.location = lambda path: f"{path}/more"
        said = await refused(make(f"{base(home)}/a", tmp_path))
        assert said == f"{base(home)} redirects more than 3 times"
        assert len(here) == 1 + 3


async def test_another_user_of_the_same_host_is_not_followed(tmp_path: Path) -> None:
    with serve() as home:
        here = Heard(home)
        named = base(home).replace("://", "://ann:word@")
        here.location = {"/a/chat/completions": f"{named}/b/chat/completions"}.get
        said = await refused(direct(f"{base(home)}/a", tmp_path))
        assert said == f"{base(home)} redirects to another user of itself; nothing was sent there"
        assert len(here) == 1


@pytest.mark.parametrize(
    ("home", "target", "allowed"),
    [
        ("http://h/v1", "https://h/v1", True),
        ("http://h/v1", "https://h:443/v2", True),
        ("https://h/v1", "https://h/v2", True),
        ("https://h/v1", "https://h:443/v1", True),
        ("https://h/v1", "http://h/v1", False),
        ("https://h/v1", "https://h:8443/v1", False),
        ("http://h/v1", "https://h:8443/v1", False),
        ("http://h:80/v1", "http://h/v1", True),
        ("http://h:8080/v1", "https://h/v1", False),
        ("http://h/v1", "https://sub.h/v1", False),
        ("https://h/v1", "https://h.evil/v1", False),
        ("https://h/v1", "https://h@evil/v1", False),
        ("https://h/v1", "ftp://h/v1", False),
    ],
)
def test_which_redirects_are_followed(home: str, target: str, allowed: bool) -> None:
    start = URL(home)
    if allowed:
        assert redirect_target(start, start, target) == URL(target)
    else:
        with pytest.raises(Redirected):
            redirect_target(start, start, target)
