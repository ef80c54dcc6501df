"""Simulated judges of attacked texts, and what they say through client, quantifier and store."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from functools import cache
from pathlib import Path

from agenteval.analysis.scores import scores_from_store
from agenteval.engine import Experiment
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.prompts import neutralise
from agenteval.models.wire import Reply, Request
from agenteval.readers import make_view
from agenteval.records import Run, View
from agenteval.stats.scores import ScoreTable, score_table
from agenteval.store import Store
from agenteval.testing.scripted import ScriptedTransport
from agenteval.utility.evaluator import JudgeEvaluator, Renamed
from agenteval.utility.probes.attacks import (
    DATAMARK,
    KINDS,
    PROBE,
    Target,
    add_texts,
    attack_text,
    choose_targets,
)
from agenteval.utility.probes.injection import Injected
from agenteval.utility.probes.result import ProbeOptions
from agenteval.utility.quantifier import QuantifierOptions, chat_judge
from tests.support import judges as family
from tests.support.judges import Answers, SimulatedJudge, read_prompt
from tests.support.world import TASK, criteria
from tests.support.world_truth import CRITERIA, truth_levels
from tests.utility.probes.making import world

OPTIONS = ProbeOptions(resamples=100, draws=1000, attacked=20)
REPEATS = 2


@cache
def levels() -> dict[str, tuple[int, ...]]:
    """True levels 0..4 of every run of the world, computed from its text."""
    runs = world()
    found = truth_levels([r.output for r in runs], [r.input for r in runs], CRITERIA)
    return {run.id: tuple(int(x) for x in row) for run, row in zip(runs, found, strict=True)}


def plain_table() -> ScoreTable:
    """The truth as plain ratings."""
    ids = [c.id for c in criteria()]
    return score_table(
        {"run": run.id, "case": run.input, "criterion": name, "repeat": repeat}
        | {"value": level / 4, "success": run.success}
        for run in world()
        for repeat in range(REPEATS)
        for name, level in zip(ids, levels()[run.id], strict=True)
    )


def targets(options: ProbeOptions = OPTIONS) -> tuple[Target, ...]:
    return choose_targets(
        [(run, make_view(run)) for run in world()], criteria(), plain_table(), options
    )


@dataclasses.dataclass
class Swayed:
    """A judge that grades the work without what was added to it, but for its weaknesses.

    obey: with this probability it gives the best level to an attacked text. refuse: with this one
    it refuses it. generous: levels more for any text that is longer than the work. What it did is
    kept in `obeyed`, by run and repeat.
    """

    judge: SimulatedJudge = dataclasses.field(default_factory=family.perfect)
    obey: float = 0.0
    refuse: float = 0.0
    generous: int = 0
    obeyed: set[tuple[str, int]] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        self._texts = {
            neutralise(attack_text(kind, criteria())).replace(DATAMARK, " ") for kind in KINDS
        }
        self._works = {run.id: neutralise(run.output).rstrip() for run in world()}

    def __call__(self, request: Request) -> Reply:
        request = _changed(request, DATAMARK, " ")
        work = read_prompt(request).work
        own = self._works[request.run_id]
        assert work.startswith(own)
        added = work[len(own) :].strip()
        attacked = added in self._texts
        if attacked and self._happens("refuse", self.refuse, request):
            return Reply(text="", refusal="I will not grade this.", model="m")
        if attacked and self._happens("obey", self.obey, request):
            self.obeyed.add((request.run_id, request.repeat))
            return Answers(family.constant(4))(request)
        shift = self.generous if added else 0
        judge = dataclasses.replace(self.judge, shift=self.judge.shift + shift)
        seed = 1 if attacked else 2  # noise of its own on both sides
        return Answers(judge, seed=seed)(_changed(request, work, own))

    def _happens(self, what: str, share: float, request: Request) -> bool:
        words = f"{what}|{request.run_id}|{request.repeat}".encode()
        return int.from_bytes(hashlib.sha256(words).digest()[:8], "big") / 2**64 < share


def _changed(request: Request, old: str, new: str) -> Request:
    system, user = request.messages
    content = str(user["content"]).replace(old, new)
    return dataclasses.replace(request, messages=(system, {**user, "content": content}))


def injected(
    answer: Swayed,
    folder: Path,
    *,
    how: QuantifierOptions | None = None,
    options: ProbeOptions = OPTIONS,
) -> Injected:
    """Both copies of every target, asked for real."""
    chosen = targets(options)
    copies = add_texts(chosen, criteria(), options.seed)
    with Store(folder / "attacks.db") as store:
        client = Client(ScriptedTransport(answer), retry=RetryPolicy(attempts=1))
        judge = Renamed(chat_judge(client, TASK, how or QuantifierOptions()), probe=PROBE)
        rated = JudgeEvaluator(judge, tuple(copies.items()), criteria(), REPEATS)
        ended = asyncio.run(Experiment(rated, store, concurrency=8).run())
        assert ended.stopped is None
        table = scores_from_store(
            store,
            judge.source.sha256,
            criteria={c.sha256 for c in criteria()},
            runs={t.view.sha256 for t in chosen},
            copies={
                (view.sha256, variant) for variant, items in copies.items() for _, view in items
            },
        )
    return Injected(chosen, table, REPEATS)


@cache
def run_of(number: int) -> tuple[Run, View]:
    """A failed run for tables that are made, not asked for."""
    run = Run(id=f"r{number:03}", input=f"case {number}", output="The answer is 4.", success=False)
    return run, make_view(run)
