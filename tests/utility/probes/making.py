"""A simulated judge through client, quantifier and store, and all that the probes look at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from agenteval.analysis.scores import scores_from_store
from agenteval.engine import Experiment
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Reply, Request
from agenteval.readers import make_view
from agenteval.records import Run
from agenteval.store import Store
from agenteval.testing.scripted import ScriptedTransport
from agenteval.utility.perturbed_runs import VerificationData
from agenteval.utility.probes import ProbeRatings, examine
from agenteval.utility.probes.result import Probe, ProbeOptions
from agenteval.utility.quantifier import QuantifierOptions, chat_judge
from tests.support.judges import Answers, SimulatedJudge
from tests.support.world import TASK, criteria, make_runs

Answer = Callable[[Request], str | Reply | Exception]
WAYS = {
    "plain": QuantifierOptions(),
    "scale order": QuantifierOptions(reversed_scale=True),
    "wording": QuantifierOptions(wording="b"),
    "rewording": QuantifierOptions(reworded=True),
}
OPTIONS = ProbeOptions(resamples=300, draws=2000)


@cache
def world(n: int = 60) -> tuple[Run, ...]:
    return tuple(make_runs(n, np.random.default_rng(5)))


class Otherwise:
    """One simulated judge, but another when a prompt holds `words`."""

    def __init__(self, usual: SimulatedJudge, words: str, other: SimulatedJudge) -> None:
        self.usual, self.words, self.other = Answers(usual, seed=1), words, Answers(other, seed=2)

    def __call__(self, request: Request) -> Reply:
        text = "".join(str(m["content"]) for m in request.messages)
        return (self.other if self.words in text else self.usual)(request)


def judged(answer: Answer, folder: Path, *, repeats: int = 2, cases: int = 40) -> ProbeRatings:
    """Everything a verification with probes stores, asked for real."""
    runs = world()[:cases]
    items = tuple((run, make_view(run)) for run in runs)
    material = VerificationData(items, (), criteria(), repeats)
    keys = {c.sha256 for c in criteria()}
    views = {view.sha256 for _, view in items}
    tables = {}
    with Store(folder / "probes.db") as store:
        for name, options in WAYS.items():
            client = Client(ScriptedTransport(answer), retry=RetryPolicy(attempts=1))
            judge = chat_judge(client, TASK, options)
            rated = material.rated_by(judge)
            ended = asyncio.run(Experiment(rated, store, concurrency=8).run())
            assert ended.stopped is None
            key = judge.source.sha256
            tables[name] = scores_from_store(store, key, criteria=keys, runs=views, repeats=repeats)
    plain = tables.pop("plain")
    return ProbeRatings(criteria(), plain, tables)


def probed(answer: Answer, folder: Path, **how: int) -> dict[str, Probe]:
    return {p.name: p for p in examine(judged(answer, folder, **how), OPTIONS)}
