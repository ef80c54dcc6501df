"""Every rule that docs/verify.md prints, on both sides of its number and before the rules after it.

Ratings are small tables whose answer is known by hand; p-values of sign flips are powers of 1/2.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agenteval.records import Criterion
from agenteval.records.criteria import Direction
from agenteval.records.verification import Check, Effect, Outcome, Verification, VerifiedSet
from agenteval.stats.scores import score_table
from agenteval.utility.verify import verify_table
from agenteval.utility.verify.checks import (
    agreement,
    alpha,
    coverage,
    separation,
    spread,
    upside_down,
)
from agenteval.utility.verify.effects import effects
from agenteval.utility.verify.evidence import Evidence, gather
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verify.redundancy import redundancy
from agenteval.utility.verify.verdict import decide
from tests.utility.verify.making import LEVELS, criterion, quality, table

OPTIONS = VerifyOptions(resamples=200)
CASES = 40
WORDS = {"lower": "fell", "higher": "rose"}


# ---- effects: what counts as moved ---------------------------------------------------------------

Falls = Sequence[tuple[int, float]]  # (cases, by how much each falls); the others stay


def copies(operator: str, falls: Falls, cases: int = CASES, unrated: int = 0) -> dict[str, Any]:
    """Ratings of copies by one operator; `unrated` of them failed."""
    drops = list(itertools.chain(*([by] * n for n, by in falls)))
    drops += [0.0] * (cases - len(drops))
    return {"operator": operator, "drops": drops, "unrated": unrated}


def moved(
    expect: dict[str, dict[str, Direction]],
    made: dict[str, list[dict[str, Any]]],
    options: VerifyOptions = OPTIONS,
) -> dict[tuple[str, str], Effect]:
    """Effects by (criterion, operator); every original is rated .5."""
    rows: list[dict[str, Any]] = []
    for name, variants in made.items():
        for case in range(CASES):
            rows.append({"run": f"r{case}", "criterion": name, "value": 0.5})
        for one in variants:
            for case, drop in enumerate(one["drops"]):
                row = {"run": f"r{case}", "criterion": name, "variant": f"{one['operator']}:-:0"}
                failed = case >= len(one["drops"]) - one["unrated"]
                row |= {"status": "unscored:parse"} if failed else {"value": 0.5 - drop}
                rows.append(row)
    criteria = [Criterion(name=n, accepted_values=LEVELS, expect=expect.get(n, {})) for n in made]
    found = effects(gather(score_table(rows), criteria), options)
    return {(c.id, e.operator): e for c, row in zip(criteria, found, strict=True) for e in row}


def one_effect(
    expected: Direction, *made: dict[str, Any], options: VerifyOptions = OPTIONS
) -> Effect:
    """The effect of the first of `made` on the only criterion."""
    found = moved({"a": {made[0]["operator"]: expected}}, {"a": list(made)}, options)
    return found["a", made[0]["operator"]]


@pytest.mark.parametrize(
    ("expected", "falls", "outcome", "reason"),
    [
        # 10 of 40 fall by .25: mean .0625 above the margin of .05, p = 2^-10
        ("lower", [(10, 0.25)], "pass", "fell by 0.062"),
        ("higher", [(10, -0.25)], "pass", "rose by 0.062"),
        # 8 of 40: mean .05 is not more than the margin, though p = 2^-8
        ("lower", [(8, 0.25)], "unknown", "fell by 0.050: no more than a control may move it"),
        # 4 of 40 by .5: mean .05 and p = 2^-4 above .05
        ("lower", [(4, 0.5)], "unknown", "cannot be told from no effect with this many cases"),
        # the whole interval below the margin: 1 of 40 by .25
        ("lower", [(1, 0.25)], "fail", "did not fall as expected: by at most 0.019"),
        ("lower", [], "fail", "was expected to fall and did not move in any case"),
        # the other way
        ("lower", [(10, -0.25)], "fail", "was expected to fall and rose by 0.062"),
        ("higher", [(10, 0.25)], "fail", "was expected to rise and fell by 0.062"),
        # no change expected of a perturbation that is no control
        ("none", [], "pass", "unmoved: within 0.05 of the scale"),
        ("none", [(10, -0.25)], "fail", "rose by 0.062 although none was expected"),
        ("none", [(10, 0.25)], "fail", "fell by 0.062 although none was expected"),
        ("none", [(8, 0.25)], "unknown", "neither unmoved nor moved beyond doubt"),
        # two-sided: 2·2^-5 is above .05, whatever the size
        ("none", [(5, 0.5)], "unknown", "neither unmoved nor moved beyond doubt"),
        ("unknown", [(40, 0.5)], "unknown", "no direction was expected"),
    ],
)  # fmt: skip
def test_what_moved(expected: Direction, falls: Falls, outcome: str, reason: str) -> None:
    effect = one_effect(expected, copies("pad", falls))
    assert (effect.outcome, effect.reason) == (outcome, reason)


@pytest.mark.parametrize(("unrated", "outcome"), [(8, "pass"), (9, "unknown")], ids=["80%", "less"])
def test_an_effect_counts_where_80_percent_of_the_copies_were_rated(
    unrated: int, outcome: str
) -> None:
    effect = one_effect("lower", copies("pad", [(20, 0.25)], unrated=unrated))
    assert effect.outcome == outcome
    assert (effect.pairs, effect.missing) == (40 - unrated, unrated)
    if outcome == "unknown":
        assert effect.reason == "only 31 of 40 copies were rated"


@pytest.mark.parametrize(("cases", "outcome"), [(20, "pass"), (19, "unknown")])
@pytest.mark.parametrize(
    ("operator", "expected", "falls"),
    [("pad", "lower", [(10, 0.25)]), ("pad", "none", []), ("whitespace", "none", [])],
)
def test_an_effect_needs_20_cases_and_so_does_a_control(
    operator: str, expected: Direction, falls: Falls, cases: int, outcome: str
) -> None:
    effect = one_effect(expected, copies(operator, falls, cases=cases))
    assert effect.outcome == outcome
    assert (effect.reason == "19 cases; 20 are needed") is (outcome == "unknown")


@pytest.mark.parametrize(
    ("control", "falls", "outcome"),
    [
        # the control moves it by .0625; .0625 + .05 is not more than .05 beyond it
        (copies("whitespace", [(10, 0.25)]), [(18, 0.25)], "unknown"),
        (copies("whitespace", [(10, 0.25)]), [(19, 0.25)], "pass"),
        (copies("whitespace", [(10, -0.25)]), [(18, 0.25)], "unknown"),  # either way
        (copies("formatting", [(10, 0.25)]), [(18, 0.25)], "unknown"),
        (copies("paraphrase", [(10, 0.25)]), [(18, 0.25)], "unknown"),
        # what is no control raises no margin, whatever is expected of it
        (copies("pad", [(40, 0.25)]), [(18, 0.25)], "pass"),
        # nor does a control of too few cases, or of too few rated copies
        (copies("whitespace", [(19, 0.5)], cases=19), [(18, 0.25)], "pass"),
        (copies("whitespace", [(20, 0.5)], cases=20), [(18, 0.25)], "unknown"),
        (copies("whitespace", [(40, 0.5)], unrated=9), [(18, 0.25)], "pass"),
    ],
)  # fmt: skip
def test_an_effect_must_exceed_every_control_by_the_margin(
    control: dict[str, Any], falls: Falls, outcome: str
) -> None:
    expect: dict[str, Direction] = {"drop_words": "lower", control["operator"]: "none"}
    found = moved({"a": expect}, {"a": [control, copies("drop_words", falls)]})
    effect = found["a", "drop_words"]
    assert effect.outcome == outcome
    if outcome == "unknown":
        by = abs(found["a", control["operator"]].estimate or 0)
        assert effect.reason.endswith(f"but {control['operator']} moved it by {by:.3f} as well")


@pytest.mark.parametrize(
    ("expect", "expected"),
    [({}, "none"), ({"whitespace": "none"}, "none"), ({"whitespace": "unknown"}, "unknown"),
     ({"whitespace": "lower"}, "lower")],
)  # fmt: skip
def test_a_control_is_one_unless_the_criterion_says_otherwise(
    expect: dict[str, Direction], expected: str
) -> None:
    found = moved({"a": expect}, {"a": [copies("whitespace", [])]})
    assert found["a", "whitespace"].expected == expected


def test_other_operators_are_judged_only_where_something_is_expected() -> None:
    assert moved({}, {"a": [copies("mine", [])]})["a", "mine"].expected == "unknown"


def outcomes(*falls: Falls, more: Sequence[dict[str, Any]] = ()) -> list[str]:
    """Of one criterion for each of `falls`, all expected to fall under `pad`; each with `more`."""
    names = [f"c{i}" for i in range(len(falls))]
    made = {n: [copies("pad", f), *more] for n, f in zip(names, falls, strict=True)}
    expect: dict[str, Direction] = {"pad": "lower", "drop_words": "none"}
    found = moved(dict.fromkeys(names, expect), made)
    return [found[n, "pad"].outcome for n in names]


# 5 of 40 by .5: mean .0625, p = 2^-5 = .031; 8 of 40: .1, p = 2^-8 = .0039
WEAK, STRONG = [(5, 0.5)], [(8, 0.5)]


def test_holm_over_all_criteria() -> None:
    assert outcomes(WEAK) == ["pass"]
    assert outcomes(WEAK, WEAK) == ["unknown", "unknown"]  # 2 · .031
    assert outcomes(WEAK, STRONG) == ["pass", "pass"]  # .031 is not doubled: Holm, not Bonferroni
    assert outcomes(WEAK, WEAK, STRONG) == ["unknown", "unknown", "pass"]


@pytest.mark.parametrize("operator", ["whitespace", "drop_words"], ids=["controls", "no effect"])
def test_holm_apart_for_directions_controls_and_what_should_not_move(operator: str) -> None:
    assert outcomes(WEAK, more=[copies(operator, [])]) == ["pass"]


def test_holm_of_controls_is_not_that_of_other_expectations() -> None:
    # 2 · 2^-6 = .031 two-sided: it stands alone in its family, and would be doubled in another
    still = [copies("drop_words", [(6, 0.5)]), copies("whitespace", [])]
    found = moved({"a": {"drop_words": "none"}}, {"a": still})
    assert found["a", "drop_words"].outcome == "fail"


# ---- checks: on both sides of their numbers ------------------------------------------------------


def rated(
    values: Sequence[Sequence[float | None]],
    success: Sequence[bool | None] | None = None,
    name: str = "a",
) -> Evidence:
    """One run and case per row, one repeat per column; None is a failure."""
    rows = []
    for case, repeats in enumerate(values):
        for repeat, value in enumerate(repeats):
            row = {"run": f"r{case}", "criterion": name, "repeat": repeat,
                   "success": None if success is None else success[case]}  # fmt: skip
            rows.append(row | ({"status": "unscored:parse"} if value is None else {"value": value}))
    return gather(score_table(rows), [criterion(name)])[0]


@pytest.mark.parametrize(("lost", "outcome"), [(8, "pass"), (9, "fail")])
def test_80_percent_of_the_ratings(lost: int, outcome: str) -> None:
    values = [[None if i < lost else quality(i)] for i in range(40)]
    assert coverage(rated(values), OPTIONS).outcome == outcome


@pytest.mark.parametrize(("crowd", "end"), [(32, None), (33, "top")])
def test_80_percent_at_one_end(crowd: int, end: str | None) -> None:
    top = rated([[1.0 if i < crowd else 0.5] for i in range(40)])
    assert top.crowded(OPTIONS.ceiling) == end
    assert ("at the top" in spread(top, OPTIONS).reason) is (end is not None)
    bottom = rated([[0.0 if i < crowd else 0.5] for i in range(40)])
    assert bottom.crowded(OPTIONS.ceiling) == (end and "bottom")


def ac2(data: np.ndarray, levels: int = 5) -> float:
    """Gwet's AC2 with linear weights of complete (units, raters) data, from its definition."""
    place = np.round(data * (levels - 1)).astype(int)
    weight = 1 - np.abs(np.subtract.outer(np.arange(levels), np.arange(levels))) / (levels - 1)
    pairs = [weight[u[i], u[j]] for u in place for i, j in itertools.permutations(range(len(u)), 2)]
    share = np.bincount(place.ravel(), minlength=levels) / place.size
    chance = weight.sum() / (levels * (levels - 1)) * float((share * (1 - share)).sum())
    return float((np.mean(pairs) - chance) / (1 - chance))


def disagreeing(every: int, cases: int = 60) -> list[list[float]]:
    """Two repeats; in one case of `every` the second is another level."""
    return [
        [quality(i), (quality(i) + 0.5) % 1.25 if i % every == 0 else quality(i)]
        for i in range(cases)
    ]


@pytest.mark.parametrize(
    ("by", "outcome"),
    [
        ({"agreement": -0.001, "agreement_floor": -0.001}, "pass"),
        ({"agreement": -0.001, "agreement_floor": +0.001}, "unknown"),  # reaches below the floor
        ({"agreement": +0.001, "agreement_floor": -0.001}, "unknown"),
    ],
)
def test_agreement_and_its_floor(by: dict[str, float], outcome: str) -> None:
    evidence = rated(disagreeing(8))
    plain = agreement(evidence, OPTIONS)
    assert plain.low is not None
    assert plain.high is not None
    exact = ac2(np.array(disagreeing(8)))
    assert plain.estimate == pytest.approx(exact)
    options = VerifyOptions(
        agreement=exact + by["agreement"], agreement_floor=plain.low + by["agreement_floor"],
        resamples=200,
    )  # fmt: skip
    assert agreement(evidence, options).outcome == outcome


def test_disagreement_is_sure_when_the_whole_interval_lies_below() -> None:
    evidence = rated(disagreeing(3))
    high = agreement(evidence, OPTIONS).high
    assert high is not None
    for bound, outcome in ((high + 0.001, "fail"), (high - 0.001, "unknown")):
        options = VerifyOptions(agreement=bound, agreement_floor=0.01, resamples=200)
        check = agreement(evidence, options)
        assert check.outcome == outcome
        assert check.reason.startswith("repeats disagree") is (outcome == "fail")


@pytest.mark.parametrize(("twice", "outcome"), [(20, "pass"), (19, "unknown")])
def test_agreement_needs_20_cases_that_were_rated_twice(twice: int, outcome: str) -> None:
    values = [[quality(i), quality(i) if i < twice else None] for i in range(60)]
    assert agreement(rated(values), OPTIONS).outcome == outcome


def test_agreement_is_told_where_nearly_all_ratings_are_at_one_end() -> None:
    # 8 of 60 runs differ by one level: alpha is near 0 although 93% of the repeats are equal
    evidence = rated([[1.0, 1.0 if i > 7 else 0.75] for i in range(60)])
    assert agreement(evidence, OPTIONS).outcome == "pass"
    shown = alpha(evidence, OPTIONS)
    assert shown.outcome == "unknown"
    assert (shown.estimate or 0) < 0.1
    noisy = [[1.0, 0.0 if i % 5 == 0 else 0.5] for i in range(60)]
    assert agreement(rated(noisy), OPTIONS).outcome == "fail"


@pytest.mark.parametrize(
    ("values", "outcome", "reason"),
    [
        ([[quality(i)] for i in range(30)], "pass", "deterministic, as declared"),
        ([[quality(i)] * 2 for i in range(30)], "pass", "deterministic, as declared"),
        (disagreeing(2), "fail", "repeats disagree"),  # the ratings contradict what was declared
    ],
)
def test_declared_deterministic(
    values: list[list[float | None]], outcome: str, reason: str
) -> None:
    check = agreement(rated(values), VerifyOptions(deterministic=True, resamples=200))
    assert check.outcome == outcome
    assert check.reason.startswith(reason)


def halves(overlap: int, n: int = 40) -> tuple[list[list[float]], list[bool]]:
    """n/2 successful runs at 1 and n/2 failed ones at 0, but `overlap` of each the other way."""
    side = n // 2
    values = [[1.0]] * (side - overlap) + [[0.0]] * overlap
    values += [[0.0]] * (side - overlap) + [[1.0]] * overlap
    return values, [True] * side + [False] * side


def test_success_is_told_when_the_interval_lies_above_one_half() -> None:
    seen = set()
    for overlap in range(21):
        (check,) = upside_down([separation(rated(*halves(overlap)), OPTIONS)], OPTIONS)
        assert check.low is not None
        assert check.high is not None
        expected = "pass" if check.low > 0.5 else "fail" if check.high < 0.574 else "unknown"
        if (check.p_adjusted or 1) < 0.05:  # Holm over one criterion: one-sided
            expected = "fail"
        assert check.outcome == expected
        # AUC by hand: P(1 > 0) + P(equal)/2 = 1 - overlap/20
        assert check.estimate == pytest.approx(1 - overlap / 20)
        assert check.p_adjusted is not None
        reversed_scale = check.reason.startswith("failed runs are rated higher")
        assert reversed_scale is (check.p_adjusted < 0.05)
        assert not reversed_scale or check.estimate < 0.4
        seen.add(expected)
    assert seen == {"pass", "fail", "unknown"}


def test_below_574_counts_as_not_told() -> None:
    """Equal distributions: AUC 1/2, and many runs bring the upper end below .574 but not .5."""
    values, success = halves(200, 800)
    check = separation(rated(values, success), OPTIONS)
    assert check.high is not None
    assert 0.5 < check.high < 0.574
    assert check.outcome == "fail"
    options = VerifyOptions(auc=check.high - 0.001, resamples=200)
    assert separation(rated(values, success), options).outcome == "unknown"


@pytest.mark.parametrize(("failed", "outcome"), [(5, "pass"), (4, "unknown")])
def test_five_runs_on_either_side(failed: int, outcome: str) -> None:
    success = [i >= failed for i in range(40)]
    values = [[1.0 if s else 0.0] for s in success]
    assert separation(rated(values, success), OPTIONS).outcome == outcome
    turned = [not s for s in success]
    upside = separation(rated(values, turned), OPTIONS)
    assert upside.outcome == ("fail" if failed == 5 else "unknown")


# ---- decide: the first rule that applies ---------------------------------------------------------

P, F, U = "pass", "fail", "unknown"


def check(name: str, outcome: Outcome, high: float | None = None) -> Check:
    p = None if high is None else 0.01 if high < 0.5 else 0.2
    return Check(name=name, outcome=outcome, reason=f"{name} {outcome}", estimate=0.9, high=high,
                 p_adjusted=p)  # fmt: skip


def effect(expected: Direction, outcome: Outcome, operator: str = "pad", n: int = 40) -> Effect:
    return Effect(variant=f"{operator}:-:0", operator=operator, expected=expected, outcome=outcome,
                  reason=f"{expected} {outcome}", n=n, pairs=n)  # fmt: skip


FELL, BLIND = effect("lower", P), effect("lower", F, "drop_words")
UNSURE = effect("lower", U)
SWAYED, JUMPY = effect("none", F, "shuffle_sentences"), effect("none", F, "whitespace")
STILL = effect("none", P, "whitespace")

ROWS = [
    # coverage, spread, agreement, discrimination (upper end), effects -> verdict, first reason
    (P, P, P, P, 0.9, [FELL], "keep", "agreement pass"),
    (P, P, P, U, 0.9, [FELL], "keep", "agreement pass"),
    (P, P, P, P, 0.9, [], "keep", "agreement pass"),
    (P, P, P, F, 0.55, [FELL], "keep", "agreement pass"),  # noticed, though it does not tell runs
    (P, P, P, U, 0.9, [], "undecided", "discrimination unknown"),
    (P, P, P, U, 0.9, [UNSURE, STILL], "undecided", "discrimination unknown"),
    (P, P, U, P, 0.9, [FELL], "undecided", "agreement unknown"),
    (P, P, U, P, 0.9, [], "undecided", "agreement unknown"),
    # 7: other than expected, before keep and before undecided
    (P, P, P, P, 0.9, [FELL, JUMPY], "repair", "whitespace: none fail"),
    (P, P, P, P, 0.9, [FELL, SWAYED], "repair", "shuffle_sentences: none fail"),
    (P, P, P, P, 0.9, [FELL, BLIND], "repair", "drop_words: lower fail"),
    (P, P, U, U, 0.9, [BLIND], "repair", "drop_words: lower fail"),
    # 6: tells nothing apart, before 7
    (P, P, P, F, 0.55, [], "drop", "discrimination fail"),
    (P, P, P, F, 0.55, [BLIND, UNSURE], "drop", "discrimination fail"),
    (P, P, P, F, 0.55, [JUMPY], "drop", "discrimination fail"),
    # 5: repeats disagree, before 6, 7 and 8
    (P, P, F, U, 0.9, [FELL, BLIND], "repair", "agreement fail"),
    (P, P, F, P, 0.9, [FELL], "repair", "agreement fail"),
    (P, P, F, F, 0.55, [FELL], "drop", "agreement fail"),
    (P, P, F, F, 0.5, [], "drop", "agreement fail"),  # not surely below one half
    # 4: failed runs are rated higher, before 5 to 8
    (P, P, P, F, 0.49, [FELL], "repair", "discrimination fail"),
    (P, P, F, F, 0.49, [FELL], "repair", "discrimination fail"),
    (P, P, F, F, 0.49, [], "repair", "discrimination fail"),
    (P, P, P, U, 0.49, [FELL], "keep", "agreement pass"),  # too few runs on a side to be sure
    # 3: constant, before 4 to 8
    (P, F, F, F, 0.49, [FELL], "undecided", "these runs do not differ on it"),
    (P, F, F, F, 0.49, [BLIND], "drop", "spread fail"),
    (P, F, P, P, 0.9, [UNSURE, SWAYED], "drop", "spread fail"),
    # 2: missing, before 3
    (F, F, F, F, 0.49, [FELL, BLIND], "repair", "coverage fail"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{''.join(x[0] for x in r[:4])}-{r[6]}")
def test_the_first_rule_that_applies(row: tuple[Any, ...]) -> None:
    *outcomes, high, made, verdict, reason = row
    names = ("coverage", "spread", "agreement", "discrimination")
    checks = [
        check(n, o, high if n == "discrimination" else None)
        for n, o in zip(names, outcomes, strict=True)
    ]
    found = decide(rated([[quality(i)] * 2 for i in range(20)]), checks, made, OPTIONS)
    assert (found.verdict, found.reasons[0]) == (verdict, reason)
    assert found.next_step
    few = decide(rated([[quality(i)] * 2 for i in range(19)]), checks, made, OPTIONS)
    assert few.verdict == "undecided"  # 1: before all others
    assert few.reasons == ("19 cases: 1 more are needed to decide anything",)


def test_what_is_missing_is_said() -> None:
    checks = [check(n, U) for n in ("coverage", "spread", "agreement", "discrimination")]
    found = decide(rated([[quality(i)] for i in range(20)]), checks, [], OPTIONS)
    assert found.reasons == (
        "agreement unknown", "discrimination unknown",
        "no perturbation moved it beyond doubt as expected",
    )  # fmt: skip
    assert found.next_step == "rate every text three times (--repeats 3)"


@pytest.mark.parametrize(
    ("status", "rest", "reason", "step"),
    [
        ("unscored:parse", 37, "37 of 40 cases could not be rated (37 unscored:parse); "
         "20 rated ones are needed", "find out why ratings are missing"),
        ("not_applicable", 37, "it does not apply to 37 of 40 cases; 20 rated ones are needed",
         "rate more cases"),
        ("unscored:parse", 2, "3 cases: 17 more are needed to decide anything; "
         "2 of 5 cases could not be rated (2 unscored:parse)", "rate more cases"),
        ("unscored:parse", 0, "3 cases: 17 more are needed to decide anything", "rate more cases"),
    ],
)  # fmt: skip
def test_too_few_cases_or_too_few_that_the_judge_can_rate(
    status: str, rest: int, reason: str, step: str
) -> None:
    rows: list[dict[str, Any]] = [
        {"run": f"r{i}", "criterion": "a"} | ({"status": status} if i > 2 else {"value": i / 2})
        for i in range(3 + rest)
    ]
    result = verify_table(score_table(rows), [criterion("a")], OPTIONS)
    assert result.criteria[0].verdict == "undecided"
    assert result.criteria[0].reasons == (reason,)
    assert (result.judge.reasons, result.judge.next_step) == ((reason,), step)


# ---- redundancy ----------------------------------------------------------------------------------


def ranks(squared: int, n: int = 20) -> list[float]:
    """A permutation of 0..n-1 whose squared differences from the identity sum to `squared`.

    Spearman's rho is 1 - 6 · squared / (n (n² - 1)).
    """
    places = list(range(n))
    left = squared
    for i in range(n - 1):  # swapping i and k costs 2 (k - i)²
        if places[i] != i:
            continue
        for k in range(n - 1, i, -1):
            if places[k] == k and 2 * (k - i) ** 2 <= left:
                places[i], places[k] = places[k], places[i]
                left -= 2 * (k - i) ** 2
                break
    assert left == 0
    return [float(p) for p in places]


def column(name: str, values: Sequence[float | None], runs: Sequence[str] | None = None) -> Any:
    """Rows of one criterion: values of 0..19 as places on the scale."""
    names = runs or [f"r{i}" for i in range(len(values))]
    return [
        {"run": run, "case": run.split("/")[0], "criterion": name}
        | ({"status": "unscored:parse"} if v is None else {"value": v / 40})
        for run, v in zip(names, values, strict=True)
    ]


def told(name: str, verdict: str = "keep", strength: float = 0.5, cover: float = 1.0) -> Any:
    area = Check(name="discrimination", outcome="pass", reason="", estimate=strength)
    return Verification(criterion_id=name, verdict=verdict, reasons=("as before",), runs=20,
                        cases=20, repeats=2, coverage=cover, mean=0.5, checks=(area,))  # type: ignore[arg-type]  # fmt: skip


def dropped(rows: Sequence[Any], *decided: Verification) -> dict[str, str | None]:
    """Partner by criterion that was dropped."""
    evidence = gather(score_table(itertools.chain(*rows)),
                      [criterion(v.criterion_id) for v in decided])  # fmt: skip
    found = redundancy(evidence, decided, OPTIONS)
    for before, after in zip(decided, found, strict=True):
        assert (after.verdict == "drop") is (before.verdict == "drop" or after.partner is not None)
    return {v.criterion_id: v.partner for v in found if v.partner}


PLAIN = [float(i) for i in range(20)]


@pytest.mark.parametrize(("squared", "same"), [(132, True), (134, False)])
def test_redundant_from_rho_90_on(squared: int, same: bool) -> None:
    # rho = 1 - 6 · 132 / 7980 = .9008, and .8992 with 134
    rows = [column("a", PLAIN), column("b", ranks(squared))]
    assert dropped(rows, told("a"), told("b")) == ({"b": "a"} if same else {})


def test_20_cases_must_be_shared() -> None:
    shared = [column("a", PLAIN), column("b", [*PLAIN[:19], None])]
    assert dropped(shared, told("a"), told("b")) == {}


def test_shared_are_the_cases_of_runs_that_both_rate() -> None:
    """Of 25 cases with two runs each, ten runs are rated on both: no case is shared otherwise."""
    runs = [f"c{i}/{side}" for i in range(25) for side in "xy"]
    first = [float(i // 2) if i % 2 == 0 else None for i in range(50)]  # only the x of a case
    other = [float(i // 2) if i % 2 or i < 20 else None for i in range(50)]  # y, and x of ten
    rows = [column("a", first, runs), column("b", other, runs)]
    assert dropped(rows, told("a"), told("b")) == {}
    both = [column("a", first, runs), column("b", [float(i // 2) for i in range(50)], runs)]
    assert dropped(both, told("a"), told("b")) == {"b": "a"}


@pytest.mark.parametrize(
    ("first", "second", "partner"),
    [
        (told("a", cover=0.98), told("b"), {}),  # the partner covers less
        (told("a", cover=0.99), told("b"), {"b": "a"}),
        (told("b", strength=0.7), told("a"), {"a": "b"}),  # the better told one stays
        (told("b", "keep"), told("a", "undecided", 0.9), {"a": "b"}),  # kept before undecided
        (told("a", "repair", 0.9), told("b"), {}),  # what is to be mended retains nothing
        (told("a", "drop", 0.9), told("b"), {}),
        (told("a", strength=0.9), told("b", "repair"), {}),
    ],
)  # fmt: skip
def test_which_of_two_stays(
    first: Verification, second: Verification, partner: dict[str, str]
) -> None:
    rows = [column(v.criterion_id, PLAIN) for v in (first, second)]
    # where the strength of a partner without the coverage would win, it stands first
    strong = first.coverage != 1.0
    area = Check(name="discrimination", outcome="pass", reason="", estimate=0.9)
    if strong:
        first = first.model_copy(update={"checks": (area,)})
    assert dropped(rows, first, second) == partner


# ---- the judge: more in test_judge.py -----------------------------------------------------------


def test_what_holds_of_several_criteria_is_warned_of_once() -> None:
    rows = [
        {"run": f"r{i}", "criterion": name, "value": 1.0 if i else 0.5}
        for i in range(20) for name in ("a", "b", "c")
    ]  # fmt: skip
    kind = Criterion(name="kind", accepted_values=("x", "y"), scale="nominal")
    vague = Criterion(name="vague", accepted_values=("x", "y"), order="unclear")
    rows += [{"run": f"r{i}", "criterion": n, "label": "x"} for i in range(20)
             for n in ("kind", "vague")]  # type: ignore[misc]  # fmt: skip
    result = verify_table(score_table(rows), [*map(criterion, "abc"), kind, vague], OPTIONS)
    assert [v.criterion_id for v in result.criteria] == ["a", "b", "c"]
    assert result.judge.one_score == ("a", "b", "c")
    assert result.judge.warnings == (
        "a, b, c cannot be told apart: they are one score",
        "a, b, c: most ratings are at the top of the scale",
        "kind: nominal: counted, not averaged: no verdict",
        "vague: the order of the levels is unclear: no verdict",
    )


# ---- one mistaken expectation, from ratings to the verdict ---------------------------------------


def six(mistaken: Direction) -> VerifiedSet:
    """Six criteria of a judge that sees every change; of one the critic expects `mistaken`."""
    names = [f"c{i}" for i in range(6)]
    variants = ("original", "swap_numbers:0.25:0", "whitespace:-:0")

    def rate(place: int) -> Any:
        def value(case: int, _: int, variant: str, __: np.random.Generator) -> float:
            own = (case // (place + 2) % 4 + (case % 2 == 0)) / 4
            return max(0.0, own - (0.25 if variant.startswith("swap") else 0))

        return value

    expect: list[Direction] = [mistaken, *["lower"] * 5]  # type: ignore[list-item]
    ratings = table({n: rate(i) for i, n in enumerate(names)}, cases=60, variants=variants)
    criteria = [criterion(n, swap_numbers=e) for n, e in zip(names, expect, strict=True)]
    return verify_table(ratings, criteria, OPTIONS)


def test_one_mistaken_expectation_repairs_its_criterion_and_keeps_the_judge() -> None:
    right, wrong = six("lower"), six("none")
    assert (right.judge.verdict, right.judge.exit_code()) == ("trustworthy", 0)
    assert (wrong.judge.verdict, wrong.judge.refuted) == ("trustworthy except c0", ("c0",))
    assert (wrong.judge.exit_code(), wrong.judge.exit_code(["c0"])) == (5, 0)
    assert right.criteria[0].verdict == "keep"
    assert wrong.criteria[0].verdict == "repair"
    assert "although none was expected" in wrong.criteria[0].reasons[0]
    assert wrong.criteria[0].next_step == "see whether its `expect` is mistaken, else reword it"
    assert [v.verdict for v in wrong.criteria[1:]] == [v.verdict for v in right.criteria[1:]]
