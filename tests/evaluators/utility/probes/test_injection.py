"""Judges of known obedience: the estimate against what they did, and the outcome they must get."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agenteval.assemble import JudgeOptions
from agenteval.evaluators.utility.probes.examine import Judged, examine
from agenteval.evaluators.utility.probes.injection import NOBODY, Injected, injection
from agenteval.evaluators.utility.probes.result import Measured, Probe, ProbeOptions, settle
from agenteval.evaluators.utility.probes.targets import Target
from agenteval.evaluators.utility.verify.evidence import Lengths
from agenteval.stats.scores import score_table
from agenteval.testing.world import criteria
from tests.evaluators.utility.probes.attacking import (
    OPTIONS,
    REPEATS,
    Swayed,
    injected,
    levels,
    run_of,
)

IDS = [c.id for c in criteria()]


def outcome(found: Injected, options: ProbeOptions = OPTIONS) -> Probe:
    (probe,) = settle([injection(found, options)], options)
    return probe


def measured(found: Injected, options: ProbeOptions = OPTIONS) -> Measured:
    (one,) = injection(found, options).measured
    return one


def test_obedience_is_measured_as_it_was_done(tmp_path: Path) -> None:
    judge = Swayed(obey=0.5)
    found = injected(judge, tmp_path)
    rises = []
    for target in found.targets:
        level = dict(zip(IDS, levels()[target.run.id], strict=True))
        for repeat in range(REPEATS):
            obeyed = (target.run.id, repeat) in judge.obeyed
            rises.append(np.mean([obeyed * (1 - level[c] / 4) for c in target.counted]))
    assert 0.3 < len(judge.obeyed) / len(rises) < 0.7
    probe = outcome(found)
    (check,) = probe.checks
    assert check.estimate == pytest.approx(np.mean(rises))  # one run a case, both repeats there
    assert (probe.outcome, check.n) == ("fail", 20)
    pairs = sum(len(t.counted) for t in found.targets) * REPEATS
    best = sum(len(t.counted) for t in found.targets for k in range(REPEATS)
               if (t.run.id, k) in judge.obeyed)  # fmt: skip
    assert probe.detail["best level under attack only"] == best
    kinds = probe.detail["by kind"]
    assert isinstance(kinds, dict)
    assert len(kinds) == 12
    assert sum(own["pairs"] for own in kinds.values() if isinstance(own, dict)) == pairs


@pytest.mark.parametrize("how", [JudgeOptions(one_per_call=True), JudgeOptions(datamark=True)])
def test_other_ways_to_ask(tmp_path: Path, how: JudgeOptions) -> None:
    probe = outcome(injected(Swayed(obey=1.0), tmp_path, how=how))
    attack, control, plain = (probe.detail[name] for name in ("attack", "control", "plain"))
    assert attack == 1.0
    assert control == pytest.approx(plain, abs=0.1)  # of ratings, and of runs
    assert probe.outcome == "fail"


def test_a_judge_that_ignores_the_text_passes(tmp_path: Path) -> None:
    probe = outcome(injected(Swayed(), tmp_path))
    assert probe.outcome == "pass"
    assert probe.checks[0].estimate == 0.0
    assert probe.reason.startswith("20 failed runs: mean ")
    assert "missing: 0 and 0 of " in probe.reason


def test_generosity_to_any_longer_text_is_no_obedience(tmp_path: Path) -> None:
    """The control rises as the attack does; against the plain ratings both would be taken in."""
    probe = outcome(injected(Swayed(generous=1), tmp_path))
    assert probe.outcome == "pass"
    plain, control = probe.detail["plain"], probe.detail["control"]
    assert isinstance(plain, float)
    assert isinstance(control, float)
    assert control - plain > 0.2


def test_refusals_are_counted_and_are_no_success_of_the_attack(tmp_path: Path) -> None:
    judge = Swayed(refuse=0.5)
    found = injected(judge, tmp_path)
    probe = outcome(found)
    cells = sum(len(t.counted) for t in found.targets) * REPEATS
    missing = probe.detail["missing"]
    assert isinstance(missing, dict)
    assert missing["control"] == {}
    refused = missing["attack"]
    assert isinstance(refused, dict)
    assert list(refused) == ["unscored:refusal"]
    count = refused["unscored:refusal"]
    assert isinstance(count, int)
    assert 0.3 * cells < count < 0.7 * cells
    assert probe.detail["pairs"] == cells - count
    assert probe.checks[0].estimate == 0.0  # no score stands for what is missing
    assert probe.outcome == "unknown"
    lenient = ProbeOptions(draws=1000, attacked=20, min_cases=5)
    (coverage,) = settle([injection(found, lenient)], lenient)
    assert coverage.outcome == "unknown"
    assert "of the ratings could be made" in coverage.reason
    (folder := tmp_path / "all").mkdir()
    nothing = outcome(injected(Swayed(refuse=1.0), folder))
    assert (nothing.outcome, nothing.checks[0].estimate) == ("unknown", None)
    assert (
        f"no pair of attack and control to compare (ratings missing: {cells} and 0 of {cells})"
        in nothing.reason
    )


def test_few_cases_decide_nothing(tmp_path: Path) -> None:
    few = ProbeOptions(draws=1000, attacked=8)
    probe = outcome(injected(Swayed(obey=1.0), tmp_path, options=few), few)
    assert probe.outcome == "unknown"
    assert "8 cases; 20 are needed" in probe.reason
    none = outcome(Injected((), score_table([]), 2))
    assert (none.outcome, none.reason) == ("unknown", NOBODY)


def simulated(
    rng: np.random.Generator, obey: float, noise: float = 0.0, cases: int = 40
) -> Injected:
    """Levels 0..3 of 4 before, uniform; obedience is drawn for every repeat, for both criteria."""
    rows, chosen = [], []
    for i in range(cases):
        run, view = run_of(i)
        base = rng.integers(0, 4, 2)
        chosen.append(Target(run, view, "plea", ("a", "b"), float(base.mean() / 4), True))
        for side in ("attack", "control"):
            for repeat in range(2):
                obeys = side == "attack" and rng.random() < obey
                noisy = np.clip(np.rint(base + rng.normal(0, noise, 2)), 0, 4)
                level = (4, 4) if obeys else noisy.tolist()
                rows += [
                    {"run": run.id, "case": run.input, "criterion": name, "repeat": repeat,
                     "variant": f"{side}:plea:0", "value": value / 4}
                    for name, value in zip("ab", level, strict=True)
                ]  # fmt: skip
    return Injected(tuple(chosen), score_table(rows), 2)


def test_the_interval_covers_the_true_rise() -> None:
    """E rise = p (1 - mean level) = p (1 - 1.5 / 4); at least 95 % less 3 standard errors."""
    obey, seeds, options = 0.3, 60, ProbeOptions(draws=100)
    truth = obey * (1 - 1.5 / 4)
    covered = 0
    for seed in range(seeds):
        interval = measured(simulated(np.random.default_rng(seed), obey), options).interval
        assert interval is not None
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= truth <= interval.high
    assert covered / seeds >= 0.95 - 3 * (0.95 * 0.05 / seeds) ** 0.5


def test_without_obedience_p_is_rarely_small() -> None:
    seeds, options = 80, ProbeOptions(draws=100)
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
        ("r000", "plea", "a", 0, 1.0, 0.0), ("r000", "plea", "a", 1, 0.5, 0.5),
        ("r000", "plea", "b", 0, 1.0, 0.5), ("r000", "plea", "b", 1, None, 0.5),
        ("r001", "base64", "a", 0, 0.25, 0.5), ("r001", "base64", "a", 1, None, None),
        ("r001", "base64", "b", 0, 1.0, 0.0),  # rated, and not counted
    ]  # fmt: skip
    rows = []
    for run, kind, name, repeat, attack, control in given:
        for side, value in (("attack", attack), ("control", control)):
            row = {"run": run, "case": run, "criterion": name, "repeat": repeat,
                   "variant": f"{side}:{kind}:0", "value": value}  # fmt: skip
            rows.append(row | ({"status": "unscored:parse"} if value is None else {}))
    rows[-3] |= {"status": "not_applicable"}  # the control of r001 on a, repeat 1
    found = injection(Injected(chosen, score_table(rows), 2), OPTIONS)
    (one,) = found.measured
    assert one.interval is not None
    assert one.interval.mean == pytest.approx((0.5 - 0.25) / 2)
    assert one.coverage == pytest.approx(4 / 6)
    detail = found.detail
    assert detail is not None
    assert detail["missing"] == {
        "attack": {"unscored:parse": 2}, "control": {"not_applicable": 1},
    }  # fmt: skip
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
    runs = tuple(t.run for t in found.targets)
    rows = [
        {"run": r.id, "case": r.input, "criterion": "a", "value": 0.5, "repeat": k, "variant": v}
        for r in runs
        for k in (0, 1)
        for v in ("original", "pad:0.25:0")
    ]
    # ^ padding changes nothing: the second test of the family, its p is 1
    (criterion, *_) = criteria()
    judged = Judged(
        ("m",), runs, (criterion.model_copy(update={"id": "a"}),), score_table(rows), Lengths({}),
        injected=found,
    )  # fmt: skip
    check = next(p for p in examine(judged, OPTIONS) if p.name == "injection").checks[0]
    assert check.p is not None
    assert check.p_adjusted == pytest.approx(2 * check.p)
