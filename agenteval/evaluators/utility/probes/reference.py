"""Does the judge look at a reference that it is shown? Right runs beside their own reference, and
beside that of another case."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from agenteval.evaluators.base import Evaluator
from agenteval.evaluators.renamed import Renamed
from agenteval.evaluators.utility.probes.result import Finding, ProbeOptions
from agenteval.evaluators.utility.probes.targets import Item
from agenteval.readers import degenerate
from agenteval.records import Criterion
from agenteval.records.verification import Check, Outcome
from agenteval.stats.interval import Interval, mean_interval
from agenteval.stats.scores import ScoreTable

NAME = "reference"
ABSENT = "does not apply: no two runs that may be right have different references"


def reference_copies(items: Sequence[Item], options: ProbeOptions) -> dict[str, list[Item]]:
    """The runs that are not known to be wrong and have a reference, at most `options.attacked`, by
    variant: shown with their own reference, and with that of the next run, in an order drawn by
    seed, which has another. Empty where all references are the same."""
    able = [
        item for item in items
        if item[0].reference and item[0].success is not False and degenerate(item[0]) is None
    ]  # fmt: skip
    able.sort(key=lambda item: (item[1].text_sha256, item[0].system))
    order = np.random.default_rng(options.seed).permutation(len(able)).tolist()
    drawn = [able[i] for i in order][: options.attacked]
    if len({run.reference for run, _ in drawn}) < 2:
        return {}
    copies: dict[str, list[Item]] = {f"{side}:-:{options.seed}": [] for side in ("own", "other")}
    own, other = copies.values()
    for at, (run, view) in enumerate(drawn):
        following = (*drawn[at + 1 :], *drawn[:at])
        others = next(one.reference for one, _ in following if one.reference != run.reference)
        for shown, kept in ((run.reference, own), (others, other)):
            update = {"reference": shown, "origin": view.sha256}
            kept.append((run, view.model_copy(update=update)))
    return copies


def reading_references(judge: Evaluator) -> Evaluator:
    """The same judge under a source of its own."""
    return Renamed(judge, probe=f"{NAME}/1")


def reference(table: ScoreTable, criteria: Sequence[Criterion], options: ProbeOptions) -> Finding:
    """By how much each criterion falls, over cases, when the reference is another's.

    Passes when one surely falls by more than `margin` (intervals at level 1 - alpha over the number
    of criteria), fails when surely none does: then the judge may be shown references, but they
    change nothing.
    """
    ordered = [c for c in criteria if c.ordered]
    falls: list[tuple[Criterion, Interval]] = []
    for criterion in ordered:
        sides = []
        for side in ("own", "other"):
            variant = f"{side}:-:{options.seed}"
            matrix = table.of(criterion=criterion.id, variant=variant).matrix()
            rows = zip(matrix.run, matrix.mean, matrix.case, strict=True)
            sides.append({int(run): (float(mean), int(case)) for run, mean, case in rows})
        own, other = sides
        pairs = [
            (own[r][0] - other[r][0], own[r][1]) for r in own
            if r in other and not np.isnan(own[r][0] - other[r][0])
        ]  # fmt: skip
        level = 1 - options.alpha / len(ordered)
        values, cases = [v for v, _ in pairs], [c for _, c in pairs]
        falls.append((criterion, mean_interval(values, cases, level=level, bounds=(-1.0, 1.0))))
    known = [(c, fall) for c, fall in falls if fall.mean is not None]
    if not known:
        return Finding(NAME, absent="no run was judged with both references")
    most, fall = max(known, key=lambda pair: pair[1].low if pair[1].low is not None else -1.0)
    n = max(one.n_clusters or 0 for _, one in known)
    outcome: Outcome = "unknown"
    if n < options.min_cases:
        reason = f"{n} cases; {options.min_cases} are needed"
    elif fall.low is not None and fall.low > options.margin:
        outcome = "pass"
        reason = f"with another's reference {most.name} falls by {fall.mean:.3f}: it is looked at"
    elif all(one.high is not None and one.high <= options.margin for _, one in known):
        outcome = "fail"
        reason = (
            f"with another's reference no criterion falls by more than {options.margin:g}: "
            "references shown to this judge change nothing"
        )
    else:
        reason = f"{most.name} falls by {fall.mean:.3f}: neither surely more nor surely less"
    check = Check(
        name="another's", outcome=outcome, reason=reason, unit="share of the scale",
        estimate=fall.mean, low=fall.low, high=fall.high, n=n,
    )  # fmt: skip
    return Finding(NAME, settled=(check,))
