"""FlowBench's figures for existing predictions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Unpack

from agenteval.analysis.gates import unscored_gate
from agenteval.analysis.tables import spent
from agenteval.cli.options import read_options
from agenteval.cli.running import Watch, opened, synchronous
from agenteval.engine import answered
from agenteval.errors import InputError
from agenteval.models.factory import Model, ModelChoice, choose_model, make_client
from agenteval.models.limits import Limits
from agenteval.reporting.report import Report
from agenteval.workflows.flags import row_flags
from agenteval.workflows.flowbench_rows import read_rows
from agenteval.workflows.flowbench_score import score_published, score_sessions, score_turns
from agenteval.workflows.options import FlowScoreKeywords, FlowScoreOptions
from agenteval.workflows.rates import Resampling
from agenteval.workflows.verdicts import Judges


async def aflow_score(
    files: Sequence[str | Path] | str | Path,
    *,
    workflow: str = "",
    **options: Unpack[FlowScoreKeywords],
) -> Report:
    """Score existing predictions in the row format of FlowBench.

    `level` is turn or session (None: as the first row says). `reference` counts as the published
    scripts do. `workflow` is the procedure as text, for the judge of replies and goals. Raises
    InputError for rows that cannot be read, Unauthorized.
    """
    how = read_options(FlowScoreOptions, options, aflow_score)
    watch = Watch(how.notify)
    choice = chat_choice(how.judge, how.judge_url)
    paths = [files] if isinstance(files, str | Path) else files
    rows = read_rows([Path(path) for path in paths], how.level)
    title = f"{len(rows.turns or rows.sessions)} {rows.level} rows"
    watch.note(f"{title} read")
    flags = row_flags(rows)
    notes = [flags.line] if flags.found else []
    async with AsyncExitStack() as stack:
        judges, client = Judges(), None
        if choice is not None:
            db = stack.enter_context(opened(how.store))
            client = make_client(choice, how.limits or Limits(), db)
            stack.push_async_callback(client.close)
            judges = Judges.on(client, how.temperature, how.seed)
        if client and not (
            how.reference or workflow or all(row.workflow for row in rows.turns or rows.sessions)
        ):
            watch.note("replies and goals are judged only if the workflow is given: use --workflow")
        resampling = Resampling(how.resamples, how.seed)
        if how.reference:
            work = score_published(rows, judges.equality)
        elif rows.level == "turn":
            work = score_turns(rows.turns, judges, resampling, workflow)
        else:
            work = score_sessions(rows.sessions, judges, resampling, workflow)
        # On cancellation, replies under way are waited for and stored.
        figures = await (work if client is None else answered(work, client, watch.waiting))
    if figures.usage.requests:
        notes.append(f"spent: {spent(figures.usage)}")
    lost = figures.unscored
    gate = unscored_gate(lost.total, lost.missing, how.max_unscored, lost.what)
    data: dict[str, Any] = {**figures.data, "flagged": flags.json()}
    return Report(title=title, tables=figures.tables, notes=tuple(notes), data=data).gated(gate)


flow_score = synchronous(aflow_score)


def chat_choice(
    model: Model, base_url: str | None, option: str = "--model", *, need_key: bool = True
) -> ModelChoice | None:
    """Return the model meant, None without one. Raises InputError for the embedded one, which
    cannot be asked, and as `choose_model`."""
    if model is None and base_url is None:
        return None
    choice = choose_model(model, base_url, need_key=need_key)
    if choice.kind == "embedded":
        needs = "this needs a chat model: PROVIDER:MODEL, or an endpoint's URL"
        raise InputError(needs, option)
    return choice
