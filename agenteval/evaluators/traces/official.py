"""TRAIL's own scorer, with its quirks, so that figures can be compared with published ones.

A rewriting of what calculate_scores.py of patronus-ai/trail-benchmark (commit 0ffbed9) computes;
no code of it is used. It works on the raw texts of gold and prediction. Its quirks, all kept:

- location and joint count recall only, and a trace without gold errors is worth 0;
- missing and unreadable predictions and unreadable gold files are left out, not penalised;
- a category is completed from any part of a label ("a" is "Language-only");
- an empty category shifts the categories of all later errors to the place before;
- a score that is 0, empty or no number is -1, and predicted reliability is cut to an integer.

Where that program would stop with an exception (a category that is a list, say) the trace is
left out and counted as "not in form".
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import ReplyError
from agenteval.stats.bootstrap import Bootstrap, bootstrap_mean, bootstrap_sums
from agenteval.stats.interval import Interval

CATEGORIES = (
    "Language-only",
    "Tool-related",
    "Poor Information Retrieval",
    "Incorrect Memory Usage",
    "Tool Output Misinterpretation",
    "Incorrect Problem Identification",
    "Tool Selection Errors",
    "Formatting Errors",
    "Instruction Non-compliance",
    "Tool Definition Issues",
    "Environment Setup Errors",
    "Rate Limiting",
    "Authentication Errors",
    "Service Errors",
    "Resource Not Found",
    "Resource Exhaustion",
    "Timeout Issues",
    "Context Handling Failures",
    "Resource Abuse",
    "Goal Deviation",
    "Task Orchestration",
)
SCORES = {
    "reliability": "reliability_score",
    "security": "security_score",
    "instruction_adherence": "instruction_adherence_score",
    "plan_opt": "plan_opt_score",
    "overall": "overall",
}

_Floats = NDArray[np.float64]
_KINDS = len(CATEGORIES)


@dataclass(frozen=True)
class Said:
    """What the official scorer takes from one object. `scores` holds raw values."""

    locations: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    categories: frozenset[str]
    scores: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OfficialCase:
    """Gold and prediction of one trace; where one is missing, why it is left out (`skipped`)."""

    trace: str
    gold: Said | None
    predicted: Said | None
    skipped: str | None = None


@dataclass(frozen=True)
class OfficialCategory:
    """One category over traces; `support` is the number of gold traces that hold it."""

    category: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Correlation:
    """Pearson's r over `n` traces; None with the reason where it is not defined."""

    r: float | None
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class OfficialScores:
    """All official figures. `skipped` counts traces left out by reason; per trace: (location,
    joint). Means are None where no trace is left."""

    weighted_f1: Interval
    location: Interval
    joint: Interval
    categories: tuple[OfficialCategory, ...]
    pearson: Mapping[str, Correlation]
    traces: int
    skipped: Mapping[str, int]
    per_trace: Mapping[str, tuple[float, float]]


def normalize(category: str) -> str:
    """The label that the official scorer takes `category` for; lowercase text if for none."""
    if not category:
        return ""
    lower = category.lower().strip()
    bare = lower.replace(" ", "")
    for name in CATEGORIES:
        if lower == name.lower() or bare == name.lower().replace(" ", ""):
            return name
    for name in CATEGORIES:
        if bare in name.lower().replace(" ", ""):
            return name
    return lower


def parse(text: str) -> dict[str, Any]:
    """The object of a prediction: from the first "{", whatever follows its end.

    The original drops characters from the end until the rest is JSON. An object has one end only,
    so that is the object that begins there. Raises ReplyError where there is none.
    """
    start = text.find("{")
    if start < 0:
        raise ReplyError("no object in the text")
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"no JSON object: {error}") from error
    assert isinstance(value, dict)  # it begins with a brace
    return value


def said(value: Any) -> Said:
    """What the scorer takes from a decoded object. Raises TypeError where it is not in form."""
    errors = value.get("errors", []) if isinstance(value, dict) else None
    if not isinstance(errors, list) or not all(isinstance(one, dict) for one in errors):
        raise TypeError("errors is no list of objects")
    locations = [one.get("location", "") for one in errors]
    labels = [one.get("category", "") for one in errors]
    if not all(isinstance(label, str) or not label for label in labels):
        raise TypeError("a category is no text")
    categories = [normalize(label) for label in labels if label]
    scores = value.get("scores")
    first = scores[0] if isinstance(scores, list) and scores else {}
    return Said(
        frozenset(locations),  # TypeError for a list or an object
        frozenset(zip(locations, categories, strict=False)),  # shifted by an empty category
        frozenset(categories),
        first if isinstance(first, dict) else {},
    )


def official_case(trace: str, gold: str, predicted: str | None) -> OfficialCase:
    """The case of two texts; `predicted` is None where the file is missing."""
    try:
        truth = said(json.loads(gold))
    except (ValueError, RecursionError):
        return OfficialCase(trace, None, None, "gold unreadable")
    except TypeError:
        return OfficialCase(trace, None, None, "gold not in form")
    if predicted is None:
        return OfficialCase(trace, truth, None, "prediction missing")
    try:
        return OfficialCase(trace, truth, said(parse(predicted)))
    except ReplyError:
        return OfficialCase(trace, truth, None, "prediction unreadable")
    except TypeError:
        return OfficialCase(trace, truth, None, "prediction not in form")


def score_official(
    cases: Iterable[OfficialCase], *, seed: int = 0, resamples: int = 2000
) -> OfficialScores:
    """Official figures over `cases`; intervals (not official) by resampling traces.

    Weighted F1 is sum_c support_c F1_c / sum_c support_c over the labels, F1_c from the presence
    of c in each trace and 0 where undefined; location and joint are means over traces.
    """
    every = sorted(cases, key=lambda case: case.trace)
    read: dict[str, tuple[Said, Said]] = {
        case.trace: (case.gold, case.predicted)
        for case in every
        if case.gold is not None and case.predicted is not None
    }
    per_trace = {trace: _recalls(*pair) for trace, pair in read.items()}
    presence = np.array([_presence(*pair) for pair in read.values()]).reshape(-1, 3 * _KINDS)

    def how() -> Bootstrap:
        return Bootstrap(np.random.default_rng(seed), resamples)

    return OfficialScores(
        weighted_f1=bootstrap_sums(presence, weighted_f1, how=how()),
        location=bootstrap_mean([one[0] for one in per_trace.values()], how=how()),
        joint=bootstrap_mean([one[1] for one in per_trace.values()], how=how()),
        categories=_categories(presence.sum(axis=0)),
        pearson=_correlations(list(read.values())),
        traces=len(read),
        skipped=Counter(case.skipped or "" for case in every if case.trace not in read),
        per_trace=per_trace,
    )


def _recalls(gold: Said, predicted: Said) -> tuple[float, float]:
    if not gold.locations:
        return 0.0, 0.0
    location = len(gold.locations & predicted.locations) / len(gold.locations)
    if not gold.pairs:
        return location, 0.0
    return location, len(gold.pairs & predicted.pairs) / len(gold.pairs)


def _presence(gold: Said, predicted: Said) -> _Floats:
    """(3 * 21) 0/1: in both, predicted, gold, each for all labels."""
    g = np.array([name in gold.categories for name in CATEGORIES], dtype=np.float64)
    p = np.array([name in predicted.categories for name in CATEGORIES], dtype=np.float64)
    return np.concatenate([g * p, p, g])


def weighted_f1(totals: _Floats) -> _Floats:
    """(B,) weighted F1 of (B, 3 * k) totals: hits, predicted and gold traces of k labels."""
    hits, predicted, gold = np.split(totals, 3, axis=1)
    f1 = _divided(2 * hits, predicted + gold)
    return _divided((f1 * gold).sum(axis=1), gold.sum(axis=1))


def _divided(above: _Floats, below: _Floats) -> _Floats:
    found = np.zeros_like(above)
    np.divide(above, below, out=found, where=below > 0)
    return found


def _categories(totals: _Floats) -> tuple[OfficialCategory, ...]:
    hits, predicted, gold = np.split(totals, 3)
    precision, recall = _divided(hits, predicted), _divided(hits, gold)
    f1 = _divided(2 * hits, predicted + gold)
    return tuple(
        OfficialCategory(name, float(precision[i]), float(recall[i]), float(f1[i]), int(gold[i]))
        for i, name in enumerate(CATEGORIES)
    )


def _correlations(pairs: Sequence[tuple[Said, Said]]) -> dict[str, Correlation]:
    """Pearson per score; scores that no trace has on both sides are left out."""
    found = {}
    for name, key in SCORES.items():
        both = [
            (g.scores[key], p.scores[key]) for g, p in pairs if key in g.scores and key in p.scores
        ]
        if both:
            whole = name == "reliability"
            gold = [_number(g) for g, _ in both]
            predicted = [_number(p, whole=whole) for _, p in both]
            found[name] = _pearson(gold, predicted)
    return found


def _number(value: Any, *, whole: bool = False) -> float:
    if not value:
        return -1.0
    try:
        return float(int(value) if whole else float(value))
    except (TypeError, ValueError, OverflowError):
        return -1.0


def _pearson(first: Sequence[float], second: Sequence[float]) -> Correlation:
    n = len(first)
    if not all(math.isfinite(value) for value in (*first, *second)):
        return Correlation(None, n, "not finite")
    if n < 2:
        return Correlation(None, n, "one trace")
    if min(first) == max(first) or min(second) == max(second):
        return Correlation(None, n, "constant")
    from scipy.stats import pearsonr

    return Correlation(float(pearsonr(first, second).statistic), n)
