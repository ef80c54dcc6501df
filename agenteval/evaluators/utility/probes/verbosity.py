"""Do longer texts score higher for their length alone?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import JsonValue

from agenteval.evaluators.utility.probes.result import Finding, Measured, ProbeOptions
from agenteval.evaluators.utility.verify.evidence import Lengths
from agenteval.records import Criterion
from agenteval.records.verification import Check, Outcome
from agenteval.stats.bootstrap import Bootstrap, bootstrap_interval
from agenteval.stats.correlation import spearman
from agenteval.stats.interval import mean_interval
from agenteval.stats.paired import sign_flip_test
from agenteval.stats.scores import ORIGINAL, ScoreTable, split_variant

NAME = "verbosity"
PAD = "pad"
_Run = tuple[str, str, bool | None]  # run id, case, success


def verbosity(
    table: ScoreTable, criteria: Sequence[Criterion], lengths: Lengths, options: ProbeOptions
) -> Finding:
    """Correlation of length and score over originals, and the effect of padding.

    length: Spearman's rho of characters and the run's mean score over ordered criteria, interval by
    resampling cases. High, it is no proof of bias, since better work may be longer; it stays
    unknown then, and beside it stands the rho of length and success. padding: padded copy minus
    original, mean over cases, one-sided: content was not added, so a rise is earned by length. The
    criteria expected to rise with padding are left out.
    """
    ordered = [c for c in criteria if c.ordered]
    rng = np.random.default_rng(options.seed)
    means = _run_means(table, [c.id for c in ordered], ORIGINAL)
    length, detail = _length_check(means, lengths, options, rng)
    return Finding(NAME, (_padding(table, ordered, options, rng),), (length,), detail=detail)


def _run_means(
    table: ScoreTable, criteria: Sequence[str], variant: str
) -> dict[_Run, dict[str, float]]:
    """Mean over repeats by criterion, of every run that was scored."""
    found: dict[_Run, dict[str, float]] = {}
    for name in criteria:
        own = table.of(criterion=name, variant=variant, status="scored")
        matrix = own.matrix()
        for run, case, success, mean in zip(
            matrix.run, matrix.case, matrix.success, matrix.mean, strict=True
        ):
            known = None if success < 0 else bool(success)
            if not np.isnan(mean):
                key = (own.run.names[run], own.case.names[case], known)
                found.setdefault(key, {})[name] = float(mean)
    return found


def _length_check(
    means: dict[_Run, dict[str, float]],
    lengths: Lengths,
    options: ProbeOptions,
    rng: np.random.Generator,
) -> tuple[Check, dict[str, JsonValue]]:
    found = [
        (float(n), float(np.mean(list(scores.values()))), case, success)
        for (run, case, success), scores in means.items()
        if (n := lengths.get((run, ORIGINAL))) is not None
    ]
    size, score = (np.array([f[k] for f in found], dtype=np.float64) for k in (0, 1))
    case = [f[2] for f in found]
    how = Bootstrap(rng, resamples=options.resamples)
    detail: dict[str, JsonValue] = {"rho_success": _with_success(found)}
    if not found:
        return Check(name="length", outcome="unknown", reason="no length is known"), detail
    rho = bootstrap_interval(lambda a, b: spearman(a, b).mean, [size, score], case, how=how)
    check = Check(
        name="length", outcome="unknown", reason=rho.reason or "", unit="Spearman rho",
        estimate=rho.mean, low=rho.low, high=rho.high, n=len(set(case)),
    )  # fmt: skip
    if rho.mean is None:
        reason = "no correlation: all lengths or all scores are equal"
        return check.model_copy(update={"reason": reason}), detail
    outcome, why = _judge_length(check, detail, options)
    reason = f"length and score go together by rho {rho.mean:+.2f}: {why}"
    return check.model_copy(update={"outcome": outcome, "reason": reason}), detail


def _judge_length(
    check: Check, detail: dict[str, JsonValue], options: ProbeOptions
) -> tuple[Outcome, str]:
    if check.n < options.min_cases:
        return "unknown", f"{check.n} cases; {options.min_cases} are needed"
    if check.low is None or check.high is None:
        return "unknown", check.reason or "there is no interval"
    if max(check.high, -check.low) < options.length:
        return "pass", f"less than {options.length:g}"
    success = detail["rho_success"]
    beside = "success is unknown" if success is None else f"length and success by {success:+.2f}"
    if max(check.low, -check.high) < options.length:
        return "unknown", f"neither surely small nor surely large ({beside})"
    return "unknown", f"by itself no proof of bias ({beside})"


def _with_success(found: Sequence[tuple[float, float, str, bool | None]]) -> float | None:
    """Spearman's rho of length and success where that is known; None where undefined."""
    known = [(f[0], float(f[3])) for f in found if f[3] is not None]
    return spearman([k[0] for k in known], [k[1] for k in known]).mean


def _padding(
    table: ScoreTable,
    criteria: Sequence[Criterion],
    options: ProbeOptions,
    rng: np.random.Generator,
) -> Measured:
    says, unit = "empty padding changes scores by", "share of the scale"
    names = [c.id for c in criteria if c.expect.get(PAD) != "higher"]
    padded = [v for v in table.present("variant") if split_variant(v)[0] == PAD]
    before = _run_means(table, names, ORIGINAL)
    changes: dict[str, list[float]] = {}
    for variant in padded:
        for key, scores in _run_means(table, names, variant).items():
            both = [scores[c] - before[key][c] for c in scores if c in before.get(key, {})]
            if both:
                changes.setdefault(key[1], []).append(float(np.mean(both)))
    if not changes:
        missing = "no padded copies were judged; ask for --perturb pad"
        return Measured("padding", unit, says, options.margin, missing=missing)
    rise = np.array([np.mean(c) for c in changes.values()])
    test = sign_flip_test(rise, alternative="greater", draws=options.draws, rng=rng)
    interval = mean_interval(rise.tolist(), bounds=(-1.0, 1.0))
    return Measured(
        "padding", unit, says, options.margin, interval, test.p, len(rise), one_sided=True
    )
