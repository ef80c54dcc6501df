"""FlowBench's figures for existing predictions, counted by our rules or as its scripts do."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from agenteval.analysis.flagged import Flag, Flags
from agenteval.analysis.gates import unscored_gate
from agenteval.analysis.tables import spent
from agenteval.cli.options import read_options
from agenteval.cli.running import Watch, opened, synchronous
from agenteval.engine import answered
from agenteval.errors import InputError
from agenteval.models.factory import Model, ModelChoice, choose_model, make_client
from agenteval.models.limits import Limits
from agenteval.records import Record, Usage, canonical_json
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.stats import Interval, bootstrap_mean
from agenteval.workflows import published
from agenteval.workflows.equality import SPENT, Equality
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
from agenteval.workflows.reply_text import read_reply
from agenteval.workflows.results import text_signs, turn_texts
from agenteval.workflows.scores import (
    Rates,
    Resampling,
    SessionCounts,
    TurnFailure,
    TurnVerdict,
    rates,
    score_session,
    score_turn,
    turn_table,
)
from agenteval.workflows.verdicts import Judges

_UNREADABLE = "calls whose arguments are not a JSON object"


async def aflow_score(
    files: Sequence[str | Path] | str | Path,
    *,
    workflow: str = "",
    **options: Unpack[FlowScoreKeywords],
) -> Report:
    """Score existing predictions in the row format of FlowBench.

    `level` is turn or session (None: that of the first row). `reference` counts as the published
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
    flags = _row_flags(rows)
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
        # On cancellation, wait for pending replies and store them.
        figures = await (work if client is None else answered(work, client, watch.waiting))
    notes = [flags.line] if flags.found else []
    if figures.usage.requests:
        notes.append(f"spent: {spent(figures.usage)}")
    table = table_of(
        FigureRow,
        "figures",
        figures.title,
        figures.rows,
        notes=figures.notes,
        drop_empty=("value", "low", "high", "right", "open", "of"),
    )
    if how.reference:  # published figures are compared digit by digit
        columns = tuple(replace(c, form="text") for c in table.columns)
        table = replace(table, columns=columns)
    lost = figures.unscored
    gate = unscored_gate(lost.total, lost.missing, how.max_unscored, lost.what)
    data: dict[str, Any] = {**figures.data, "flagged": flags.json()}
    return Report(title=title, tables=(table,), notes=tuple(notes), data=data).gated(gate)


flow_score = synchronous(aflow_score)


def chat_choice(
    model: Model, base_url: str | None, option: str = "--model", *, need_key: bool = True
) -> ModelChoice | None:
    """Return the chosen model, or None. Raises InputError for the embedded model, which cannot
    chat, and as `choose_model`."""
    if model is None and base_url is None:
        return None
    choice = choose_model(model, base_url, need_key=need_key)
    if choice.kind == "embedded":
        needs = "this needs a chat model: PROVIDER:MODEL, or an endpoint's URL"
        raise InputError(needs, option)
    return choice


def _row_flags(rows: Rows) -> Flags:
    """Return the flags of existing rows.

    This examines the part of a prediction that a judge would read, or the whole generated
    conversation, because rows may not name the speakers. Failed rows are skipped; rows do not name
    a system.
    """
    texts: list[tuple[str, Iterable[str]]] = [
        (f"{turn.gold.session}:{turn.gold.turn}", turn_texts(read_reply(turn.predict)))
        for turn in rows.turns
        if not turn.failed
    ]
    texts += [(session.id, [session.dialogue]) for session in rows.sessions]
    flags = [Flag(name, None, signs) for name, of in texts if (signs := text_signs(of))]
    return Flags(tuple(flags), len(texts))


class Unscored(NamedTuple):
    """Numbers of results without a verdict and in total, with a description."""

    missing: int
    total: int
    what: str


@dataclass(frozen=True)
class FigureRow:
    """One figure. `low` and `high` count everything undecided as wrong and as right."""

    figure: str = column("figure")
    value: Interval | None = column("value [95%]", "number", default=None)
    low: float | None = column("low", "number", "all undecided wrong", default=None)
    high: float | None = column("high", "number", "all undecided right", default=None)
    right: int | None = column("right", "count", default=None)
    open: int | None = column("open", "count", "without a judge's decision", default=None)
    of: int | None = column("of", "count", default=None)


@dataclass(frozen=True, repr=False)  # asyncio.run logs the repr of the result of its task
class Figures:
    """Figures as table rows and as JSON values, and the usage of the judges."""

    title: str
    rows: Sequence[FigureRow]
    notes: Sequence[str]
    data: dict[str, Any]
    unscored: Unscored
    usage: Usage


async def score_turns(
    rows: Sequence[TurnRow], judges: Judges, how: Resampling | None = None, workflow: str = ""
) -> Figures:
    """Return the figures of turns. `workflow` is the procedure as text for rows without their own;
    replies are graded only if it is known. Raises Unauthorized for a refused key."""
    scoring = _Scoring(judges.equality)

    async def score(row: TurnRow) -> tuple[TurnVerdict | TurnFailure, ResponseVerdict | None]:
        gold, text = row.gold, row.workflow or workflow
        if row.failed:
            place = gold.model_dump(include={"session", "turn", "scenario"})
            status, message = "error:infrastructure", row.predict[:500]
            return TurnFailure(**place, status=status, message=message), None
        prediction = read_reply(row.predict)
        verdict = await score_turn(gold, prediction, scoring.equality(row))
        replies = gold.action is None and gold.response.strip() and prediction.form == "reply"
        if judges.response is None or not text or not replies:
            return verdict, None
        reply = ReplyToGrade(prediction.response, gold.response, text, row.history)
        return verdict, await judges.response.grade(reply)

    scored = await asyncio.gather(*map(score, rows))
    grades = [grade for _, grade in scored]
    table = turn_table([v for v, _ in scored], grades if any(grades) else None, how)
    failed = sum(table.failures.values())
    figures = [
        *_figures("tool", table.tool),
        *_figures("parameters", table.parameters),
        *_figures("parameters, any tool", table.parameters_free),
        FigureRow("node accuracy", table.node.accuracy, of=table.node.accuracy.n),
    ]
    notes = [
        f"{table.turns} turns of {table.sessions} sessions; intervals: 95%, bootstrap over "
        "sessions; parameters are credited only where the tool is right, except with any tool",
        *_counted(table.unreadable, "predictions in an unknown form, counted as no call"),
        *_counted(table.arguments_unreadable, _UNREADABLE),
        *_counted(table.further, "calls beside the first one of their turn, not scored"),
        *_counted(failed, f"turns without a prediction, left out ({_listed(table.failures)})"),
    ]
    unscored = [Unscored(table.tool.undecided + failed, table.turns + failed, "turns")]
    if (graded := table.response) is not None:
        lost, n = sum(graded.failures.values()), graded.mean.n
        figures.append(FigureRow("response (0 to 10)", graded.mean, of=n))
        notes += _counted(graded.no_reply, "turns lack a due reply")
        notes += _counted(lost, f"replies without a grade ({_listed(graded.failures)})")
        unscored.append(Unscored(lost, lost + n, "replies"))
    data = {
        "level": "turn",
        "table": asdict(table),
        "turns": [_json(verdict) | {"grade": grade and _json(grade)} for verdict, grade in scored],
    }
    return scoring.figures("Turns against gold", figures, notes, data, unscored, grades)


async def score_sessions(
    rows: Sequence[SessionRow], judges: Judges, how: Resampling | None = None, workflow: str = ""
) -> Figures:
    """Return the figures of sessions. Goals are judged if the user's goal and the procedure as text
    are known; see `score_turns`."""
    how, scoring = how or Resampling(), _Scoring(judges.equality)

    async def score(row: SessionRow) -> tuple[SessionCounts, GoalsVerdict | JudgeFailure | None]:
        counts = await score_session(row.id, row.gold, row.calls, scoring.equality(row))
        text = row.workflow or workflow
        if judges.session is None or not row.wanted.strip() or not text:
            return counts, None
        session = SessionText(row.dialogue, text, wanted=row.wanted)
        return counts, await judges.session.judge(session)

    scored = await asyncio.gather(*map(score, rows))
    counts = [counts for counts, _ in scored]
    tool = rates([c.matches for c in counts], [c.session for c in counts], how)
    figures = [*_figures("tool", tool)]
    notes = [
        f"{len(counts)} sessions; calls are matched one to one in any order",
        *_counted(sum(c.arguments_unreadable for c in counts), _UNREADABLE),
    ]
    unscored = [Unscored(tool.undecided, tool.gold, "calls")]
    data: dict[str, Any] = {
        "level": "session",
        "table": {"sessions": len(counts), "tool": asdict(tool)},
        "goals_table": None,
        "sessions": [_json(c) for c in counts],
    }
    verdicts = [goals for _, goals in scored if goals is not None]
    if verdicts:
        graded = [(c.session, v) for c, v in scored if isinstance(v, GoalsVerdict) and v.total]
        cases = [session for session, _ in graded]
        success = [float(bool(v.success)) for _, v in graded]
        progress = [v.achieved / v.total for _, v in graded]
        failures = Counter[str](v.status for v in verdicts if isinstance(v, JudgeFailure))
        lost, unquoted = failures.total(), sum(v.unquoted for _, v in graded)
        means = {
            "success": bootstrap_mean(success, cases, how=how.bootstrap()),
            "progress": bootstrap_mean(progress, cases, how=how.bootstrap()),
        }
        figures += [FigureRow(name, mean, of=mean.n) for name, mean in means.items()]
        notes += [
            "success: every goal is achieved and the judge says so; "
            f"{unquoted} goals called achieved by words that are not in the conversation",
            *_counted(lost, f"sessions without a verdict ({_listed(failures)})"),
        ]
        unscored.append(Unscored(lost, len(verdicts), "sessions"))
        data["goals_table"] = {
            "sessions": len(verdicts),
            **{name: asdict(mean) for name, mean in means.items()},
            "failures": dict(failures),
            "without_goals": len(verdicts) - len(graded) - lost,
            "unquoted": unquoted,
        }
    data["goals"] = [_json(verdict) for verdict in verdicts]
    return scoring.figures("Sessions against gold", figures, notes, data, unscored, verdicts)


async def score_published(rows: Rows, judge: EqualityJudge | None) -> Figures:
    """Return the figures as the published scripts count them, with all open questions to the judge
    answered no (`low`) or yes (`high`). Raises InputError at the row where the script would stop.
    """
    figures, unanswered = await published.figures(rows, judge)
    notes = ["counted like the published scripts, including their mistakes; for comparison only"]
    notes += _counted(unanswered, "questions to the judge are open; low: all no, high: all yes")
    data = {"level": rows.level, "mode": "reference", "open": unanswered, "figures": figures}
    total = len(rows.turns or rows.sessions)
    what = f"questions to the judge are open, for {total} rows: --model answers them"
    return Figures(
        f"{rows.level} level, as published",
        [FigureRow(name, low=ends["low"], high=ends["high"]) for name, ends in figures.items()],
        notes,
        data,
        Unscored(unanswered, total, what),
        Usage(),
    )


class _Scoring:
    """The usage of the judges, and one Equality per toolbox, because tools with the same name
    differ between scenarios."""

    def __init__(self, judge: EqualityJudge | None) -> None:
        self._judge = judge
        self._by_schemas: dict[str, Equality] = {}
        self._spent: list[Usage] = []
        SPENT.set(self._spent)

    def equality(self, row: TurnRow | SessionRow) -> Equality:
        new = Equality(row.schemas, self._judge)
        return self._by_schemas.setdefault(canonical_json(row.schemas), new)

    def figures(
        self,
        title: str,
        rows: Sequence[FigureRow],
        notes: Sequence[str],
        data: dict[str, Any],
        unscored: Sequence[Unscored],
        judged: Sequence[ResponseVerdict | GoalsVerdict | JudgeFailure | None],
    ) -> Figures:
        """Return the figures with the decisions on values, and the worst of `unscored`."""
        if undecided := rows[0].open:
            optimistic = (
                f"{undecided} calls await a judge: matching texts are decided by rule and "
                "differing ones are not, so the figures without them are too high; low and high "
                "count all of them as wrong and as correct"
            )
            notes = [notes[0], optimistic, *notes[1:]]
        usage = sum((verdict.usage for verdict in judged if verdict), sum(self._spent, Usage()))
        judgements = [_json(row) for equality in self._by_schemas.values() for row in equality.log]
        data |= {"mode": "strict", "judgements": judgements, "usage": _json(usage)}
        missing, total, what = max(unscored, key=lambda u: u.missing / (u.total or 1))
        worst = Unscored(missing, total, f"{what} are undecided or failed")
        return Figures(title, rows, notes, data, worst, usage)


def _figures(name: str, r: Rates) -> Iterator[FigureRow]:
    """Yield precision, recall and F1, with bounds if values are undecided."""
    for share, rate, of in (
        ("precision", r.precision, r.predicted),
        ("recall", r.recall, r.gold),
        ("F1", r.f1, None),
    ):
        low, high = (rate.low, rate.high) if r.undecided else (None, None)
        counts = (r.right, r.undecided or None, of)
        yield FigureRow(f"{name} {share}", rate.known, low, high, *counts)


def _listed(failures: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in failures.items())


def _counted(count: int, what: str) -> list[str]:
    return [f"{count} {what}"] if count else []


def _json(record: Record) -> dict[str, Any]:
    return record.model_dump(mode="json")
