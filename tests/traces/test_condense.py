"""Condensing: each thing once, wrappers out, budgets kept, no error lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.readers.traces import read_traces
from agenteval.records.run import Message, Run, Span, SpanEvent
from agenteval.traces.annotations import read_folder
from agenteval.traces.condense import Condensed, Options, condense, shares
from agenteval.traces.excerpt import excerpt, size
from benchmarks.detectors import DATA
from tests.support.long_trace import LongTrace

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


@pytest.mark.parametrize(
    ("budget", "piece"), [(None, 300), (20_000, 3000), (5_000, 300), (1, 3000)]
)
def test_no_span_and_no_error_falls_out_of_any_budget(budget: int | None, piece: int) -> None:
    run = LongTrace(100_000).run()
    condensed = condense(run, Options(budget=budget, piece=piece))
    shown = texts(condensed)
    told = 160 if budget is None or budget >= 20_000 else 40  # of arguments, at least
    assert (condensed.tokens > (budget or 10**9)) == (budget == 1)
    for span in run.spans:
        if span.id not in shown:
            assert (span.kind in ("chain", "agent"), span.status) == (True, "ok")
            continue
        text = shown[span.id]
        assert span.name in text.split("\n")[0]
        assert (span.status == "error") == (" [ERROR" in text.split("\n")[0])
        assert span.status_message in text
        for call in (c for m in span.reply for c in m.tool_calls):
            assert call.name in text
            assert json.dumps(call.arguments)[:20] in text
        if span.kind == "tool":
            assert span.input[:told] in text
    assert cuts("\n".join(shown.values()))


def cuts(text: str) -> list[str]:
    return [n.replace(",", "") for n in re.findall(r"\[cut: ([\d,]+) characters\]", text)]


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


# Shares of room, and excerpts


@pytest.mark.parametrize(
    ("least", "wanted", "weights", "room", "given_"),
    [
        ([0, 0], [50, 50], [1, 1], 200, [50, 50]),
        ([0, 0], [10, 90], [1, 1], 60, [10, 50]),
        ([0, 0], [90, 90], [1, 2], 60, [20, 40]),
        ([30, 0], [90, 90], [1, 2], 60, [30, 30]),
        ([40, 40], [90, 90], [1, 1], 60, [40, 40]),  # more than there is
        ([], [], [], 10, []),
    ],
)
def test_shares_by_hand(
    least: list[int], wanted: list[int], weights: list[float], room: int, given_: list[int]
) -> None:
    assert shares(least, wanted, weights, room) == given_


@given(
    st.lists(
        st.tuples(st.integers(0, 90), st.integers(0, 900), st.sampled_from([0.5, 1, 3])), max_size=9
    ),
    st.integers(0, 3000),
)
def test_shares_are_max_min_fair(rows: list[tuple[int, int, float]], room: int) -> None:
    least = [low for low, _, _ in rows]
    wanted = [low + more for low, more, _ in rows]
    weights = [w for _, _, w in rows]
    got = shares(least, wanted, weights, room)
    assert all(a <= g <= b for a, g, b in zip(least, got, wanted, strict=True))
    if sum(least) >= room:
        assert got == (wanted if sum(wanted) <= room else least)
        return
    assert sum(got) <= room
    assert sum(got) >= min(room, sum(wanted)) - len(rows)  # whole bytes
    # Nobody who lacks something has, by weight, less than one who has more than the least.
    lacking = [g / w for g, b, w in zip(got, wanted, weights, strict=True) if g < b]
    growing = [g / w for a, g, w in zip(least, got, weights, strict=True) if g > a]
    if lacking and growing:
        assert max(growing) <= min(lacking) + 2.01  # one byte at the least weight


LINES = st.lists(
    st.sampled_from(
        ["", "short", "Error: it broke", "word " * 90, "x" * 700, "漢字 " * 60, "must end 17"]
    ),
    max_size=40,
)


@given(LINES, st.integers(0, 3000))
def test_an_excerpt_fits_and_counts_what_it_cut(lines: list[str], room: int) -> None:
    text = "\n".join(lines)
    shown = excerpt(text, room)
    if size(text) <= room:
        assert shown == text
        return
    assert size(shown) <= max(room, 30)
    kept = re.split(r"\[cut: ([\d,]+) characters\]", shown)
    cut = sum(int(n.replace(",", "")) for n in kept[1::2])
    assert 0 <= sum(map(len, kept[::2])) + cut - len(text) <= 2 * len(kept[1::2])  # blanks of ours
    at = 0
    for fragment in kept[::2]:  # in order, unchanged; only blanks around the marks are ours
        at = text.index(fragment.strip(), at) + len(fragment.strip())


@pytest.mark.parametrize(
    "line",
    [
        "worker 777: KeyError: 'gate'",
        "HTTP 429 Too Many Requests",
        "You must end with a full stop.",
        "I have verified the figure.",
    ],
)
def test_an_error_a_rule_or_a_claim_in_the_middle_stays(line: str) -> None:
    lines = [f"worker {k}: 0 errors, 0 failed" for k in range(2000)]
    lines[777] = line
    assert line in excerpt("\n".join(lines), 400)


# How much of the words that people quote survives, on annotated traces


# budget in tokens: mean over 271 quotes of the share of their five-word sequences that is shown
SHARES = {20_000: 0.80, 10_000: 0.69, 5_000: 0.46}


def sequences(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))} if words else set()


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the annotated traces are not here")
def test_quotes_of_annotators_survive() -> None:
    runs: dict[str, Run] = {}
    for path in DATA.glob("*/traces/*.json"):
        runs |= {run.id: run for run in read_traces(path).runs}
    annotations = [a for folder in DATA.glob("*/gold") for a in read_folder(folder)]
    for budget, least in SHARES.items():
        shares = []
        for annotation in annotations:
            pieces = condense(runs[annotation.trace], Options(budget=budget)).pieces
            shown = sequences("\n".join(piece.text for piece in pieces))
            for finding in annotation.findings.findings:
                if quoted := sequences(finding.evidence):
                    shares.append(len(quoted & shown) / len(quoted))
        assert len(shares) == 271
        assert fmean(shares) > least, budget
