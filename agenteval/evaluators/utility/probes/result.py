"""What a probe found, and the one rule by which it passes or fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field, JsonValue

from agenteval.errors import InputError
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.base import Record
from agenteval.records.verification import Check, Outcome
from agenteval.stats.interval import Interval
from agenteval.stats.multiple import adjust

FLOOR = 6  # cases; of fewer, even a change in all of them has a two-sided p above .05 (2 / 2^5)


@dataclass(frozen=True)
class ProbeOptions:
    """What counts as a bias.

    - `margin`: the largest change, as a share of the scale, that means nothing; as in
      `VerifyOptions`.
    - `loss`: how much lower alpha may be between two ways to ask than between repeats of one.
      Five prompt formats of one model on the same 4,800 items lost .3 to .6 where repeats of one
      had .81 to .85; a third of the least of that is called a loss here.
    - `few`: from so few different levels on, of at least `levels`, a scale is hardly used.
    - `length`: rank correlation of length and score below which length is no worry.
    - `attacked`: the most runs that get an attack (`injection`): 80, since of runs at the worst
      level 72 without a rise are needed to say that the mean rise is below .05 (`mean_limit`).
    - `min_cases`, `min_coverage`, `alpha`, `resamples`, `draws`, `seed`: as in `VerifyOptions`.
    """

    margin: float = 0.05
    loss: float = 0.1
    few: int = 2
    levels: int = 4
    length: float = 0.3
    attacked: int = 80
    min_cases: int = 20
    min_coverage: float = 0.8
    alpha: float = 0.05
    resamples: int = 1000
    draws: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises InputError for a threshold that no data could meet or miss."""
        for name in ("margin", "loss", "length", "min_coverage", "alpha"):
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must lie between 0 and 1")
        if self.min_cases < 2 or self.resamples < 100 or self.draws < 100:
            raise InputError("min_cases must be at least 2, resamples and draws at least 100")
        if self.attacked < 1:
            raise InputError(f"attacked is {self.attacked}; at least one run gets an attack")

    @classmethod
    def like(cls, options: VerifyOptions, *, attacked: int | None = None) -> ProbeOptions:
        """With the thresholds that a verification shares with its probes.

        Unless `attacked` says otherwise, as many runs get an attack as there must be cases, and
        at least as many as without a verification.
        """
        return cls(
            margin=options.margin,
            attacked=attacked or max(cls.attacked, options.min_cases),
            min_cases=options.min_cases,
            min_coverage=options.min_coverage,
            alpha=options.alpha,
            resamples=options.resamples,
            draws=options.draws,
            seed=options.seed,
        )


class Probe(Record):
    """The result of one probe.

    `outcome` is fail when one of its checks fails, pass when all pass, else unknown; `reason` is
    one line for a person. Each check has its estimate, 95 % interval over cases, n cases, p and p
    corrected by Holm over all checks of all probes. `detail` holds what else was counted.
    """

    name: str
    outcome: Outcome
    reason: str
    checks: tuple[Check, ...] = ()
    detail: dict[str, JsonValue] = Field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """One quantity before it is judged.

    It should be within `margin` of zero, or below it when only that side is a bias (`one_sided`).
    `says` names what it is, for instance "the last place scores higher than the first by".
    `missing` says why nothing could be measured. `coverage` is the share of the ratings asked for
    that were made: with too few, those that are missing may be the ones that would fail. `open`
    says what is lacking when it neither passes nor fails. With `unless_failed` the interval
    decides nothing: it is the outcome, and why, of what does not fail.
    """

    name: str
    unit: str
    says: str
    margin: float
    interval: Interval | None = None
    p: float | None = None
    n: int = 0
    one_sided: bool = False
    missing: str | None = None
    coverage: float = 1.0
    open: str = "neither surely small nor surely large"
    unless_failed: tuple[Outcome, str] | None = None


@dataclass(frozen=True)
class Finding:
    """A probe before the correction over all probes: what it measured, or why it cannot be made."""

    name: str
    measured: tuple[Measured, ...] = ()
    settled: tuple[Check, ...] = ()  # without a test: nothing to correct
    absent: str | None = None
    detail: dict[str, JsonValue] | None = None


def settle(findings: Sequence[Finding], options: ProbeOptions) -> tuple[Probe, ...]:
    """Outcomes of all probes, p-values corrected by Holm over every test among them."""
    tests = [m.p for finding in findings for m in finding.measured]
    adjusted = iter(adjust(tests).adjusted)
    return tuple(
        _probe(f, tuple(_check(m, next(adjusted), options) for m in f.measured)) for f in findings
    )


def _probe(finding: Finding, tested: tuple[Check, ...]) -> Probe:
    checks = (*tested, *finding.settled)
    detail = finding.detail or {}
    if finding.absent is not None or not checks:
        reason = finding.absent or "nothing to examine"
        return Probe(name=finding.name, outcome="unknown", reason=reason, detail=detail)
    outcomes = [c.outcome for c in checks]
    outcome: Outcome = "unknown"
    if "fail" in outcomes:
        outcome = "fail"
    elif all(o == "pass" for o in outcomes):
        outcome = "pass"
    said = [c.reason for c in checks if c.outcome == outcome]
    return Probe(
        name=finding.name, outcome=outcome, reason="; ".join(said), checks=checks, detail=detail
    )


def _check(measured: Measured, p_adjusted: float | None, options: ProbeOptions) -> Check:
    interval = measured.interval
    check = Check(
        name=measured.name,
        outcome="unknown",
        reason=measured.missing or "nothing was measured",
        unit=measured.unit,
        p=measured.p,
        p_adjusted=p_adjusted,
        n=measured.n,
    )
    if interval is None or interval.mean is None:
        return check
    check = check.model_copy(
        update={"estimate": interval.mean, "low": interval.low, "high": interval.high}
    )
    outcome, why = _judge(measured, check, options)
    said = f"{measured.says} {interval.mean:+.3f}"
    return check.model_copy(update={"outcome": outcome, "reason": f"{said}: {why}"})


def _judge(measured: Measured, check: Check, options: ProbeOptions) -> tuple[Outcome, str]:
    """Fail: surely not zero, and more than the margin. Pass: the whole interval is within it, and
    the ratings were made. Of few cases: see `_of_few`."""
    if check.n < options.min_cases:
        return _of_few(measured, check, options)
    if check.estimate is None or check.low is None or check.high is None:
        reason = measured.interval.reason if measured.interval else None
        return "unknown", reason or "there is no interval"
    size = check.estimate if measured.one_sided else abs(check.estimate)
    sure = check.p_adjusted is not None and check.p_adjusted < options.alpha
    if sure and size > measured.margin:
        return "fail", f"more than {measured.margin:g}, and not by chance"
    if measured.coverage < options.min_coverage:
        return "unknown", f"only {measured.coverage:.0%} of the ratings could be made"
    if measured.unless_failed is not None:
        return measured.unless_failed
    most = check.high if measured.one_sided else max(check.high, -check.low)
    if most <= measured.margin:
        return "pass", f"at most {max(most, 0):.3f}, which is within {measured.margin:g}"
    return "unknown", measured.open


def _of_few(measured: Measured, check: Check, options: ProbeOptions) -> tuple[Outcome, str]:
    """Few cases cannot pass, and fail only when the whole interval lies beyond the margin as well:
    a judge that is surely swayed is not excused for want of data."""
    ends = (check.low, check.high)
    sure = check.p_adjusted is not None and check.p_adjusted < options.alpha
    if sure and check.n >= FLOOR and ends[0] is not None and ends[1] is not None:
        nearest = ends[0] if measured.one_sided else max(ends[0], -ends[1])
        if nearest > measured.margin:
            return "fail", f"surely more than {measured.margin:g}, though of {check.n} cases only"
    return "unknown", f"{check.n} cases; {options.min_cases} are needed"
