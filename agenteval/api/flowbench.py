"""FlowBench's figures of predictions made elsewhere, and what asking about them shares."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from agenteval.api.running import Notify, Watch, opened, synchronous
from agenteval.errors import InputError
from agenteval.evaluators.workflows import flowbench_score as flowbench
from agenteval.evaluators.workflows import flowbench_tables as tables
from agenteval.evaluators.workflows.flowbench_rows import Rows, pooled, read_rows
from agenteval.evaluators.workflows.rates import Resampling
from agenteval.evaluators.workflows.verdicts import Judges
from agenteval.experiment import answered
from agenteval.models.client import Client
from agenteval.models.factory import Model, ModelChoice, choose_model, make_client
from agenteval.models.limits import Limits
from agenteval.report.report import Report
from agenteval.store import Store
from agenteval.trust.flow_flags import row_flags
from agenteval.trust.gates import unscored_gate

_T = TypeVar("_T")


async def aflow_score(
    files: Sequence[str | Path] | str | Path,
    *,
    level: str | None = None,
    reference: bool = False,
    published: bool = False,
    workflow: str = "",
    judge: str | None = None,
    judge_url: str | None = None,
    temperature: float | None = 0.0,
    seed: int = 0,
    resamples: int = 2000,
    max_unscored: float = 0.1,
    store: str | Path | Store | None = None,
    limits: Limits = Limits(),  # noqa: B008  frozen
    notify: Notify | None = None,
) -> Report:
    """Score predictions made elsewhere, in the row format of FlowBench.

    `level` is turn or session (None: as the first row says). `reference` counts as the published
    scripts do, with `published` as they were released. `workflow` is the procedure as text, for the
    judge of replies and goals. Raises InputError for rows that cannot be read, Unauthorized.
    """
    watch = Watch(notify)
    if published and not reference:
        raise InputError("this is a way of counting as published; give --reference too",
                         "--published")  # fmt: skip
    choice = _judge_model(judge, judge_url)
    rows = _rows([files] if isinstance(files, str | Path) else files, level)
    watch.note(f"{len(rows.turns) or len(rows.sessions)} {rows.level} rows read")
    if published and rows.level == "turn":
        raise InputError("only the session script was released without its imports", "--published")
    flags = row_flags(rows)
    notes = [flags.line] if flags.found else []
    how = Resampling(resamples, seed)
    title = f"{len(rows.turns) or len(rows.sessions)} {rows.level} rows"
    async with _judging(choice, store, limits, temperature, seed) as (judges, asked):
        if reference:
            work: Coroutine[Any, Any, Any] = (
                flowbench.published_turn_rows(rows.turns, judges.equality)
                if rows.level == "turn"
                else flowbench.published_session_rows(
                    rows.sessions, judges.equality, as_released=published
                )
            )
            sums: flowbench.Published = await kept_replies(work, asked, watch)
            figures = tables.published_figures(rows, sums)
            number = len(rows.turns) or len(rows.sessions)
            what = f"questions to the judge are open, for {number} rows: --model answers them"
            return Report(
                title=title, tables=(tables.published_table(rows, sums),), notes=tuple(notes),
                data={
                    "level": rows.level, "mode": "reference", "open": sums.open,
                    "figures": {n: {"low": lo, "high": hi} for n, (lo, hi) in figures.items()},
                    "flagged": flags.json(),
                },
            ).gated(unscored_gate(number, sums.open, max_unscored, what))  # fmt: skip
        if judges.response is not None and not workflow:
            with_text = sum(bool(row.workflow) for row in rows.turns)
            with_text += sum(bool(row.workflow) for row in rows.sessions)
            if with_text < len(rows.turns) + len(rows.sessions):
                watch.note(
                    "replies and goals are judged only where the workflow is told: --workflow"
                )
        scores: flowbench.TurnScores | flowbench.SessionScores = await kept_replies(
            flowbench.score_turn_rows(rows.turns, judges, how, workflow)
            if rows.level == "turn"
            else flowbench.score_session_rows(rows.sessions, judges, how, workflow),
            asked, watch,
        )  # fmt: skip
    if scores.usage.requests:
        notes.append(f"spent: {_spent(scores.usage)}")
    lost, of, what = tables.unscored(scores)
    return Report(
        title=title,
        tables=tables.score_tables(scores),
        notes=tuple(notes),
        data={**tables.score_data(scores), "flagged": flags.json()},
    ).gated(unscored_gate(of, lost, max_unscored, f"{what} are undecided or failed"))


flow_score = synchronous(aflow_score)


def chat_choice(
    model: Model,
    base_url: str | None,
    needs: str,
    *,
    option: str = "--model",
    need_key: bool = True,
) -> ModelChoice:
    """The model meant. Raises InputError with what it `needs` for the embedded one, which cannot be
    asked, and as `choose_model`."""
    choice = choose_model(model, base_url, need_key=need_key)
    if choice.kind == "embedded":
        raise InputError(needs, option)
    return choice


async def kept_replies(work: Coroutine[Any, Any, _T], client: Client | None, watch: Watch) -> _T:
    """What `work` returns; when it is cancelled, the replies under way are waited for and kept."""
    return await (work if client is None else answered(work, client, watch.waiting))


def _rows(files: Sequence[str | Path], level: str | None) -> Rows:
    read = [(Path(path), read_rows(Path(path), level)) for path in files]  # type: ignore[arg-type]
    if len({rows.level for _, rows in read}) > 1:
        raise InputError("some files hold turns, others sessions; score them apart", "FILES")
    return pooled(read)


def _judge_model(model: Model, base_url: str | None) -> ModelChoice | None:
    """The model of the judge; None without one."""
    if model is None and base_url is None:
        return None
    return chat_choice(model, base_url, "judging needs a chat model: PROVIDER:MODEL, or --base-url")


@asynccontextmanager
async def _judging(
    choice: ModelChoice | None,
    store: str | Path | Store | None,
    limits: Limits,
    temperature: float | None,
    seed: int,
) -> AsyncIterator[tuple[Judges, Client | None]]:
    """The judges, none without a model; connections and the store end with the block."""
    if choice is None:
        yield Judges(), None
        return
    with opened(store) as kept:
        client = make_client(choice, limits, kept)
        try:
            yield Judges.on(client, temperature, seed), client
        finally:
            await client.close()


def _spent(usage: Any) -> str:
    """Requests, tokens and money in a few words."""
    parts = [f"{usage.requests:,} requests"]
    if usage.prompt_tokens is not None:
        parts.append(f"{usage.prompt_tokens:,} + {usage.completion_tokens or 0:,} tokens")
    if usage.cost is not None:
        parts.append(f"cost {usage.cost:.4f}")
    return ", ".join(parts)
