"""Faults as the openai SDK documents them."""

from __future__ import annotations

import httpx2
import openai
import pytest

from agenteval.testing import RETRY_AFTER_FORMS, Fault, Rule, serve
from tests.testing.conftest import ask, client


@pytest.mark.parametrize("form", RETRY_AFTER_FORMS)
def test_every_retry_after_form_reaches_the_client(form: str) -> None:
    fault = Fault("status", 429, headers=RETRY_AFTER_FORMS[form])
    with (
        serve(faults=[fault]) as server,
        client(server) as sdk,
        pytest.raises(openai.RateLimitError) as caught,
    ):
        ask(sdk)
    for name, value in RETRY_AFTER_FORMS[form].items():
        got = caught.value.response.headers[name]
        assert got == value or (value.startswith("@") and len(got.split()) >= 4)


@pytest.mark.parametrize("kind", ["reset", "half_body", "half_reset", "hang"])
def test_broken_connections(kind: str) -> None:
    with serve(faults=[Rule(Fault(kind, seconds=0.05), first=1)]) as server, client(server) as sdk:
        with pytest.raises((openai.APIConnectionError, httpx2.TransportError)) as caught:
            ask(sdk)
        assert ask(sdk).choices[0].message.content
        assert [r.outcome for r in server.requests] == [kind, "ok"]
    chain = f"{caught.value!r} {caught.value.__cause__!r}"
    named = {"reset": "ReadError", "half_reset": "ReadError"}.get(kind, "RemoteProtocolError")
    assert named in chain


def test_faults_strike_the_same_requests_in_whatever_order_they_come() -> None:
    def struck(texts: list[str]) -> set[str]:
        rules = [Rule(Fault("status", 500), probability=0.3)]
        with serve(faults=rules, seed=5) as server, client(server) as sdk:
            for text in texts:
                try:
                    ask(sdk, text)
                except openai.InternalServerError:
                    continue
            return {r.key for r in server.requests if r.outcome == "status"}

    texts = [f"t{i}" for i in range(40)]
    first = struck(texts)
    assert 3 <= len(first) <= 22  # binomial(40, .3): 12 expected, 3.5 standard deviations
    assert struck(texts[::-1]) == first
