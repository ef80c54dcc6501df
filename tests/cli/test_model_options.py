"""How a model is asked: the options, what is sent, and that they tell judges apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Result
from tests.support.endpoints import Behaving, behaving


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Behaving]:
    with behaving() as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = {"id": "r", "task": "mine", "input": "What is 2 + 2?", "output": "It is four, of course."}
    (tmp_path / "tasks" / "mine").mkdir(parents=True)
    task = "name: mine\ndescription: Answer questions.\n"
    (tmp_path / "tasks" / "mine" / "task.yaml").write_text(task)
    (tmp_path / "runs.jsonl").write_text(json.dumps(run))
    criterion = {"id": "clear", "name": "clear", "description": "Is it clear?"}
    levels = {"accepted_values": ["bad", "ok", "good"], "order": "worst_to_best"}
    criteria = {"task": "mine", "criteria": [{**criterion, **levels}]}
    (tmp_path / "criteria.json").write_text(json.dumps(criteria))
    return tmp_path


def quantify(cli: Cli, endpoint: Behaving, model: str, *more: object) -> Result:
    return cli(
        f"quantify runs.jsonl --criteria criteria.json --model {model} --base-url "
        f"{endpoint.url}/v1",
        *more,
    )


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ((), {"max_tokens": 2048}),
        (("--max-tokens", "300"), {"max_tokens": 300}),
        (("--max-tokens", "none"), {}),
        (("--reasoning-effort", "low"), {"max_tokens": 2048, "reasoning_effort": "low"}),
        (
            ("--param", "top_p=0.9", "--param", 'stop=["x"]', "--param", "tier=flex"),
            {"max_tokens": 2048, "top_p": 0.9, "stop": ["x"], "tier": "flex"},
        ),
        (("--param", "max_completion_tokens=70"), {"max_completion_tokens": 70}),
    ],
)
def test_what_is_sent(
    cli: Cli, folder: Path, endpoint: Behaving, options: tuple[str, ...], sent: dict[str, object]
) -> None:
    model = f"good@{len(endpoint.asked)}"
    assert quantify(cli, endpoint, model, *options).code == 0
    body = endpoint.asked[model][0]
    fixed = ("model", "messages", "response_format", "temperature", "seed")
    assert {k: v for k, v in body.items() if k not in fixed} == sent


def test_another_effort_is_another_judge(
    cli: Cli, folder: Path, endpoint: Behaving, monkeypatch: pytest.MonkeyPatch
) -> None:
    for options in ((), ("--reasoning-effort", "low"), ()):
        monkeypatch.delenv("AGENTEVAL_PARAMETERS", raising=False)  # a process of its own each time
        assert quantify(cli, endpoint, "good@judges", *options).code == 0
    asked = endpoint.asked["good@judges"]
    assert [body.get("reasoning_effort") for body in asked] == [None, "low"]


def test_dry_run_and_doctor_show_where_requests_go(
    cli: Cli, folder: Path, endpoint: Behaving
) -> None:
    result = quantify(cli, endpoint, "good@dry", "--max-tokens", "50", "--dry-run")
    asked = f'good@dry at {endpoint.url}/v1 with {{"max_tokens":50}}'
    assert asked in " ".join(result.out.split())
    assert not endpoint.asked["good@dry"]
    shown = cli("doctor", "--model", "good@doctor", "--base-url", f"{endpoint.url}/v1").out
    assert f"({endpoint.url}/v1)" in shown


def test_a_cap_on_cost_needs_a_limit_where_the_model_has_none(
    cli: Cli, folder: Path, endpoint: Behaving
) -> None:
    prices = ("--price-in", 1, "--price-out", 1, "--max-cost", 1)
    result = quantify(cli, endpoint, "good@cost", "--max-tokens", "none", *prices)
    assert result.code == 2
    assert "--max-tokens N" in result.err
