"""Reimplement TRAIL's scorer, including its quirks, to compare with published scores.

This computes the same scores as calculate_scores.py of patronus-ai/trail-benchmark (commit
0ffbed9), without its code, from the raw texts of gold and prediction. Its quirks, all preserved:

- location and joint are recall only, and a trace without gold errors scores 0;
- missing and unreadable predictions and unreadable gold files are skipped, not penalised;
- a category matches the first label that contains it ("a" is "Language-only");
- an empty category shifts the categories of all later errors up by one;
- a score that is 0, empty or non-numeric is -1, and predicted reliability is truncated.

Where the original would crash (a category that is a list, scores that are not a list, a score that
is a list or too large to truncate), the trace is skipped and counted as "not in form".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import ReplyError
from agenteval.stats.bootstrap import Bootstrap, bootstrap_mean, bootstrap_sums
from agenteval.stats.interval import Interval
from agenteval.traces.taxonomy import built_in

CATEGORIES = tuple(leaf.name for leaf in built_in().leaves)  # in the scorer's order
SCORES = {
    "reliability": "reliability_score",
    "security": "security_score",
    "instruction_adherence": "instruction_adherence_score",
    "plan_opt": "plan_opt_score",
    "overall": "overall",
}

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AnnotationSets:
    """The labels and scores (by name) that the official scorer reads from one object."""

    locations: frozenset[str]
    pairs: frozenset[tuple[str, str]]
    categories: frozenset[str]
    scores: Mapping[str, float] = field(default_factory=dict)


NOTHING = AnnotationSets(frozenset(), frozenset(), frozenset())


@dataclass(frozen=True)
class OfficialCase:
    """Gold and prediction of one trace; `skipped` says why one is missing."""

    trace: str
    gold: AnnotationSets | None
    predicted: AnnotationSets | None
    skipped: str | None = None


@dataclass(frozen=True)
class OfficialCategory:
    """Scores of one category over traces; `support` counts the gold traces with it."""

    category: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Correlation:
    """Pearson's r over `n` traces; None with the reason if it is not defined."""

    r: float | None
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class OfficialScores:
    """All official scores; means are None without traces. `skipped` counts skipped traces by
    reason; `per_trace` is (location, joint)."""

    weighted_f1: Interval
    location: Interval
    joint: Interval
    categories: tuple[OfficialCategory, ...]
    pearson: Mapping[str, Correlation]
    traces: int
    skipped: Mapping[str, int]
    per_trace: Mapping[str, tuple[float, float]]


def normalize(category: str) -> str:
    """Return the label that the official scorer maps `category` to, else lowercase text."""
    if not category:
        return ""
    lower = category.lower().strip()
    squeezed = lower.replace(" ", "")
    labels = {name: name.lower().replace(" ", "") for name in CATEGORIES}
    equal = (name for name in CATEGORIES if squeezed == labels[name])
    part = (name for name in CATEGORIES if squeezed in labels[name])
    return next(equal, None) or next(part, lower)


def parse(text: str) -> Any:
    """Return the object that begins at the first "{" of a prediction, ignoring text after it.

    The original drops characters from the end until the rest is JSON. An object has only one end,
    so both agree. Raises ReplyError if there is no object.
    """
    start = text.find("{")
    if start < 0:
        raise ReplyError("no object in the text")
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError) as error:
        raise ReplyError(f"no JSON object: {error}") from error


def _number(value: Any, *, whole: bool) -> float:
    try:
        return float(int(value) if whole else float(value)) if value else -1.0
    except ValueError:
        return -1.0


def annotation_sets(value: Any, *, gold: bool) -> AnnotationSets:
    """Read labels and scores from a decoded object, as the scorer does.

    Raises what the original would raise: AttributeError, IndexError, KeyError, OverflowError or
    TypeError.
    """
    errors = list(value.get("errors", []))
    locations = [error.get("location", "") for error in errors]
    categories = [normalize(error["category"]) for error in errors if error.get("category", "")]
    first = value["scores"][0] if value.get("scores") else {}
    return AnnotationSets(
        frozenset(locations),
        frozenset(zip(locations, categories, strict=False)),  # shifted by an empty category
        frozenset(categories),
        {
            name: _number(first[key], whole=name == "reliability" and not gold)
            for name, key in SCORES.items()
            if key in first
        },
    )


def official_case(trace: str, gold: str, predicted: str | None) -> OfficialCase:
    """Return the case of two texts; `predicted` is None if the file is missing."""
    truth, why = _taken(gold, "gold")
    if truth is None or predicted is None:
        return OfficialCase(trace, truth, None, why or "prediction missing")
    return OfficialCase(trace, truth, *_taken(predicted, "prediction"))


def _taken(text: str, side: str) -> tuple[AnnotationSets | None, str | None]:
    try:
        value = json.loads(text) if side == "gold" else parse(text)
        return annotation_sets(value, gold=side == "gold"), None
    except (ReplyError, ValueError, RecursionError):
        return None, f"{side} unreadable"
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError):
        return None, f"{side} not in form"


def score_official(
    cases: Iterable[OfficialCase], *, seed: int = 0, resamples: int = 2000
) -> OfficialScores:
    """Return the official scores of `cases`; intervals (not official) resample traces.

    Weighted F1 is sum_c support_c F1_c / sum_c support_c over the labels, F1_c from the presence of
    c in each trace and 0 where undefined; location and joint are means over traces.
    """
    every = sorted(cases, key=lambda case: case.trace)
    read = {
        case.trace: (case.gold, case.predicted)
        for case in every
        if case.gold is not None and case.predicted is not None
    }
    per_trace = {
        trace: (_recall(g.locations, p.locations), _recall(g.pairs, p.pairs))
        for trace, (g, p) in read.items()
    }
    presence = [
        [[name in side.categories for name in CATEGORIES] for side in sides]
        for sides in read.values()
    ]
    predicted_gold = np.array(presence, dtype=np.float64).reshape(-1, 2, len(CATEGORIES))
    gold, predicted = predicted_gold[:, 0], predicted_gold[:, 1]
    parts = np.hstack([gold * predicted, predicted, gold])

    def how() -> Bootstrap:
        return Bootstrap(np.random.default_rng(seed), resamples)

    return OfficialScores(
        weighted_f1=bootstrap_sums(parts, weighted_f1, how=how()),
        location=bootstrap_mean([recalls[0] for recalls in per_trace.values()], how=how()),
        joint=bootstrap_mean([recalls[1] for recalls in per_trace.values()], how=how()),
        categories=_categories(gold, predicted),
        pearson=_correlations(list(read.values())),
        traces=len(read),
        skipped=dict(Counter(case.skipped or "" for case in every if case.trace not in read)),
        per_trace=per_trace,
    )


def _recall(gold: frozenset[Any], predicted: frozenset[Any]) -> float:
    return len(gold & predicted) / len(gold) if gold else 0.0


def weighted_f1(totals: _Floats) -> _Floats:
    """(B,) weighted F1 of (B, 3 * k) totals: hits, predicted and gold traces of k labels."""
    hits, predicted, gold = np.split(totals, 3, axis=1)
    f1 = _divided(2 * hits, predicted + gold)
    return _divided((f1 * gold).sum(axis=1), gold.sum(axis=1))


def _divided(above: _Floats, below: _Floats) -> _Floats:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _categories(gold: _Floats, predicted: _Floats) -> tuple[OfficialCategory, ...]:
    """Score presence per trace like scikit-learn; both arrays are (traces, categories)."""
    from sklearn.metrics import precision_recall_fscore_support

    if not len(gold):
        return tuple(OfficialCategory(name, 0.0, 0.0, 0.0, 0) for name in CATEGORIES)
    rows = zip(*precision_recall_fscore_support(gold, predicted, zero_division=0), strict=True)
    return tuple(
        OfficialCategory(name, float(precision), float(recall), float(f1), int(support))
        for name, (precision, recall, f1, support) in zip(CATEGORIES, rows, strict=True)
    )


def _correlations(sides: Sequence[tuple[AnnotationSets, AnnotationSets]]) -> dict[str, Correlation]:
    """Return Pearson's r per score, if any trace has the score on both sides."""
    correlations = {}
    for name in SCORES:
        scored = [(g.scores, p.scores) for g, p in sides]
        if both := [(g[name], p[name]) for g, p in scored if name in g and name in p]:
            correlations[name] = _pearson(np.array(both))
    return correlations


def _pearson(both: _Floats) -> Correlation:
    n = len(both)
    if not np.isfinite(both).all():
        return Correlation(None, n, "not finite")
    if n < 2:
        return Correlation(None, n, "one trace")
    if not np.ptp(both, axis=0).all():
        return Correlation(None, n, "constant")
    from scipy.stats import pearsonr

    return Correlation(float(pearsonr(both[:, 0], both[:, 1]).statistic), n)
