"""Judging until it is enough: rules, what is asked, and verdicts that hold at every look."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agenteval
from agenteval import Criterion, Run
from agenteval.analysis.comparison import CompareOptions, compare
from agenteval.analysis.stopping import Until
from agenteval.errors import InputError
from agenteval.stats.scores import ScoreTable, score_table
from agenteval.store import Store
from agenteval.store.experiments import remark_of

LEVELS = ("bad", "poor", "fair", "good", "best")
GRADE = Criterion(id="grade", name="Grade", accepted_values=LEVELS)
RUNS = [
    Run(id=f"{system}-{i}", task="t", system=system, input=f"case {i}", output=f"{system} {i}")
    for i in range(120)
    for system in "ab"
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)


def judge_of(apart: float, seen: list[str]) -> Callable[[Run, Criterion], str]:
    """A judge who rates system b so much higher, and notes what it is asked."""

    def judge(run: Run, criterion: Criterion) -> str:
        seen.append(run.input)
        value = random.Random(run.input).gauss(0.5, 0.15) + apart * (run.system == "b")
        value += random.Random(run.output).gauss(0, 0.1)
        return LEVELS[max(0, min(4, round(value * 4)))]

    return judge


def quantify(judge: Any, **more: Any) -> Any:
    return agenteval.quantify(RUNS, [GRADE], judge=judge, version="1", task="t", **more)


def test_a_width_is_asked_for_and_no_more_than_it_takes() -> None:
    seen: list[str] = []
    judge = judge_of(0.2, seen)
    report = quantify(judge, until=0.3)
    table = report["stopping"]
    for row in table.rows:
        assert row["mean"].high - row["mean"].low <= 0.3
    cases = len(set(seen))
    assert cases < 120
    assert len(seen) == 2 * cases
    assert table.notes[0].startswith(f"stopped after {cases} of 120 cases (order of seed 0): ")
    first = list(dict.fromkeys(seen))[:10]
    assert set(first) != {f"case {i}" for i in range(10)}  # not the first ten of the file
    with Store(Path("agenteval.db")) as store:
        ((key, _),) = store.sources()
        assert remark_of(store, key) == table.notes[0]
    narrower = quantify(judge, until="0.2")
    assert len(seen) == len(set(seen)) * 2  # nothing twice
    assert len(set(seen)) > cases
    assert narrower["stopping"].rows[0]["cases"] == len(set(seen))
    quantify(judge, until=0.3)
    assert len(seen) == len(set(seen)) * 2
    agenteval.page("page.html")
    assert "stopped after" in Path("page.html").read_text()


def test_all_cases_where_the_width_cannot_be_had() -> None:
    seen: list[str] = []
    report = quantify(judge_of(0.2, seen), until=0.001)
    assert len(seen) == 240
    assert report["stopping"].notes[0].startswith("judged all of 120 cases: the widest")


def test_two_systems_are_told_apart_early() -> None:
    seen: list[str] = []
    report = quantify(judge_of(0.3, seen), until="decided")
    (row,) = report["stopping"].rows
    assert row["verdict"] == "better"
    assert row["difference"].low > 0
    assert 20 <= row["n"] < 80
    assert len(seen) == 2 * row["n"]


def test_hopeless_is_given_up() -> None:
    seen: list[str] = []
    report = quantify(judge_of(0.0, seen), until="decided")
    (row,) = report["stopping"].rows
    if len(seen) < 240:
        assert row["verdict"] == "cannot tell"
        assert "all 120 planned cases" in row["reason"]
    assert row["verdict"] in ("cannot tell", "no difference")


@pytest.mark.parametrize("text", ["wide", "0", "1", "-0.1", ""])
def test_a_rule_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match="neither a width between 0 and 1 nor 'decided'"):
        Until.of(text)


def test_decided_is_about_two_systems() -> None:
    one = [run for run in RUNS if run.system == "a"]
    with pytest.raises(InputError, match="runs have 1"):
        agenteval.quantify(one, [GRADE], judge=judge_of(0, []), version="1", until="decided")
    assert not Path("agenteval.db").exists()


def sides(n: int, apart: float, seed: int = 0) -> tuple[ScoreTable, ScoreTable]:
    rng = np.random.default_rng(seed)
    base = rng.normal(0.5, 0.1, n)
    a, b = (
        score_table(
            {
                "run": f"{name}{i}",
                "case": f"c{i}",
                "criterion": "grade",
                "value": float(np.clip(base[i] + shift + rng.normal(0, 0.1), 0, 1)),
            }
            for i in range(n)
        )
        for name, shift in (("a", 0.0), ("b", apart))
    )
    return a, b


def row_of(n: int, apart: float, planned: int | None) -> Any:
    (row,) = compare(*sides(n, apart), options=CompareOptions(planned=planned)).rows
    return row


def test_a_look_before_the_last_needs_more() -> None:
    early, single = row_of(30, 0.07, 120), row_of(30, 0.07, None)
    assert single.verdict == "better"
    assert early.verdict == "cannot tell"
    assert early.difference.high - early.difference.low == pytest.approx(
        (single.difference.se * 2) * 2.5 * (120 / 30) ** 0.5, rel=0.05
    )
    clear = row_of(60, 0.2, 120)
    assert clear.verdict == "better"
    last = row_of(120, 0.07, 120)
    assert (last.verdict, last.level) == ("better", pytest.approx(0.9525, abs=1e-3))


def test_more_cases_than_planned() -> None:
    with pytest.raises(InputError, match="30 cases are present, but 20 were planned"):
        row_of(30, 0.1, 20)


@pytest.mark.slow
def test_false_alarms_while_looking_after_every_case() -> None:
    alarms = 0
    for seed in range(120):
        a, b = sides(40, 0.0, seed)
        looks = range(20, 41, 2)
        alarms += any(
            compare(
                a.where(a.run.codes < n),
                b.where(b.run.codes < n),
                options=CompareOptions(planned=40, margin=0.0),
            )
            .rows[0]
            .verdict
            in ("better", "worse")
            for n in looks
        )
    assert alarms / 120 <= 0.1


def test_verify_stops_where_no_verdict_is_open() -> None:
    told = {"drop_sentences": "lower", "shuffle_sentences": "lower"}
    criterion = Criterion(name="Grade", accepted_values=LEVELS, expect=told)
    asked: list[str] = []

    def judge(run: Run, criterion: Criterion) -> str:
        asked.append(run.input)
        order = re.findall(r"Sentence (\d)", run.output)
        good = int(run.input.split()[1]) % 2 == 0  # a judge is not shown the success of a run
        value = 0.35 + 0.3 * good - 0.3 * (len(order) < 8 or order != sorted(order))
        value += random.Random(run.input).gauss(0, 0.08) + random.Random(len(asked)).gauss(0, 0.02)
        return LEVELS[max(0, min(4, round(value * 4)))]

    runs = [
        Run(
            id=f"r{i}",
            task="t",
            input=f"case {i}",
            success=i % 2 == 0,
            output=" ".join(f"Sentence {k} of case {i} says {k + i}." for k in range(8)),
        )
        for i in range(160)
    ]

    def verified(**more: Any) -> Any:
        return agenteval.verify(
            runs,
            [criterion],
            judge=judge,
            version="1",
            task="t",
            repeats=2,
            perturbations=("drop_sentences", "shuffle_sentences", "whitespace"),
            **more,
        )

    early = verified(sequential=True)
    cases = len(set(asked))
    whole = verified()
    assert early.criteria["grade"].verdict == "keep"
    assert early.judge.verdict == whole.judge.verdict == "trustworthy"
    assert cases in (20, 40, 80)
    assert f"stopped after {cases} of 160 cases" in "; ".join(early.notes)
    assert whole.criteria["grade"].verdict == early.criteria["grade"].verdict
