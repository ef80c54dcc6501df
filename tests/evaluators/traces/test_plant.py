"""Planted errors are really in the traces, at the places that the gold names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agenteval.agents.callable import CallableAgent, Tools
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.openai_chat import openai_chat
from agenteval.agents.protocol import Agent, Tool
from agenteval.errors import InputError
from agenteval.evaluators.traces.annotation_files import read_folder
from agenteval.evaluators.traces.plant import (
    SCENES,
    Harvest,
    Host,
    OwnSystem,
    Planted,
    PlantError,
    categories,
    own_categories,
    plant,
    plant_own,
    write,
)
from agenteval.evaluators.traces.plant.sample import Shop, faults
from agenteval.evaluators.traces.plant.world import World
from agenteval.readers.traces import read_traces
from agenteval.records import Run, Span


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host() as made:
        yield made


def at(run: Run, number: str) -> Span:
    return next(span for span in run.spans if span.id == number)


def told(span: Span) -> str:
    """All that a span says, exceptions included."""
    events = " ".join(str(v) for event in span.events for v in event.attributes.values())
    replies = " ".join(m.content + str(m.tool_calls) for m in span.reply)
    return f"{span.status_message} {span.output} {replies} {events}"


def of_fault(name: str, folder: Path, host: Host) -> Planted:
    """A plant by this fault; seeds go through the faults of a category in turn."""
    (wanted,) = [fault for fault in faults() if fault.name == name]
    place = [fault.name for fault in faults(wanted.category)].index(name)
    made = plant(wanted.category, place, folder, host=host)
    assert made.fault == name
    (error,) = made.errors
    assert error.finding.category == wanted.category
    return made


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("service quota", "429|Too Many Requests"),
        ("revoked key", "401|Unauthorized"),
        ("forbidden", "403|Forbidden"),
        ("defect", "500|Internal"),
        ("down", "503|Unavailable"),
        ("deleted record", "404|Not Found"),
        ("service hangs", "[Tt]imed? ?out|TimeoutError"),
        ("variable", "SERVICE_KEY"),
        ("device", "No space left"),
        ("renamed parameter", "unexpected keyword argument"),
        ("parameter left out", "missing 1 required"),
    ],
)
def test_a_failing_tool_shows_at_the_span_of_its_call(
    name: str, sign: str, tmp_path: Path, host: Host
) -> None:
    made = of_fault(name, tmp_path, host)
    span = at(made.run, made.errors[0].finding.span)
    assert span.kind == "tool"
    assert re.search(sign, told(span))
    earlier = [s for s in made.run.spans if s.kind == "tool" and (s.start or 0) < (span.start or 0)]
    assert not any(re.search(sign, told(s)) for s in earlier)  # it is the first
    asked = at(made.run, made.errors[0].places[1])
    assert asked.kind == "llm"
    assert (span.tool or "?") in told(asked)


@pytest.mark.parametrize(
    ("name", "sign", "heals"),
    [
        ("model quota, then free", "429", True),
        ("model quota", "429", False),
        ("model key", "401", False),
        ("model down, then up", "503", True),
        ("model defect", "500", False),
        ("model gone", "404", False),
        ("model hangs", "", True),
        ("too long", "400", False),
    ],
)
def test_a_failing_endpoint_shows_at_the_span_of_the_request(
    name: str, sign: str, heals: bool, tmp_path: Path, host: Host
) -> None:
    made = of_fault(name, tmp_path, host)
    asked = [s for s in made.run.spans if s.kind == "llm"]
    failed = [s for s in asked if s.status == "error"]
    assert made.errors[0].finding.span == failed[0].id
    assert sign in told(failed[0])
    assert (made.run.spans[0].status == "ok") == (asked[-1].status == "ok") == heals


def test_repeated_calls_are_located_at_the_last(tmp_path: Path, host: Host) -> None:
    made = plant("Resource Abuse", 0, tmp_path, host=host)
    calls = [(s.id, m.tool_calls[0].arguments) for s in made.run.spans if s.kind == "llm"
             for m in s.reply if m.tool_calls]  # fmt: skip
    assert len(calls) >= 4
    assert all(arguments == calls[0][1] for _, arguments in calls)
    assert made.errors[0].finding.span == calls[-1][0]


def test_a_lost_demand_stands_in_the_trace_and_is_not_met(tmp_path: Path, host: Host) -> None:
    for seed in range(3):  # at the end of the request, or in the instructions
        made = plant("Instruction Non-compliance", seed, tmp_path, host=host)
        span = at(made.run, made.errors[0].finding.span)
        asked = " ".join(m.content for m in span.messages if m.role in ("system", "user"))
        mark = re.search(r"<[A-Z_]{3,}>|\[[A-Z]{3,}\]|###[A-Z]+###", asked)
        assert mark
        assert mark[0] not in made.run.output


def test_what_the_model_no_longer_sees_is_still_in_the_trace(tmp_path: Path, host: Host) -> None:
    made = of_fault("oldest dropped", tmp_path, host)
    span = at(made.run, made.errors[0].finding.span)
    assert any(made.run.input in m.content for m in span.messages)
    assert span.id == [s for s in made.run.spans if s.kind == "llm"][-1].id


@pytest.mark.parametrize("name", ["broken arguments", "broken answer"])
def test_damaged_text_is_no_json(name: str, tmp_path: Path, host: Host) -> None:
    made = of_fault(name, tmp_path, host)
    finding = made.errors[0].finding
    with pytest.raises(ValueError):
        json.loads(finding.evidence)
    assert at(made.run, finding.span).kind == "llm"


def test_claims_without_calls_have_no_call(tmp_path: Path, host: Host) -> None:
    made = plant("Tool-related", 1, tmp_path, host=host)
    assert not [s for s in made.run.spans if s.kind == "tool"]


def test_a_trace_holds_one_planted_error_for_every_category(tmp_path: Path, host: Host) -> None:
    assert len(categories()) >= 16
    for seed, kind in enumerate(categories()):
        made = plant(kind, seed, tmp_path, host=host)
        ids = {span.id for span in made.run.spans}
        assert [e.finding.category for e in made.errors] == [kind]
        assert {p for e in made.errors for p in e.places} <= ids
        assert made.gold.trace == made.run.id
        assert made.path.name == f"{made.run.id}.jsonl"
        assert not read_traces(made.path).warnings


@pytest.mark.parametrize(
    ("scene", "sign"),
    [
        ("clean", "ORD-1"),
        ("numbers", "429|404|500|503|Timeout|Denied|Rate|Exception"),
        ("other arguments", "total"),
        ("url check", '"status": 404'),
    ],
)
def test_scenes_hold_what_looks_like_an_error(
    scene: str, sign: str, tmp_path: Path, host: Host
) -> None:
    made = plant(None, 5, tmp_path, scene=scene, host=host)
    tools = [s for s in made.run.spans if s.kind == "tool"]
    assert made.errors == ()
    assert made.run.spans[0].status == "ok"
    assert any(re.search(sign, s.output) for s in tools)
    if scene == "other arguments":
        orders = [json.loads(s.output) for s in tools]
        assert len(orders) == 4
        assert max(orders, key=lambda order: order["total"])["order_id"] in made.run.output


def plain(made: Planted) -> list[tuple[str, str, str, str]]:
    """Requests and calls of a trace without ids, times, ports and folders."""

    def bare(text: str) -> str:
        text = re.sub(r"world-\w+", "FOLDER", re.sub(r"127\.0\.0\.1:\d+", "HOST", text))
        return re.sub(r"call_[0-9a-f]{12}_\d+", "CALL", text)

    return [
        (s.name, s.kind, bare(s.input), bare(told(s)))
        for s in made.run.spans
        if s.kind in ("llm", "tool")
    ]


@pytest.mark.parametrize("kind", ["Service Errors", "Tool Output Misinterpretation", None])
def test_the_same_seed_gives_the_same_run_and_another_one_another(
    kind: str | None, tmp_path: Path, host: Host
) -> None:
    first, again, other = (plant(kind, seed, tmp_path, host=host) for seed in (7, 7, 8))
    assert plain(first) == plain(again)
    assert first.run.id != again.run.id
    assert plain(first) != plain(other)


def test_what_was_not_asked_for_is_refused(tmp_path: Path, host: Host) -> None:
    with pytest.raises(InputError, match="numbers"):
        plant(None, 0, tmp_path, scene="no such scene", host=host)
    with pytest.raises(InputError, match="Task Orchestration"):
        plant("Task Orchestration", 0, tmp_path, host=host)
    with pytest.raises(InputError, match="exclude"):
        plant("Rate Limiting", 0, tmp_path, scene="numbers", host=host)


def test_a_failure_that_nobody_planted_gives_no_trace(
    tmp_path: Path, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(shop: Shop, body: object) -> tuple[int, str]:
        raise ZeroDivisionError("a defect of this package")

    monkeypatch.setattr(Shop, "model", broken)
    with pytest.raises(PlantError, match="nobody planted"):
        plant(None, 0, tmp_path, host=host)
    assert not list((tmp_path / "traces").iterdir())


def test_many_are_written_in_the_official_layout(tmp_path: Path, host: Host) -> None:
    made = [plant("Service Errors", 0, tmp_path, host=host)]
    made += [plant(None, 0, tmp_path, scene=scene, host=host) for scene in SCENES[:2]]
    write(Harvest(made[:1], made[1:]), tmp_path)
    gold = {one.trace: one for one in read_folder(tmp_path / "gold")}
    assert set(gold) == {one.run.id for one in made} == {p.stem for p in tmp_path.glob("traces/*")}
    for one in made:
        read = [(f.span, f.category, f.impact) for f in gold[one.run.id].findings.findings]
        assert read == [(e.finding.span, e.finding.category, e.finding.impact) for e in one.errors]
    lines = [json.loads(line) for line in (tmp_path / "index.jsonl").read_text().splitlines()]
    assert [line["trace_id"] for line in lines] == [one.run.id for one in made]
    assert [line["scene"] for line in lines] == ["clean", "clean", "numbers"]


# -- a team's own agent --------------------------------------------------------------------------

TOOLS = (
    Tool(name="price", description="The price of a fruit.", parameters={
        "type": "object", "properties": {"fruit": {"type": "string"}}, "required": ["fruit"],
    }),
)  # fmt: skip


def backend() -> Any:
    def answer(name: str, arguments: Mapping[str, Any]) -> str:
        return {"apple": "3", "pear": "4"}[arguments["fruit"]]

    return answer


def function(request: str, tools: Tools) -> str:
    """An agent without any model."""
    return f"{tools['price'](fruit='apple')} and {tools['price'](fruit='pear')}"


PLAIN = OwnSystem("plain", lambda url: CallableAgent(function), TOOLS, backend, ["prices?"])


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[str]:
    """A healthy model, elsewhere, that asks for two prices."""

    async def model(body: dict[str, Any]) -> tuple[int, str]:
        fruits = ["apple", "pear"][sum(m["role"] == "tool" for m in body["messages"]) :]
        message: dict[str, Any] = {"role": "assistant", "content": "3 and 4"}
        if fruits:
            asked = {"name": "price", "arguments": json.dumps({"fruit": fruits[0]})}
            call = {"id": fruits[0], "type": "function", "function": asked}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return 200, json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m",
                                "choices": [choice]})  # fmt: skip

    with Host() as far:
        far.show(World(None, Random("far"), tmp_path), model)
        yield f"{far.url}/v1"


def with_model(upstream: str) -> OwnSystem:
    def make(url: str) -> Agent:
        assert url not in ("", upstream)
        endpoint = Endpoint("m", url, "sk-test-000001", max_retries=0)
        return openai_chat(endpoint, connect(endpoint)).make()

    return OwnSystem("modelled", make, TOOLS, backend, ["Which prices?"], upstream)


@pytest.mark.parametrize(
    "kind", ["Rate Limiting", "Authentication Errors", "Service Errors", "Timeout Issues",
             "Environment Setup Errors", "Resource Exhaustion"],
)  # fmt: skip
def test_tools_of_an_agent_without_a_model_fail(kind: str, tmp_path: Path, host: Host) -> None:
    made = plant_own(PLAIN, kind, 0, tmp_path, host=host)
    (error,) = made.errors
    span = at(made.run, error.finding.span)
    assert (span.kind, span.tool, error.finding.category) == ("tool", "price", kind)
    calls = [s for s in made.run.spans if s.kind == "tool"]
    assert span.output not in ("3", "4")
    assert all(s.output in ("3", "4") for s in calls if (s.start or 0) < (span.start or 0))


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("Rate Limiting", 2), ("Authentication Errors", 2), ("Formatting Errors", 0),
     ("Context Handling Failures", 0), ("Context Handling Failures", 2)],
)  # fmt: skip
def test_the_proxy_before_a_real_model(
    kind: str, seed: int, upstream: str, tmp_path: Path, host: Host
) -> None:
    made = plant_own(with_model(upstream), kind, seed, tmp_path, host=host)
    (error,) = made.errors
    span = at(made.run, error.finding.span)
    assert (span.kind, error.finding.category) == ("llm", kind)
    if kind in ("Rate Limiting", "Authentication Errors"):
        assert span.status == "error"


def test_what_cannot_be_planted_around_an_agent_is_said(tmp_path: Path, host: Host) -> None:
    assert "Formatting Errors" not in own_categories(PLAIN)
    with pytest.raises(InputError, match=r"known: .*Rate Limiting"):
        plant_own(PLAIN, "Goal Deviation", 0, tmp_path, host=host)


def test_an_agent_that_calls_nothing_shows_nothing(tmp_path: Path, host: Host) -> None:
    lazy = OwnSystem("lazy", lambda url: CallableAgent(lambda request, tools: "no"), TOOLS, backend,
                     ["prices?"])  # fmt: skip
    with pytest.raises((PlantError, InputError)):
        plant_own(lazy, "Rate Limiting", 0, tmp_path, host=host)
