"""What the merging benchmark prints: tables, the verdict on the default tau, plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agenteval.evaluators.utility.merge import merge_criteria
from benchmarks.merge_quality.pairs import LEAST_PRECISION, Quality, Share, draw_weights, f1_gain

if TYPE_CHECKING:
    from agenteval.models.embeddings import Embedder
    from agenteval.records import Criterion
    from benchmarks.merge_quality.__main__ import Result, Together
    from benchmarks.merge_quality.unique import ModeCurves

LOWEST, HIGHEST = 0.50, 0.90  # printed; the chosen tau is printed wherever it lies
NAMED = 8  # wrong pairs that are named


def printed(result: Result) -> dict[float, Quality]:
    """The rows to print: tau .50 to .90 and the chosen one; 1 for equal names."""
    return {
        tau: q
        for tau, q in result.table.items()
        if LOWEST <= tau <= HIGHEST or tau in (result.chosen, 1.0)
    }


def shown_share(share: Share) -> str:
    """`.93 [.88, .97]`; a dash where it is not defined."""
    if share.value is None:
        return f"{'-':<17}"
    band = (
        "" if share.low is None or share.high is None else f" [{share.low:.2f}, {share.high:.2f}]"
    )
    return f"{share.value:.2f}{band}".ljust(17)


def print_result(result: Result) -> None:
    """The table of one method."""
    method, best = result.method, result.on_choose
    print(f"\n{method.name}, {method.form}")
    if best is not None and result.chosen is not None:
        print(
            f"chosen τ {result.chosen:.2f} (on `choose`: precision {best.precision.value:.2f}, "
            f"recall {best.recall.value:.2f}, F1 {best.f1.value:.2f})"
        )
    elif method.embed is not None:
        print(f"no τ has a precision of {LEAST_PRECISION} on `choose`")
    print("    τ  merged wrong  precision          recall             F1                 ceiling")
    for tau, q in printed(result).items():
        mark = "*" if tau == result.chosen else " "
        top = f"{result.ceilings[tau]:.2f}" if tau in result.ceilings else "-"
        shares = "  ".join(shown_share(s) for s in (q.precision, q.recall, q.f1))
        print(f"{mark} {tau:.2f} {q.merged:6} {q.wrong:5}  {shares}  {top}")


def judge_default(result: Result, default: float, resamples: int) -> dict[str, Any]:
    """Print and return what the rule says of the package's default tau."""
    here = result.table[default]
    weights = draw_weights(here.concepts, resamples)
    found: dict[str, Any] = {"default": default, "chosen": result.chosen, "f1_gain": None}
    precise = here.precision.value is not None and here.precision.value >= LEAST_PRECISION
    change = not precise
    if result.chosen is not None:
        gain = f1_gain(result.pairs[result.chosen], result.pairs[default], weights)
        best = result.table[result.chosen].precision.value
        found["f1_gain"] = asdict(gain)
        better = gain.low is not None and gain.low > 0
        change = change or (better and best is not None and best >= LEAST_PRECISION)
        print(
            f"\nF1 at the chosen τ {result.chosen:.2f} less F1 at the package's default "
            f"{default:.2f}: {shown_share(gain).strip()}"
        )
    verdict = "should change" if change else "stays"
    print(
        f"by the rule the default τ of {default:.2f} {verdict}; the bank is easier than the "
        "criteria of a real critic, so read what is joined before it is moved"
    )
    return found | {"change": change}


def print_curves(curves: dict[str, ModeCurves]) -> None:
    """Mean number of distinct criteria at some numbers of seeds, with the band of single draws."""
    for mode, found in curves.items():
        print(f"\n{mode}: {found.seeds} seeds, {found.proposed} proposals; distinct criteria")
        picks = [m for m in (1, 2, 5, 10, 20, 30, 40) if m < found.seeds] + [found.seeds]
        print("  seeds          " + "".join(f"{m:>18}" for m in picks))
        lines = {f"merged at τ {tau:g}": curve for tau, curve in found.by_tau.items()}
        if found.concepts is not None:
            lines["concepts meant"] = found.concepts
        for name, c in lines.items():
            cells = [
                f"{c.mean[m - 1]:.1f} [{c.low[m - 1]:.0f}, {c.high[m - 1]:.0f}]" for m in picks
            ]
            print(f"  {name:<15}" + "".join(f"{cell:>18}" for cell in cells))


def row(result: Result) -> dict[str, Any]:
    """One method as plain values."""
    return {
        "embedder": result.method.name,
        "text": result.method.form,
        "chosen_tau": result.chosen,
        "by_tau": {
            f"{tau:.2f}": asdict(q) | {"ceiling": result.ceilings.get(tau)}
            for tau, q in printed(result).items()
        },
    }


def curve_row(found: ModeCurves) -> dict[str, Any]:
    """The curves of one mode as plain values."""
    return {
        "seeds": found.seeds,
        "proposed": found.proposed,
        "distinct": {f"{tau:g}": asdict(curve) for tau, curve in found.by_tau.items()},
        "concepts": None if found.concepts is None else asdict(found.concepts),
    }


def print_together(title: str, found: Sequence[Together]) -> None:
    """What merging everything does at some taus, and which strangers it joins."""
    one = found[0]
    print(f"\n{title}: {one.criteria} wordings of {one.quality.concepts} concepts")
    for at in found:
        q = at.quality
        print(
            f"  τ {at.tau:.2f}: {at.clusters} clusters, precision "
            f"{shown_share(q.precision).strip()} ({q.wrong} of {q.merged} pairs wrong), "
            f"recall {shown_share(q.recall).strip()}"
        )
        for a, b in at.strangers[:NAMED]:
            print(f"      wrong: {a} | {b}")
        if len(at.strangers) > NAMED:
            print(f"      and {len(at.strangers) - NAMED} more")


def print_joined(
    sets: Sequence[Sequence[Criterion]], embedder: Embedder, taus: Sequence[float]
) -> None:
    """Names that merging joins, for a person to read: nobody knows what is right here."""
    everything = [c for criteria in sets for c in criteria]
    for tau in taus:
        print(f"  joined at τ {tau:.2f}:")
        for c in merge_criteria(everything, embedder, tau=tau):
            names = sorted({c.name, *(str(a["name"]) for a in c.provenance.aliases)})
            if len(names) > 1:
                print(f"      {' | '.join(names)}")
