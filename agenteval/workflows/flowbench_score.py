"""FlowBench's figures for existing predictions: by our own counting, or as its scripts count."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from agenteval.analysis.gates import unscored_gate
from agenteval.analysis.tables import spent
from agenteval.cli.options import read_options
from agenteval.cli.running import Watch, opened, synchronous
from agenteval.engine import answered
from agenteval.errors import InputError
from agenteval.models.factory import Model, ModelChoice, choose_model, make_client
from agenteval.models.limits import Limits
from agenteval.records import Record, Usage, canonical_json
from agenteval.records.table import Table, column, columns_headed, table_of
from agenteval.reporting.report import Report
from agenteval.stats import Interval, bootstrap_mean
from agenteval.workflows import published
from agenteval.workflows.equality import SPENT, Equality
from agenteval.workflows.flags import row_flags
from agenteval.workflows.flowbench_rows import Rows, SessionRow, TurnRow, read_rows
from agenteval.workflows.judges import (
    EqualityJudge,
    GoalsVerdict,
    JudgeFailure,
    ReplyToGrade,
    ResponseVerdict,
    SessionText,
)
from agenteval.workflows.options import FlowScoreKeywords, FlowScoreOptions
from agenteval.workflows.rates import Rate, Rates, Resampling, rates
from agenteval.workflows.reply_text import read_reply
from agenteval.workflows.scores import (
    SessionCounts,
    TurnFailure,
    TurnVerdict,
    score_session,
    score_turn,
    turn_table,
)
from agenteval.workflows.verdicts import Judges

_LOST = "are undecided or failed"
_UNREADABLE = "calls whose arguments are not a JSON object"
_SHARES = ("precision", "recall", "f1")
_WRONG, _RIGHT = "if all undecided calls are wrong", "if all undecided calls are correct"


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


class Unscored(NamedTuple):
    """Numbers of results without a verdict and in total, with a description."""

    missing: int
    total: int
    what: str


@dataclass(frozen=True, repr=False)  # asyncio.run writes the repr of what its task returns
class Figures:
    """Figures as tables and as JSON values, and what the judges took."""

    tables: tuple[Table, ...]
    data: dict[str, Any]
    unscored: Unscored
    usage: Usage


@dataclass(frozen=True)
class _FigureColumn:
    figure: str = column("figure")


@dataclass(frozen=True)
class _RateRow(_FigureColumn):
    precision: Interval = column("precision\n[95%]", "number")
    recall: Interval = column("recall\n[95%]", "number")
    f1: Interval = column("F1\n[95%]", "number")
    right: int = column("right", "count")
    open: int = column("open", "count", "without a judge's decision")
    predicted: int = column("said", "count")
    gold: int = column("gold", "count")
    precision_low: float | None = column("precision\nlow", "number", _WRONG, default=None)
    precision_high: float | None = column("precision\nhigh", "number", _RIGHT, default=None)
    recall_low: float | None = column("recall\nlow", "number", _WRONG, default=None)
    recall_high: float | None = column("recall\nhigh", "number", _RIGHT, default=None)
    f1_low: float | None = column("f1\nlow", "number", _WRONG, default=None)
    f1_high: float | None = column("f1\nhigh", "number", _RIGHT, default=None)


@dataclass(frozen=True)
class _MeanRow(_FigureColumn):
    mean: Interval = column("mean [95%]", "number")
    known: int = column("known", "count")
    of: int = column("of", "count")
    failures: str | None = column("failures", default=None)


async def score_turns(
    rows: Sequence[TurnRow], judges: Judges, how: Resampling | None = None, workflow: str = ""
) -> Figures:
    """Return the figures of turns. `workflow` is the procedure as text for rows without their own;
    replies are graded only where it is known. Raises Unauthorized for a refused key."""
    equalities = _Equalities(judges.equality)

    async def score(row: TurnRow) -> tuple[TurnVerdict | TurnFailure, ResponseVerdict | None]:
        gold, text = row.gold, row.workflow or workflow
        if row.failed:
            place = gold.model_dump(include={"session", "turn", "scenario"})
            status, message = "error:infrastructure", row.predict[:500]
            return TurnFailure(**place, status=status, message=message), None
        prediction = read_reply(row.predict)
        verdict = await score_turn(gold, prediction, equalities.of(row))
        replies = gold.action is None and gold.response.strip() and prediction.form == "reply"
        if judges.response is None or not text or not replies:
            return verdict, None
        reply = ReplyToGrade(prediction.response, gold.response, text, row.history)
        return verdict, await judges.response.grade(reply)

    scored = await asyncio.gather(*map(score, rows))
    grades = [grade for _, grade in scored]
    table = turn_table([v for v, _ in scored], grades if any(grades) else None, how)
    failed = sum(table.failures.values())
    notes = [
        f"{table.turns} turns of {table.sessions} sessions; intervals: 95%, bootstrap over "
        "sessions; parameters are credited only where the tool is right, in the last line always",
        *_counted(table.unreadable, "predictions in an unknown form, counted as no call"),
        *_counted(table.arguments_unreadable, _UNREADABLE),
        *_counted(table.further, "calls beside the first one of their turn, not scored"),
        *_counted(failed, f"turns without a prediction, left out ({_listed(table.failures)})"),
    ]
    unscored = [Unscored(table.tool.undecided + failed, table.turns + failed, f"turns {_LOST}")]
    node = table.node
    means = [_MeanRow("node accuracy", node.accuracy, node.accuracy.n, node.turns)]
    mean_notes = []
    if (graded := table.response) is not None:
        failures = _listed(graded.failures) or "0"
        name, n_graded = "response (0 to 10)", graded.mean.n
        means.append(_MeanRow(name, graded.mean, n_graded, graded.due, failures))
        mean_notes = [f"{graded.no_reply} turns lack a due reply"]
        lost = sum(graded.failures.values())
        unscored.append(Unscored(lost, lost + n_graded, f"replies {_LOST}"))
    by_name = {
        "tool": table.tool,
        "parameters": table.parameters,
        "parameters, any tool": table.parameters_free,
    }
    tables = [
        _rates_table("turns", by_name, notes),
        table_of(_MeanRow, "replies", "Nodes and replies", means, notes=mean_notes),
    ]
    turns = [_json(verdict) | {"grade": grade and _json(grade)} for verdict, grade in scored]
    data = {"level": "turn", "table": asdict(table), "turns": turns}
    return equalities.figures(tables, data, unscored, grades)


async def score_sessions(
    rows: Sequence[SessionRow], judges: Judges, how: Resampling | None = None, workflow: str = ""
) -> Figures:
    """Return the figures of sessions. Goals are judged where the user's goal and the procedure as
    text are known; see `score_turns`."""
    equalities = _Equalities(judges.equality)

    async def score(row: SessionRow) -> tuple[SessionCounts, GoalsVerdict | JudgeFailure | None]:
        counts = await score_session(row.id, row.gold, row.calls, equalities.of(row))
        text = row.workflow or workflow
        if judges.session is None or not row.wanted.strip() or not text:
            return counts, None
        session = SessionText(row.dialogue, text, wanted=row.wanted)
        return counts, await judges.session.judge(session)

    scored = await asyncio.gather(*map(score, rows))
    counts = [counts for counts, _ in scored]
    judged = [(c.session, goals) for c, goals in scored if goals is not None]
    verdicts = [goals for _, goals in judged]
    tool = rates([c.matches for c in counts], [c.session for c in counts], how)
    notes = [
        f"{len(counts)} sessions; calls are matched one to one in any order",
        *_counted(sum(c.arguments_unreadable for c in counts), _UNREADABLE),
    ]
    tables = [_rates_table("sessions", {"tool": tool}, notes)]
    unscored = [Unscored(tool.undecided, tool.gold, f"calls {_LOST}")]
    goals = goals_table(verdicts, [session for session, _ in judged], how) if judged else None
    if goals is not None:
        note = (
            "success: every goal is achieved and the judge says so; "
            f"{goals.unquoted} goals called achieved by words that are not in the conversation"
        )
        failures = _listed(goals.failures) or "0"
        means = [
            _MeanRow(name, mean, mean.n, goals.sessions, failures)
            for name, mean in (("success", goals.success), ("progress", goals.progress))
        ]
        tables.append(table_of(_MeanRow, "goals", "Goals", means, notes=[note]))
        unscored.append(Unscored(sum(goals.failures.values()), goals.sessions, f"sessions {_LOST}"))
    data = {
        "level": "session",
        "table": {"sessions": len(counts), "tool": asdict(tool)},
        "goals_table": goals and asdict(goals),
        "sessions": [_json(c) for c in counts],
        "goals": [_json(verdict) for verdict in verdicts],
    }
    return equalities.figures(tables, data, unscored, verdicts)


@dataclass(frozen=True)
class GoalsTable:
    """Success rate and mean progress over sessions with a verdict; `failures` by status.

    `without_goals` counts verdicts of sessions in which the user wanted nothing: in no mean.
    """

    sessions: int
    success: Interval
    progress: Interval
    failures: dict[str, int]
    without_goals: int
    unquoted: int


def goals_table(
    verdicts: Sequence[GoalsVerdict | JudgeFailure], cases: Sequence[str], how: Resampling | None
) -> GoalsTable:
    """Return means over sessions; intervals resample `cases`, one label per verdict."""
    how = how or Resampling()
    graded = [
        (case, v)
        for case, v in zip(cases, verdicts, strict=True)
        if isinstance(v, GoalsVerdict) and v.total
    ]
    labels = [case for case, _ in graded]
    success = [float(bool(v.success)) for _, v in graded]
    progress = [v.achieved / v.total for _, v in graded]
    failures: Counter[str] = Counter(v.status for v in verdicts if isinstance(v, JudgeFailure))
    return GoalsTable(
        sessions=len(verdicts),
        success=bootstrap_mean(success, labels, how=how.bootstrap()),
        progress=bootstrap_mean(progress, labels, how=how.bootstrap()),
        failures=dict(failures),
        without_goals=len(verdicts) - len(graded) - failures.total(),
        unquoted=sum(v.unquoted for _, v in graded),
    )


async def score_published(rows: Rows, judge: EqualityJudge | None) -> Figures:
    """Return the figures as the published scripts count. Each has two values, with all questions
    to the judge that are open answered by no, and by yes. Raises InputError at the row where the
    script would stop."""
    figures, unanswered = await published.figures(rows, judge)
    notes = ["counted like the published scripts, including their mistakes; for comparison only"]
    heads = {"low": "value"}
    if unanswered:
        notes.append(
            f"{unanswered} questions to the judge are open; the bounds assume all no and all yes"
        )
        heads = {"low": "all no", "high": "all yes"}
    cells = [
        {"figure": name, **{end: ends[end] for end in heads}} for name, ends in figures.items()
    ]
    title, columns = f"{rows.level} level, as published", columns_headed(heads)
    table = table_of(_FigureColumn, "published", title, cells, notes=notes, more=columns)
    data = {"level": rows.level, "mode": "reference", "open": unanswered, "figures": figures}
    total = len(rows.turns or rows.sessions)
    what = f"questions to the judge are open, for {total} rows: --model answers them"
    return Figures((table,), data, Unscored(unanswered, total, what), Usage())


class _Equalities:
    """One Equality per toolbox, because tools with the same name differ between scenarios."""

    def __init__(self, judge: EqualityJudge | None) -> None:
        self._judge = judge
        self._by_schemas: dict[str, Equality] = {}
        self._spent: list[Usage] = []
        SPENT.set(self._spent)

    def of(self, row: TurnRow | SessionRow) -> Equality:
        new = Equality(row.schemas, self._judge)
        return self._by_schemas.setdefault(canonical_json(row.schemas), new)

    def figures(
        self,
        tables: Sequence[Table],
        data: dict[str, Any],
        unscored: Sequence[Unscored],
        judged: Sequence[ResponseVerdict | GoalsVerdict | JudgeFailure | None],
    ) -> Figures:
        usage = sum((verdict.usage for verdict in judged if verdict), sum(self._spent, Usage()))
        judgements = [_json(row) for equality in self._by_schemas.values() for row in equality.log]
        data |= {"mode": "strict", "judgements": judgements, "usage": _json(usage)}
        worst = max(unscored, key=lambda u: u.missing / (u.total or 1))
        return Figures(tuple(tables), data, worst, usage)


def _rates_table(key: str, rates: Mapping[str, Rates], notes: list[str]) -> Table:
    """Return the figures with their counts, and bounds where values are undecided."""
    if undecided := rates["tool"].undecided:
        notes[1:1] = [
            f"{undecided} calls await a judge: matching texts are decided by rule and differing "
            "ones are not, so the figures without them are too high; low and high count all of "
            "them as wrong and as correct"
        ]
    is_open = any(share.undecided for share in rates.values())
    rows = []
    for name, r in rates.items():
        cells: dict[str, Any] = {"figure": name, "open": r.undecided}
        cells |= {count: getattr(r, count) for count in ("right", "predicted", "gold")}
        for share in _SHARES:
            rate: Rate = getattr(r, share)
            cells[share] = rate.known
            if is_open:
                cells |= {f"{share}_low": rate.low, f"{share}_high": rate.high}
        rows.append(_RateRow(**cells))
    title = f"{key.capitalize()} against gold"
    bounds = [f"{share}_{end}" for share in _SHARES for end in ("low", "high")]
    return table_of(_RateRow, key, title, rows, notes=notes, drop_empty=() if is_open else bounds)


def _listed(failures: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in failures.items())


def _counted(count: int, what: str) -> list[str]:
    return [f"{count} {what}"] if count else []


def _json(record: Record) -> dict[str, Any]:
    return record.model_dump(mode="json")
