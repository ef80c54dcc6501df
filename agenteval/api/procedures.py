"""Procedures: are roles sound, do calls follow a chart, what do rows made elsewhere score."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from agenteval.api.running import Notify, Stopped, Watch, opened, synchronous
from agenteval.errors import InputError
from agenteval.evaluators.workflows.conformance import Call, Conformance
from agenteval.models.limits import Limits
from agenteval.records import Run
from agenteval.records.table import Column, Table
from agenteval.report.report import Report
from agenteval.text import plural
from agenteval.trust.gates import unscored_gate

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.convert import Converted
    from agenteval.evaluators.workflows.flowbench_rows import Rows
    from agenteval.evaluators.workflows.flowbench_score import Judges
    from agenteval.evaluators.workflows.procedure import Procedure
    from agenteval.evaluators.workflows.scenario import Role, WorkflowTool
    from agenteval.evaluators.workflows.session import SessionLog
    from agenteval.models.client import Client
    from agenteval.models.factory import ModelChoice
    from agenteval.models.rehearsal import Bill
    from agenteval.store import Store

_T = TypeVar("_T")
_CHART = ".mmd"


@dataclass(frozen=True, kw_only=True)
class ConformReport(Report):
    """`verdict` is the best reading of the calls as a walk through the chart, `reasons` a sentence
    on each deviation; without any, `conforms` is true."""

    verdict: Conformance

    @property
    def conforms(self) -> bool:
        """Whether the calls follow the chart."""
        return self.verdict.conforms

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why not; () when they do."""
        return tuple(
            " ".join(filter(None, (d.cause.replace("_", " "), f"at call {d.at + 1}:", d.tool,
                                   f"({d.detail})" if d.detail else "")))
            for d in self.verdict.deviations
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ConvertReport(Report):
    """`converted` is the text that a model wrote, with the verdict on it; `bill` is what a dry run
    says would be asked, instead."""

    converted: Converted | None = None
    bill: Bill | None = None


def conform(
    calls: str | Path | Run | SessionLog | Sequence[Call | Mapping[str, Any]],
    chart: str | Path | Role,
    *,
    scenarios: Sequence[str] | None = None,
    tools: str | Path | Sequence[WorkflowTool] = (),
    complete: bool = True,
) -> ConformReport:
    """Do calls follow a chart, and if not, where not.

    `calls` are records or mappings with `tool`, and `arguments`, `returned`, `carried_out` where
    known; a session's log; a run, whose tool spans are taken; or a JSON file of calls. `chart` is a
    role (by name, folder or record), of whose `scenarios` (all) the charts hold, or a .mmd file
    with the `tools` that it can call. Without `complete` the walk may stop anywhere.

    Raises InputError for what cannot be read, and for a chart that has no end.
    """
    from agenteval.evaluators.workflows.align import conform as aligned

    made = _calls(calls)
    verdict = aligned(_procedure(chart, scenarios, tools), made, complete=complete)
    deviations = Table(
        "deviations", "Deviations",
        (Column("call", "call", "count"), Column("cause", "cause"), Column("tool", "tool"),
         Column("place", "node or edge"), Column("detail", "detail")),
        tuple(
            {"call": d.at + 1, "cause": d.cause, "tool": d.tool,
             "place": d.node or (" → ".join(d.edge) if d.edge else None),
             "detail": d.detail or None}
            for d in verdict.deviations
        ),
    )  # fmt: skip
    word = "follow" if verdict.conforms else "do not follow"
    fitness = "" if verdict.fitness is None else f", fitness {verdict.fitness:.2f}"
    return ConformReport(
        title=f"{plural(len(made), 'call')} {word} the chart{fitness}",
        tables=(deviations,),
        data=verdict.model_dump(mode="json"),
        verdict=verdict,
    )


def flow_check(
    roles: Sequence[str | Path] | str | Path | None = None,
    *,
    scenarios: Sequence[str] = (),
    tools: str | Path | None = None,
    notify: Notify | None = None,
) -> Report:
    """Defects of roles by name or folder (None: all that are found), or of .mmd files, whose
    `tools` stand in a tools.json. The exit code is 1 for errors, 2 for what cannot be read, which
    is noted and does not keep the others from being checked."""
    from agenteval.evaluators.workflows.check import Checked, check_file, check_role
    from agenteval.evaluators.workflows.folder import role_folders

    watch = Watch(notify)
    names = [str(one) for one in ([roles] if isinstance(roles, str | Path) else roles or ())]
    names = names or [str(folder) for folder in role_folders().values()]
    if not names:
        raise InputError("no role was named, and none is found in tasks/flows")
    checked: list[Checked] = []
    unread: list[str] = []
    for name in names:
        try:
            if name.endswith(_CHART):
                if tools is None:
                    watch.note("without --tools, only the shape of the chart is checked")
                checked.append(check_file(Path(name), Path(tools) if tools else None))
            else:
                checked += check_role(name, scenarios)
        except InputError as error:
            unread.append(str(error))
            watch.warn(f"agenteval: {error}")
    counts = tuple(
        {"role": one.role, "scenario": one.scenario, "nodes": one.nodes, "edges": one.edges,
         "errors": one.count("error"), "warnings": one.count("warning")}
        for one in checked
    )  # fmt: skip
    defects = tuple(
        {"where": "/".join(part for part in (one.role, one.scenario) if part),
         "line": d.line or None, "severity": d.severity, "kind": d.kind, "message": d.message,
         "place": d.node or (" → ".join(d.edge) if d.edge else None)}
        for one in checked for d in one.defects
    )  # fmt: skip
    numbers = [Column(k, k, "count") for k in ("nodes", "edges", "errors", "warnings")]
    cannot = unread or any(d.kind == "unreadable" for one in checked for d in one.defects)
    return Report(
        title="",
        tables=(
            Table("checked", f"{len(checked)} checked",
                  (Column("role", "role"), Column("scenario", "scenario"), *numbers), counts),
            Table("defects", "Defects",
                  (Column("severity", "severity"), Column("where", "where"),
                   Column("line", "line", "count"), Column("kind", "kind"),
                   Column("place", "node or edge"), Column("message", "what is wrong")),
                  defects, group="where"),
        ),
        notes=tuple(watch.notes),
        data={"unreadable": unread},
        exit_code=2 if cannot else int(any(one.count("error") for one in checked)),
    )  # fmt: skip


async def aflow_score(  # noqa: PLR0913  each can change what is found
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
    record: str | Path | None = None,
    limits: Limits = Limits(),  # noqa: B008  frozen
    notify: Notify | None = None,
) -> Report:
    """Score predictions made elsewhere, in the row format of FlowBench.

    `level` is turn or session (None: as the first row says). `reference` counts as the published
    scripts do, with `published` as they were released. `workflow` is the procedure as text, for the
    judge of replies and goals. Raises InputError for rows that cannot be read, Unauthorized.
    """
    from agenteval.evaluators.workflows import flowbench_score as flowbench
    from agenteval.evaluators.workflows import flowbench_tables as tables
    from agenteval.evaluators.workflows.rates import Resampling
    from agenteval.report.flows_signs import row_flags

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
    async with _judging(choice, store, limits, record, temperature, seed) as (judges, asked):
        if reference:
            work: Coroutine[Any, Any, Any] = (
                flowbench.published_turn_rows(rows.turns, judges.equality)
                if rows.level == "turn"
                else flowbench.published_session_rows(
                    rows.sessions, judges.equality, as_released=published
                )
            )
            sums: flowbench.Published = await _kept(work, asked, watch)
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
        scores: flowbench.TurnScores | flowbench.SessionScores = await _kept(
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


async def aflow_convert(  # noqa: PLR0913  each can change what is asked
    role: str | Path,
    scenario: str,
    to: str,
    *,
    source: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    store: str | Path | Store | None = None,
    record: str | Path | None = None,
    limits: Limits = Limits(timeout=600.0),  # noqa: B008  frozen
    dry_run: bool = False,
    notify: Notify | None = None,
) -> ConvertReport:
    """Have a model convert a procedure to text, code or flowchart; the exit code is 1 where it then
    tells another one, and the notes say why. Raises InputError."""
    from agenteval.api.flow_bill import convert_bill
    from agenteval.evaluators.workflows.convert import Told, convert
    from agenteval.evaluators.workflows.folder import find_role, read_role
    from agenteval.models.factory import make_client

    told: dict[str, Told] = {name: name for name in get_args(Told)}
    begin = source or ("code" if to == "flowchart" else "flowchart")
    for name, option in ((to, "--to"), (begin, "--from")):
        if name not in told:
            raise InputError(f"{name!r} is none of {', '.join(told)}", option)
    read = read_role(find_role(str(role)))
    if scenario not in {s.id for s in read.scenarios}:
        known = ", ".join(s.id for s in read.scenarios)
        raise InputError(f"the role {read.id} has no scenario {scenario!r}; it has {known}")
    choice = _chat_choice(model, base_url, "converting needs a chat model: PROVIDER:MODEL, or "
                          "--base-url (`agenteval models serve` serves the embedded one, which is "
                          "small for this)", need_key=not dry_run)  # fmt: skip
    scene, from_, into = read.scenario(scenario), told[begin], told[to]
    if dry_run:  # what is rehearsed runs in a loop of its own
        bill = await asyncio.to_thread(convert_bill, choice, scene, from_, into, store)
        return ConvertReport(title="flow convert", tables=(), bill=bill)
    with opened(store) as kept:
        client = make_client(choice, limits, kept, record=Path(record) if record else None)
        try:
            asking = convert(scene, from_, into, client)
            made: Converted = await _kept(asking, client, Watch(notify))
        finally:
            await client.close()
    rejected = (f"the {to} that {choice.name} wrote was rejected; nothing was written:",
                *(f"  {reason}" for reason in made.reasons))  # fmt: skip
    return ConvertReport(
        title="",
        tables=(),
        notes=() if made.accepted else rejected,
        data=made.model_dump(mode="json"),
        exit_code=0 if made.accepted else 1,
        converted=made,
    )


flow_score = synchronous(aflow_score)
flow_convert = synchronous(aflow_convert)


def _calls(calls: Any) -> tuple[Call, ...]:
    from pydantic import TypeAdapter, ValidationError

    from agenteval.evaluators.workflows.causes import calls_of
    from agenteval.evaluators.workflows.session import SessionLog

    if isinstance(calls, SessionLog):
        return calls_of(calls)
    if isinstance(calls, Run):
        return tuple(
            Call(tool=span.tool or span.name, arguments=_json(span.input),
                 returned=_json(span.output), carried_out=span.status != "error")
            for span in calls.spans if span.kind == "tool"
        )  # fmt: skip
    if isinstance(calls, str | Path):
        from agenteval.files import read_text

        path, calls = calls, json.loads(read_text(Path(calls)))
    else:
        path = "calls"
    try:
        return TypeAdapter(tuple[Call, ...]).validate_python(calls)
    except ValidationError as error:
        raise InputError(f"no list of calls ({error.errors()[0]['msg']})", str(path)) from error


def _json(text: Any) -> Any:
    """The value of a JSON text; None for words, which are no values."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return None


def _procedure(chart: Any, scenarios: Sequence[str] | None, tools: Any) -> Procedure:
    from agenteval.evaluators.workflows.chart.parse import parse_chart
    from agenteval.evaluators.workflows.folder import find_role, read_role, read_text, read_tools
    from agenteval.evaluators.workflows.procedure import compiled, procedure

    if isinstance(chart, str | Path) and str(chart).endswith(_CHART):
        known = read_tools(Path(tools)) if isinstance(tools, str | Path) else tuple(tools)
        return compiled({Path(chart).stem: parse_chart(read_text(Path(chart)), str(chart))}, known)
    role = read_role(find_role(str(chart))) if isinstance(chart, str | Path) else chart
    return procedure(role, tuple(scenarios or (s.id for s in role.scenarios)))


def _rows(files: Sequence[str | Path], level: str | None) -> Rows:
    from agenteval.evaluators.workflows.flowbench_rows import pooled, read_rows

    read = [(Path(path), read_rows(Path(path), level)) for path in files]  # type: ignore[arg-type]
    if len({rows.level for _, rows in read}) > 1:
        raise InputError("some files hold turns, others sessions; score them apart", "FILES")
    return pooled(read)


def _chat_choice(
    model: str | None, base_url: str | None, needs: str, *, need_key: bool = True
) -> ModelChoice:
    from agenteval.models.factory import choose_model

    choice = choose_model(model, base_url, need_key=need_key)
    if choice.kind == "embedded":
        raise InputError(needs, "--model")
    return choice


def _judge_model(model: str | None, base_url: str | None) -> ModelChoice | None:
    """The model of the judge; None without one."""
    if model is None and base_url is None:
        return None
    return _chat_choice(
        model, base_url, "judging needs a chat model: PROVIDER:MODEL, or --base-url"
    )


@asynccontextmanager
async def _judging(
    choice: ModelChoice | None,
    store: str | Path | Store | None,
    limits: Limits,
    record: str | Path | None,
    temperature: float | None,
    seed: int,
) -> AsyncIterator[tuple[Judges, Client | None]]:
    """The judges, none without a model; connections and the store end with the block."""
    from agenteval.evaluators.workflows.asked_judge import JudgeOptions
    from agenteval.evaluators.workflows.equality import EqualityJudge
    from agenteval.evaluators.workflows.flowbench_score import Judges
    from agenteval.evaluators.workflows.response_judge import ResponseJudge
    from agenteval.evaluators.workflows.session_judge import SessionJudge
    from agenteval.models.factory import make_client

    if choice is None:
        yield Judges(), None
        return
    with opened(store) as kept:
        client = make_client(choice, limits, kept, record=Path(record) if record else None)
        kinds: Sequence[tuple[Callable[..., Any], int]] = (
            (EqualityJudge, 512), (ResponseJudge, 1024), (SessionJudge, 2048),
        )  # fmt: skip
        try:
            yield Judges(*(kind(client, JudgeOptions(temperature, tokens, seed))
                           for kind, tokens in kinds)), client  # fmt: skip
        finally:
            await client.close()


async def _kept(work: Coroutine[Any, Any, _T], client: Client | None, watch: Watch) -> _T:
    """What `work` returns; at the first Ctrl-C the replies under way are waited for."""
    from agenteval.experiment import answered

    if client is None:
        return await work
    try:
        return await answered(work, client, watch.waiting)
    except asyncio.CancelledError:
        line = "interrupted: the replies that came are stored; the same command goes on from here"
        raise Stopped(Report(title="", tables=(), unfinished=(line,), exit_code=130)) from None


def _spent(usage: Any) -> str:
    """Requests, tokens and money in a few words."""
    parts = [f"{usage.requests:,} requests"]
    if usage.prompt_tokens is not None:
        parts.append(f"{usage.prompt_tokens:,} + {usage.completion_tokens or 0:,} tokens")
    if usage.cost is not None:
        parts.append(f"cost {usage.cost:.4f}")
    return ", ".join(parts)
