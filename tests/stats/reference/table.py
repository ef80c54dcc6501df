"""The statistics beside recorded reference figures: one row per figure.

Statuses: ok; DIFFERS; input (the figure is an input that stands in the file); not offered (a figure
that this package does not make, with the reason); no inputs here (the raw data are not in the
folder).

Tolerance: 2e-6 absolute, or the last of six printed digits where that is coarser; 1e-3 relative
below p = 1e-3; .01 for bootstrap and simulation; counts exactly.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.stats.reference.counts import count_figures
from tests.stats.reference.ratings import rating_figures
from tests.stats.reference.spec import spec_figures

FOLDER = Path(__file__).parents[4] / "shared/reference"
FILES = {
    "stats": "stats/reference.json",
    "prometheus": "stats/prometheus/reference.json",
    "pandalm": "stats/pandalm/reference.json",
    "gsm8k": "utility/gsm8k/reference.json",
    "prealgebra": "utility/reference_prealgebra_8runs.json",
}
DRAWN = ("_CI95_", "signflip", "sequential_stopping")  # bootstrap and simulation
INPUTS = ("only_metrics", "only_vanilla", "n_test", "/m0", "/m1", "true_prevalence", "label_counts")
NOT_OFFERED = {
    "friedman": "Friedman's test of several systems: pairs with correction instead",
    "/normal/": "Wald's interval, wrong at 0 and n",
    "regrade_": "a parser's check, no statistic",
    "calc_annotation": "a parser's check, no statistic",
}


@dataclass(frozen=True)
class Row:
    """One figure; `ours` is None where there is none, `how` names what made it or why not."""

    name: str
    ours: float | None
    reference: float
    status: str
    how: str


def flatten(value: Any, name: str) -> Iterator[tuple[str, float, str]]:
    """(name, number, as printed) of every number inside; texts and booleans are no figures."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{name}/{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from flatten(inner, f"{name}/{i}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value), repr(value)


def references(folder: Path) -> Iterator[tuple[str, float, str]]:
    """Every reference figure: of the files and of the text."""
    for top, path in FILES.items():
        yield from flatten(json.loads((folder / path).read_text(encoding="utf-8")), top)
    for name, text in spec_figures().items():
        yield name, float(text), text


def agrees(ours: float, reference: float, printed: str, name: str) -> bool:
    """Whether ours is the reference figure within the stated tolerance."""
    if name.startswith("spec/"):
        digits = printed.split("e")[0].partition(".")[2]
        scale = 10.0 ** int(printed.split("e")[1]) if "e" in printed else 1.0
        return abs(ours - reference) <= max(2e-6, 0.501 * 10.0 ** -len(digits)) * scale
    if "." not in printed and "e" not in printed:
        return ours == reference
    if any(word in name for word in DRAWN):
        return abs(ours - reference) <= (0.001 if "mt_bench_eval/signflip" in name else 0.01)
    if abs(reference) < 1e-3:
        return math.isclose(ours, reference, rel_tol=1e-3) or (reference == 0 and ours == 0)
    last = 0.501 * 10.0 ** (math.floor(math.log10(abs(reference))) - 5)
    return abs(ours - reference) <= max(2e-6, last)


def table(folder: Path = FOLDER) -> list[Row]:
    """A row per reference figure, in the order of the files. Raises OSError without the folder."""
    made = {
        name: (ours, how) for name, ours, how in (*rating_figures(folder), *count_figures(folder))
    }
    rows = []
    for name, reference, printed in references(folder):
        ours, how = made.pop(name, (None, ""))
        if how:
            fine = ours is not None and agrees(ours, reference, printed, name)
            rows.append(Row(name, ours, reference, "ok" if fine else "DIFFERS", how))
            continue
        reason = next((why for word, why in NOT_OFFERED.items() if word in name), None)
        if reason:
            rows.append(Row(name, None, reference, "not offered", reason))
        elif any(word in name for word in INPUTS):
            rows.append(Row(name, None, reference, "input", "stands in the file"))
        else:
            rows.append(Row(name, None, reference, "no inputs here", ""))
    return rows
