"""The openai SDK pointed at the test server, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import openai
from pydantic import BaseModel

from agenteval.testing import Server


class Verdict(BaseModel):
    explanation: str
    label: Literal["bad", "fair", "good"]


@contextmanager
def client(server: Server, **options: Any) -> Iterator[openai.OpenAI]:
    options = {"max_retries": 0, "timeout": 10.0} | options
    with openai.OpenAI(base_url=server.base_url, api_key="none", **options) as made:
        yield made


def ask(sdk: openai.OpenAI, text: str = "hello", **more: Any) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return sdk.chat.completions.create(model="m", messages=messages, **more)


def raw(sdk: openai.OpenAI) -> Any:
    class Raw:
        chat = sdk.chat.with_raw_response

    return Raw()
