"""Condensing: each thing once, wrappers out, budgets kept, and nothing that an error needs lost."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.records.run import Message, Run, Span, SpanEvent
from agenteval.traces.condense import Condensed, Options, condense
from tests.support.long_trace import LongTrace
from tests.thorough import often
from tests.traces.planted_evidence import run as planted

WHOLE = Options(budget=None, piece=10**6)


def trace(*spans: Span) -> Run:
    return Run(id="t", spans=spans)


def texts(condensed: Condensed) -> dict[str, str]:
    return {piece.span: piece.text for piece in condensed.pieces}


def llm(id_: str, messages: Iterable[Message], reply: Message, **more: object) -> Span:
    return Span.model_validate(
        {"id": id_, "name": "Model", "kind": "llm", "messages": tuple(messages), "reply": (reply,)}
        | more
    )


def tool(id_: str, output: str, **more: object) -> Span:
    return Span.model_validate(
        {"id": id_, "name": "find", "kind": "tool", "tool": "find", "output": output} | more
    )


def said(role: str, content: str) -> Message:
    return Message.model_validate({"role": role, "content": content})


LONG = [
    f"sentence {k} of a text that is long enough to be told again by its number" for k in "abcdef"
]
PARAGRAPH = " ".join(LONG)


# What stands again


def test_a_growing_history_stands_once() -> None:
    turns = [
        said(r, f"{n} {PARAGRAPH}") for n, r in enumerate(("system", "user", "assistant", "user"))
    ]
    answers = [turns[2], said("assistant", "the end")]
    condensed = condense(trace(llm("a", turns[:2], answers[0]), llm("b", turns, answers[1])), WHOLE)
    shown = texts(condensed)
    for number, span in enumerate("aaab"):
        assert [s for s, text in shown.items() if f"{number} {PARAGRAPH}" in text] == [span]
    assert "messages: M1-M3 as before, then\nM4 user:" in shown["b"]
    assert shown["b"].endswith("M5 reply: the end")
    assert condensed.folded == 3


def test_a_repeated_call_and_its_output() -> None:
    given_ = {"input": '{"q": "mill",  "n": 1}'}
    spans = [
        tool("a", PARAGRAPH, **given_),
        tool("b", PARAGRAPH, input='{"n": 1, "q": "mill"}'),
        tool("c", PARAGRAPH.replace("sentence c", "sentence z"), **given_),
        tool("d", PARAGRAPH, tool="other", **given_),
    ]
    shown = texts(condense(trace(*spans), WHOLE))
    assert "same tool and arguments as S1 (call number 2 of these)" in shown["b"]
    assert f"output: [same as output of S1: {len(PARAGRAPH)} characters]" in shown["b"]
    assert "same tool and arguments as S1, S2 (call number 3 of these)" in shown["c"]
    assert "sentence z" in shown["c"]  # nearly the same is not the same
    assert "same tool" not in shown["d"]
    assert all('"q": "mill"' in text for text in shown.values())


# Wrappers


def step(name: str, **more: object) -> Span:
    return Span.model_validate({"id": name, "parent_id": "agent", "name": name} | more)


def wrapped(step_: Span, agent: Span | None = None) -> Condensed:
    inner = llm(
        "model", [said("user", "the goal")], said("assistant", "the answer"), parent_id=step_.id
    )
    return condense(
        trace(
            agent or Span(id="agent", name="Clerk", kind="agent", input="the goal"), step_, inner
        ),
        WHOLE,
    )


@pytest.mark.parametrize(
    "more",
    [
        {"input": "another goal"},
        {"output": "another answer"},
        {"output": '{"final": 42}'},
        {"status": "error"},
        {"status_message": "odd"},
        {"events": (SpanEvent(name="exception", attributes={"exception.message": "m"}),)},
        {"attributes": {"max_steps": 5}},
        {"attributes": {"note": "ValueError: no"}},
    ],
)
def test_a_wrapper_that_says_more_stays(more: dict[str, object]) -> None:
    assert "Step 3" in texts(wrapped(step("Step 3", **more)))


# Budgets and cuts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "piece"),
    [
        (None, 300),
        (40_000, 300),
        (5_000, 300),
        (1, 300),
        (200_000, 3000),
        (20_000, 3000),
        (5_000, 3000),
        (1, 3000),
    ]
    + [(200_000, 300), (20_000, 300), (None, 3000), (40_000, 3000)] * often(0, 1),
)
def test_no_span_and_no_error_falls_out_of_any_budget(budget: int | None, piece: int) -> None:
    run, _ = planted(0)
    condensed = condense(run, Options(budget=budget, piece=piece))
    shown = texts(condensed)
    told = 160 if budget is None or budget >= 20_000 else 40  # of arguments, at least
    assert [p.index for p in condensed.pieces] == [f"S{k}" for k in range(1, len(run.spans) + 1)]
    assert condensed.over == max(0, condensed.tokens - (budget or 10**9))
    if budget and budget >= 15_000:
        assert condensed.over == 0
    for span in run.spans:
        text = shown[span.id]
        assert span.name in text.split("\n")[0]
        assert (span.status == "error") == (" [ERROR" in text.split("\n")[0])
        assert span.status_message in text
        for event in span.events:
            assert str(event.attributes["exception.type"]) in text
        for call in (c for m in span.reply for c in m.tool_calls):
            assert call.name in text
            assert str(call.arguments)[:told] in text
        if span.kind == "tool":
            assert span.input[:told] in text
    assert sum(map(int, cuts("\n".join(shown.values())))) == condensed.cut


def cuts(text: str) -> list[str]:
    return [n.replace(",", "") for n in re.findall(r"\[cut: ([\d,]+) characters\]", text)]


# Evidence


# Without a word that looks like an error, a rule or a claim, a false statement in the middle of a
# long reply cannot be told from the others.
PLAIN_STATEMENTS = {"Language-only", "Tool-related", "Goal Deviation", "Task Orchestration"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("budget", "lost"),
    [(None, set()), (100_000, set()), (50_000, set()), (20_000, PLAIN_STATEMENTS)][:: often(3, 1)],
)
def test_the_evidence_of_every_kind_survives(seed: int, budget: int | None, lost: set[str]) -> None:
    run, evidence = planted(seed)
    assert len({kind for kind, _, _ in evidence}) == 20
    condensed = condense(run, Options(budget=budget))
    shown = texts(condensed)
    missing = [(kind, words) for kind, span, words in evidence if words not in shown[span]]
    assert [row for row in missing if row[0] not in lost] == []
    assert condensed.tokens < 0.02 * condensed.source_tokens


@pytest.mark.parametrize("seed", [0, 1])
def test_planted_facts_survive_in_a_long_trace(seed: int) -> None:
    made = LongTrace(1_000_000, seed=seed)
    run = made.run()
    condensed = condense(run, Options(budget=60_000))
    shown = texts(condensed)
    assert len(made.facts) > 10
    assert any(f.contradicted for f in made.facts)
    assert [f for f in made.facts if f.output_text not in shown[f.output_span]] == []
    assert [f for f in made.facts if f.reply_text not in shown[f.reply_span]] == []
    assert condensed.tokens <= 60_000


# Odd traces


@pytest.mark.slow
@settings(max_examples=60)
@given(st.data())
def test_any_trace_is_condensed(data: st.DataObject) -> None:
    word = st.sampled_from(
        ["", "x", PARAGRAPH, PARAGRAPH * 9, "Error: no\n" * 80, "漢" * 700, '{"a": [1]}']
    )
    pool = [Message(role="user", content=data.draw(word)) for _ in range(4)]
    spans = [
        Span(
            id=str(k),
            parent_id=data.draw(st.sampled_from([None, "0", "1", "9"])),
            kind=data.draw(st.sampled_from(["agent", "llm", "tool", "chain", "user"])),
            input=data.draw(word),
            output=data.draw(word),
            messages=tuple(data.draw(st.lists(st.sampled_from(pool), max_size=5))),
            status=data.draw(st.sampled_from(["ok", "error", "unset"])),
            attributes={"note": data.draw(word)},
        )
        for k in range(data.draw(st.integers(0, 8)))
    ]
    budget = data.draw(st.sampled_from([None, 1, 500, 5000]))
    condensed = condense(trace(*spans), Options(budget=budget, piece=200))
    kept = [p.span for p in condensed.pieces]
    assert kept == [s.id for s in spans if s.id in set(kept)]
    assert len(kept) + sum(condensed.dropped.values()) == len(spans)
    for span in spans:
        if span.kind in ("llm", "tool", "user") or span.status == "error":
            assert span.id in kept
    assert condensed == condense(trace(*spans), Options(budget=budget, piece=200))
    if budget and not condensed.over:
        assert condensed.tokens <= budget
