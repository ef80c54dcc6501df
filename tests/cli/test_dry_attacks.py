"""The longest questions of a probe by attacks, against all that it could ask, one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.cli.dry_attacks import dearest
from agenteval.cli.dry_judge import Asker, at_most
from agenteval.evaluators.base import Unit
from agenteval.evaluators.utility.probes.attacks import KINDS
from agenteval.evaluators.utility.probes.result import ProbeOptions
from agenteval.evaluators.utility.probes.targets import Target, add_texts
from agenteval.evaluators.utility.quantifier import QuantifierOptions
from agenteval.models.client import estimate_tokens
from agenteval.models.factory import choose_model
from agenteval.readers import make_view
from agenteval.records import Criterion, Run, Task, View
from agenteval.store import Store
from agenteval.verification import Material

CRITERIA = (
    Criterion(name="A", accepted_values=("bad", "fair", "good")),
    Criterion(name="B", accepted_values=("no", "yes")),
)


def item(name: str, success: bool | None, words: int) -> tuple[Run, View]:
    run = Run(id=name, input="What?", output="It is so. " * words, success=success)
    return run, make_view(run)


ITEMS = (
    item("short", False, 1), item("long", None, 60), item("good", True, 900),
    item("longer", False, 70), item("empty", False, 0), item("middling", False, 30),
)  # fmt: skip


@pytest.mark.parametrize("one_per_call", [False, True])
def test_the_longest_runs_that_may_be_chosen_with_the_longest_text(
    tmp_path: Path, one_per_call: bool
) -> None:
    choice = choose_model("m", "http://127.0.0.1:9/v1", need_key=False)
    options = ProbeOptions(attacked=2, seed=5)
    with Store(tmp_path / "none.db") as store:
        how = QuantifierOptions(one_per_call)
        asker = Asker(choice, Task(name="t", description="d"), how, store)
        judge = asker.judge()
        units = list(dearest(asker, Material(ITEMS, (), CRITERIA, 3), options))
        one = at_most(asker, units, 2 * 3, "w", "y")

    def tokens(run: Run, view: View) -> int:
        return sum(
            estimate_tokens(judge.inner.request(Unit(run, view, batch))[0])
            for batch in judge.batches(CRITERIA)
        )

    # every side of every kind in every run that is no success and not empty
    worst = sorted(
        max(
            tokens(*copy)
            for kind in KINDS
            for side in add_texts([Target(run, view, kind, (), 0.0, True)], CRITERIA, 5)
            for copy in side.items
        )
        for run, view in ITEMS if run.id not in ("good", "empty")
    )  # fmt: skip
    calls = 2 if one_per_call else 1
    assert [unit.run.id for unit in units] == ["longer"] * calls + ["long"] * calls
    found = sum(estimate_tokens(judge.inner.request(unit)[0]) for unit in units)
    assert found == worst[-1] + worst[-2]
    # an attack and a control, three repeats, each with a repair that holds the question again
    assert one.most.requests == 2 * calls * 2 * 3 * 2
    assert one.most.prompt is not None
    assert one.most.prompt > found * 2 * 3 * 2
    assert one.least.requests == one.least.prompt == one.least.reply == 0
