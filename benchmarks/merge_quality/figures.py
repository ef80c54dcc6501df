"""Figures of the merging benchmark, in the colours of Okabe and Ito."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval.stats import UniqueCurve
    from benchmarks.merge_quality.__main__ import Result
    from benchmarks.merge_quality.pairs import Share
    from benchmarks.merge_quality.unique import ModeCurves

# colour, marker, line: three ways to tell a line, so that grey print will do
STYLES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", (0, (5, 1, 1, 1, 1, 1))),
    ("#E69F00", "v", (0, (1, 1))),
    ("#000000", "x", (0, (3, 3))),
)
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "savefig.dpi": 200,
}


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(STYLE)
    return pyplot


def draw_quality(results: Sequence[Result], default: float, path: Path) -> None:
    """Precision, recall and F1 against tau: embedders above, forms of the text below."""
    plt = _pyplot()
    first = results[0]
    forms = [r for r in results if r.method.name == first.method.name]
    embedders = [first, *(r for r in results if r not in forms)]
    count = next(iter(first.table.values())).concepts
    figure, axes = plt.subplots(2, 3, figsize=(11.5, 6.4), sharex=True, sharey=True)
    for row, group, key in ((0, embedders, "name"), (1, forms, "form")):
        for axis, what in zip(axes[row], ("precision", "recall", "f1"), strict=True):
            _panel(axis, group, what, key)
            axis.axvline(default, color="0.45", linewidth=0.8, zorder=0)
            axis.set_ylim(-0.03, 1.03)
        axes[row, 0].set_ylabel("share of pairs")
        handles = axes[row, 1].get_legend_handles_labels()
        axes[row, 2].legend(
            *handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, handlelength=3.4
        )
    for axis, title in zip(axes[0], ("Precision", "Recall", "F1"), strict=True):
        axis.set_title(title)
    for axis in axes[1]:
        axis.set_xlabel("merging threshold τ (cosine)")
    figure.suptitle(
        f"Merging against the concepts of the bank (n = {count} concepts not used to choose τ; "
        "bands: 95 % over concepts)\n"
        f"above: by embedder; below: {first.method.name} by form of the text; grey line: default "
        f"τ = {default:.2f}; ringed: chosen τ",
        fontsize=9,
    )
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _panel(axis: Any, group: Sequence[Result], what: str, key: str) -> None:
    for i, result in enumerate(group):
        colour, marker, line = STYLES[i % len(STYLES)]
        label = getattr(result.method, key)
        if result.method.embed is None:
            (only,) = result.table.values()
            _level(axis, getattr(only, what), STYLES[-1][0], label)
            continue
        shares = {tau: getattr(q, what) for tau, q in result.table.items()}
        known = {tau: share for tau, share in shares.items() if share.value is not None}
        axis.plot(list(known), [share.value for share in known.values()], color=colour,
                  marker=marker, linestyle=line, markersize=3.5, linewidth=1.3,
                  label=label)  # fmt: skip
        banded = {tau: share for tau, share in known.items() if share.low is not None}
        axis.fill_between(list(banded), [share.low for share in banded.values()],
                          [share.high for share in banded.values()], color=colour, alpha=0.15,
                          linewidth=0)  # fmt: skip
        if result.chosen in known:
            axis.plot([result.chosen], [known[result.chosen].value], marker="o", markersize=10,
                      markerfacecolor="none", color=colour)  # fmt: skip
        if what == "recall" and i == 0:
            axis.plot(list(result.ceilings), list(result.ceilings.values()), color=colour,
                      linewidth=1, linestyle=":", label="pairs with cosine ≥ τ")  # fmt: skip


def _level(axis: Any, share: Share, colour: str, label: str) -> None:
    """What does not depend on tau: a line at its height, or a name without one."""
    if share.value is None:
        axis.plot([], [], color=colour, linewidth=1.2, linestyle=(0, (3, 3)), label=label)
        return
    axis.axhline(share.value, color=colour, linewidth=1.2, linestyle=(0, (3, 3)), label=label)


def draw_curves(curves: dict[str, ModeCurves], path: Path) -> None:
    """Distinct criteria against seeds: a panel per threshold and one of the concepts meant."""
    plt = _pyplot()
    taus = sorted({tau for found in curves.values() for tau in found.by_tau}, reverse=True)
    figure, axes = plt.subplots(1, len(taus) + 1, figsize=(11, 3.7), sharex=True, sharey=True)
    for axis, tau in zip(axes, taus, strict=False):
        for i, (mode, found) in enumerate(curves.items()):
            _curve(axis, i, found.by_tau[tau], f"{mode} (n = {found.seeds} seeds)")
        axis.set_title("τ = 1 (equal names)" if tau == 1 else f"τ = {tau:g}")
    for i, (mode, found) in enumerate(curves.items()):
        if found.concepts is not None:
            _curve(axes[-1], i, found.concepts, mode)
    axes[-1].set_title("concepts meant")
    for axis in axes:
        axis.set_xlabel("seeds of the critic")
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel("distinct criteria")
    handles = axes[0].get_legend_handles_labels()
    axes[-1].legend(*handles, loc="upper center", fontsize=8, handlelength=3)
    figure.suptitle(
        "Distinct criteria the embedded critic proposes for tasks/math, after merging at τ "
        "(mean and central 95 % of random orders of the seeds)",
        fontsize=9,
    )
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def _curve(axis: Any, i: int, curve: UniqueCurve, label: str) -> None:
    colour, marker, line = STYLES[i]
    axis.fill_between(curve.m, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    axis.plot(curve.m, curve.mean, color=colour, linestyle=line, marker=marker, markersize=3.5,
              markevery=(i * 2, 7), linewidth=1.4, label=label)  # fmt: skip
