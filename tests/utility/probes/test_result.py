"""The rule by which a probe passes or fails, and Holm over all of them."""

from __future__ import annotations

import json

import pytest

from agenteval.stats.interval import Interval
from agenteval.utility.probes.result import MeasuredProbe, Probe, ProbeFinding, ProbeOptions, settle
from agenteval.utility.verify import VerifyOptions


def finding(
    mean: float, low: float, high: float, p: float, *, n: int = 30, one_sided: bool = False
) -> ProbeFinding:
    interval = Interval(mean, low, high, None, n, n, "by hand")
    measured = MeasuredProbe("m", "u", "changed by", 0.05, interval, p, n, one_sided=one_sided)
    return ProbeFinding("x", (measured,))


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (finding(0.2, 0.1, 0.3, 0.001), "fail"),
        (finding(-0.2, -0.3, -0.1, 0.001), "fail"),
        (finding(-0.2, -0.3, -0.1, 0.001, one_sided=True), "pass"),  # the harmless side
        (finding(0.03, 0.02, 0.04, 0.001), "pass"),  # sure, and too small to matter
        (finding(0.04, 0.01, 0.07, 0.001), "unknown"),  # sure, and perhaps too small
        (finding(0.0, -0.04, 0.04, 1.0), "pass"),
        (finding(0.0, -0.06, 0.04, 1.0), "unknown"),
        # of few cases: only what surely lies beyond the margin
        (finding(0.2, 0.1, 0.3, 0.001, n=19), "fail"),
        (finding(-0.2, -0.3, -0.1, 0.001, n=6), "fail"),
        (finding(0.2, 0.1, 0.3, 0.001, n=5), "unknown"),
        (finding(0.2, 0.04, 0.36, 0.001, n=19), "unknown"),
        (finding(0.0, -0.01, 0.01, 1.0, n=19), "unknown"),
    ],
)
def test_fail_needs_size_and_certainty_and_pass_the_whole_interval(
    given: ProbeFinding, outcome: str
) -> None:
    (probe,) = settle([given], ProbeOptions())
    assert probe.outcome == outcome
    assert probe.checks[0].outcome == outcome


def test_p_is_corrected_over_all_probes() -> None:
    given = [finding(0.2, 0.1, 0.3, p) for p in (0.01, 0.03, 0.02)]
    probes = settle(given, ProbeOptions())
    # Holm by hand: .01 * 3, then .02 * 2, then max(.04, .03)
    assert [p.checks[0].p_adjusted for p in probes] == pytest.approx([0.03, 0.04, 0.04])
    probes = settle([finding(0.2, 0.1, 0.3, 0.03), *given[1:]], ProbeOptions())
    assert [p.outcome for p in probes] == ["unknown"] * 3


def test_one_failed_check_fails_the_probe_and_one_unknown_leaves_it_open() -> None:
    bad, good = finding(0.2, 0.1, 0.3, 0.001), finding(0.0, -0.01, 0.01, 1.0)
    open_ = MeasuredProbe("o", "u", "s", 0.05, missing="nothing was judged")
    both = ProbeFinding("x", (*bad.measured, *good.measured, open_))
    (failed,) = settle([both], ProbeOptions())
    assert failed.outcome == "fail"
    assert failed.reason == "changed by +0.200: more than 0.05, and not by chance"
    (unknown,) = settle([ProbeFinding("x", (*good.measured, open_))], ProbeOptions())
    assert (unknown.outcome, unknown.reason) == ("unknown", "nothing was judged")


def test_what_cannot_be_made_is_unknown_and_all_is_plain_json() -> None:
    nothing = MeasuredProbe("m", "u", "s", 0.05, missing="no copies")
    probes = settle(
        [ProbeFinding("a", absent="does not apply"), ProbeFinding("b", (nothing,))], ProbeOptions()
    )
    assert [(p.outcome, p.reason) for p in probes] == [
        ("unknown", "does not apply"),
        ("unknown", "no copies"),
    ]
    for probe in probes:
        again = json.dumps(probe.model_dump(mode="json"), allow_nan=False)
        assert Probe.model_validate_json(again) == probe


def test_as_many_runs_get_an_attack_as_there_must_be_cases() -> None:
    many = ProbeOptions.like(VerifyOptions(min_cases=90, margin=0.1))
    assert (many.attacked, many.min_cases, many.margin) == (90, 90, 0.1)
    assert ProbeOptions.like(VerifyOptions()).attacked == 80
    assert ProbeOptions.like(VerifyOptions(), attacked=5).attacked == 5
