"""A judge against labels: figures worked out by hand or by other libraries, nothing left unsaid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from agenteval.analysis.agreement import Agreement, AgreeOptions, agree
from agenteval.analysis.panel import agreement_among, panel
from agenteval.analysis.ratings import RunRatings, levels_of, with_runs
from agenteval.analysis.rubrics import ITEMS, ITEMS_CRITERION
from agenteval.errors import InputError
from agenteval.records import Criterion
from agenteval.stats.scores import ScoreTable, score_table

OK = Criterion(name="OK", accepted_values=("no", "yes"), scale="binary")
GRADE = Criterion(name="Grade", accepted_values=("bad", "fair", "good"))
KIND = Criterion(name="Kind", accepted_values=("x", "y", "z"), scale="nominal")
SPEED = Criterion(name="Speed", scale="numeric", numeric_range=(0.0, 60.0))


def rows(criterion: Criterion, labels: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """One rating per run, or one per repeat where a run has a list; None is a failure."""
    found = []
    for run, given in labels.items():
        for repeat, label in enumerate(given if isinstance(given, list) else [given]):
            row = {"run": run, "criterion": criterion.id, "repeat": repeat, **more}
            if label is None:
                row["status"] = "unscored:parse"
            elif label == "n/a":
                row["status"] = "not_applicable"
            elif isinstance(label, float):
                row["value"] = label
            else:
                row |= {"label": label, "value": criterion.value_of(label)}
            found.append(row)
    return found


def table(criterion: Criterion, labels: dict[str, Any], **more: Any) -> ScoreTable:
    return score_table(rows(criterion, labels, **more))


def one(judge: ScoreTable, labels: ScoreTable, *criteria: Criterion, **how: Any) -> Agreement:
    found = agree(judge, labels, criteria, AgreeOptions(**how))
    assert len(found) == 1
    return found[0]


def spread(cells: list[list[int]], names: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and judge's ratings of runs with this confusion matrix."""
    label: dict[str, str] = {}
    judge: dict[str, str] = {}
    for i, row in enumerate(cells):
        for j, n in enumerate(row):
            for _ in range(n):
                run = f"r{len(label)}"
                label[run], judge[run] = names[i], names[j]
    return label, judge


def test_two_levels_by_hand() -> None:
    # 20, 5 / 10, 15: agreement 35/50; chance (25·30 + 25·20)/2500 = .5; kappa (.7 - .5)/.5 = .4
    label, judge = spread([[20, 5], [10, 15]], OK.accepted_values)
    found = one(table(OK, judge), table(OK, label), OK)
    assert (found.n, found.cases) == (50, 50)
    assert found.confusion == ((20, 5), (10, 15))
    assert found.exact.mean == pytest.approx(0.7)
    assert found.kappa.mean == pytest.approx(0.4)
    assert found.weighted.mean == pytest.approx(0.4)  # two levels: nothing to weigh
    # phi of this 2 × 2 table: (20·15 - 5·10) / sqrt(25·25·30·20)
    assert found.spearman.mean == pytest.approx(250 / math.sqrt(25 * 25 * 30 * 20))
    # alpha: 1 - (n - 1) o_01 / (n_0 n_1), 100 values, 55 of them "no", 15 unequal pairs
    assert found.alpha.mean == pytest.approx(1 - 99 * 15 / (55 * 45))
    assert found.bias.mean == pytest.approx((20 - 25) / 50)
    assert found.judge_mean == pytest.approx(0.4)
    assert found.label_mean == pytest.approx(0.5)
    assert found.warnings == ()
    for figure in (
        found.exact,
        found.kappa,
        found.weighted,
        found.alpha,
        found.spearman,
        found.bias,
    ):
        assert figure.low is not None
        assert figure.mean is not None
        assert figure.high is not None
        assert figure.low < figure.mean < figure.high


def test_three_levels_against_sklearn_and_scipy() -> None:
    from scipy.stats import spearmanr
    from sklearn.metrics import cohen_kappa_score

    label, judge = spread([[6, 3, 1], [2, 9, 4], [0, 3, 12]], GRADE.accepted_values)
    found = one(table(GRADE, judge), table(GRADE, label), GRADE)
    first = [GRADE.accepted_values.index(v) for v in label.values()]
    second = [GRADE.accepted_values.index(v) for v in judge.values()]
    assert found.kappa.mean == pytest.approx(cohen_kappa_score(first, second))
    quadratic = cohen_kappa_score(first, second, weights="quadratic")
    assert found.weighted.mean == pytest.approx(quadratic)
    assert found.spearman.mean == pytest.approx(spearmanr(first, second).statistic)


def test_the_judges_level_is_the_commonest_and_ties_go_against_it() -> None:
    said = {
        "a": ["good", "good", "bad"],
        "b": ["good", "fair"],  # both as near to the mean: the worse one
        "c": ["bad", "bad", "good", "good", "fair", "fair"],  # all three: fair is the mean
        "d": [None, "good"],
        "e": [None, None],
    }
    own = table(GRADE, said)
    rater = RunRatings.of(own, levels_of("grade", [GRADE], [own]))
    levels = {run: rater.level[i] for run, i in rater.position.items()}
    assert [levels[r] for r in "abcd"] == [2, 1, 1, 2]
    assert math.isnan(levels["e"])
    assert rater.tied.tolist() == [False, True, True, False, False]
    assert rater.reason == ("", "", "", "", "failed")
    assert rater.mean[0] == pytest.approx(2 / 3)


def test_what_is_not_rated_is_counted_and_never_a_number() -> None:
    judge = table(
        GRADE,
        {
            "a": "good",
            "b": [None, "good"],
            "c": None,
            "d": "n/a",
            "e": "fair",
            "f": "n/a",
            "g": "good",
            "j": "bad",
        },
    )
    labels = table(
        GRADE,
        {
            "a": "good",
            "b": "bad",
            "c": "good",
            "d": "n/a",
            "e": None,
            "f": "good",
            "h": "fair",
            "j": "n/a",
        },
    )
    found = one(judge, labels, GRADE)
    assert found.n == 2
    assert found.left_out == {
        "not labelled": 1,
        "not judged": 1,
        "not applicable for both": 1,
        "judge: failed": 1,
        "judge: not applicable": 1,
        "label: failed": 1,
        "label: not applicable": 1,
    }
    assert found.failures == {"unscored:parse": 2, "not_applicable": 2}
    assert found.judge_mean == 1.0
    assert found.label_mean == 0.5


def test_few_runs_are_named_with_what_they_could_tell() -> None:
    runs = {f"r{i}": "good" if i % 2 else "bad" for i in range(20)}
    found = one(table(GRADE, runs), table(GRADE, runs), GRADE)
    # Wilson interval of 16 of 20, from statsmodels: .584 to .919
    assert any("fewer than 30" in w and "58% to 92%" in w for w in found.warnings)
    assert found.kappa.mean == 1.0
    assert found.kappa.low is None
    assert "every resample" in (found.kappa.reason or "")
    assert not one(table(GRADE, runs), table(GRADE, runs), GRADE, few=20).warnings


def test_runs_of_one_case_are_one_draw() -> None:
    rng = np.random.default_rng(3)
    single, label, judge = {}, {}, {}
    for c in range(25):
        grade = GRADE.accepted_values[rng.integers(3)]
        other = grade if rng.random() < 0.7 else GRADE.accepted_values[rng.integers(3)]
        single[f"r{c}"] = other
        for copy in range(4):
            label[f"r{c}-{copy}"], judge[f"r{c}-{copy}"] = grade, other
    alone = {run: label[f"{run}-0"] for run in single}
    case = {run: run.split("-")[0] + " problem" for run in label}
    once = one(table(GRADE, single), table(GRADE, alone), GRADE)
    four = one(with_runs(table(GRADE, judge), case, {}), table(GRADE, label), GRADE)
    naive = one(table(GRADE, judge), table(GRADE, label), GRADE)
    assert (four.n, four.cases, naive.cases) == (100, 25, 100)

    def width(found: Agreement) -> float:
        assert found.kappa.low is not None
        assert found.kappa.high is not None
        return found.kappa.high - found.kappa.low

    # four copies of a run hold nothing new
    assert width(four) == pytest.approx(width(once), rel=0.15)
    assert width(naive) < 0.7 * width(four)


def test_numbers_without_levels() -> None:
    a = {f"r{i}": i / 40 for i in range(40)}
    b = {run: value / 2 for run, value in a.items()}
    found = one(table(SPEED, b), table(SPEED, a), SPEED)
    assert found.exact.reason == "a number without levels"
    assert found.spearman.mean == 1.0
    assert found.bias.mean == pytest.approx(-sum(a.values()) / 80)
    assert found.confusion == ()


def test_criteria_nobody_described_have_the_values_that_occur() -> None:
    a = {f"r{i}": i % 2 / 2 for i in range(40)}
    found = one(table(GRADE, a), table(GRADE, a))
    assert found.levels == ("0", "0.5")
    many = {f"r{i}": i / 40 for i in range(40)}
    assert one(table(GRADE, many), table(GRADE, many)).levels == ()


def test_the_corrected_rate_of_the_unlabelled_runs() -> None:
    # labelled: 10 bad, 8 called bad; 20 good, 18 called good. Unlabelled: 30 of 40 called good.
    label, judge = spread([[8, 2], [2, 18]], OK.accepted_values)
    judge |= {f"u{i}": "yes" if i < 30 else "no" for i in range(40)}
    found = one(table(OK, judge), table(OK, label), OK).corrected
    assert found is not None
    assert (found.apparent, found.specificity, found.sensitivity) == (0.75, 0.8, 0.9)
    assert found.rate.mean == pytest.approx((0.75 + 0.8 - 1) / (0.8 + 0.9 - 1))
    assert one(table(GRADE, {"a": "bad"}), table(GRADE, {"a": "bad"}), GRADE).corrected is None


def test_a_cut_says_what_is_good() -> None:
    label = {f"r{i}": GRADE.accepted_values[i % 3] for i in range(30)}
    judge = label | {f"u{i}": "fair" for i in range(5)}
    fair = one(table(GRADE, judge), table(GRADE, label), GRADE, cut=0.5).corrected
    good = one(table(GRADE, judge), table(GRADE, label), GRADE, cut=0.9).corrected
    assert fair is not None
    assert (fair.n_bad, fair.n_good, fair.apparent) == (10, 20, 1.0)
    assert good is not None
    assert (good.n_bad, good.n_good, good.apparent) == (20, 10, 0.0)
    for cut in (0.0, 1.5):
        with pytest.raises(InputError, match="cut"):
            AgreeOptions(cut=cut)


def test_nothing_in_common_is_one_clear_line() -> None:
    with pytest.raises(InputError, match=r"no criterion is rated by both.*ok.*grade"):
        agree(table(OK, {"a": "yes"}), table(GRADE, {"a": "good"}))
    with pytest.raises(InputError, match=r"no run is rated by both.*the judge rated a; .* of b"):
        agree(table(OK, {"a": "yes"}), table(OK, {"b": "yes"}))


def test_raters_among_themselves() -> None:
    a = {f"r{i}": "yes" for i in range(10)} | {"only-a": "no"}
    b = {run: "no" if run in ("r0", "r1") else "yes" for run in a if run != "only-a"}
    c = {"r0": "yes"}
    found = agreement_among({"A": table(OK, a), "B": table(OK, b), "C": table(OK, c)}, [OK])
    assert len(found) == 1
    assert (found[0].n, found[0].raters) == (10, ("A", "B", "C"))
    # r0: yes, no, yes: one of three pairs is equal; r1: none; the other eight all
    assert found[0].exact.mean == pytest.approx((1 / 3 + 0 + 8) / 10)


def test_a_panel_without_each() -> None:
    label = table(SPEED, {"a": 0.2, "b": 0.6, "c": 1.0, "d": 0.4})
    judges = {
        "high": table(SPEED, {"a": 0.4, "b": 0.8, "c": 1.0, "d": None}),
        "low": table(SPEED, {"a": 0.0, "b": 0.4, "c": 0.8, "d": 0.4}),
        "right": table(SPEED, {"a": 0.2, "b": 0.6, "c": 1.0, "d": 0.4}),
    }
    panels = panel(judges, label, [SPEED])
    # without order of levels a number still is on a scale; d is left out, "high" failed there
    (judges_panel,) = panels
    assert judges_panel.n == 3
    # means .2, .6, 2.8/3: errors 0, 0, .2/3
    assert judges_panel.error.mean == pytest.approx(0.2 / 9)
    by = {member.name: member for member in judges_panel.members}
    assert by["high"].error.mean == pytest.approx(0.4 / 3)
    assert by["low"].error.mean == pytest.approx(0.2)
    # without high: .1, .5, .9; without low: .3, .7, 1
    assert by["high"].without.mean == pytest.approx(0.1)
    assert by["low"].without.mean == pytest.approx(0.2 / 3)
    for member in judges_panel.members:
        assert member.without.mean is not None
        assert judges_panel.error.mean is not None
        assert member.change.mean == pytest.approx(member.without.mean - judges_panel.error.mean)


def test_names_of_runs_from_elsewhere_give_case_and_success() -> None:
    own = table(OK, {"a": "yes", "b": "no"}, success=True)
    placed = with_runs(own, {"a": "p"}, {"a": False, "b": None})
    assert [placed.case.names[i] for i in placed.case.codes] == ["p", "b"]
    assert placed.success.tolist() == [0, 1]


def test_kappa_counts_the_runs_that_it_is_over() -> None:
    """Ten of 40 values of the judge lie between two levels: means compare, levels do not."""
    label = {f"r{i}": float(i % 3) / 2 for i in range(40)}
    judge = {run: 0.25 if i < 10 else value for i, (run, value) in enumerate(label.items())}
    found = one(table(GRADE, judge), table(GRADE, label), GRADE)
    assert (found.n, found.compared) == (40, 30)
    assert (found.exact.n, found.kappa.n, found.bias.n) == (30, 30, 40)
    assert found.exact.mean == 1
    assert found.warnings[0] == (
        "10 of 40 runs rated by both have no level; equal levels, kappa and alpha use 30"
    )
    assert not any("fewer than 30" in w for w in found.warnings)
    few = one(table(GRADE, judge), table(GRADE, label), GRADE, few=31)
    assert any(w.startswith("30 runs rated by both, fewer than 31") for w in few.warnings)


def test_a_nominal_criterion_is_counted_and_not_averaged() -> None:
    label = {f"r{i}": "xyz"[i % 3] for i in range(30)}
    found = one(table(KIND, label), table(KIND, label), KIND)
    assert (found.n, found.compared) == (30, 30)
    assert found.bias.reason == found.spearman.reason == "nominal: counted, not averaged"


def test_labels_of_items_that_the_judge_could_not_tell_are_counted() -> None:
    judge = [("r#1", 1.0), ("r#2", 0.0), ("s#1", None), ("s#2", None)]
    status = {None: "not_applicable"}
    rated = score_table(
        {"run": run, "criterion": ITEMS, "value": v, "status": status.get(v, "scored")}
        for run, v in judge
    )
    labels = score_table({"run": run, "criterion": ITEMS, "value": 1.0} for run, _ in judge)
    (found,) = agree(rated, labels, [ITEMS_CRITERION])
    assert found.n == 2
    assert "2 labels not compared: the judge could not tell" in found.warnings
