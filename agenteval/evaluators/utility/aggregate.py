"""From leaf answers to the result of a criterion, through its sub-criteria where it has some."""

from __future__ import annotations

from math import fsum

from pydantic import JsonValue

from agenteval.evaluators.utility.answers import Answer, Answers, NoAnswer, leaves
from agenteval.records import CellKey, Criterion, Failure, Result, Score


def to_result(criterion: Criterion, key: CellKey, answers: Answers, rung: str | None) -> Result:
    """Score or Failure of one criterion.

    A criterion with parts is scored by its rule (mean or min) over the parts that apply; one part
    without an answer leaves the whole unscored, because the rest is no fair sample of it.
    """
    flat = leaves(criterion)
    parts = {path: answers.by_path[path] for path, _ in flat}
    for path, part in parts.items():
        if isinstance(part, NoAnswer):
            where = f"{path}: " if criterion.sub_criteria else ""
            return Failure(
                key=key,
                criterion_id=criterion.id,
                status=part.status,
                message=f"{where}{part.message}",
                rung=rung,
            )
    unordered = [path for path, leaf in flat if criterion.sub_criteria and not leaf.ordered]
    if unordered:  # a rank nobody stated must not enter a mean
        return Failure(
            key=key,
            criterion_id=criterion.id,
            status="unscored:unsupported",
            message=f"the levels of its part {unordered[0]} have no known order",
            rung=rung,
        )
    read = {path: part for path, part in parts.items() if isinstance(part, Answer)}
    if criterion.sub_criteria:
        return _aggregate(criterion, key, read, rung)
    (answer,) = read.values()
    return Score(
        key=key,
        criterion_id=criterion.id,
        status="not_applicable" if answer.not_applicable else "scored",
        label=answer.label,
        value=answer.value,
        probabilities=answer.probabilities,
        explanation=answer.explanation,
        rung=rung,
        match=answer.match,
    )


def _aggregate(
    criterion: Criterion, key: CellKey, parts: dict[str, Answer], rung: str | None
) -> Score:
    values = [a.value for a in parts.values() if a.value is not None]
    pick = min if criterion.aggregation == "min" else lambda v: fsum(v) / len(v)
    labels: dict[str, JsonValue] = {
        p: "not applicable" if a.not_applicable else a.label for p, a in parts.items()
    }
    masses: dict[str, JsonValue] = {
        p: dict(a.probabilities) for p, a in parts.items() if a.probabilities
    }
    reasons = [f"{p}: {a.explanation}" for p, a in parts.items() if a.explanation]
    return Score(
        key=key,
        criterion_id=criterion.id,
        status="scored" if values else "not_applicable",
        value=pick(values) if values else None,
        explanation="\n".join(reasons) or None,
        evidence={"parts": labels, **({"probabilities": masses} if masses else {})},
        rung=rung,
        match="exact" if all(a.match == "exact" for a in parts.values()) else "tolerant",
    )
