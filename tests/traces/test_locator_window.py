"""Windows: nothing longer than the context is sent, and an endpoint's "too long" is dealt with."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import TooLong
from agenteval.models.wire import Reply, Request
from agenteval.records import Finding, canonical_json
from tests.traces.locator_world import (
    GRADES,
    blocks,
    entry,
    filler,
    honest,
    locator,
    made,
    pairs,
    reply,
    shown,
    user_text,
)


def size(request: Request, bytes_per_token: float = 3.0) -> int:
    """Tokens of everything in a request as it is sent, schema included, at a flat rate."""
    total = sum(len(str(m["content"]).encode("utf-8", "replace")) for m in request.messages)
    return math.ceil((total + len(canonical_json(request.schema).encode())) / bytes_per_token)


def strict(context: int, bytes_per_token: float = 3.0) -> object:
    """An honest judge behind an endpoint that refuses what does not fit its context."""

    def answer(request: Request) -> str | Reply | Exception:
        asked = size(request, bytes_per_token) + request.parameters["max_tokens"]
        if asked > context:
            return TooLong(f"{asked} tokens exceed the context of {context}")
        return honest(request)

    return answer


text = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("<>|\n\u200b\x00🦜漢")),
    max_size=400,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    texts=st.lists(
        st.tuples(text, st.integers(1, 40)).map(lambda p: p[0] * p[1]), min_size=1, max_size=12
    ),
    context=st.integers(3500, 6500),
    reply_tokens=st.integers(64, 500),
    mode=st.sampled_from(["broad", "areas"]),
    said=text,
)
def test_prompt_and_reply_never_exceed_the_context(
    texts: list[str],
    context: int,
    reply_tokens: int,
    mode: str,
    said: str,
) -> None:
    """Also with repairs, full notes, hints and grades; and every span is shown."""

    def answer(request: Request) -> str:
        if request.role.startswith("locator:grades"):
            return GRADES
        if request.role == "locator" and len(shown(request)) % 2:
            return said * 9  # out of form: it will be repaired
        first = blocks(user_text(request))
        found = [entry(i, "Invention", t[:30], description=said * 3) for i, t in first]
        return reply(*found, summary=said * 20)

    judge, transport = locator(
        answer, context=context, reply_tokens=reply_tokens, mode=mode, grades=True
    )
    run, condensed = made(texts, task=said * 5)
    hints = [
        Finding(span=s.id, category="Waste", description=said, source=f"detector:{i}")
        for s in run.spans
        for i in range(3)
    ]
    asyncio.run(judge.examine(run, condensed, hints))
    for request in transport.requests:
        assert size(request) + reply_tokens <= context
    seen = {index for r in transport.requests if r.role == "locator" for index in shown(r)}
    assert seen == {p.index for p in condensed.pieces}


def long_trace(spans: int = 10, words: int = 400) -> tuple[list[str], list[tuple[str, str]]]:
    facts = {i: f"PLANT(Invention) fact {chr(96 + i) * 12}" for i in range(1, spans + 1)}
    texts = [f"{filler(words, i)}\n{fact}\n{filler(words, i + 50)}" for i, fact in facts.items()]
    return texts, [(f"span-{i}", "Invention") for i in range(1, spans + 1)]


async def test_an_endpoint_that_counts_more_tokens_is_asked_in_smaller_parts() -> None:
    texts, expected = long_trace()
    judge, transport = locator(strict(8192, 1.5))  # type: ignore[arg-type]
    located = await judge.examine(*made(texts))
    assert pairs(located.findings.findings) == expected
    refused = [r for r in transport.requests if size(r, 1.5) + 1536 > 8192]
    assert 1 <= len(refused) <= 4  # what is learnt once holds for the parts that follow


async def test_an_endpoint_that_takes_nothing_is_not_asked_for_ever() -> None:
    texts, _ = long_trace(40)
    judge, transport = locator(lambda _: TooLong("no"), context=4600, grades=True)
    located = await judge.examine(*made(texts))
    assert located.findings.status == "unscored:too_long"
    assert len(transport.requests) < 12


async def test_what_is_left_out_of_a_giant_span_is_told_to_judge_and_user() -> None:
    text = "\n".join(f"line {i} {filler(6, i)}" for i in range(1500))
    judge, transport = locator(honest, context=6000)
    located = await judge.examine(*made(["first", text, "last"]))
    assert "1 spans were shown without their middle" in located.findings.message
    asked = [r for r in transport.requests if "S2" in shown(r)]
    assert len(asked) == 4
    assert sum("what follows is left out" in user_text(r) for r in asked) == 1
    assert "line 0 " in user_text(asked[0])
    assert "line 1499 " in user_text(asked[-1])
