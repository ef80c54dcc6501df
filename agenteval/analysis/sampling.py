"""Draw samples of runs for people to label, with known probabilities, so that the labels represent
all runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from agenteval.errors import InputError
from agenteval.readers.scores import score_rows
from agenteval.records.base import content_hash
from agenteval.stats.scores import ORIGINAL, Floats, ScoreTable

By = Literal["random", "value", "disagreement"]
BANDS = 4  # equal parts of the scale with the same number of runs drawn from each


@dataclass(frozen=True)
class Sample:
    """Runs drawn from `total`, with their weights (inverse inclusion probabilities).

    `name` describes the draw and includes a hash of runs and weights.
    """

    weights: Mapping[str, float]
    by: str
    total: int
    seed: int

    @property
    def name(self) -> str:
        """Name such as "random 100 of 1000, seed 7, 3fa9c1d2"."""
        drawn = sorted((run, f"{weight:.6g}") for run, weight in self.weights.items())
        about = f"{self.by} {len(self.weights)} of {self.total}, seed {self.seed}"
        return f"{about}, {content_hash([about, drawn])[:8]}"


def draw(table: ScoreTable, n: int, *, by: By = "random", seed: int = 0) -> Sample:
    """Draw `n` of the original runs that a judge rated, or all if there are fewer.

    "random" draws all runs with equal probability. The other methods divide the runs into four
    bands and draw equally from each if possible: "value" by the judge's mean over all criteria, so
    that rare grades are also labelled; "disagreement" by the largest difference between two
    repeats, averaged over criteria. Raises InputError if nothing is rated, or for "disagreement"
    with one repeat.
    """
    if by not in get_args(By):
        raise InputError(f"{by!r} is not one of: {', '.join(get_args(By))}", "--by")
    rated = table.of(variant=ORIGINAL)
    means: dict[str, list[float]] = defaultdict(list)
    spreads: dict[str, list[float]] = defaultdict(list)
    for criterion in rated.present("criterion"):
        matrix = rated.of(criterion=criterion).matrix()
        for code, values in zip(matrix.run, matrix.values, strict=True):
            ratings: Floats = values[~np.isnan(values)]
            if len(ratings):
                means[rated.run.names[code]].append(float(ratings.mean()))
                spreads[rated.run.names[code]].append(float(np.ptp(ratings)))
    mean, spread = (
        {run: float(np.mean(values)) for run, values in of.items()} for of in (means, spreads)
    )
    repeated = int(rated.repeat.max(initial=0)) > 0
    return draw_among(mean, spread if repeated else None, n, by=by, seed=seed)


def draw_among(
    means: Mapping[str, float],
    spreads: Mapping[str, float] | None,
    n: int,
    *,
    by: By = "random",
    seed: int = 0,
) -> Sample:
    """Draw like `draw` from the mean and spread of each run; `spreads` is None for one repeat.
    Raises InputError like `draw`."""
    if not means:
        raise InputError("no run has a rating", "agree sample")
    runs = sorted(means)
    bands = dict.fromkeys(runs, 0)
    key = means if by == "value" else spreads
    if key is None and by == "disagreement":
        raise InputError("every run was judged once: there are no repeats to compare", "--by")
    if key is not None and by != "random":
        bands = {run: min(int(key[run] * BANDS), BANDS - 1) for run in runs}
    members: dict[int, list[str]] = defaultdict(list)
    for run in runs:
        members[bands[run]].append(run)
    rng = np.random.default_rng(seed)
    weights: dict[str, float] = {}
    remaining = min(n, len(runs))
    for number, band in enumerate(sorted(members, key=lambda b: (len(members[b]), b))):
        band_runs = members[band]  # smallest first, so that larger bands make up for it
        take = min(len(band_runs), remaining // (len(members) - number))
        remaining -= take
        for at in sorted(rng.choice(len(band_runs), take, replace=False).tolist()):
            weights[band_runs[at]] = len(band_runs) / take
    return Sample(weights, by, len(runs), seed)


def read_sample(path: Path) -> Sample | None:
    """Return the sample named in a file of labels or of runs to label; None if it names none.

    Raises InputError if runs or weights differ from the drawn sample.
    """
    weights: dict[str, float] = {}
    names: set[str] = set()
    for where, row in score_rows(path):
        name = row.get("sample")
        if name in (None, ""):
            if names:
                raise InputError("this row does not name a sample, but earlier rows do", where)
            continue
        names.add(str(name))
        try:
            weight = float(row.get("weight") or 0)
        except (TypeError, ValueError):
            weight = 0.0
        if not 1 <= weight < 1e12:
            raise InputError(f"weight {row.get('weight')!r} is not a number of at least 1", where)
        if weights.setdefault(str(row.get("run")), weight) != weight:
            raise InputError(f"run {row.get('run')!r} has two weights", where)
    if not names:
        return None
    if len(names) > 1:
        raise InputError(
            f"the rows are from several samples: {', '.join(sorted(names))}", str(path)
        )
    (name,) = names
    sample = named_sample(name, weights, str(path))
    if sample.name != name:
        raise InputError(
            f"runs or weights differ from the drawn sample ({name}): the sample was edited, or "
            "rows are missing; leave the label of a run empty instead",
            str(path),
        )
    return sample


def named_sample(name: str, weights: Mapping[str, float], where: str) -> Sample:
    """Return the sample described by this name, with these weights.

    Raises InputError for a name that was not made by `agree sample`.
    """
    words: Sequence[str] = name.replace(",", "").split()
    try:
        by, _, _, total, _, seed, _ = words
        return Sample(weights, by, int(total), int(seed))
    except ValueError:
        raise InputError(f"{name!r} is not a sample drawn by `agree sample`", where) from None
