"""From the store to columns: copies go by their original."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agenteval.analysis.scores import scores_from_store
from agenteval.engine import Experiment
from agenteval.records import Run, View
from agenteval.store import Store
from agenteval.utility.evaluator import JudgeEvaluator
from tests.store.making import ScriptedJudge, criteria, items


def copies(originals: list[tuple[Run, View]]) -> list[tuple[Run, View]]:
    return [
        (run, view.model_copy(update={"trajectory": "less", "origin": view.sha256}))
        for run, view in originals
    ]


def test_originals_and_copies_of_the_runs_asked_for(tmp_path: Path) -> None:
    judge, originals = ScriptedJudge(), items(4)
    with Store(tmp_path / "s.db") as store:
        for variant, some in (("original", originals), ("pad", copies(originals))):
            rated = JudgeEvaluator(judge, ((variant, some),), criteria(2), 2)
            asyncio.run(Experiment(rated, store, concurrency=2).run())
        table = scores_from_store(
            store,
            judge.source.sha256,
            criteria=[criteria(2)[0].sha256],
            runs=[v.sha256 for _, v in originals[:3]],
            repeats=2,
        )
    assert len(table) == 3 * 1 * 2 * 2
    assert sorted(table.present("run")) == ["run-0", "run-1", "run-2"]
    assert sorted(table.present("variant")) == ["original", "pad"]
    assert table.of(variant="pad").matrix().values.shape == (3, 2)
