"""AutoGen 0.2's two functions with the same signatures, using our critic and quantifier.

`from agenteval.utility import generate_criteria, quantify_criteria` replaces
`autogen.agentchat.contrib.agent_eval.agent_eval`; AutoGen itself is not needed. Differences: the
sub-critic always runs if requested, and replies are parsed and validated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from agenteval.cli.running import run_sync
from agenteval.engine.judging import JudgeUnit, judge
from agenteval.errors import InputError, ReplyError
from agenteval.models.client import Client
from agenteval.models.factory import choose_model, make_client, openai_url
from agenteval.models.limits import Limits
from agenteval.readers import make_view
from agenteval.records import Criterion, Example, Examples, Failure, Run, Task
from agenteval.text import keep_secret
from agenteval.utility.critic import Critic
from agenteval.utility.critic_reply import read_criteria
from agenteval.utility.labels import words
from agenteval.utility.quantifier import QuantifierOptions, chat_judge

_T = TypeVar("_T")
_SUPPORTED = frozenset(
    words("config_list model api_key base_url temperature timeout seed cache_seed")
)
LlmConfig = Mapping[str, Any] | Client | bool | None


def generate_criteria(
    llm_config: LlmConfig = None,
    task: Any = None,
    additional_instructions: str = "",
    max_round: int = 2,
    use_subcritic: bool = False,
) -> list[Criterion]:
    """Return criteria proposed for a task, with levels from worst to best.

    `llm_config` is AutoGen's (`model`, `api_key`, `base_url`, `temperature`, `timeout`, `seed` or
    `cache_seed`; of a `config_list`, the first entry) or a `Client`; None and False use the model
    in AGENTEVAL_MODEL. `task` is a `Task`, or an object with AutoGen's fields `name`,
    `description`, `successful_response` and `failed_response`.

    Raises InputError for invalid input, and what `Critic.propose` raises.
    """
    job = _task_of(task)

    async def propose(client: Client, config: Mapping[str, Any]) -> list[Criterion]:
        critic = Critic(
            client,
            job,
            use_examples=bool(job.examples),
            sub_criteria=use_subcritic,
            temperature=config.get("temperature"),
        )
        proposal = await critic.propose(_seed(config), instructions=additional_instructions)
        return list(proposal.criteria)

    return _run(llm_config, propose)


def quantify_criteria(
    llm_config: LlmConfig = None,
    criteria: Sequence[Any] | None = None,
    task: Any = None,
    test_case: str = "",
    ground_truth: Any = "",
) -> dict[str, Any]:
    """Return the level of a test case on each criterion.

    The result has `actual_success` (the `ground_truth`, which the model does not see),
    `estimated_performance` (JSON text that maps criterion names to levels, to an object if there
    are sub-criteria, or to null) and `unscored` (reasons by name). An empty test case gets the
    worst levels by rule, without a request. `llm_config` and `task` are as in `generate_criteria`;
    `criteria` are `Criterion` records, AutoGen's criteria, or similar objects.

    Raises InputError for invalid input, and Unauthorized if a key is rejected.
    """
    job, parsed = _task_of(task), _criteria_of(criteria)
    run = Run(id="test case", task=job.name, output=test_case)

    async def quantify(client: Client, config: Mapping[str, Any]) -> dict[str, Any]:
        options = QuantifierOptions(temperature=config.get("temperature"), seed=_seed(config))
        outcome = await judge(
            chat_judge(client, job, options), JudgeUnit(run, make_view(run), parsed)
        )
        performance: dict[str, Any] = {}
        unscored: dict[str, str] = {}
        for criterion, result in zip(parsed, outcome.results, strict=True):
            if isinstance(result, Failure):
                performance[criterion.name] = None
                unscored[criterion.name] = f"{result.status}: {result.message}"
            elif result.status == "not_applicable":
                performance[criterion.name] = "not applicable"
            else:
                performance[criterion.name] = result.evidence.get("parts", result.label)
        return {
            "actual_success": ground_truth,
            "estimated_performance": json.dumps(performance, ensure_ascii=False),
            "unscored": unscored,
        }

    return _run(llm_config, quantify)


def _run(
    llm_config: LlmConfig, work: Callable[[Client, Mapping[str, Any]], Coroutine[Any, Any, _T]]
) -> _T:
    """Run `work(client, config)` and return its result."""
    config = {} if isinstance(llm_config, Client | bool | None) else dict(llm_config)

    async def worked() -> _T:
        if isinstance(llm_config, Client):
            return await work(llm_config, config)
        client = _client_of(config)
        try:
            return await work(client, config)
        finally:
            await client.close()

    return run_sync(worked())


def _client_of(config: Mapping[str, Any]) -> Client:
    """Return a client for the configured model."""
    listed = config.get("config_list")
    entry = {**config, **(listed[0] if listed else {})}
    if unsupported := sorted(entry.keys() - _SUPPORTED):
        supported = ", ".join(sorted(_SUPPORTED))
        raise InputError(
            f"{', '.join(unsupported)}: not supported; supported keys are {supported}", "llm_config"
        )
    url = entry.get("base_url") or (openai_url() if "model" in entry else None)
    choice = choose_model(entry.get("model"), url, need_key=False)
    if choice.kind == "embedded":
        raise InputError("does not name a chat model, and AGENTEVAL_MODEL is not set", "llm_config")
    if key := entry.get("api_key"):
        keep_secret([key])
        choice = replace(choice, api_key=key)
    timeout = entry.get("timeout")
    return make_client(choice, Limits() if timeout is None else Limits(timeout=timeout), None)


def _seed(config: Mapping[str, Any]) -> int:
    return int(config.get("cache_seed") or config.get("seed") or 0)


def _task_of(task: Any) -> Task:
    if isinstance(task, Task):
        return task
    if not (getattr(task, "name", None) and getattr(task, "description", None)):
        raise InputError(f"{task!r:.80} is not a task: it needs a name and a description", "task")
    responses = (getattr(task, f"{kind}_response", "") for kind in ("successful", "failed"))
    success, failed = (((Example(output=text),) if text else ()) for text in responses)
    examples = Examples(success=success, failed=failed)
    return Task(name=task.name, description=task.description, examples=examples)


def _criteria_of(criteria: Sequence[Any] | None) -> tuple[Criterion, ...]:
    if not criteria:
        raise InputError("no criteria were given", "criteria")
    if all(isinstance(criterion, Criterion) for criterion in criteria):
        return tuple(criteria)
    plain = [c.model_dump() if hasattr(c, "model_dump") else c for c in criteria]
    try:
        reading = read_criteria(plain)
    except ReplyError as error:
        raise InputError(str(error), "criteria") from error
    if len(reading.criteria) < len(plain):
        raise InputError("; ".join(reading.problems), "criteria")
    return tuple(reading.criteria)
