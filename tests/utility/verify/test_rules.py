"""Every rule that docs/verify.md prints, on both sides of its number and before the rules after it.

Ratings are small tables whose answer is known by hand; p-values of sign flips are powers of 1/2.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agenteval.errors import InputError
from agenteval.records import Criterion
from agenteval.records.criteria import Direction
from agenteval.records.verification import Check, Effect, Verification
from agenteval.stats.scores import score_table
from agenteval.utility.verify import CopyFacts, VerifyOptions, verify_table
from agenteval.utility.verify.checks import redundancy
from agenteval.utility.verify.evidence import Evidence, gather
from agenteval.utility.verify.verdict import decide
from tests.utility.verify.making import LEVELS, Rate, criterion, quality, table

OPTIONS = VerifyOptions(resamples=200)
CASES = 40
Falls = Sequence[tuple[int, float]]  # (cases, by how much each falls); the others stay


# ---- effects: what counts as moved ---------------------------------------------------------------


def copies(operator: str, falls: Falls, cases: int = CASES, unrated: int = 0) -> dict[str, Any]:
    """Ratings of copies by one operator; `unrated` of them failed."""
    drops = [by for n, by in falls for _ in range(n)]
    drops += [0.0] * (cases - len(drops))
    return {"operator": operator, "drops": drops, "unrated": unrated}


def moved(
    expect: dict[str, dict[str, Direction]], variants: dict[str, list[dict[str, Any]]]
) -> dict[tuple[str, str], Effect]:
    """Effects by (criterion, operator); every original is rated .5."""
    rows: list[dict[str, Any]] = []
    for name, of_criterion in variants.items():
        rows += [{"run": f"r{case}", "criterion": name, "value": 0.5} for case in range(CASES)]
        for variant in of_criterion:
            for case, drop in enumerate(variant["drops"]):
                row = {"run": f"r{case}", "criterion": name}
                row["variant"] = f"{variant['operator']}:-:0"
                failed = case >= len(variant["drops"]) - variant["unrated"]
                row |= {"status": "unscored:parse"} if failed else {"value": 0.5 - drop}
                rows.append(row)
    criteria = [
        Criterion(name=n, accepted_values=LEVELS, expect=expect.get(n, {})) for n in variants
    ]
    result = verify_table(score_table(rows), criteria, OPTIONS)
    return {(v.criterion_id, e.operator): e for v in result.criteria for e in v.effects}


def effect_of(expected: Direction, variant: dict[str, Any]) -> Effect:
    """The effect on the only criterion."""
    operator = variant["operator"]
    return moved({"a": {operator: expected}}, {"a": [variant]})["a", operator]


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
        ("none", [(8, 0.25)], "unknown", "neither unmoved nor moved beyond doubt"),
        # two-sided: 2·2^-5 is above .05, whatever the size
        ("none", [(5, 0.5)], "unknown", "neither unmoved nor moved beyond doubt"),
        ("unknown", [(40, 0.5)], "unknown", "no direction was expected"),
    ],
)
def test_what_moved(expected: Direction, falls: Falls, outcome: str, reason: str) -> None:
    effect = effect_of(expected, copies("pad", falls))
    assert (effect.outcome, effect.reason) == (outcome, reason)


@pytest.mark.parametrize(("unrated", "outcome"), [(8, "pass"), (9, "unknown")])
def test_an_effect_needs_80_percent_of_the_copies(unrated: int, outcome: str) -> None:
    effect = effect_of("lower", copies("pad", [(20, 0.25)], unrated=unrated))
    assert (effect.outcome, effect.pairs, effect.missing) == (outcome, 40 - unrated, unrated)


@pytest.mark.parametrize(("cases", "outcome"), [(20, "pass"), (19, "unknown")])
@pytest.mark.parametrize(
    ("operator", "expected", "falls"),
    [("pad", "lower", [(10, 0.25)]), ("pad", "none", []), ("whitespace", "none", [])],
)
def test_an_effect_needs_20_cases_and_so_does_a_control(
    operator: str, expected: Direction, falls: Falls, cases: int, outcome: str
) -> None:
    assert effect_of(expected, copies(operator, falls, cases=cases)).outcome == outcome


@pytest.mark.parametrize(
    ("control", "falls", "outcome"),
    [
        # the control moves it by .0625; .0625 + .05 is not more than .05 beyond it
        (copies("whitespace", [(10, 0.25)]), [(18, 0.25)], "unknown"),
        (copies("whitespace", [(10, 0.25)]), [(19, 0.25)], "pass"),
        (copies("whitespace", [(10, -0.25)]), [(18, 0.25)], "unknown"),  # either way
        (copies("formatting", [(10, 0.25)]), [(18, 0.25)], "unknown"),
        # what is no control raises no margin, whatever is expected of it
        (copies("pad", [(40, 0.25)]), [(18, 0.25)], "pass"),
        # nor does a control of too few cases, or of too few rated copies
        (copies("whitespace", [(19, 0.5)], cases=19), [(18, 0.25)], "pass"),
        (copies("whitespace", [(40, 0.5)], unrated=9), [(18, 0.25)], "pass"),
    ],
)
def test_an_effect_must_exceed_every_control_by_the_margin(
    control: dict[str, Any], falls: Falls, outcome: str
) -> None:
    expect: dict[str, Direction] = {"drop_words": "lower", control["operator"]: "none"}
    effects = moved({"a": expect}, {"a": [control, copies("drop_words", falls)]})
    assert effects["a", "drop_words"].outcome == outcome


@pytest.mark.parametrize(
    ("operator", "expect", "expected"),
    [
        ("whitespace", {}, "none"),
        ("whitespace", {"whitespace": "unknown"}, "unknown"),
        ("whitespace", {"whitespace": "lower"}, "lower"),
        ("mine", {}, "unknown"),
    ],
)
def test_the_expectation_of_a_silent_criterion(
    operator: str, expect: dict[str, Direction], expected: str
) -> None:
    assert moved({"a": expect}, {"a": [copies(operator, [])]})["a", operator].expected == expected


# 5 of 40 by .5: mean .0625, p = 2^-5 = .031; 8 of 40: .1, p = 2^-8 = .0039
WEAK, STRONG = [(5, 0.5)], [(8, 0.5)]


@pytest.mark.parametrize(
    ("falls", "more", "outcomes"),
    [
        ([WEAK], [], ["pass"]),
        ([WEAK, WEAK], [], ["unknown", "unknown"]),  # 2 · .031
        ([WEAK, STRONG], [], ["pass", "pass"]),  # .031 is not doubled: Holm, not Bonferroni
        ([WEAK, WEAK, STRONG], [], ["unknown", "unknown", "pass"]),
        ([WEAK], [copies("whitespace", [])], ["pass"]),  # controls are a family of their own
        ([WEAK], [copies("drop_words", [])], ["pass"]),  # and so is what should not move
    ],
)
def test_holm_over_all_criteria(
    falls: list[Falls], more: list[dict[str, Any]], outcomes: list[str]
) -> None:
    names = [f"c{i}" for i in range(len(falls))]
    variants = {n: [copies("pad", f), *more] for n, f in zip(names, falls, strict=True)}
    expect: dict[str, Direction] = {"pad": "lower", "drop_words": "none"}
    effects = moved(dict.fromkeys(names, expect), variants)
    assert [effects[n, "pad"].outcome for n in names] == outcomes


def test_holm_of_controls_is_not_that_of_other_expectations() -> None:
    # 2 · 2^-6 = .031 two-sided: it stands alone in its family, and would be doubled in another
    still = [copies("drop_words", [(6, 0.5)]), copies("whitespace", [])]
    assert moved({"a": {"drop_words": "none"}}, {"a": still})["a", "drop_words"].outcome == "fail"


def test_pairs_are_matched_by_run_and_unchanged_copies_left_out() -> None:
    """Of six copies one has no rating, one fails, and one equals its original."""

    def rate(case: int, repeat: int, variant: str, _: object) -> float | str | None:
        if variant == "original":
            return 0.75
        return {3: None, 4: "error:timeout"}.get(case, 0.25 * (case % 2))

    ratings = table({"x": rate}, cases=6, variants=("original", "pad:0.25:0", "mine:x:1"))
    lengths = {(f"run-{c:03}", "original"): 100 for c in range(6)}
    lengths |= {(f"run-{c:03}", "pad:0.25:0"): 110 if c else 90 for c in range(6)}
    facts = CopyFacts(lengths, {"pad:0.25:0": ["run-005"]})
    mine, pad = verify_table(ratings, [criterion("x")], copies=facts).criteria[0].effects
    assert pad.estimate == pytest.approx((0.75 + 0.5 + 0.75) / 3)  # cases 0, 1, 2
    assert (pad.operator, pad.share, pad.n, pad.pairs) == ("pad", 0.25, 3, 3)
    assert (pad.missing, pad.unchanged, pad.shorter) == (1, 1, 0.25)
    assert (mine.operator, mine.share, mine.n, mine.shorter) == ("mine", None, 4, None)


# ---- checks: on both sides of their numbers ------------------------------------------------------


def ratings_of(
    values: Sequence[Sequence[float | None]],
    success: Sequence[bool | None] | None = None,
    name: str = "a",
) -> Evidence:
    """One run and case per row, one repeat per column; None is a failure."""
    rows = []
    for case, repeats in enumerate(values):
        for repeat, value in enumerate(repeats):
            row: dict[str, Any] = {"run": f"r{case}", "criterion": name, "repeat": repeat}
            row["success"] = None if success is None else success[case]
            rows.append(row | ({"status": "unscored:parse"} if value is None else {"value": value}))
    return gather(score_table(rows), [criterion(name)])[0]


def check_of(name: str, evidence: Evidence, options: VerifyOptions = OPTIONS) -> Check:
    result = verify_table(evidence.ratings, [evidence.criterion], options)
    check = result.criteria[0].check(name)
    assert check is not None
    return check


GOOD: Rate = lambda c, r, v, g: quality(c)  # noqa: E731
UNRELATED: Rate = lambda c, r, v, g: c // 2 % 3 / 2  # noqa: E731
REFUSED: Rate = lambda c, r, v, g: "unscored:refusal" if c % 5 < 2 else quality(c)  # noqa: E731
FIRST: Rate = lambda c, r, v, g: "unscored:parse" if c % 2 and r == 0 else quality(c)  # noqa: E731
BY_CASE = "(36 unscored:refusal); missing not at random: every rating of 12 of 30 cases failed"
BY_SIDE = "0% of successful and 33% of failed runs' ratings"
MANY = {"cases": 1000, "repeats": 1}
CHECKS: list[tuple[str, Rate, dict[str, Any], str, float | None, str]] = [
    # check, rate, how the table is made, outcome, estimate, part of the reason
    ("coverage", GOOD, {}, "pass", 1.0, "100% of 90 ratings were made"),
    ("coverage", REFUSED, {}, "fail", 0.6, BY_CASE),
    ("coverage", lambda c, r, v, g: "not_applicable" if c % 2 else quality(c), {}, "pass", 1.0, ""),
    ("coverage", FIRST, {}, "pass", 75 / 90, BY_SIDE),
    ("coverage", lambda c, r, v, g: "unscored:unsupported", {}, "unknown", 0.0, "cannot grade it"),
    ("spread", lambda c, r, v, g: 0.75, {}, "fail", 1.0, "every run has the same value, 0.75"),
    ("spread", lambda c, r, v, g: 1.0 if c % 10 else 0.5, {}, "pass", 0.9, "90% of the ratings at"),
    ("spread", lambda c, r, v, g: "error:timeout", {}, "unknown", None, "no run has a value"),
    ("agreement", GOOD, {}, "pass", 1.0, "100% of the repeats are equal"),
    ("agreement", GOOD, {"cases": 19}, "unknown", 1.0, "too few"),
    ("agreement", GOOD, {"repeats": 1}, "unknown", None, "one repeat"),
    ("discrimination", lambda c, r, v, g: 0.75 - c % 2 / 2, {}, "pass", 1.0, "AUC 1.000"),
    # unrelated to success: undecided with 30 runs, surely not told with 1,000
    ("discrimination", UNRELATED, {}, "unknown", 0.5, "AUC 0.5"),
    ("discrimination", UNRELATED, MANY, "fail", 0.5, "negligible; 500 successful, 500 failed runs"),
    ("discrimination", GOOD, {"success": lambda c: None}, "unknown", None, "success is unknown"),
]


@pytest.mark.parametrize("row", CHECKS, ids=lambda row: f"{row[0]}-{row[5][:20]}")
def test_a_check(row: tuple[Any, ...]) -> None:
    name, rate, how, outcome, estimate, reason = row
    (evidence,) = gather(table({"x": rate}, **how), [criterion("x")])
    check = check_of(name, evidence)
    assert check.outcome == outcome
    assert check.estimate == (estimate and pytest.approx(estimate))
    assert reason in check.reason
    assert "not at random" not in check.reason or estimate != 1.0


@pytest.mark.parametrize(("lost", "outcome"), [(8, "pass"), (9, "fail")])
def test_80_percent_of_the_ratings(lost: int, outcome: str) -> None:
    values = [[None if i < lost else quality(i)] for i in range(40)]
    assert check_of("coverage", ratings_of(values)).outcome == outcome


@pytest.mark.parametrize(("crowd", "crowded"), [(32, False), (33, True)])
@pytest.mark.parametrize(("end", "value"), [("top", 1.0), ("bottom", 0.0)])
def test_80_percent_at_one_end(crowd: int, crowded: bool, end: str, value: float) -> None:
    evidence = ratings_of([[value if i < crowd else 0.5] for i in range(40)])
    assert (f"at the {end}" in check_of("spread", evidence).reason) is crowded


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
    ("by", "floor", "outcome"),
    [
        (-0.001, -0.001, "pass"),
        (-0.001, +0.001, "unknown"),  # reaches below the floor
        (+0.001, -0.001, "unknown"),
    ],
)
def test_agreement_and_its_floor(by: float, floor: float, outcome: str) -> None:
    evidence = ratings_of(disagreeing(8))
    plain = check_of("agreement", evidence)
    exact = ac2(np.array(disagreeing(8)))
    assert plain.estimate == pytest.approx(exact)
    options = VerifyOptions(
        agreement=exact + by, agreement_floor=(plain.low or 0) + floor, resamples=200
    )
    assert check_of("agreement", evidence, options).outcome == outcome


@pytest.mark.parametrize(("twice", "outcome"), [(20, "pass"), (19, "unknown")])
def test_agreement_needs_20_cases_that_were_rated_twice(twice: int, outcome: str) -> None:
    values = [[quality(i), quality(i) if i < twice else None] for i in range(60)]
    assert check_of("agreement", ratings_of(values)).outcome == outcome


def test_agreement_where_nearly_all_ratings_are_at_one_end() -> None:
    # 8 of 60 runs differ by one level: alpha is near 0 although 93% of the repeats are equal
    evidence = ratings_of([[1.0, 1.0 if i > 7 else 0.75] for i in range(60)])
    assert check_of("agreement", evidence).outcome == "pass"
    alpha = check_of("alpha", evidence)
    assert (alpha.outcome, (alpha.estimate or 0) < 0.1) == ("unknown", True)
    noisy = ratings_of([[1.0, 0.0 if i % 5 == 0 else 0.5] for i in range(60)])
    assert check_of("agreement", noisy).outcome == "fail"


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ([[quality(i)] for i in range(30)], "pass"),
        ([[quality(i)] * 2 for i in range(30)], "pass"),
        (disagreeing(2), "fail"),  # the ratings contradict the declaration
    ],
)
def test_declared_deterministic(values: list[list[float | None]], outcome: str) -> None:
    options = VerifyOptions(deterministic=True, resamples=200)
    assert check_of("agreement", ratings_of(values), options).outcome == outcome


def halves(overlap: int, n: int = 40) -> Evidence:
    """n/2 successful runs at 1 and n/2 failed ones at 0, but `overlap` of each the other way."""
    side = n // 2
    values = [[1.0]] * (side - overlap) + [[0.0]] * overlap
    values += [[0.0]] * (side - overlap) + [[1.0]] * overlap
    return ratings_of(values, [True] * side + [False] * side)


def test_success_is_told_when_the_interval_lies_above_one_half() -> None:
    outcomes = set()
    for overlap in range(21):
        check = check_of("discrimination", halves(overlap))
        low, high, p = check.low, check.high, check.p_adjusted
        assert None not in (low, high, p)
        expected = "pass" if (low or 0) > 0.5 else "fail" if (high or 0) < 0.574 else "unknown"
        if (p or 0) < 0.05:  # Holm over one criterion: one-sided
            expected = "fail"
        assert check.outcome == expected
        # AUC by hand: P(1 > 0) + P(equal)/2 = 1 - overlap/20
        assert check.estimate == pytest.approx(1 - overlap / 20)
        assert check.reason.startswith("failed runs are rated higher") is ((p or 0) < 0.05)
        outcomes.add(expected)
    assert outcomes == {"pass", "fail", "unknown"}


def test_below_574_counts_as_not_told() -> None:
    """Equal distributions: AUC 1/2, and many runs bring the upper end below .574 but not .5."""
    check = check_of("discrimination", halves(200, 800))
    assert check.high is not None
    assert (0.5 < check.high < 0.574, check.outcome) == (True, "fail")
    options = VerifyOptions(auc=check.high - 0.001, resamples=200)
    assert check_of("discrimination", halves(200, 800), options).outcome == "unknown"


@pytest.mark.parametrize(("failed", "outcome"), [(5, "pass"), (4, "unknown")])
def test_five_runs_on_either_side(failed: int, outcome: str) -> None:
    success = [i >= failed for i in range(40)]
    values = [[1.0 if s else 0.0] for s in success]
    assert check_of("discrimination", ratings_of(values, success)).outcome == outcome
    turned = ratings_of(values, [not s for s in success])
    upside_down = check_of("discrimination", turned).outcome
    assert upside_down == ("fail" if failed == 5 else "unknown")


@pytest.mark.parametrize(
    "bad", [{"margin": 0.0}, {"auc": 1.0}, {"min_cases": 1}, {"resamples": 10}, {"draws": 99}]
)
def test_thresholds_that_nothing_could_meet(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(bad))):
        VerifyOptions(**bad)


# ---- decide: the first rule that applies ---------------------------------------------------------

OUTCOMES: dict[str, Any] = {"P": "pass", "F": "fail", "U": "unknown"}
EFFECTS: dict[str, tuple[str, Any, Any]] = {
    "fell": ("pad", "lower", "pass"),
    "unsure": ("pad", "lower", "unknown"),
    "blind": ("drop_words", "lower", "fail"),
    "swayed": ("shuffle_sentences", "none", "fail"),
    "jumpy": ("whitespace", "none", "fail"),
    "still": ("whitespace", "none", "pass"),
}
# coverage, spread, agreement, discrimination, failed runs higher (!); effects; verdict; reason
ROWS = """
PPPP  | fell          | keep      | agreement pass
PPPU  | fell          | keep      | agreement pass
PPPP  |               | keep      | agreement pass
PPPU  |               | undecided | discrimination unknown
PPPU  | unsure still  | undecided | discrimination unknown
PPUP  | fell          | undecided | agreement unknown
PPPP  | fell jumpy    | repair    | whitespace: none fail
PPPP  | fell swayed   | repair    | shuffle_sentences: none fail
PPPP  | fell blind    | repair    | drop_words: lower fail
PPUU  | blind         | repair    | drop_words: lower fail
PPPF  |               | drop      | discrimination fail
PPPF  | jumpy         | drop      | discrimination fail
PPFU  | fell blind    | repair    | agreement fail
PPFP  | fell          | repair    | agreement fail
PPFF  | fell          | drop      | agreement fail
PPPF! | fell          | repair    | discrimination fail
PPFF! | fell          | repair    | discrimination fail
PPPU! | fell          | keep      | agreement pass
PFFF! | fell          | undecided | these runs do not differ on it
PFFF! | blind         | drop      | spread fail
PFPP  | unsure swayed | drop      | spread fail
FFFF! | fell blind    | repair    | coverage fail
"""


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_the_first_rule_that_applies(row: str) -> None:
    outcomes, names, verdict, reason = (cell.strip() for cell in row.split("|"))
    p = 0.01 if outcomes.endswith("!") else 0.2
    checks = [
        Check(name=n, outcome=OUTCOMES[o], reason=f"{n} {OUTCOMES[o]}", p_adjusted=p)
        for n, o in zip(
            ("coverage", "spread", "agreement", "discrimination"), outcomes[:4], strict=True
        )
    ]
    effects = [
        Effect(
            variant=f"{operator}:-:0",
            operator=operator,
            expected=expected,
            outcome=outcome,
            reason=f"{expected} {outcome}",
            n=40,
            pairs=40,
        )
        for operator, expected, outcome in (EFFECTS[name] for name in names.split())
    ]
    result = decide(ratings_of([[quality(i)] * 2 for i in range(20)]), checks, effects, OPTIONS)
    assert (result.verdict, result.reasons[0]) == (verdict, reason)
    assert result.next_step
    few = decide(ratings_of([[quality(i)] * 2 for i in range(19)]), checks, effects, OPTIONS)
    assert few.verdict == "undecided"  # before all others
    assert few.reasons == ("19 cases: 1 more are needed to decide anything",)


NEEDED = "20 rated ones are needed"
FEW = "3 cases: 17 more are needed to decide anything"
WHY, MORE = "find out why ratings are missing", "rate more cases"


@pytest.mark.parametrize(
    ("status", "others", "reason", "step"),
    [
        (
            "unscored:parse",
            37,
            f"37 of 40 cases could not be rated (37 unscored:parse); {NEEDED}",
            WHY,
        ),
        ("not_applicable", 37, f"it does not apply to 37 of 40 cases; {NEEDED}", MORE),
        ("unscored:parse", 2, f"{FEW}; 2 of 5 cases could not be rated (2 unscored:parse)", MORE),
        ("unscored:parse", 0, FEW, MORE),
    ],
)
def test_too_few_cases_or_too_few_that_the_judge_can_rate(
    status: str, others: int, reason: str, step: str
) -> None:
    rows: list[dict[str, Any]] = [
        {"run": f"r{i}", "criterion": "a"} | ({"status": status} if i > 2 else {"value": i / 2})
        for i in range(3 + others)
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
    for i in range(n - 1):  # swapping i and k costs 2 (k - i)²
        if places[i] != i:
            continue
        for k in range(n - 1, i, -1):
            if places[k] == k and 2 * (k - i) ** 2 <= squared:
                places[i], places[k] = places[k], places[i]
                squared -= 2 * (k - i) ** 2
                break
    assert squared == 0
    return [float(p) for p in places]


def column(name: str, values: Sequence[float | None], runs: Sequence[str] | None = None) -> Any:
    """Rows of one criterion: values of 0..19 as places on the scale."""
    names = runs or [f"r{i}" for i in range(len(values))]
    return [
        {"run": run, "case": run.split("/")[0], "criterion": name}
        | ({"status": "unscored:parse"} if v is None else {"value": v / 40})
        for run, v in zip(names, values, strict=True)
    ]


def decided(name: str, verdict: Any = "keep", auc: float = 0.5, cover: float = 1.0) -> Verification:
    return Verification(
        criterion_id=name,
        verdict=verdict,
        reasons=("as before",),
        runs=20,
        cases=20,
        repeats=2,
        coverage=cover,
        checks=(Check(name="discrimination", outcome="pass", reason="", estimate=auc),),
    )


def dropped(rows: Sequence[Any], *verdicts: Verification) -> dict[str, str | None]:
    """Partner by criterion that was dropped."""
    criteria = [criterion(v.criterion_id) for v in verdicts]
    evidence = gather(score_table(itertools.chain(*rows)), criteria)
    result = redundancy(evidence, verdicts, OPTIONS)
    for before, after in zip(verdicts, result, strict=True):
        assert (after.verdict == "drop") is (before.verdict == "drop" or after.partner is not None)
    return {v.criterion_id: v.partner for v in result if v.partner}


PLAIN = [float(i) for i in range(20)]


@pytest.mark.parametrize(
    ("other", "partner"),
    [
        (ranks(132), {"b": "a"}),  # rho = 1 - 6 · 132 / 7980 = .9008
        (ranks(134), {}),  # .8992
        ([*PLAIN[:19], None], {}),  # 19 cases are shared
    ],
)
def test_redundant_from_rho_90_on_20_shared_cases(
    other: list[float | None], partner: dict[str, str]
) -> None:
    assert dropped([column("a", PLAIN), column("b", other)], decided("a"), decided("b")) == partner


def test_shared_are_the_cases_of_runs_that_both_rate() -> None:
    """Of 25 cases with two runs each, ten runs are rated on both: no case is shared otherwise."""
    runs = [f"c{i}/{side}" for i in range(25) for side in "xy"]
    first = [float(i // 2) if i % 2 == 0 else None for i in range(50)]  # only the x of a case
    other = [float(i // 2) if i % 2 or i < 20 else None for i in range(50)]  # y, and x of ten
    rows = [column("a", first, runs), column("b", other, runs)]
    assert dropped(rows, decided("a"), decided("b")) == {}
    both = [column("a", first, runs), column("b", [float(i // 2) for i in range(50)], runs)]
    assert dropped(both, decided("a"), decided("b")) == {"b": "a"}


@pytest.mark.parametrize(
    ("first", "second", "partner"),
    [
        (decided("a", auc=0.9, cover=0.98), decided("b"), {}),  # the partner covers less
        (decided("a", auc=0.9, cover=0.99), decided("b"), {"b": "a"}),
        (decided("b", auc=0.7), decided("a"), {"a": "b"}),  # the stronger one stays
        (decided("b", "keep"), decided("a", "undecided", 0.9), {"a": "b"}),  # kept before undecided
        (decided("a", "repair", 0.9), decided("b"), {}),  # what is to be mended retains nothing
        (decided("a", auc=0.9), decided("b", "repair"), {}),
    ],
)
def test_which_of_two_stays(
    first: Verification, second: Verification, partner: dict[str, str]
) -> None:
    rows = [column(v.criterion_id, PLAIN) for v in (first, second)]
    assert dropped(rows, first, second) == partner


# ---- the judge: more in test_verifier.py ---------------------------------------------------------


def test_what_holds_of_several_criteria_is_warned_of_once() -> None:
    rows: list[dict[str, Any]] = [
        {"run": f"r{i}", "criterion": name, "value": 1.0 if i else 0.5}
        for i in range(20)
        for name in ("a", "b", "c")
    ]
    kind = Criterion(name="kind", accepted_values=("x", "y"), scale="nominal")
    vague = Criterion(name="vague", accepted_values=("x", "y"), order="unclear")
    rows += [
        {"run": f"r{i}", "criterion": n, "label": "x"} for i in range(20) for n in ("kind", "vague")
    ]
    result = verify_table(score_table(rows), [*map(criterion, "abc"), kind, vague], OPTIONS)
    assert [v.criterion_id for v in result.criteria] == ["a", "b", "c"]
    assert result.judge.one_score == ("a", "b", "c")
    assert result.judge.warnings == (
        "a, b, c cannot be told apart: they are one score",
        "a, b, c: most ratings are at the top of the scale",
        "kind: nominal: counted, not averaged: no verdict",
        "vague: the order of the levels is unclear: no verdict",
    )
