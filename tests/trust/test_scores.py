"""From the store to columns: copies go by their original, relative evidence becomes a rank."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agenteval.evaluators.base import Outcome, Unit, cell_key
from agenteval.evaluators.utility.plan import make_plan
from agenteval.evaluators.utility.probes.targets import Probing
from agenteval.experiment import Experiment
from agenteval.records import CallRecord, Run, Score, View
from agenteval.store import Store
from agenteval.trust.scores import scores_from_store
from tests.store.making import ScriptedJudge, criteria, items


def copies(originals: list[tuple[Run, View]]) -> list[tuple[Run, View]]:
    return [
        (run, view.model_copy(update={"trajectory": "less", "origin": view.sha256}))
        for run, view in originals
    ]


def test_the_origin_is_not_part_of_the_hash() -> None:
    _, view = items(1)[0]
    assert view.model_copy(update={"origin": "x"}).sha256 == view.sha256
    assert copies(items(1))[0][1].sha256 != view.sha256


def test_originals_and_copies_of_the_runs_asked_for(tmp_path: Path) -> None:
    judge, originals = ScriptedJudge(), items(4)
    with Store(tmp_path / "s.db") as store:
        for variant, some in (("original", originals), ("pad", copies(originals))):
            plan = make_plan(judge, some, criteria(2), store, repeats=2, variant=variant)
            asyncio.run(Experiment(plan, store, workers=2).run())
        table = scores_from_store(
            store, judge.source.sha256,
            criteria=[criteria(2)[0].sha256], runs=[v.sha256 for _, v in originals[:3]], repeats=2,
        )  # fmt: skip
    assert len(table) == 3 * 1 * 2 * 2
    assert sorted(table.present("run")) == ["run-0", "run-1", "run-2"]
    assert sorted(table.present("variant")) == ["original", "pad"]
    assert table.of(variant="pad").matrix().values.shape == (3, 2)


def test_a_copy_is_ranked_in_the_place_of_its_original(tmp_path: Path) -> None:
    check_ranks(tmp_path, apart=False)


def test_copies_that_another_source_rated_are_ranked_among_the_originals(tmp_path: Path) -> None:
    check_ranks(tmp_path, apart=True)


def check_ranks(folder: Path, *, apart: bool) -> None:
    loglik = {"run-0": -1.0, "run-1": -2.0, "run-2": -3.0}

    def script(unit: Unit) -> Outcome:
        value = loglik[unit.run.id] - (1.5 if unit.variant != "original" else 0)
        results = tuple(
            Score(
                key=cell_key(unit, c, judge.source.sha256),
                criterion_id=c.id,
                status="relative",
                evidence={"number_loglik": value},
            )
            for c in unit.criteria
        )
        return Outcome(results, CallRecord(shown=("x",)))

    judge = ScriptedJudge(script=script)
    originals = [(run.model_copy(update={"input": "one problem"}), view) for run, view in items(3)]
    other = Probing(judge) if apart else judge
    made = copies(originals)
    how: dict[str, Any] = {
        "copies": {(view.sha256, "pad") for _, view in made}, "copies_by": other.source.sha256,
    }  # fmt: skip
    with Store(folder / "s.db") as store:
        for who, variant, some in ((judge, "original", originals), (other, "pad", made)):
            plan = make_plan(who, some, criteria(1), store, repeats=1, variant=variant)
            asyncio.run(Experiment(plan, store, workers=1).run())
        table = scores_from_store(
            store, judge.source.sha256,
            criteria=[criteria(1)[0].sha256], runs=[v.sha256 for _, v in originals],
            **(how if apart else {}),
        )  # fmt: skip

    def values(variant: str) -> dict[str, float]:
        part = table.of(variant=variant)
        matrix = part.matrix()
        return dict(zip((part.run.names[i] for i in matrix.run), matrix.mean.tolist(), strict=True))

    assert values("original") == {"run-0": 1.0, "run-1": 0.5, "run-2": 0.0}
    # -2.5 beats -3 only; -3.5 and -4.5 beat nothing
    assert values("pad") == {"run-0": 0.5, "run-1": 0.0, "run-2": 0.0}
