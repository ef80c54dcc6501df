"""What rows of FlowBench come to, as tables: the strict figures, and those as published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from agenteval.evaluators.workflows.flowbench_rows import Rows
from agenteval.evaluators.workflows.flowbench_score import Published, SessionScores, TurnScores
from agenteval.evaluators.workflows.published import f1, micro
from agenteval.evaluators.workflows.rates import Rates
from agenteval.records.table import Cell, Column, Estimate, Table
from agenteval.stats import Interval

_FIGURE = Column("figure", "figure")
_RATES = (
    Column("precision", "precision\n[95%]", "number"),
    Column("recall", "recall\n[95%]", "number"),
    Column("f1", "F1\n[95%]", "number"),
)
_COUNTS = (
    Column("right", "right", "count"),
    Column("open", "open", "count", "for want of a judge's word"),
    Column("predicted", "said", "count"),
    Column("gold", "gold", "count"),
)
_BOUNDS = tuple(
    Column(f"{key}_{end}", f"{key}\n{end}", "number", f"with all that is open {words}")
    for key in ("precision", "recall", "f1")
    for end, words in (("low", "wrong"), ("high", "right"))
)
_MEANS = (
    _FIGURE,
    Column("mean", "mean [95%]", "number"),
    Column("known", "known", "count"),
    Column("of", "of", "count"),
    Column("failures", "failures"),
)


def score_tables(scores: TurnScores | SessionScores) -> tuple[Table, ...]:
    """The strict figures."""
    made = _turns(scores) if isinstance(scores, TurnScores) else _sessions(scores)
    return tuple(made)


def score_data(scores: TurnScores | SessionScores) -> dict[str, Any]:
    """All figures and everything they were made from, as JSON values."""
    data: dict[str, Any] = {
        "level": "turn" if isinstance(scores, TurnScores) else "session",
        "mode": "strict",
        "table": asdict(scores.table),
        "judgements": [one.model_dump(mode="json") for one in scores.judgements],
        "usage": scores.usage.model_dump(mode="json"),
    }
    if isinstance(scores, TurnScores):
        grades = scores.grades or (None,) * len(scores.verdicts)
        data["turns"] = [
            verdict.model_dump(mode="json")
            | {"grade": None if grade is None else grade.model_dump(mode="json")}
            for verdict, grade in zip(scores.verdicts, grades, strict=True)
        ]
        return data
    data["goals_table"] = None if scores.goals_table is None else asdict(scores.goals_table)
    data["sessions"] = [one.model_dump(mode="json") for one in scores.counts]
    data["goals"] = [one.model_dump(mode="json") for one in scores.goals or ()]
    return data


def unscored(scores: TurnScores | SessionScores) -> tuple[int, int, str]:
    """What has no verdict, of how many, and what they are: the larger share of the two kinds."""
    if isinstance(scores, TurnScores):
        table = scores.table
        failed = sum(table.failures.values())
        shares = [(table.tool.undecided + failed, table.turns + failed, "turns")]
        if table.response is not None:
            lost = sum(table.response.failures.values())
            shares.append((lost, lost + table.response.mean.n, "replies"))
    else:
        shares = [(scores.table.tool.undecided, scores.table.tool.gold, "calls")]
        if scores.goals_table is not None:
            lost = sum(scores.goals_table.failures.values())
            shares.append((lost, scores.goals_table.sessions, "sessions"))
    return max(shares, key=lambda one: one[0] / one[1] if one[1] else 0.0)


def published_table(rows: Rows, published: Published) -> Table:
    """The figures as published; two ends where answers of the judge are missing."""
    figures = published_figures(rows, published)
    notes = ["counted as the published scripts do, their mistakes included: for comparison only"]
    columns = [_FIGURE, Column("low", "value")]
    if published.open:
        notes.append(
            f"{published.open} questions to the judge are open: the ends are all no, all yes"
        )
        columns = [_FIGURE, Column("low", "all no"), Column("high", "all yes")]
    cells: list[dict[str, Cell]] = [
        {"figure": name, "low": low, "high": high} for name, (low, high) in figures.items()
    ]
    keys = {column.key for column in columns}
    shown = tuple({k: v for k, v in row.items() if k in keys} for row in cells)
    title = f"{rows.level} level, as published"
    return Table("published", title, tuple(columns), shown, tuple(notes))


def published_figures(
    rows: Rows, published: Published
) -> dict[str, tuple[float | None, float | None]]:
    """Each figure with its two ends."""
    if published.turns is not None:
        sides = [one.figures for one in published.turns]
        low_side, high_side = (
            {**side, "turn_call_f1": f1(side["turn_call_pre"], side["turn_call_rec"])}
            for side in sides
        )
        return {name: (low_side[name], high_side[name]) for name in low_side}
    assert published.sessions is not None
    low, high = (micro(one) for one in published.sessions)
    figures: dict[str, tuple[float | None, float | None]] = {
        "session_call_pre": (low[0], high[0]),
        "session_call_rec": (low[1], high[1]),
    }
    for name, values in (
        ("success_rate (as the rows keep it)", [r.success for r in rows.sessions]),
        ("avg_progress (as the rows keep it)", [r.progress for r in rows.sessions]),
    ):
        known = [float(v) for v in values if v is not None]
        if known:
            mean = sum(known) / len(known)
            figures[f"{name}, n = {len(known)}"] = (mean, mean)
    return figures


def _turns(scores: TurnScores) -> Iterator[Table]:
    table = scores.table
    rates = {"tool": table.tool, "parameters": table.parameters,
             "parameters, any tool": table.parameters_free}  # fmt: skip
    yield _rates("turns", "Turns against gold", rates, [
        f"{table.turns} turns of {table.sessions} sessions; intervals: 95%, bootstrap over "
        "sessions; parameters are credited only where the tool is right, in the last line always",
        *_counted(table.unreadable, "predictions in no known form, counted as no call"),
        *_counted(table.arguments_unreadable, "calls whose arguments are no JSON object"),
        *_counted(table.further, "calls beside the first one of their turn, not scored"),
        *_counted(sum(table.failures.values()),
                  f"turns without a prediction, left out ({_listed(table.failures)})"),
    ])  # fmt: skip
    node, response = table.node, table.response
    means = [_mean("node accuracy", node.accuracy, node.turns)]
    notes = []
    if response is not None:
        means.append(_mean("response (0 to 10)", response.mean, response.due, response.failures))
        notes = [f"{response.no_reply} turns in which a reply was due have none"]
    yield Table("replies", "Nodes and replies", _MEANS, tuple(means), tuple(notes))


def _sessions(scores: SessionScores) -> Iterator[Table]:
    unread = sum(one.arguments_unreadable for one in scores.counts)
    yield _rates("sessions", "Sessions against gold", {"tool": scores.table.tool}, [
        f"{scores.table.sessions} sessions; calls matched one to one, their order not looked at",
        *_counted(unread, "calls whose arguments are no JSON object"),
    ])  # fmt: skip
    goals = scores.goals_table
    if goals is not None:
        note = "success: every goal achieved, and the judge says so; "
        note += f"{goals.unquoted} goals called achieved by words that are not in the conversation"
        means = [_mean(name, found, goals.sessions, goals.failures)
                 for name, found in {"success": goals.success,
                                     "progress": goals.progress}.items()]  # fmt: skip
        yield Table("goals", "Goals", _MEANS, tuple(means), (note,))


def _rates(key: str, title: str, rates: Mapping[str, Rates], notes: list[str]) -> Table:
    """Figures with their counts, and where values are undecided the ends they leave open."""
    tool = rates["tool"]
    if tool.undecided:
        notes.insert(1, (
            f"{tool.undecided} calls are open for want of a judge's word: texts that differ wait "
            "for it, those that agree do not, so the figures without them are too high; low and "
            "high take all of them as wrong, and as right"
        ))  # fmt: skip
    some = any(one.undecided for one in rates.values())
    rows = []
    for name, one in rates.items():
        row: dict[str, Cell] = {"figure": name, "right": one.right, "open": one.undecided,
                                "predicted": one.predicted, "gold": one.gold}  # fmt: skip
        for column, rate in (("precision", one.precision), ("recall", one.recall), ("f1", one.f1)):
            row[column] = Estimate.of(rate.known)
            if some:
                row |= {f"{column}_low": rate.low, f"{column}_high": rate.high}
        rows.append(row)
    columns = (_FIGURE, *_RATES, *_COUNTS, *(_BOUNDS if some else ()))
    return Table(key, title, columns, tuple(rows), tuple(notes))


def _mean(
    name: str, mean: Interval, of: int, failures: Mapping[str, int] | None = None
) -> dict[str, Cell]:
    return {"figure": name, "mean": Estimate.of(mean), "known": mean.n, "of": of,
            "failures": None if failures is None else _listed(failures) or "0"}  # fmt: skip


def _listed(failures: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {status}" for status, n in failures.items())


def _counted(count: int, what: str) -> list[str]:
    return [f"{count} {what}"] if count else []
