"""The largest disagreements between ratings of the same run: repeats of a judge, judges, people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.analysis.table_parts import criterion_cells
from agenteval.records.table import Table, column, columns_headed, table_of
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.text import plural

MOST = 20


@dataclass(frozen=True)
class Disagreement:
    """The ratings of one run on one criterion: the largest difference between two of its `n`
    ratings, as a share of the scale, and the labels by rater, for example "good ×2, poor"."""

    run: str
    case: str
    criterion_id: str
    spread: float
    n: int
    said: Mapping[str, str]


@dataclass(frozen=True)
class _DisagreementColumns:
    run: str = column("run")
    case: str = column("case", hidden=True)
    criterion_id: str = column("criterion id", hidden=True)
    criterion: str = column("criterion")
    spread: float = column("differ\nby", "number", "largest difference, as a share of the scale")


def disagreements(raters: Mapping[str, ScoreTable]) -> list[Disagreement]:
    """Return runs and criteria with differing ratings, the largest difference first."""
    ratings: dict[tuple[str, str], list[tuple[str, float, str]]] = {}
    case: dict[str, str] = {}
    for rater, table in raters.items():
        originals = table.of(variant=ORIGINAL)
        for at in np.flatnonzero(~np.isnan(originals.value)).tolist():
            run, value = originals.run.names[originals.run.codes[at]], float(originals.value[at])
            code = originals.label.codes[at]
            label = originals.label.names[code] if code >= 0 else f"{value:.2g}"
            case.setdefault(run, originals.case.names[originals.case.codes[at]])
            key = originals.criterion.names[originals.criterion.codes[at]], run
            ratings.setdefault(key, []).append((rater, value, label))
    disagreements = []
    for (criterion, run), run_ratings in ratings.items():
        values = [value for _, value, _ in run_ratings]
        spread = max(values) - min(values)
        if spread > 1e-9:
            labels: dict[str, Counter[str]] = {}
            for rater, _, label in sorted(run_ratings, key=lambda rating: rating[1]):
                labels.setdefault(rater, Counter())[label] += 1
            labels_by_rater = {
                rater: ", ".join(f"{w} ×{k}" if k > 1 else w for w, k in counts.items())
                for rater, counts in labels.items()
            }
            disagreements.append(
                Disagreement(run, case[run], criterion, spread, len(run_ratings), labels_by_rater)
            )
    return sorted(disagreements, key=lambda d: (-d.spread, d.run, d.criterion_id))


def disagreement_table(
    found: Sequence[Disagreement], names: Mapping[str, str], among: str
) -> Table:
    """Return a table of the largest; `names` are by criterion id, `among` names the raters."""
    raters = list(dict.fromkeys(rater for disagreement in found for rater in disagreement.said))
    heads = raters if len(raters) > 1 else ["ratings, worst first"] * len(raters)
    headings = {f"said_{i}": head for i, head in enumerate(heads)}
    rows = [
        (
            d,
            criterion_cells(d.criterion_id, names)
            | {key: d.said.get(rater, "") for key, rater in zip(headings, raters, strict=True)},
        )
        for d in found[:MOST]
    ]
    notes = []
    if (more := len(found) - MOST) > 0:
        notes = [
            f"{plural(more, 'pair')} of run and criterion with smaller differences are omitted"
        ]
    return table_of(
        _DisagreementColumns,
        "disagreement",
        f"Where {among} disagree most",
        rows,
        notes=notes,
        detail=True,
        more=columns_headed(headings),
    )
