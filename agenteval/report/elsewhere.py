"""From a file of ratings made elsewhere, by people or other tools, to the material of a report."""

from __future__ import annotations

from pathlib import Path

from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.evaluators.utility.verify.outside import verify_ratings
from agenteval.records import Criterion
from agenteval.report.material import Material, NoTexts, arranged, findings_of
from agenteval.stats.scores import ScoreTable


def from_ratings(
    path: Path,
    table: ScoreTable,
    criteria: tuple[Criterion, ...],
    name: str,
    options: VerifyOptions,
) -> Material:
    """The ratings of `table`, read from the file at `path` and called `name`.

    Without criteria the values alone say how good. Verdicts are computed as by
    `agenteval verify --scores`; texts there are none.
    """
    known = criteria or tuple(
        Criterion(id=i, name=i, scale="numeric", numeric_range=(0.0, 1.0))
        for i in table.present("criterion")
    )
    own = arranged(table, [c.id for c in known])
    used = tuple(c for c in known if c.id in set(own.present("criterion")))
    return Material(
        title=name,
        facts=(("ratings", f"made elsewhere, read from {name}"),),
        criteria=used,
        table=own,
        findings=findings_of(verify_ratings(path, own, used, options), "computed from the ratings"),
        unverified="",
        usage=None,
        texts=NoTexts(),
        show="",
        notes=("ratings made elsewhere: neither texts nor explanations are known here",),
    )
