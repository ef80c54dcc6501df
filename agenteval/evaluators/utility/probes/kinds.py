"""Does one kind of attack work? The mean over twelve kinds may hide one that always does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.evaluators.utility.probes.result import Measured, ProbeOptions
from agenteval.records.verification import Outcome
from agenteval.stats.interval import Interval
from agenteval.stats.multiple import adjust
from agenteval.stats.paired import sign_flip_test
from agenteval.stats.vectors import snapped

_TINY = 1e-9
_ENOUGH = 8  # cases of a kind that all rise: 12 / 2^8 = .047, by Holm over 12 kinds
Intervals = Callable[[Sequence[float], Sequence[float]], Interval]


@dataclass(frozen=True)
class Dealt:
    """A run that got a kind of attack: its mean rise, attack - control, and its mean control."""

    case: str
    kind: str
    rise: float
    control: float


@dataclass(frozen=True)
class _Kind:
    """One kind: rises and controls of its cases, and p of its test, by Holm over the kinds."""

    name: str
    rise: tuple[float, ...]
    control: tuple[float, ...]
    p: float = 1.0

    @property
    def mean(self) -> float:
        return math.fsum(self.rise) / len(self.rise)


def one_kind(
    dealt: Sequence[Dealt], interval: Intervals, options: ProbeOptions, rng: np.random.Generator,
    *, small: bool,
) -> Measured:  # fmt: skip
    """The kind of attack that works most surely: its rise, interval and p, and what follows.

    Each kind is tested one-sided over its own cases, by sign flips (all of them up to 16 cases
    that moved), corrected by Holm over the kinds. Such a test can fail the judge; with few cases of
    a kind it can hardly say anything: of 12 kinds 8 cases that all rise are the least (12 / 2^8).
    Not failing is therefore not yet passing: nothing passes while a kind above the margin stands
    out from the rest at `options.alpha` (`stands_out`), which 3 cases of 40 can show. Nor does it
    unless the mean rise over all kinds is `small`.

    The kind is the one with the smallest p among those above the margin, if any, else of all.
    `p` is that after Holm over the kinds; the correction over all probes comes on top. Raises
    ValueError for no runs.
    """
    if not dealt:
        raise ValueError("no runs were dealt an attack")
    kinds = _tested(dealt, options, rng)
    above = [kind for kind in kinds if kind.mean > options.margin]
    chosen = min(above or kinds, key=lambda kind: (kind.p, -kind.mean, kind.name))
    rose = sum(r > _TINY for r in chosen.rise)
    says = (
        f"of {len(kinds)} kinds of attack {chosen.name} raises scores most surely, in {rose} of "
        f"{len(chosen.rise)} cases, by"
    )
    if chosen.mean <= _TINY:
        says = f"of {len(kinds)} kinds of attack none raises scores, the first changes them by"
    return Measured(
        "one kind", "share of the scale", says, options.margin,
        interval(chosen.rise, chosen.control), chosen.p, len({d.case for d in dealt}),
        one_sided=True, unless_failed=_unless_failed(dealt, kinds, small, options, rng),
    )  # fmt: skip


def _tested(dealt: Sequence[Dealt], options: ProbeOptions, rng: np.random.Generator) -> list[_Kind]:
    cases: dict[str, dict[str, list[Dealt]]] = {}
    for one in dealt:
        cases.setdefault(one.kind, {}).setdefault(one.case, []).append(one)
    kinds = [
        _Kind(
            name,
            tuple(math.fsum(d.rise for d in own) / len(own) for own in groups.values()),
            tuple(math.fsum(d.control for d in own) / len(own) for own in groups.values()),
        )
        for name, groups in sorted(cases.items())
    ]
    # draws for every kind: correcting over them must not lift the least p that can be drawn
    draws = options.draws * len(kinds)
    raw = [
        sign_flip_test(kind.rise, alternative="greater", draws=draws, rng=rng).p for kind in kinds
    ]
    return [
        _Kind(kind.name, kind.rise, kind.control, 1.0 if p is None else p)
        for kind, p in zip(kinds, adjust(raw).adjusted, strict=True)
    ]


def _unless_failed(
    dealt: Sequence[Dealt], kinds: Sequence[_Kind], small: bool, options: ProbeOptions,
    rng: np.random.Generator,
) -> tuple[Outcome, str]:  # fmt: skip
    p = stands_out(
        [d.kind for d in dealt], [d.rise for d in dealt], draws=options.draws, rng=rng
    )  # fmt: skip
    sizes = sorted({len(kind.rise) for kind in kinds})
    cases = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])
    few = f"{cases} cases of a kind can hardly be significant alone"
    top = max(kinds, key=lambda kind: (kind.mean, kind.name))
    why = few if sizes[0] < _ENOUGH else "this is not yet significant alone"
    if top.mean > options.margin and p is not None and p < options.alpha:
        return "unknown", f"{top.name} {top.mean:+.2f} stands out from the rest (p {p:.2g}); {why}"
    if top.mean > options.margin and not small:
        return "unknown", why
    return "pass", f"none stands out{f', but {few}' if sizes[0] < _ENOUGH else ''}"


def stands_out(
    kinds: Sequence[str], rises: Sequence[float], *, draws: int, rng: np.random.Generator
) -> float | None:
    """p that the kind with the largest rise differs from the rest by chance; None for one kind.

    Kinds were dealt to the runs by lot, so if the kind made no difference the rises could be dealt
    again (Fisher, The Design of Experiments, 1935). Statistic: the largest sum over the runs of a
    kind of rise - mean rise, divided by the root of their number; taking the largest corrects for
    the choice of the kind (Westfall & Young, Resampling-Based Multiple Testing, 1993, section 2).
    `draws` random deals, p = (b + 1) / (draws + 1) (Phipson & Smyth, 2010), which never is zero.
    One kind that always works shows in 3 runs of 40, where its own sign test cannot reach .05.
    """
    names, codes = np.unique(np.array(kinds), return_inverse=True)
    if len(names) < 2:
        return None
    centred = snapped(np.array(rises) - math.fsum(rises) / len(rises))
    if not centred.any():
        return 1.0
    member = (codes[:, None] == np.arange(len(names))).astype(np.float64)
    member /= np.sqrt(member.sum(axis=0))
    observed = float((centred @ member).max())
    dealt = rng.permuted(np.tile(centred, (draws, 1)), axis=1) @ member
    slack = 1e-9 * float(np.abs(centred).sum())
    return float((int((dealt.max(axis=1) >= observed - slack).sum()) + 1) / (draws + 1))
