"""What `flow score` prints: tables in which counts of failures stand beside every figure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agenteval.cli.plan_table import print_table
from agenteval.evaluators.workflows.flowbench_score import SessionScores, TurnScores
from agenteval.evaluators.workflows.reference.sessions import micro
from agenteval.evaluators.workflows.reference.turns import f1
from agenteval.records import Usage
from agenteval.report.sheet import PlainTable
from agenteval.stats import Interval
from agenteval.trust.tables import spent

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.flowbench_rows import Rows
    from agenteval.evaluators.workflows.flowbench_score import Published
    from agenteval.evaluators.workflows.rates import Rate, Rates

_COLUMNS = ("", "precision", "recall", "F1", "right", "open", "said", "gold")
_RIGHT = (False, *[True] * 7)
show = print_table


def score_tables(scores: TurnScores | SessionScores) -> list[PlainTable]:
    """The strict figures."""
    return _turns(scores) if isinstance(scores, TurnScores) else _sessions(scores)


def scores_json(scores: TurnScores | SessionScores) -> dict[str, Any]:
    """All figures and everything they were made from."""
    found: dict[str, Any] = {
        "level": "turn" if isinstance(scores, TurnScores) else "session",
        "mode": "strict",
        "table": asdict(scores.table),
        "judgements": [one.model_dump(mode="json") for one in scores.judgements],
        "usage": scores.usage.model_dump(mode="json"),
    }
    if isinstance(scores, TurnScores):
        grades = scores.grades or (None,) * len(scores.verdicts)
        found["turns"] = [
            verdict.model_dump(mode="json")
            | {"grade": None if grade is None else grade.model_dump(mode="json")}
            for verdict, grade in zip(scores.verdicts, grades, strict=True)
        ]
        return found
    found["goals_table"] = None if scores.goals_table is None else asdict(scores.goals_table)
    found["sessions"] = [one.model_dump(mode="json") for one in scores.counts]
    found["goals"] = [one.model_dump(mode="json") for one in scores.goals or ()]
    return found


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


def published_tables(rows: Rows, found: Published) -> list[PlainTable]:
    """The figures as published; two ends where answers of the judge are missing."""
    figures = _published_figures(rows, found)
    notes = ["counted as the published scripts do, their mistakes included: for comparison only"]
    if found.open:
        notes.append(f"{found.open} questions to the judge are open: the ends are all no, all yes")
    cells = [
        (name, *([_number(low)] if low == high else [_number(low), _number(high)]))
        for name, (low, high) in figures.items()
    ]
    table = [(name, " to ".join(values)) for name, *values in cells]
    title = f"{rows.level} level, as published"
    return [PlainTable(title, ("figure", "value"), tuple(table), (False, True), "; ".join(notes))]


def published_json(rows: Rows, found: Published) -> dict[str, Any]:
    """The same as JSON: every figure with its two ends."""
    figures = _published_figures(rows, found)
    return {
        "level": rows.level,
        "mode": "reference",
        "open": found.open,
        "figures": {name: {"low": low, "high": high} for name, (low, high) in figures.items()},
    }


def _published_figures(
    rows: Rows, found: Published
) -> dict[str, tuple[float | None, float | None]]:
    if found.turns is not None:
        sides = [one.figures for one in found.turns]
        with_f1 = [
            {**side, "turn_call_f1": f1(side["turn_call_pre"], side["turn_call_rec"])}
            for side in sides
        ]
        return {name: (with_f1[0][name], with_f1[1][name]) for name in with_f1[0]}
    assert found.sessions is not None
    low, high = (micro(one) for one in found.sessions)
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


def _turns(scores: TurnScores) -> list[PlainTable]:
    table = scores.table
    rows = (
        *_rows("tool", table.tool),
        *_rows("parameters", table.parameters),
        *_rows("  with any tool", table.parameters_free),
    )
    notes = [
        f"{table.turns} turns of {table.sessions} sessions; intervals: 95 %, bootstrap over "
        "sessions; parameters are credited only where the tool is right, in the last line always",
        *_undecided(table.tool),
        *_counted(table.unreadable, "predictions in no known form, counted as no call"),
        *_counted(table.arguments_unreadable, "calls whose arguments are no JSON object"),
        *_counted(table.further, "calls beside the first one of their turn, not scored"),
        *_failed(table.failures, "turns without a prediction, left out"),
        *_spent(scores.usage),
    ]
    found = [PlainTable("Turns against gold", _COLUMNS, rows, _RIGHT, "; ".join(notes))]
    node, response = table.node, table.response
    more = [("node accuracy", _interval(node.accuracy), f"{node.accuracy.n} of {node.turns}", "")]
    if response is not None:
        lost = ", ".join(f"{n} {status}" for status, n in response.failures.items()) or "0"
        more.append(
            ("response (0 to 10)", _interval(response.mean), f"{response.mean.n} of {response.due}",
             f"{lost}; {response.no_reply} without a reply")
        )  # fmt: skip
    columns = ("", "mean [95 %]", "known", "failures")
    return [
        *found,
        PlainTable("Nodes and replies", columns, tuple(more), (False, True, True, False)),
    ]


def _sessions(scores: SessionScores) -> list[PlainTable]:
    table = scores.table
    notes = [f"{table.sessions} sessions; calls matched one to one, their order not looked at"]
    notes += _undecided(table.tool)
    unread = sum(one.arguments_unreadable for one in scores.counts)
    notes += _counted(unread, "calls whose arguments are no JSON object")
    notes += _spent(scores.usage)
    rows = tuple(_rows("tool", table.tool))
    found = [PlainTable("Sessions against gold", _COLUMNS, rows, _RIGHT, "; ".join(notes))]
    goals = scores.goals_table
    if goals is None:
        return found
    lost = ", ".join(f"{n} {status}" for status, n in goals.failures.items()) or "0"
    known = f"{goals.success.n} of {goals.sessions}"
    lines = (
        ("success", _interval(goals.success), known, lost),
        ("progress", _interval(goals.progress), known, lost),
    )
    note = "success: every goal achieved, and the judge says so; "
    note += f"{goals.unquoted} goals called achieved by words that are not in the conversation"
    columns = ("", "mean [95 %]", "known", "failures")
    return [*found, PlainTable("Goals", columns, lines, (False, True, True, False), note)]


def _rows(name: str, found: Rates) -> list[tuple[str, ...]]:
    """The figures with their counts, and where values are undecided the ends they leave open."""
    figures = (found.precision, found.recall, found.f1)
    counts = (found.right, found.undecided, found.predicted, found.gold)
    first = (name, *(_interval(one.known) for one in figures), *(str(one) for one in counts))
    if not found.undecided:
        return [first]
    return [first, ("  open: no to yes", *map(_ends, figures), "", "", "", "")]


def _ends(rate: Rate) -> str:
    if rate.low is None or rate.high is None:
        return "n/a"
    return f"{rate.low:.3f} to {rate.high:.3f}"


def _interval(found: Interval) -> str:
    if found.mean is None:
        return "n/a"
    if found.low is None or found.high is None:
        return f"{found.mean:.3f}"
    return f"{found.mean:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.6g}"


def _undecided(tool: Rates) -> list[str]:
    if not tool.undecided:
        return []
    return [
        f"{tool.undecided} calls are open for want of a judge's word: texts that differ wait for "
        "it, those that agree do not, so the figures without them are too high; the line below "
        "takes all of them as wrong, and as right"
    ]


def _counted(count: int, what: str) -> list[str]:
    return [f"{count} {what}"] if count else []


def _failed(failures: Mapping[str, int], what: str) -> list[str]:
    if not failures:
        return []
    return [
        f"{sum(failures.values())} {what} ({', '.join(f'{n} {s}' for s, n in failures.items())})"
    ]


def _spent(usage: Usage) -> list[str]:
    return [f"spent: {spent(usage)}"] if usage.requests else []
