"""Anchors: freeze, look again, and what is refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval import Criterion, Limits, Run
from agenteval.errors import InputError
from agenteval.testing import serve

MATH = Path(__file__).parents[2] / "tasks/math/runs.jsonl"
CRITERIA = [
    Criterion(name=name, accepted_values=("bad", "poor", "fair", "good", "best"))
    for name in ("Clarity", "Accuracy")
]
RUNS = [
    Run(id=f"r{i}", task="sums", input=f"{i} + {i}?", output=f"The result is {2 * i}.")
    for i in range(30)
]
STYLE = Criterion(name="Style", accepted_values=("plain", "ornate"), scale="nominal")


class Noisy:
    """A judge whose scores of one criterion can be moved."""

    def __init__(self) -> None:
        self.rng, self.shift, self.calls, self.broken = random.Random(1), 0.0, 0, False

    def __call__(self, run: Run, criterion: Criterion) -> float | None:
        self.calls += 1
        if self.broken:
            return None
        moved = self.shift * (criterion.id == "accuracy")
        return min(1.0, max(0.0, 0.5 + moved + self.rng.gauss(0, 0.05)))


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Noisy:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)
    return Noisy()


def create(judge: Any, **changes: Any) -> Any:
    options = {"judge": judge, "version": "1", "n": 24, "repeats": 3, "output": "anchor.json"}
    return agenteval.anchor(RUNS, [*CRITERIA, STYLE], **{**options, **changes})


def check(judge: Any, **changes: Any) -> Any:
    options = {"runs": RUNS, "criteria": CRITERIA, "judge": judge, "version": "1", "sample": 12}
    return agenteval.check_anchor("anchor.json", **{**options, **changes})


def looks() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("anchor.looks.jsonl").read_text().splitlines()]


def test_a_judge_that_stays_and_one_that_drifts(judge: Noisy) -> None:
    created = create(judge)
    assert (created.exit_code, judge.calls) == (0, 24 * 2 * 3)
    frozen = json.loads(Path("anchor.json").read_text())
    assert list(frozen["criteria"]) == ["clarity", "accuracy"]  # style has no order
    assert {len(run["scores"]["clarity"]) for run in frozen["runs"]} == {3}
    same = check(judge)
    assert (same.exit_code, judge.calls) == (0, 24 * 2 * 3 + 12 * 2)
    assert not same.drifts["accuracy"].shown
    judge.shift = -0.2
    drifted = check(judge)
    assert drifted.exit_code == 5
    accuracy = drifted.drifts["accuracy"]
    assert accuracy.shown
    assert accuracy.interval.mean == pytest.approx(-0.1, abs=0.03)  # half of its two looks
    assert not drifted.drifts["clarity"].shown
    asked = [set(look["runs"]) for look in looks()]
    assert asked[0].isdisjoint(asked[1])
    assert looks()[0]["seed"] != looks()[1]["seed"]


def test_failures_are_counted_and_never_scores(judge: Noisy) -> None:
    create(judge)
    judge.broken = True
    report = check(judge)
    assert report.exit_code == 3
    assert report.drifts["clarity"].interval.n == 0
    assert looks()[0]["statuses"] == {"unscored:missing": 24}
    assert not any(looks()[0]["scores"].values())


@pytest.mark.slow
def test_requests_are_new_each_time_and_an_interrupted_look_is_continued(
    tmp_path: Path, judge: Noisy
) -> None:
    reply = json.dumps({c.id: {"explanation": "ok", "label": "good"} for c in CRITERIA})
    task = agenteval.Task(name="sums", description="Add the numbers.")
    with serve(lambda body, n: reply) as server:
        at = {"base_url": server.base_url, "task": task, "version": None}
        create("m", repeats=2, **at)
        assert server.count == 48
        dry = check("m", dry_run=True, **at)
        assert dry.estimate.requests[0] == 12
        assert not Path("anchor.looks.jsonl").exists()
        stopped = check("m", limits=Limits(max_calls=5), **at)
        assert (stopped.exit_code, server.count) == (3, 53)
        assert looks()[0]["ended"] is None
        assert check("m", **at).exit_code == 0
        assert (server.count, len(looks())) == (60, 1)
        check("m", **at)
        check("m", **at)
        assert server.count == 84  # the third look asks about the runs of the first
        for file in ("anchor.looks.jsonl", "anchor.db"):
            Path(file).unlink()
        check("m", **at)
        assert server.count == 96
        seeds = {request.body["seed"] for request in server.requests[48:]}
        assert len(seeds) == 4
        with pytest.raises(InputError, match=r"temperature: 1.0 frozen, 0.5 now"):
            check("m", temperature=0.5, **at)


def edited(change: Callable[[Any], Any]) -> None:
    value = json.loads(Path("anchor.json").read_text())
    Path("anchor.json").write_text(json.dumps(change(value)))


@pytest.mark.parametrize(
    ("change", "options", "where", "said"),
    [
        (lambda x: x | {"anchor": 2}, {}, "anchor.json", "anchor 2: this version"),
        (lambda x: {"criteria": []}, {}, "anchor.json", "not an anchor file"),
        (lambda x: x | {"looks": 0}, {}, "anchor.json", "looks: "),
        (lambda x: x | {"settings": {"jugde": "m"}}, {}, "anchor.json", "settings.jugde: "),
        (lambda x: x, {"sample": 25}, "--sample", "25 of 24 runs"),
        (lambda x: x, {"runs": RUNS[:20]}, "--runs", "are missing"),
        (lambda x: x, {"runs": None}, "--runs", "give the runs"),
        (lambda x: x, {"criteria": CRITERIA[:1]}, "--criteria", "'accuracy' of the anchor is"),
        (lambda x: x, {"version": "2"}, "anchor.json", 'version: "1" frozen, "2" now'),
    ],
)
def test_what_is_refused(
    judge: Noisy, change: Callable[[Any], Any], options: dict[str, Any], where: str, said: str
) -> None:
    create(judge)
    edited(change)
    calls = judge.calls
    with pytest.raises(InputError) as refused:
        check(judge, **options)
    assert str(refused.value).startswith(where)
    assert said in str(refused.value)
    assert judge.calls == calls
    assert not Path("anchor.looks.jsonl").exists()


def test_changed_code_of_a_judge(judge: Noisy) -> None:
    create(lambda run, criterion: 0.5, version=None)
    with pytest.raises(InputError, match=r"code has changed .* \(\w{8}, now \w{8}\)"):
        check(lambda run, criterion: 0.25, version=None)


def test_changed_texts_and_scales_are_refused(judge: Noisy) -> None:
    create(judge)
    runs = [run.model_copy(update={"output": run.output + "!"}) for run in RUNS]
    with pytest.raises(InputError, match="24 of 24 runs of the anchor have another text"):
        check(judge, runs=runs)
    turned = CRITERIA[0].model_copy(
        update={"accepted_values": ("best", "good", "fair", "poor", "bad")}
    )
    with pytest.raises(InputError, match="'clarity' has changed"):
        check(judge, criteria=[turned, CRITERIA[1]])


def test_damaged_files_and_logs_of_another_anchor(judge: Noisy) -> None:
    create(judge)
    check(judge)
    log = Path("anchor.looks.jsonl")
    text = log.read_text()
    log.write_text(text + "{")
    with pytest.raises(InputError, match=r"anchor.looks.jsonl:2: "):
        check(judge)
    log.write_text(text)
    frozen, calls = Path("anchor.json").read_text(), judge.calls
    with pytest.raises(InputError, match=r"^anchor.json: exists"):
        create(judge, repeats=2)
    assert (Path("anchor.json").read_text(), judge.calls) == (frozen, calls)
    Path("anchor.json").unlink()
    create(judge, repeats=2)
    with pytest.raises(InputError, match=r"anchor.looks.jsonl:1: a look of another anchor"):
        check(judge)
    Path("anchor.json").write_text(Path("anchor.json").read_text()[:500])
    with pytest.raises(InputError, match=r"^anchor.json"):
        check(judge)


def test_more_looks_in_a_year_than_planned(judge: Noisy) -> None:
    create(judge, looks=1)
    check(judge)
    with pytest.raises(InputError, match="1 looks within 365 days"):
        check(judge)


@pytest.mark.parametrize(
    ("options", "where"),
    [({"repeats": 1}, "--repeats"), ({"n": 1}, "--n"), ({"looks": 0}, "--looks")],
)
def test_what_cannot_be_frozen(judge: Noisy, options: dict[str, Any], where: str) -> None:
    with pytest.raises(InputError) as refused:
        create(judge, **options)
    assert str(refused.value).startswith(where)


def test_recorded_replies_never_drift(judge: Noisy) -> None:
    with pytest.raises(InputError, match="--model: recorded replies"):
        agenteval.anchor(MATH, judge="recorded", output="anchor.json")
    assert not Path("anchor.json").exists()
