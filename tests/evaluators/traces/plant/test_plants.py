"""Planted errors are really in the traces, at the places that the gold names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.evaluators.traces.annotation_files import read_folder
from agenteval.evaluators.traces.plant import (
    ORDERS,
    Harvest,
    Host,
    Planted,
    PlantError,
    categories,
    changes,
    plant,
    write,
)
from agenteval.evaluators.traces.plant.system import CLEAN
from agenteval.evaluators.traces.plant.world import World
from agenteval.records import Run, Span


def at(run: Run, number: str) -> Span:
    return next(span for span in run.spans if span.id == number)


def told(span: Span) -> str:
    """All that a span says, exceptions included."""
    events = " ".join(str(v) for event in span.events for v in event.attributes.values())
    replies = " ".join(m.content + str(m.tool_calls) for m in span.reply)
    return f"{span.status_message} {span.output} {replies} {events}"


def of_change(change: str, folder: Path, host: Host) -> Planted:
    """A plant by this change; seeds go through the changes of a category in turn."""
    (wanted,) = [c for c in changes() if c.name == change]
    place = [c.name for c in changes(wanted.category)].index(change)
    made = plant(wanted.category, place, folder, host=host)
    assert made.change == change
    return made


SIGNS = {  # what anybody would see in a span with this error
    "service quota": "429|Too Many Requests|throttl|[Rr]ate|quota|RESOURCE_EXHAUSTED|[Tt]oo many",
    "revoked key": "401|Unauthorized",
    "forbidden": "403|Forbidden",
    "defect": "500|Internal",
    "down": "503|Unavailable",
    "deleted record": "404|Not Found",
    "service hangs": "[Tt]imed? ?out|TimeoutError",
    "variable": "SERVICE_KEY",
    "renamed parameter": "unexpected keyword argument",
    "parameter left out": "missing 1 required",
}


@pytest.mark.parametrize("change", SIGNS)
def test_a_failing_tool_shows_at_the_span_of_its_call(
    change: str, tmp_path: Path, host: Host
) -> None:
    made = of_change(change, tmp_path, host)
    (error,) = made.errors
    span = at(made.run, error.finding.span)
    assert span.kind == "tool"
    assert re.search(SIGNS[change], told(span))
    earlier = [s for s in made.run.spans if s.kind == "tool" and (s.start or 0) < (span.start or 0)]
    assert not any(re.search(SIGNS[change], told(s)) for s in earlier)  # it is the first
    asked = at(made.run, error.places[1])
    assert asked.kind == "llm"
    assert (span.tool or "?") in told(asked)


@pytest.mark.parametrize(
    ("change", "sign"),
    [
        ("model quota, then free", "429"),
        ("model quota", "429"),
        ("model key", "401"),
        ("model down, then up", "503"),
        ("model defect", "500"),
        ("model gone", "404"),
        ("model hangs", ""),
        ("too long", "400"),
    ],
)
def test_a_failing_endpoint_shows_at_the_span_of_the_request(
    change: str, sign: str, tmp_path: Path, host: Host
) -> None:
    made = of_change(change, tmp_path, host)
    (error,) = made.errors
    asked = [s for s in made.run.spans if s.kind == "llm"]
    failed = [s for s in asked if s.status == "error"]
    assert error.finding.span == failed[0].id
    assert sign in told(failed[0])
    healed = made.run.spans[0].status == "ok"
    assert healed == (asked[-1].status == "ok")
    if "then" in change:
        assert healed


def test_repeated_calls_are_located_at_the_last(tmp_path: Path, host: Host) -> None:
    for seed in range(3):
        made = plant("Resource Abuse", seed, tmp_path, host=host)
        said = []
        for span in made.run.spans:
            if span.kind == "llm":
                text = " ".join(m.content for m in span.reply)
                named = re.search(r"Action: .*\nAction Input: .*", text)
                calls = [
                    (c.name, json.dumps(c.arguments)) for m in span.reply for c in m.tool_calls
                ]
                said.append((span.id, calls or (named and named[0])))
        same = [b[0] for a, b in pairwise(said) if b[1] and a[1] == b[1]]
        assert len(same) >= 4
        assert made.errors[0].finding.span == same[-1]


def test_a_lost_demand_stands_in_the_trace_and_is_not_met(tmp_path: Path, host: Host) -> None:
    mark = re.compile(r"<[A-Z_]{3,}>|\[[A-Z]{3,}\]|###[A-Z]+###")
    for change in ("no instructions", "cut request"):
        made = of_change(change, tmp_path, host)
        span = at(made.run, made.errors[0].finding.span)
        asked = " ".join(m.content for m in span.messages if m.role in ("system", "user"))
        wanted = mark.search(asked)
        if wanted:
            assert wanted[0] not in made.run.output
        else:
            assert "one sentence" in asked
            assert len(re.findall(r"[.!?](?: |$)", made.run.output)) > 1


def test_a_forgotten_task_is_still_in_the_messages(tmp_path: Path, host: Host) -> None:
    made = of_change("oldest dropped", tmp_path, host)
    span = at(made.run, made.errors[0].finding.span)
    assert any(made.run.input in m.content for m in span.messages)
    assert span.id == [s for s in made.run.spans if s.kind == "llm"][-1].id


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


def test_runs_without_errors_give_right_answers(tmp_path: Path, host: Host) -> None:
    for seed in range(4):
        made = plant(None, seed, tmp_path, scene="other arguments", host=host)
        orders = [json.loads(s.output) for s in made.run.spans if s.kind == "tool"]
        best = max(orders, key=lambda order: order["total"])
        assert made.errors == ()
        assert best["order_id"] in made.run.output
        assert len(orders) == 4


@pytest.mark.parametrize(
    ("scene", "sign"),
    [
        ("numbers", "429|404|500|503|Timeout|Denied|Rate|Exception|memory"),
        ("fallback", '"source": "replica"'),
        ("retry inside", '"attempts": 2'),
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


def test_what_was_not_asked_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="numbers"):
        plant(None, 0, tmp_path, scene="no such scene")
    with pytest.raises(InputError, match="Resource Exhaustion"):
        plant("Resource Exhaustion", 0, tmp_path)
    with pytest.raises(InputError, match="exclude"):
        plant("Rate Limiting", 0, tmp_path, scene="numbers")


def test_a_world_with_an_unplanted_failure_gives_no_trace(tmp_path: Path, host: Host) -> None:
    def broken(world: World, *request: Any) -> tuple[int, Any]:
        raise ZeroDivisionError("a defect of the test's service")

    with pytest.raises(PlantError, match="nobody planted"):
        plant(None, 0, tmp_path, host=host, system=replace(ORDERS, service=broken))
    assert not list((tmp_path / "traces").iterdir())


def test_a_change_without_occasion_is_no_plant(tmp_path: Path, host: Host) -> None:
    def page_checks(dice: Any, scene: str) -> Any:
        return ORDERS.case(dice, "url check")

    with pytest.raises(PlantError, match="did not show"):
        plant("Tool-related", 0, tmp_path, host=host, system=replace(ORDERS, case=page_checks))


def test_many_are_written_in_the_official_layout(tmp_path: Path, host: Host) -> None:
    made = [plant("Service Errors", 0, tmp_path, host=host)]
    made += [plant(None, 0, tmp_path, scene=scene, host=host) for scene in (CLEAN, "pages")]
    write(Harvest(made[:1], made[1:]), tmp_path)
    gold = {one.trace: one for one in read_folder(tmp_path / "gold")}
    assert set(gold) == {one.run.id for one in made} == {p.stem for p in tmp_path.glob("traces/*")}
    for one in made:
        read = [(f.span, f.category, f.impact) for f in gold[one.run.id].findings.findings]
        assert read == [(e.finding.span, e.finding.category, e.finding.impact) for e in one.errors]
    lines = [json.loads(line) for line in (tmp_path / "index.jsonl").read_text().splitlines()]
    assert [line["trace_id"] for line in lines] == [one.run.id for one in made]
    assert [line["scene"] for line in lines] == [CLEAN, CLEAN, "pages"]
