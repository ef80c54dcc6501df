"""The official scorer: golden cases, scikit-learn and scipy as oracles, quirks by hand."""

import json
import warnings
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import ReplyError
from agenteval.traces.official import (
    CATEGORIES,
    SCORES,
    OfficialCase,
    OfficialScores,
    normalize,
    official_case,
    parse,
    score_official,
)
from benchmarks.detectors import DATA
from tests.golden.files import published
from tests.thorough import often

GOLDEN: dict[str, Any] = published("trace_scorer_cases")
PRINTED = 5.1e-7  # the golden figures are rounded to six digits
NAMES = {"plan_opt": "plan_optimization"}
FORMAT, GOAL, LANGUAGE = "Formatting Errors", "Goal Deviation", "Language-only"


def scored(*cases: OfficialCase) -> OfficialScores:
    return score_official(cases, resamples=100)


def text(*pairs: tuple[Any, Any], **scores: Any) -> str:
    errors = [{"category": c, "location": s} for c, s in pairs]
    return json.dumps({"errors": errors, "scores": [scores] if scores else []})


def case(gold: str, predicted: str | None, trace: str = "t") -> OfficialCase:
    return official_case(trace, gold, predicted)


def test_all_golden_cases_are_here() -> None:
    assert len(GOLDEN["cases"]) == 19
    assert len(GOLDEN["normalize_category"]) == 22
    assert tuple(GOLDEN["categories_in_order"]) == CATEGORIES


def unrounded(traces: list[dict[str, Any]], name: str) -> float:
    """Pearson of a golden case by scipy, all of whose scores are numbers."""
    from scipy.stats import pearsonr

    said = [json.loads(t["prediction_text"])["scores"][0][SCORES[name]] for t in traces]
    if name == "reliability":
        said = [int(value) for value in said]
    gold = [t["ground_truth"]["scores"][0][SCORES[name]] for t in traces]
    return float(pearsonr(gold, [value or -1 for value in said]).statistic)


@pytest.mark.parametrize("number", range(19))
def test_golden(number: int) -> None:
    golden = GOLDEN["cases"][number]
    found = scored(
        *(
            case(json.dumps(t["ground_truth"]), t["prediction_text"], str(i))
            for i, t in enumerate(golden["traces"])
        )
    )
    expected = golden["expected"]
    means = (found.weighted_f1.mean, found.location.mean, found.joint.mean)
    keys = ("weighted_f1", "location_accuracy", "joint_accuracy")
    exact = [float(Fraction(expected[key]).limit_denominator(100)) for key in keys]  # few errors
    assert exact == pytest.approx([expected[key] for key in keys], abs=PRINTED)
    assert means == pytest.approx(exact, abs=1e-9)
    assert {NAMES.get(k, k) for k in found.pearson} == set(expected["pearson"])
    for name, one in found.pearson.items():
        golden_one = expected["pearson"][NAMES.get(name, name)]
        assert one.n == golden_one["n"]
        assert one.r == pytest.approx(golden_one["r"], abs=PRINTED)
        if one.r is not None:
            assert one.r == pytest.approx(unrounded(golden["traces"], name), abs=1e-9)
    supported = {c.category: c for c in found.categories if c.support}
    assert set(supported) == set(expected["per_category"])
    for name, figures in expected["per_category"].items():
        row = supported[name]
        assert (row.precision, row.recall, row.f1, row.support) == pytest.approx(
            tuple(figures[k] for k in ("precision", "recall", "f1", "support")), abs=PRINTED
        )


@pytest.mark.parametrize("written", list(GOLDEN["normalize_category"]))
def test_golden_normalisation(written: str) -> None:
    assert normalize(written) == GOLDEN["normalize_category"][written]


# --- against scikit-learn and scipy ---------------------------------------------------------

labels = st.frozensets(st.integers(0, len(CATEGORIES) - 1), max_size=5)
matrices = st.lists(st.tuples(labels, labels), min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(matrices)
def test_weighted_f1_is_that_of_scikit_learn(
    rows: list[tuple[frozenset[int], frozenset[int]]],
) -> None:
    from sklearn.metrics import f1_score, precision_recall_fscore_support

    truth = np.array([[i in g for i in range(21)] for g, _ in rows], dtype=int)
    guess = np.array([[i in p for i in range(21)] for _, p in rows], dtype=int)
    oracle = f1_score(truth, guess, average="weighted", zero_division=0)
    found = scored(
        *(
            case(
                text(*((CATEGORIES[i], f"s{i}") for i in g)),
                text(*((CATEGORIES[i], f"s{i}") for i in p)),
                str(n),
            )
            for n, (g, p) in enumerate(rows)
        )
    )
    assert found.weighted_f1.mean == pytest.approx(oracle, abs=1e-12)
    each = precision_recall_fscore_support(truth, guess, average=None, zero_division=0)
    for i, one in enumerate(found.categories):
        assert (one.precision, one.recall, one.f1) == pytest.approx(
            tuple(float(part[i]) for part in each[:3]), abs=1e-12
        )
        assert one.support == each[3][i]


numbers = st.one_of(st.integers(0, 5), st.floats(0.5, 5, allow_subnormal=False))


@pytest.mark.slow
@settings(max_examples=often(60, 100), deadline=None)
@given(st.lists(st.tuples(numbers, numbers), min_size=2, max_size=10))
def test_correlation_is_that_of_scipy(pairs: list[tuple[float, float]]) -> None:
    from scipy.stats import pearsonr

    found = scored(
        *(case(text(overall=g), text(overall=p), str(i)) for i, (g, p) in enumerate(pairs))
    ).pearson["overall"]
    gold, guess = ([-1.0 if not v else float(v) for v in side] for side in zip(*pairs, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = float(pearsonr(gold, guess).statistic)
    if np.isnan(oracle):
        assert (found.r, found.reason) == (None, "constant")
    else:
        assert found.r == pytest.approx(oracle, abs=1e-12)


# --- quirks, by hand ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("errors", "scores", "read"),  # None: the program stops, and leaves the trace out
    [
        ("{}", "[]", {}),
        ("[]", "[]", {}),
        ("0", "[]", None),
        ('["x"]', "[]", None),
        ('[{"location": ["a"], "category": "x"}]', "[]", None),
        ("[]", "{}", {}),
        ("[]", "0", {}),
        ("[]", '{"overall": 3}', None),
        ("[]", "[3]", None),
        ("[]", '[{"overall": 3}, "x"]', {"overall": 3.0}),
        *(("[]", f'[{{"{key}": [4]}}]', None) for key in SCORES.values()),
        ("[]", '[{"plan_opt_score": {"score": 4}}]', None),
        ("[]", '[{"plan_opt_score": [], "overall": {}}]', {"plan_opt": -1.0, "overall": -1.0}),
        *(("[]", f'[{{"reliability_score": {big}}}]', None) for big in ("Infinity", "-1e999")),
        ("[]", '[{"reliability_score": "inf"}]', {"reliability": -1.0}),
        ("[]", '[{"overall": Infinity}]', {"overall": float("inf")}),
        ("[]", '[{"overall": "inf"}]', {"overall": float("inf")}),
    ],
)
def test_what_is_in_form(errors: str, scores: str, read: dict[str, float] | None) -> None:
    one = case(text((FORMAT, "a")), f'{{"errors": {errors}, "scores": {scores}}}')
    assert one.skipped == ("prediction not in form" if read is None else None)
    assert (one.predicted and one.predicted.scores) == read


@pytest.mark.parametrize(
    ("value", "reliability", "other"),
    [
        (1.9, 1, 1.9),
        (0, -1, -1),
        ("", -1, -1),
        (None, -1, -1),
        ("3", 3, 3),
        ("2.5", -1, 2.5),
        (True, 1, 1),
        (float("nan"), -1, None),
    ],
)
def test_scores_are_read_with_their_quirks(value: Any, reliability: float, other: float) -> None:
    from scipy.stats import pearsonr

    gold, rest = [1.5, 2, 5], [2, 4]  # of gold nothing is cut
    found = scored(
        *(
            case(text(reliability_score=g, overall=g), text(reliability_score=p, overall=p), str(i))
            for i, (g, p) in enumerate(zip(gold, [value, *rest], strict=True))
        )
    ).pearson
    for name, read in (("reliability", reliability), ("overall", other)):
        if read is None:
            assert (found[name].r, found[name].reason) == (None, "not finite")
        else:
            assert found[name].r == pytest.approx(pearsonr(gold, [read, *rest]).statistic)


# --- parsing --------------------------------------------------------------------------------


def drop_from_the_end(whole: str) -> Any:
    """What the specification says, literally."""
    start, end = whole.find("{"), whole.rfind("}")
    if start < 0 or end < start:
        return None
    for stop in range(end + 1, start, -1):
        try:
            return json.loads(whole[start:stop])
        except ValueError:
            continue
    return None


@settings(max_examples=often(80, 300), deadline=None)
@given(st.text(alphabet='{}[]"a1:, \n\\', max_size=30))
def test_parsing_is_that_of_dropping_characters(whole: str) -> None:
    expected = drop_from_the_end(whole)
    if expected is None:
        with pytest.raises(ReplyError):
            parse(whole)
    else:
        assert parse(whole) == expected


# --- readings of a capable model, where the annotations of their traces are at hand ----------

KEPT = Path(__file__).parents[1] / "golden/capable/locator.jsonl"
# prompts, reading: weighted F1 of categories, location, joint, Pearson's r of the overall grade
FIGURES = {
    ("before", 1): (0.349, 0.955, 0.320, 0.691),
    ("before", 2): (0.563, 0.955, 0.518, 0.580),
    ("after", 2): (0.421, 0.909, 0.321, 0.304),
    ("after, faults", 3): (0.517, 0.955, 0.505, None),  # of errors alone
    ("after, place", 4): (0.491, 0.818, 0.505, 0.520),
    ("after, place", 5): (0.524, 0.818, 0.456, 0.507),
}


@pytest.mark.skipif(not DATA.is_dir(), reason="the annotated traces are not here")
def test_readings_score_as_told() -> None:
    cases: dict[tuple[str, int], list[OfficialCase]] = defaultdict(list)
    for line in KEPT.read_text("utf-8").splitlines():
        row = json.loads(line)
        gold = (DATA / "gaia/gold" / f"{row['trace']}.json").read_text("utf-8")
        said = json.dumps({"errors": row["errors"], "scores": [row["scores"]]})
        cases[row["prompts"], row["reading"]].append(official_case(row["trace"], gold, said))
    for reading, expected in FIGURES.items():
        scores = score_official(cases[reading], resamples=100)
        overall = scores.pearson["overall"].r if "overall" in scores.pearson else None
        figures = (scores.weighted_f1.mean, scores.location.mean, scores.joint.mean, overall)
        assert figures[:3] == pytest.approx(expected[:3], abs=0.0006), reading
        assert figures[3] == (expected[3] and pytest.approx(expected[3], abs=0.0006)), reading
        assert scores.traces == 11  # one gold file is no JSON, as published
    assert set(cases) == set(FIGURES)
