"""What `flow turn` and `flow session` share: roles, the assistant, judges, and running what is
missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli.console import clean, note, out
from agenteval.errors import InputError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from agenteval.agents.dialogue import AssistantSystem
    from agenteval.agents.spec import AgentSettings
    from agenteval.assemble import Limits
    from agenteval.evaluators.workflows.cases import Choice, OpenRole
    from agenteval.evaluators.workflows.results import Level
    from agenteval.evaluators.workflows.scenario import Format
    from agenteval.evaluators.workflows.verdicts import Judges
    from agenteval.flows import Act, Candidate, Case
    from agenteval.models.client import Client
    from agenteval.store import Store
    from agenteval.trialling import Ended

Roles = Annotated[
    list[str] | None,
    typer.Argument(help="Roles by name or folder. Default: all that are found.", metavar="ROLE..."),
]
Agent = Annotated[
    str,
    typer.Option(
        help="template, openai, responses, react or autogen (with --model), "
        "python:MODULE:FUNCTION, command:CMD, mcp:CMD, scripted:NAME."
    ),
]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "--format",
        help="How the procedure is told: text, code, flowchart, all, none or no_tools. May be "
        "given often; default flowchart.",
    ),
]
Scenarios = Annotated[
    list[str] | None, typer.Option("--scenario", help="Only these; `cross` for those across.")
]
Profiles = Annotated[list[str] | None, typer.Option("--profile", help="Only these users.")]
Kind = Annotated[str, typer.Option(help="all, single or cross.")]
Judge = Annotated[
    str | None,
    typer.Option(
        help="PROVIDER:MODEL that decides what no rule can. Without it, that stays undecided.",
        show_default=False,
    ),
]
JudgeUrl = Annotated[str | None, typer.Option(help="The judge's endpoint.")]
Judgements = Annotated[
    Path | None, typer.Option(help="Write every decision on a pair of values to this JSONL file.")
]


@dataclass(frozen=True, slots=True)
class FlowJob:
    """What is run, by whom, and with which bounds."""

    agent: str
    model: str | None
    base_url: str | None
    temperature: float | None
    max_tokens: int | None
    formats: tuple[Format, ...]
    judge: str | None
    judge_url: str | None
    limits: Limits
    store: Path | None
    trials: int
    seed: int
    retry_failed: bool

    @property
    def settings(self) -> AgentSettings:
        """What adapters that run a model are given."""
        from agenteval.agents.spec import AgentSettings

        return AgentSettings(
            model=self.model,
            base_url=self.base_url,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            concurrency=self.limits.concurrency,
        )


def read_roles(names: Sequence[str] | None, *, backend: bool) -> list[OpenRole]:
    """The roles named, or all that are found. Raises InputError."""
    from agenteval.evaluators.workflows.cases import open_role
    from agenteval.evaluators.workflows.folder import find_role, role_folders

    folders = [find_role(name) for name in names] if names else list(role_folders().values())
    if not folders:
        raise InputError("no role is found; a role is a folder with a role.yaml", "ROLE")
    return [open_role(folder, backend=backend) for folder in dict.fromkeys(folders)]


def make_choice(
    kind: str, scenarios: Sequence[str] | None, profiles: Sequence[str] | None
) -> Choice:
    """Which cases are meant. Raises InputError for an unknown kind."""
    from agenteval.evaluators.workflows.cases import Choice

    if kind not in ("all", "single", "cross"):
        raise InputError(f"{kind!r} is not one of all, single, cross", "--kind")
    return Choice(
        kind,  # type: ignore[arg-type]
        tuple(scenarios) if scenarios else None,
        tuple(profiles) if profiles else None,
    )


def make_formats(names: Sequence[str] | None) -> tuple[Format, ...]:
    """Formats by name, each once. Raises InputError for an unknown one."""
    from agenteval.evaluators.workflows.scenario import FORMATS

    for name in names or ():
        if name not in FORMATS:
            raise InputError(f"{name!r} is not one of {', '.join(FORMATS)}", "--format")
    known: dict[str, Format] = {f: f for f in FORMATS}
    return tuple(dict.fromkeys(known[name] for name in names or ("flowchart",)))


@contextmanager
def opened_store(job: FlowJob, *, dry: bool) -> Iterator[Store]:
    """The store; a dry run leaves no file behind and plans against an empty one."""
    from agenteval.store import Store, default_path

    path = Path(job.store or default_path())
    with ExitStack() as stack:
        if dry and not path.is_file():
            path = Path(stack.enter_context(TemporaryDirectory())) / "empty.db"
        yield stack.enter_context(Store(path))


def chat_client(
    model: str | None, base_url: str | None, limits: Limits, store: Store, option: str
) -> Client:
    """A client for a judge or a simulator; the store is its cache. Raises InputError for the
    embedded model, which cannot be asked."""
    from agenteval.assemble import make_client
    from agenteval.models.factory import choose_model

    choice = choose_model(model, base_url)
    if choice.kind == "embedded":
        raise InputError("this needs a chat model: PROVIDER:MODEL, or an endpoint's URL", option)
    return make_client(choice, limits, store)


@asynccontextmanager
async def opened_judges(job: FlowJob, store: Store) -> AsyncIterator[Judges]:
    """The judges on the model of --judge; none without it."""
    from agenteval.evaluators.workflows.equality_judge import EqualityJudge
    from agenteval.evaluators.workflows.response_judge import ResponseJudge
    from agenteval.evaluators.workflows.session_judge import SessionJudge
    from agenteval.evaluators.workflows.verdicts import Judges

    if job.judge is None and job.judge_url is None:
        yield Judges()
        return
    client = chat_client(job.judge, job.judge_url, job.limits, store, "--judge")
    try:
        yield Judges(
            f"{client.transport.endpoint} {client.model}",
            EqualityJudge(client),
            SessionJudge(client),
            ResponseJudge(client),
        )
    finally:
        await client.close()


@asynccontextmanager
async def opened_candidates(
    job: FlowJob, conditions: dict[str, JsonValue], store: Store, level: Level
) -> AsyncIterator[list[Candidate]]:
    """The assistant in each format; its endpoint's connections end with the block.

    What its earlier trials have spent counts towards the caps on calls and cost.
    """
    from agenteval.evaluators.workflows.assistants import opened_assistant

    if job.agent.startswith("scripted:"):
        yield [scripted_candidate(job, f, conditions) for f in job.formats]
        return
    known = [candidate(job, f, conditions) for f in job.formats]
    settings = replace(job.settings, budget=job.limits.budget(_spent(known, store, level)))
    async with opened_assistant(job.agent, settings) as assistant:
        yield [replace(c, assistant=assistant) for c in known]


def _spent(candidates: Sequence[Candidate], store: Store, level: Level) -> Any:
    from agenteval.flows import EVALUATORS
    from agenteval.records import Usage
    from agenteval.store import Trials

    tables = Trials(store)
    return sum((tables.usage(EVALUATORS[level], c.sha256) for c in candidates), Usage())


def candidate(job: FlowJob, format: Format, conditions: dict[str, JsonValue]) -> Candidate:
    """The candidate alone, to know its name and key; nothing is opened."""
    from agenteval.evaluators.workflows.assistants import assistant
    from agenteval.flows import Candidate

    if job.agent.startswith("scripted:"):
        return scripted_candidate(job, format, conditions)
    return Candidate(assistant(job.agent, job.settings), format, conditions)


def scripted_candidate(job: FlowJob, format: Format, conditions: dict[str, JsonValue]) -> Candidate:
    """A scripted assistant, made for each user; see `workflows.scripted`. Raises InputError."""
    from difflib import get_close_matches

    from agenteval.agents.dialogue import AssistantSystem
    from agenteval.evaluators.workflows.scripted.behaviours import (
        CAUSE,
        RANDOM,
        scripted_assistants,
    )
    from agenteval.flows import Candidate

    name, known = job.agent.partition(":")[2], (*CAUSE, RANDOM)
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"; is {near[0]!r} meant?" if near else ""
        raise InputError(
            f"there is no scripted assistant {name!r}{hint} (known: {', '.join(known)})",
            "--agent",
        )

    def for_case(case: Case) -> AssistantSystem | None:
        role, profile = case.of.role, case.profile
        return scripted_assistants(role, profile, seed=job.seed).get(name)

    def nobody() -> Any:
        raise AssertionError("a scripted assistant is made for each case")

    whole: dict[str, JsonValue] = {"adapter": "scripted", "script": name, "seed": job.seed}
    system = AssistantSystem(f"scripted:{name}", nobody, whole)
    return Candidate(system, format, conditions, for_case)


def present(candidates: Sequence[Candidate], cases: Sequence[Case]) -> list[Case]:
    """The cases in which the assistant has a place; the others are said."""
    if candidates[0].for_case is None:
        return list(cases)
    kept = [case for case in cases if candidates[0].at(case) is not None]
    if left := len(cases) - len(kept):
        note(f"{candidates[0].assistant.name} has no place in {left} of {len(cases)} cases")
    return kept


@dataclass(frozen=True, slots=True)
class Campaign:
    """One call of the command: at which level, what is done, and for which cases."""

    level: Level
    cases: Sequence[Case]
    conditions: dict[str, JsonValue]
    act: Callable[[Store, Any], Any]  # opens what the act needs, as an async context manager


def run(
    job: FlowJob, campaign: Campaign, judgements: Path | None
) -> tuple[list[str], Ended | None]:
    """Keys of the systems, and how the last of them ended; None: interrupted."""
    from agenteval.flows import EVALUATORS
    from agenteval.store import Trials

    with opened_store(job, dry=False) as store:
        keys = [candidate(job, f, campaign.conditions).sha256 for f in job.formats]
        with ExitStack() as stack:
            for key in keys:
                stack.enter_context(Trials(store).lock(EVALUATORS[campaign.level], key))
            try:
                return keys, asyncio.run(_run(job, campaign, store, judgements))
            except KeyboardInterrupt:
                return keys, None


async def _run(
    job: FlowJob, campaign: Campaign, store: Store, judgements: Path | None
) -> Ended | None:
    from agenteval.evaluators.workflows.verdicts import Verdicts

    ended: Ended | None = None
    async with (
        opened_judges(job, store) as judges,
        campaign.act(store, judges) as act,
        opened_candidates(job, campaign.conditions, store, campaign.level) as candidates,
    ):
        verdicts = Verdicts(judges)
        cases = present(candidates, campaign.cases)
        try:
            for one in candidates:
                ended = await _trials(job, campaign.level, cases, one, act, store, verdicts)
                if ended.stopped:
                    break
        finally:
            if judgements is not None:
                _write(judgements, verdicts)
    return ended


async def _trials(
    job: FlowJob,
    level: Level,
    cases: Sequence[Case],
    one: Candidate,
    act: Act,
    store: Store,
    verdicts: Any,
) -> Ended:
    from agenteval.cli.progress import live
    from agenteval.flows import open_work, run_work

    key = verdicts.judges.key
    work = open_work(
        store, level, cases, one, job.trials, check_key=key, retry_failed=job.retry_failed
    )
    anew = sum(w.stored is not None for w in work)
    done = len(cases) * job.trials - (len(work) - anew)
    note(
        f"{one.name}: {len(work) - anew} {level}s to run"
        + (f", {done} done before" if done else "")
        + (f", {anew} of them to be judged anew" if anew else "")
    )
    with live(len(work), level, f"{level}s") as update:
        return await run_work(
            store, level, one, work, act, verdicts,
            concurrency=job.limits.concurrency, on_progress=update,
        )  # fmt: skip


def _write(path: Path, verdicts: Any) -> None:
    from agenteval.files import write_atomically

    rows = [j.model_dump_json() for e in verdicts.equalities for j in e.log]
    write_atomically(path, "".join(f"{row}\n" for row in rows))
    note(f"{len(rows)} decisions on values written to {path}")


def say_dry(job: FlowJob, campaign: Campaign, tokens: Callable[[Case, Format], int]) -> None:
    """What would be run and cost. `tokens` estimates those of one request of the agent."""
    from agenteval.evaluators.workflows.verdicts import Judges
    from agenteval.flows import open_work

    with opened_store(job, dry=True) as store:
        for format in job.formats:
            one = candidate(job, format, campaign.conditions)
            cases = present([one], campaign.cases)
            work = open_work(
                store, campaign.level, cases, one, job.trials,
                check_key=Judges().key, retry_failed=job.retry_failed,
            )  # fmt: skip
            new = [w for w in work if w.stored is None]
            out().print(
                clean(f"{one.name}: {len(cases)} cases, {len(new)} {campaign.level}s to run")
            )
            if one.assistant.parameters.get("adapter") in ("python", "command", "mcp", "scripted"):
                out().print("  cost of the agent: whatever it spends itself; none is counted here")
                continue
            prompt = sum(tokens(w.case, format) for w in new)
            out().print(f"  prompt tokens of the agent, estimated: {prompt:,}")
            if job.limits.price is not None:
                cost = job.limits.price.cost(prompt, len(new) * 200)
                out().print(f"  cost of the agent, estimated: {cost:.4f}")
    asked = "each session" if campaign.level == "session" else "each reply"
    if job.judge or job.judge_url:
        out().print(f"judge: one request for {asked}, and one for each pair of values to compare")
