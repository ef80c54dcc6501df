"""AutoGen 0.2's two functions: signatures, forms of task and configuration, typed answers.

The example of docs/python.md is run as it is printed.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agenteval import generate_criteria, quantify_criteria
from agenteval.errors import InputError
from agenteval.models.client import Client, RetryPolicy
from agenteval.records import Criterion
from agenteval.testing import serve
from agenteval.testing.scripted import ScriptedTransport

TASK = SimpleNamespace(
    name="sums", description="Add numbers.", successful_response="Four.", failed_response="Seven."
)
LEAF = {"description": "d", "accepted_values": ["poor", "fair", "good"]}
RUBRIC = [{"name": "Clarity", **LEAF}, {"name": "Accuracy", **LEAF}]
DIVIDED = {"criteria": [{"id": "clarity", "sub_criteria": [{"name": "Wording", **LEAF}]}]}
GRADES = {"clarity": "good", "accuracy": "superb"}


def scripted(**by_role: Any) -> tuple[Client, ScriptedTransport]:
    answers = {
        "critic": RUBRIC,
        "subcritic": DIVIDED,
        "quantifier": GRADES,
        "quantifier:repair": GRADES,
        **by_role,
    }
    transport = ScriptedTransport(lambda request: json.dumps(answers[request.role]))
    return Client(transport, retry=RetryPolicy(attempts=1)), transport


def test_the_signatures_are_those_of_autogen() -> None:
    """pyautogen 0.2.38, autogen/agentchat/contrib/agent_eval/agent_eval.py"""
    assert str(inspect.signature(generate_criteria)).partition(" ->")[0] == (
        "(llm_config: 'LlmConfig' = None, task: 'Any' = None, "
        "additional_instructions: 'str' = '', max_round: 'int' = 2, use_subcritic: 'bool' = False)"
    )
    assert list(inspect.signature(quantify_criteria).parameters) == [
        *("llm_config", "criteria", "task", "test_case", "ground_truth")
    ]


async def test_criteria_come_typed_also_where_a_loop_is_running() -> None:
    client, transport = scripted()
    criteria = generate_criteria(client, TASK, "Mind units.")
    levels = [(c.name, c.accepted_values[-1]) for c in criteria]
    assert levels == [("Clarity", "good"), ("Accuracy", "good")]
    (request,) = transport.requests
    for part in ("Add numbers.", "Four.", "Seven.", "Mind units."):
        assert part in request.messages[1]["content"]


def test_the_sub_critic_speaks_at_the_default_number_of_rounds() -> None:
    criteria = generate_criteria(scripted()[0], TASK, use_subcritic=True)
    assert [part.name for part in criteria[0].sub_criteria] == ["Wording"]


def test_a_test_case_is_graded_and_what_has_no_grade_says_why() -> None:
    client, transport = scripted()
    graded = quantify_criteria(client, RUBRIC, TASK, "It makes four.", "true")
    assert graded["actual_success"] == "true"
    assert json.loads(graded["estimated_performance"]) == {"Clarity": "good", "Accuracy": None}
    assert graded["unscored"]["Accuracy"].startswith("unscored:off_scale: 'superb' is none of")
    shown = transport.requests[0].messages[1]["content"]
    assert "It makes four." in shown
    empty = quantify_criteria(client, RUBRIC, TASK, " ")["estimated_performance"]
    assert json.loads(empty) == {"Clarity": "poor", "Accuracy": "poor"}
    assert len(transport.requests) == 2  # the grades above and their repair
    part = Criterion(name="Wording", accepted_values=("poor", "good"))
    whole = Criterion(name="Style", sub_criteria=(part,))
    client, _ = scripted(quantifier={"style": {"wording": "good"}})
    graded = quantify_criteria(client, [whole], TASK, "It makes four.")
    assert json.loads(graded["estimated_performance"]) == {"Style": {"style/wording": "good"}}


def test_autogens_configuration_is_read() -> None:
    with serve(lambda *_: json.dumps(RUBRIC)) as server:
        entry = {"model": "gpt-4", "api_key": "k-123", "base_url": server.base_url}
        config = {"config_list": [entry], "temperature": 0, "cache_seed": 41}
        assert len(generate_criteria(config, TASK)) == 2
    (request,) = server.requests
    assert request.body["model"] == "gpt-4"
    assert (request.body["temperature"], request.body["seed"]) == (0, 41)


@pytest.mark.parametrize(
    ("config", "criteria", "message"),
    [
        ({"model": "m", "functions": []}, RUBRIC, "functions: not supported"),
        (False, RUBRIC, "AGENTEVAL_MODEL"),
        (None, [], "no criteria"),
        (None, [{"name": "X"}], "no criterion"),
        (None, [*RUBRIC, {"name": "X", "accepted_values": []}], "X: left out"),
    ],
)
def test_what_cannot_be_used_is_said(
    config: Any, criteria: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AGENTEVAL_MODEL", "AGENTEVAL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=message):
        quantify_criteria(config, criteria, TASK)
    with pytest.raises(InputError, match="None is not a task"):
        generate_criteria(config)


async def test_the_example_of_the_docs_runs() -> None:
    page = (Path(__file__).parents[2] / "docs/python.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page.partition("## AutoGen")[2], re.S)
    client, transport = scripted()
    names: dict[str, Any] = {"llm_config": client, "client": client}
    running = eval(compile(example, "python.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    await running
    assert json.loads(names["grades"]["estimated_performance"])["Clarity"] == "good"
    assert [score.criterion_id for score in names["scores"]] == ["clarity"]
    assert "2 + 2 is 4." in transport.requests[-1].messages[1]["content"]
