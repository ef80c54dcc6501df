"""Results of probes, and the rule by which they pass or fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field, JsonValue

from agenteval.errors import InputError
from agenteval.records.base import Record
from agenteval.records.verification import Check, Outcome
from agenteval.stats.interval import Interval
from agenteval.stats.multiple import adjust
from agenteval.utility.verify.options import VerifyOptions

_FLOOR = 6  # with fewer cases, even a change in all has a two-sided p above .05 (2 / 2^5)


@dataclass(frozen=True)
class ProbeOptions(VerifyOptions):
    """Thresholds of a bias: those of the verifier, and

    - `loss`: how much lower alpha may be between two ways to ask than between repeats of one.
      Five prompt formats of one model on the same 4,800 items lost .3 to .6 where repeats of one
      had .81 to .85; a third of the least of that is called a loss here.
    - `attacked`: the most runs that get an attack (`injection`): 80, since of runs at the worst
      level 72 without a rise are needed to say that the mean rise is below .05 (`mean_limit`).
    """

    loss: float = 0.1
    attacked: int = 80

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attacked < 1:
            raise InputError(f"attacked is {self.attacked}; at least one run gets an attack")

    @classmethod
    def like(cls, options: VerifyOptions, *, attacked: int | None = None) -> ProbeOptions:
        """Return the options with the thresholds of a verification.

        Unless `attacked` says otherwise, as many runs get an attack as there must be cases, and
        at least as many as without a verification.
        """
        return cls(**vars(options), attacked=attacked or max(cls.attacked, options.min_cases))


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
class MeasuredProbe:
    """One quantity before it is judged.

    It should be within `margin` of zero, or below it when only that side is a bias (`one_sided`).
    `says` names what it is, for instance "asked the other way, scores change by".
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
    open: str = "it is not settled whether the change is small or large"
    unless_failed: tuple[Outcome, str] | None = None


@dataclass(frozen=True)
class ProbeFinding:
    """A probe before correction over all probes: its measures, or why it is impossible."""

    name: str
    measured: tuple[MeasuredProbe, ...] = ()
    absent: str | None = None
    detail: dict[str, JsonValue] | None = None


def settle(findings: Sequence[ProbeFinding], options: ProbeOptions) -> tuple[Probe, ...]:
    """Return the outcomes of all probes, p-values corrected by Holm over all their tests."""
    tests = [m.p for finding in findings for m in finding.measured]
    adjusted = iter(adjust(tests))
    probes = []
    for finding in findings:
        checks = tuple(_check(m, next(adjusted), options) for m in finding.measured)
        outcomes = {c.outcome for c in checks}
        outcome: Outcome = "unknown"
        reason = finding.absent or "nothing to examine"
        if finding.absent is not None:
            checks = ()
        elif checks:
            outcome = "fail" if "fail" in outcomes else "unknown"
            outcome = "pass" if outcomes == {"pass"} else outcome
            reason = "; ".join(c.reason for c in checks if c.outcome == outcome)
        probes.append(
            Probe(
                name=finding.name,
                outcome=outcome,
                reason=reason,
                checks=checks,
                detail=finding.detail or {},
            )
        )
    return tuple(probes)


def _check(measured: MeasuredProbe, p_adjusted: float | None, options: ProbeOptions) -> Check:
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
    sure = p_adjusted is not None and p_adjusted < options.alpha
    outcome, why = _judge(measured, interval, options, sure=sure)
    update = {
        "estimate": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "outcome": outcome,
        "reason": f"{measured.says} {interval.mean:+.3f}: {why}",
    }
    return check.model_copy(update=update)


def _judge(
    measured: MeasuredProbe, interval: Interval, options: ProbeOptions, *, sure: bool
) -> tuple[Outcome, str]:
    """Return outcome and reason.

    Fail: significant, and more than the margin. Pass: the whole interval is within the margin, and
    the ratings were made. Few cases cannot pass, and fail only when the whole interval is beyond
    the margin as well.
    """
    margin, n = measured.margin, measured.n
    mean, low, high = interval.mean or 0.0, interval.low, interval.high
    has_interval = low is not None and high is not None
    nearest, most = (low or 0.0), (high or 0.0)
    if not measured.one_sided:
        mean, nearest, most = abs(mean), max(nearest, -most), max(most, -nearest)
    if n < options.min_cases:
        if sure and n >= _FLOOR and has_interval and nearest > margin:
            return "fail", f"surely more than {margin:g}, though of {n} cases only"
        return "unknown", f"{n} cases; {options.min_cases} are needed"
    if not has_interval:
        return "unknown", interval.reason or "there is no interval"
    if sure and mean > margin:
        return "fail", f"more than {margin:g}, and not by chance"
    if measured.coverage < options.min_coverage:
        return "unknown", f"only {measured.coverage:.0%} of the ratings are available"
    if measured.unless_failed is not None:
        return measured.unless_failed
    if most <= margin:
        return "pass", f"at most {max(most, 0):.3f}, which is within {margin:g}"
    return "unknown", measured.open
