"""The default scorer: by hand, by brute force, and what must always hold."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.records import Finding, Findings, Span
from agenteval.stats.interval import Interval
from agenteval.traces.score import (
    LEVELS,
    PARTS,
    Level,
    ScoreCounts,
    ScoredTrace,
    Scores,
    Scoring,
    score,
)
from agenteval.traces.taxonomy import built_in
from tests.thorough import often

F, G, R, H = "Formatting Errors", "Goal Deviation", "Resource Abuse", "Language-only"
Pairs = Sequence[tuple[str, str]]
QUICK = Scoring(resamples=100)


def findings(pairs: Pairs, trace: str = "t") -> Findings:
    return Findings(trace=trace, findings=tuple(Finding(category=c, span=s) for c, s in pairs))


def case(
    gold: Pairs, predicted: Pairs | None, trace: str = "t", spans: Sequence[Span] | None = None
) -> ScoredTrace:
    said = None if predicted is None else findings(predicted, trace)
    return ScoredTrace.of(findings(gold, trace), said, built_in(), spans)


def level(scores: Scores, name: Level) -> tuple[Any, Any, Any]:
    """Counts, micro and macro (precision, recall, F1)."""
    one = next(x for x in scores.levels if x.level == name)
    micro, macro = (
        tuple(getattr(measure, part).mean for part in PARTS) for measure in (one.micro, one.macro)
    )
    return one.counts, micro, macro


def test_one_trace_by_hand() -> None:
    # gold: F at a and b, G at b; said: F at a, G at a, H at z (twice), F at b in other letters
    found = score(
        [
            case(
                [(F, "a"), (F, "b"), (G, "b")],
                [(F, "a"), (G, "a"), (H, "z"), (H, "z"), ("formatting error", "b")],
            )
        ],
        QUICK,
    )
    assert level(found, "location")[:2] == (ScoreCounts(2, 3, 2), pytest.approx((2 / 3, 1, 4 / 5)))
    assert level(found, "category")[:2] == (ScoreCounts(2, 3, 2), pytest.approx((2 / 3, 1, 4 / 5)))
    assert level(found, "joint")[:2] == (ScoreCounts(2, 4, 3), pytest.approx((1 / 2, 2 / 3, 4 / 7)))
    assert found.predictions.mean == 5
    by = {c.category: (c.pairs, c.traces) for c in found.categories}
    assert by == {
        F: (ScoreCounts(2, 2, 2), ScoreCounts(1, 1, 1)),
        G: (ScoreCounts(0, 1, 1), ScoreCounts(1, 1, 1)),
        H: (ScoreCounts(0, 1, 0), ScoreCounts(0, 1, 0)),
    }


def test_micro_and_macro_by_hand() -> None:
    # joint: trace 1 has 1 hit of 1 said and 4 gold, trace 2 has 1 hit of 3 said and 1 gold
    found = score(
        [
            case([(F, "a"), (F, "b"), (F, "c"), (F, "d")], [(F, "a")], "1"),
            case([(G, "a")], [(G, "a"), (G, "b"), (G, "c")], "2"),
        ],
        QUICK,
    )
    counts, micro, macro = level(found, "joint")
    assert counts == ScoreCounts(2, 4, 5)
    assert micro == pytest.approx((2 / 4, 2 / 5, 4 / 9))
    assert macro == pytest.approx(((1 + 1 / 3) / 2, (1 / 4 + 1) / 2, (2 / 5 + 2 / 4) / 2))


@pytest.mark.parametrize("lost", [None, "unscored:parse"])
def test_a_lost_prediction_is_empty_and_counted(lost: str | None) -> None:
    gold = findings([(F, "a")], "2")
    said = None if lost is None else Findings.model_validate({"trace": "2", "status": lost})
    found = score(
        [case([(F, "a")], [(F, "a")], "1"), ScoredTrace.of(gold, said, built_in())], QUICK
    )
    assert level(found, "joint") == (
        ScoreCounts(1, 1, 2),
        pytest.approx((1, 1 / 2, 2 / 3)),
        pytest.approx((1 / 2, 1 / 2, 1 / 2)),
    )
    assert (found.coverage.traces, found.coverage.answered) == (2, 1)
    assert found.coverage.lost == {lost or "missing": 1}
    assert found.predictions.mean == 1  # over the traces with a prediction


def test_traces_without_errors() -> None:
    cases = [
        case([], [], "right"),
        case([], [(F, "a")], "wrong"),
        case([], None, "lost"),  # nothing was said: no merit
        case([(F, "a")], [(F, "a")], "other"),
    ]
    means = {}
    for rule in ("correct", "zero", "leave_out"):
        how = Scoring(without_errors=rule, resamples=100)
        found = score(cases, how)
        means[rule] = [level(found, name)[2] for name in LEVELS]
        assert found.coverage.without_errors == 3
    assert means["correct"] == [(0.5, 0.5, 0.5)] * 3
    assert means["zero"] == [(0.25, 0.25, 0.25)] * 3
    assert means["leave_out"] == [(1, 1, 1)] * 3


def test_unknown_labels_are_counted_and_are_categories_of_their_own() -> None:
    found = score(
        [case([("Odd One", "a")], [("odd  one", "a"), ("Tool", "b"), ("Tool", "c")])], QUICK
    )
    assert found.unknown == ({"odd one": 1}, {"odd one": 1, "tool": 2})
    assert level(found, "joint")[0] == ScoreCounts(1, 3, 1)
    assert [c.category for c in found.categories] == ["odd one", "tool"]


def test_errors_without_place_or_kind() -> None:
    # gold: one without a place, one without a kind; said: the same, which can hit nothing but "b"
    found = score([case([(F, ""), ("", "b")], [(F, ""), ("", "b")])], QUICK)
    assert level(found, "location")[0] == ScoreCounts(1, 2, 1)
    assert level(found, "category")[0] == ScoreCounts(1, 1, 1)
    assert level(found, "joint")[0] == ScoreCounts(0, 2, 0)
    assert level(found, "joint")[2] == (None, None, None)  # no gold pair to meet


# --- properties -----------------------------------------------------------------------------

pair = st.tuples(st.sampled_from([F, G, R, H]), st.sampled_from("abcdef"))
traces = st.lists(
    st.tuples(st.lists(pair, max_size=6), st.lists(pair, max_size=6)), min_size=1, max_size=6
)


def cases_of(rows: Sequence[tuple[Pairs, Pairs]]) -> list[ScoredTrace]:
    return [case(g, p, str(i)) for i, (g, p) in enumerate(rows)]


def figures(scores: Scores) -> list[Interval]:
    return [
        getattr(measure, part)
        for one in scores.levels
        for measure in (one.micro, one.macro)
        for part in PARTS
    ]


def brute(rows: Sequence[tuple[Pairs, Pairs]], key: str) -> list[float | None]:
    """Micro and macro precision, recall, F1, written out without the package."""

    def things(pairs: Pairs) -> set[object]:
        return {{"location": s, "category": c, "joint": (c, s)}[key] for c, s in pairs}

    sets = [(things(g), things(p)) for g, p in rows]
    hits = sum(len([x for x in p if x in g]) for g, p in sets)
    said, gold = sum(len(p) for _, p in sets), sum(len(g) for g, _ in sets)
    micro = [
        hits / said if said else None,
        hits / gold if gold else None,
        2 * hits / (said + gold) if said + gold else None,
    ]
    each = []
    for g, p in sets:
        if not g:
            each.append([0.0 if p else 1.0] * 3)
            continue
        h = sum(x in g for x in p)
        precision, recall = (h / len(p) if p else 0.0), h / len(g)
        both = precision + recall
        each.append([precision, recall, 2 * precision * recall / both if both else 0.0])
    return [*micro, *(math.fsum(column) / len(each) for column in zip(*each, strict=True))]


@pytest.mark.slow
@settings(max_examples=often(60, 100), deadline=None)
@given(traces)
def test_figures_are_those_of_brute_force(rows: list[tuple[Pairs, Pairs]]) -> None:
    found = score(cases_of(rows), QUICK)
    expected = [x for name in LEVELS for x in brute(rows, name)]
    assert [one.mean for one in figures(found)] == [
        None if x is None else pytest.approx(x, abs=1e-12) for x in expected
    ]
