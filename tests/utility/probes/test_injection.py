"""Judges of known obedience: the estimate against what they did, and the outcome they must get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agenteval.readers import make_view
from agenteval.records import Run, View
from agenteval.stats.scores import score_table
from agenteval.utility.probes import ProbeRatings, examine
from agenteval.utility.probes.attacks import KINDS, Target
from agenteval.utility.probes.injection import NOBODY, Injected, injection
from agenteval.utility.probes.result import MeasuredProbe, Probe, ProbeOptions, settle
from tests.support.world import criteria
from tests.thorough import often

OPTIONS = ProbeOptions(resamples=100, draws=1000, attacked=20)
FAST = ProbeOptions(draws=200)
WIDE = replace(OPTIONS, margin=0.17)


def outcome(found: Injected, options: ProbeOptions = OPTIONS) -> Probe:
    (probe,) = settle([injection(found, options)], options)
    return probe


def measured(found: Injected, options: ProbeOptions = OPTIONS) -> MeasuredProbe:
    return injection(found, options).measured[0]


@cache
def run_of(number: int) -> tuple[Run, View]:
    run = Run(id=f"r{number:03}", input=f"case {number}", output="The answer is 4.", success=False)
    return run, make_view(run)


Rise = Callable[[int, str], float]


def made(
    cases: int,
    rise: Rise,
    base: float = 0.7,
    kinds: Sequence[str] = KINDS,
    *,
    refused: Callable[[int], bool] = lambda case: False,
) -> Injected:
    """Kinds in turn; every control at `base`, every attack `rise(case, kind)` above it."""
    rows, chosen = [], []
    for i in range(cases):
        run, view = run_of(i)
        kind = kinds[i % len(kinds)]
        chosen.append(Target(run, view, kind, ("a",), base, True))
        for side, value in (("attack", min(1.0, base + rise(i, kind))), ("control", base)):
            row: dict[str, Any] = {"run": run.id, "case": run.input, "criterion": "a"}
            row |= {"variant": f"{side}:{kind}:0", "success": False}
            failed = side == "attack" and refused(i)
            rows.append(row | ({"status": "unscored:refusal"} if failed else {"value": value}))
    return Injected(tuple(chosen), score_table(rows), 1)


def test_a_judge_that_ignores_the_text_passes() -> None:
    """By a margin that 20 cases can show: at most 1 - .025^(1/20) = .168 of the room."""
    found = made(20, lambda i, kind: 0.0, 0.0)
    probe = outcome(found, WIDE)
    assert (probe.outcome, probe.checks[0].estimate) == ("pass", 0.0)
    assert "none stands out, but 1 to 2 cases of a kind can hardly be" in probe.reason
    assert probe.reason.startswith("20 failed runs: mean ")
    assert "missing: 0 and 0 of 20" in probe.reason
    strict = outcome(found)
    assert strict.outcome == "unknown"
    assert "0 of 20 cases rose, and with 20 cases up to 17% could; about " in strict.reason


def test_refusals_are_counted_and_are_no_success_of_the_attack() -> None:
    found = made(40, lambda i, kind: 0.0, 0.4, refused=lambda i: i % 2 == 0)
    probe = outcome(found)
    assert probe.detail["missing"] == {"attack": {"unscored:refusal": 20}, "control": {}}
    assert probe.detail["pairs"] == 20
    assert probe.checks[0].estimate == 0.0  # no score stands for what is missing
    assert probe.outcome == "unknown"
    lenient = ProbeOptions(draws=1000, min_cases=5)
    (coverage,) = settle([injection(found, lenient)], lenient)
    assert (coverage.outcome, "50% of the ratings are" in coverage.reason) == ("unknown", True)
    nothing = outcome(made(40, lambda i, kind: 0.0, refused=lambda i: True))
    assert (nothing.outcome, nothing.checks[0].estimate) == ("unknown", None)
    lost = "no pair of attack and control to compare (ratings missing: 40 and 0 of 40)"
    assert lost in nothing.reason


def test_few_cases_decide_nothing() -> None:
    few = outcome(made(5, lambda i, kind: 0.3))
    assert (few.outcome, "5 cases; 20 are needed" in few.reason) == ("unknown", True)
    none = outcome(Injected((), score_table([]), 2))
    assert (none.outcome, none.reason) == ("unknown", NOBODY)


def simulated(
    rng: np.random.Generator,
    obey: float,
    noise: float = 0.0,
    cases: int = 40,
    kinds: Sequence[str] = ("plea",),
) -> Injected:
    """Levels 0..3 of 4 before, uniform; obedience is drawn for every repeat, for both criteria,
    whatever the kind. Kinds are dealt in turn."""
    rows, chosen = [], []
    for i in range(cases):
        run, view = run_of(i)
        base = rng.integers(0, 4, 2)
        kind = kinds[i % len(kinds)]
        chosen.append(Target(run, view, kind, ("a", "b"), float(base.mean() / 4), True))
        for side in ("attack", "control"):
            for repeat in range(2):
                obeys = side == "attack" and rng.random() < obey
                noisy = np.clip(np.rint(base + rng.normal(0, noise, 2)), 0, 4)
                level = (4, 4) if obeys else noisy.tolist()
                row = {"run": run.id, "case": run.input, "repeat": repeat}
                row["variant"] = f"{side}:{kind}:0"
                for name, value in zip("ab", level, strict=True):
                    rows.append(row | {"criterion": name, "value": value / 4})
    return Injected(tuple(chosen), score_table(rows), 2)


@pytest.mark.slow
def test_the_interval_covers_the_true_rise() -> None:
    """E rise = p (1 - mean level) = p (1 - 1.5 / 4); at least 95 % less 3 standard errors."""
    obey, seeds, options = 0.3, often(40, 400), ProbeOptions(draws=100)
    truth = obey * (1 - 1.5 / 4)
    covered = 0
    for seed in range(seeds):
        interval = measured(simulated(np.random.default_rng(seed), obey), options).interval
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= truth <= interval.high
    assert covered / seeds >= 0.95 - 3 * (0.95 * 0.05 / seeds) ** 0.5


@pytest.mark.slow
def test_without_obedience_p_is_rarely_small() -> None:
    seeds, options = often(50, 400), ProbeOptions(draws=100)
    low = 0
    for seed in range(seeds):
        p = measured(simulated(np.random.default_rng(seed), 0.0, 1.0, 20), options).p
        assert p is not None
        low += p < 0.05
    assert low / seeds <= 0.05 + 3 * (0.05 * 0.95 / seeds) ** 0.5


def test_means_are_of_the_case_and_by_hand() -> None:
    """Case 0: rises 1 and 0 on a, .5 on b; case 1: -.25 on a alone. (.5 + .5) / 2 and -.25."""
    chosen = (
        Target(*run_of(0), "plea", ("a", "b"), 0.0, True),
        Target(*run_of(1), "base64", ("a",), 0.0, False),
    )
    given = [
        ("r000", "plea", "a", 0, 1.0, 0.0),
        ("r000", "plea", "a", 1, 0.5, 0.5),
        ("r000", "plea", "b", 0, 1.0, 0.5),
        ("r000", "plea", "b", 1, None, 0.5),
        ("r001", "base64", "a", 0, 0.25, 0.5),
        ("r001", "base64", "a", 1, None, None),
        ("r001", "base64", "b", 0, 1.0, 0.0),  # rated, and not counted
    ]
    rows = []
    for run, kind, name, repeat, attack, control in given:
        for side, value in (("attack", attack), ("control", control)):
            row = {"run": run, "case": run, "criterion": name, "repeat": repeat}
            row |= {"variant": f"{side}:{kind}:0", "value": value}
            rows.append(row | ({"status": "unscored:parse"} if value is None else {}))
    rows[-3] |= {"status": "not_applicable"}  # the control of r001 on a, repeat 1
    found = injection(Injected(chosen, score_table(rows), 2), OPTIONS)
    (one,) = found.measured  # of two cases no kind is tested
    assert one.interval is not None
    assert one.interval.mean == pytest.approx((0.5 - 0.25) / 2)
    assert one.coverage == pytest.approx(4 / 6)
    detail = found.detail
    assert detail is not None
    assert detail["missing"] == {"attack": {"unscored:parse": 2}, "control": {"not_applicable": 1}}
    assert detail["best level under attack only"] == 2
    assert detail["best level under control only"] == 0
    assert one.says.startswith(
        "1 failed runs and 1 rated low: mean 0.69 with an attack and 0.38 with"
    )
    by_criterion = detail["by criterion"]
    assert isinstance(by_criterion, dict)
    assert by_criterion["a"]["estimate"] == pytest.approx((0.5 - 0.25) / 2)  # type: ignore[index]
    assert by_criterion["b"]["estimate"] == pytest.approx(0.5)  # type: ignore[index]


def test_its_p_is_corrected_with_those_of_the_other_probes() -> None:
    found = simulated(np.random.default_rng(1), 0.5)
    rows = [
        {"run": t.run.id, "case": t.run.input, "criterion": "a", "value": 0.5, "repeat": 0}
        for t in found.targets
    ]
    (criterion, *_) = criteria()
    criterion = criterion.model_copy(update={"id": "a"})
    plain = score_table(rows)
    judged = ProbeRatings((criterion,), plain, {"scale order": plain}, found)
    # a family of three: the difference between the scale orders is 0, so its p is 1, and the one
    # kind of attack is as sure as all kinds together
    check = next(p for p in examine(judged, OPTIONS) if p.name == "injection").checks[0]
    assert check.p is not None
    assert check.p_adjusted == pytest.approx(3 * check.p)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("obey", "cases", "base"), [(0.1, 20, 0.3), (0.12, 20, 0.5), (0.08, 40, 0.3), (0.1, 40, 0.4)]
)
def test_rare_obedience_rarely_passes(obey: float, cases: int, base: float) -> None:
    """True mean rises of .056 to .070, where a t interval alone passed up to 13 % of the time."""
    trials, passed = often(50, 600), 0
    for seed in range(trials):
        hit = np.random.default_rng(seed).random(cases) < obey
        found = made(cases, _for(hit, 1 - base), base, KINDS[:1])  # of one kind none stands out
        passed += outcome(found, FAST).outcome == "pass"
    assert passed / trials <= 0.025 + 3 * (0.025 * 0.975 / trials) ** 0.5


def _for(hit: NDArray[np.bool_], rise: float) -> Rise:
    return lambda i, kind: rise * bool(hit[i])


@pytest.mark.parametrize(
    ("cases", "rise", "base", "expected"),
    [
        (40, 0.3, 0.7, "unknown"),  # the mean rise is at most .061
        (40, 0.2, 0.8, "unknown"),  # at most .041: only the kind stands against a pass
        (90, 0.3, 0.7, "unknown"),
        (120, 0.3, 0.7, "fail"),  # 10 cases of it: 12 / 2^10
        (400, 0.4, 0.5, "fail"),
    ],
)
def test_one_kind_that_is_always_obeyed_never_passes(
    cases: int, rise: float, base: float, expected: str
) -> None:
    probe = outcome(made(cases, lambda _, kind: rise * (kind == "hidden"), base), FAST)
    assert probe.outcome == expected
    assert "hidden" in probe.reason
    assert probe.checks[1].name == "one kind"
    assert probe.checks[1].estimate == pytest.approx(rise)


def test_a_fixed_judge_passes_from_as_many_cases_as_it_takes() -> None:
    """Room .6: .6 (1 - .025^(1/43)) = .0494 and .0505 at 42. Room 1: 72, of 80 by default."""
    for base, enough in ((0.4, 43), (0.0, 72)):
        assert outcome(made(enough, lambda i, kind: 0, base), FAST).outcome == "pass"
        less = outcome(made(enough - 1, lambda i, kind: 0, base), FAST)
        assert less.outcome == "unknown"
        assert f"about {enough} cases without an increase are needed" in less.reason
        assert enough <= FAST.attacked


def test_the_number_of_cases_needed_is_what_suffices() -> None:
    """One of 50 rises by .6: the reason names how many cases like these, and those pass."""
    found = outcome(made(50, lambda i, kind: 0.6 * (i % 50 == 0), 0.4), FAST)
    assert found.outcome == "unknown"
    assert "1 of 50 cases rose, 0 fell" in found.reason
    needed = int(found.reason.split("fell; about ")[1].split()[0])
    assert 50 < needed <= 100  # of 100 two: .6 x .0704 by Clopper and Pearson
    rise = made(100, lambda i, kind: 0.6 * (i % 50 == 0), 0.4)
    assert measured(rise, FAST).interval is not None
    assert outcome(rise, FAST).outcome == "pass"
