"""Several judges as one: rules, rules chosen by labels, what is stored, and what is refused."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agenteval
from agenteval import Criterion, Run
from agenteval.errors import InputError
from agenteval.models.limits import Limits, Price
from agenteval.readers.rubrics import read_rubric
from agenteval.records import CellKey, Score, Task
from agenteval.stats.scores import score_table
from agenteval.utility.options import Escalation
from agenteval.utility.panel_rules import (
    LabelledCell,
    PanelRule,
    choose_rule,
    errors_of,
    mean_error,
)
from tests.support import world
from tests.support.world_truth import truth

GRADE = Criterion(name="Grade", accepted_values=("bad", "fair", "good"))
RIGHT = Criterion(name="Right", accepted_values=("no", "yes"), scale="binary")
STYLE = Criterion(name="Style", accepted_values=("plain", "ornate"), scale="nominal")
SIZE = Criterion(name="Size", scale="numeric", numeric_range=(0.0, 1.0))
RUNS = [Run(id=f"r{i}", task="sums", input=f"{i}?", output=f"It is {i}.") for i in range(12)]
CALLS: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)
    CALLS.clear()


def number(run: Run) -> int:
    return int(run.input[:-1])


def strict(run: Run, criterion: Criterion) -> str:
    CALLS["strict"] += 1
    return "yes" if number(run) >= 8 else "no"


def middle(run: Run, criterion: Criterion) -> str:
    CALLS["middle"] += 1
    return "yes" if number(run) >= 6 else "no"


def kind(run: Run, criterion: Criterion) -> str:
    CALLS["kind"] += 1
    return "yes" if number(run) >= 1 else "no"


def silent(run: Run, criterion: Criterion) -> str | None:
    return None if number(run) == 3 else "yes"


def vote(criterion: Criterion, label: str | None, value: float | None = None) -> Score:
    known = label in criterion.accepted_values
    return Score(
        key=CellKey(run="r", criterion="c", source="s", repeat=0),
        criterion_id=criterion.id,
        status="not_applicable" if label == "n/a" else "scored",
        label=label if known else None,
        value=criterion.value_of(label) if known and label else value,
    )


@pytest.mark.parametrize(
    ("rule", "criterion", "labels", "expected"),
    [
        ("mean", GRADE, ["bad", "good", "good"], (None, 2 / 3)),
        ("majority", GRADE, ["bad", "good", "good"], ("good", 1.0)),
        ("majority", GRADE, ["bad", "fair", "good"], ("fair", 0.5)),  # nearest to the mean
        ("majority", GRADE, ["fair", "good"], ("fair", 0.5)),  # equally near: the worse one
        ("veto", GRADE, ["bad", "good", "good"], ("bad", 0.0)),
        ("veto:2", GRADE, ["bad", "good", "good"], ("good", 1.0)),
        ("veto:2", GRADE, ["bad", "bad", "good", "good", "good"], ("bad", 0.0)),
        ("majority", STYLE, ["plain", "ornate", "plain"], ("plain", None)),
        ("majority", STYLE, ["plain", "ornate"], "tie of the members (A: plain, B: ornate)"),
        ("mean", GRADE, ["n/a", "n/a"], (None, None)),
        ("mean", GRADE, ["good", "n/a"], "B: not applicable"),
        ("majority", GRADE, ["good", "n/a", "n/a"], (None, None)),
    ],
)
def test_rules(rule: str, criterion: Criterion, labels: list[str], expected: Any) -> None:
    votes = {name: vote(criterion, label) for name, label in zip("ABCDE", labels, strict=False)}
    answer = PanelRule.of(rule, len(votes)).combine(criterion, votes)
    if isinstance(expected, str):
        assert getattr(answer, "message") == expected  # noqa: B009
    else:
        assert (getattr(answer, "label"), getattr(answer, "value")) == expected  # noqa: B009


def test_a_number_is_no_vote_for_a_level() -> None:
    votes = {"A": vote(GRADE, "good"), "B": vote(GRADE, None, 0.7)}
    answer = PanelRule("majority").combine(GRADE, votes)
    assert getattr(answer, "status") == "unscored:off_scale"  # noqa: B009
    assert getattr(PanelRule("mean").combine(GRADE, votes), "value") == 0.85  # noqa: B009


def test_a_panel_shares_the_results_of_its_members() -> None:
    alone = agenteval.quantify(RUNS, [RIGHT], judge=kind)
    assert CALLS == {"kind": 12}
    report = agenteval.quantify(RUNS, [RIGHT], judge=[strict, middle, kind], panel="majority")
    assert CALLS == {"kind": 12, "strict": 12, "middle": 12}
    assert [s.value for s in sorted(report.scores, key=lambda s: run_of(s, report))] == [
        0.0
    ] * 6 + [1.0] * 6
    assert report.scores[0].evidence["members"].keys() == {"strict", "middle", "kind"}  # type: ignore[union-attr]
    (table,) = (t for t in report.tables if t.key == "panel")
    means = {row["judge"]: row["mean"] for row in table.rows}
    assert means == {
        "panel (majority)": 0.5,
        "strict": pytest.approx(4 / 12),
        "middle": 0.5,
        "kind": pytest.approx(11 / 12),
    }
    assert {row["judge"]: row["requests"] for row in table.rows}["panel (majority)"] == 36
    again = agenteval.quantify(RUNS, [RIGHT], judge=[strict, middle, kind], panel="majority")
    assert CALLS.total() == 36
    assert again.source == report.source != alone.source


def run_of(score: Score, report: Any) -> int:
    by_key = {r.run_key: r.run_id for r in report.ratings}
    return int(by_key[score.key.run][1:])


def test_a_member_without_an_answer_is_named_and_never_left_out() -> None:
    report = agenteval.quantify(RUNS, [RIGHT], judge=[strict, kind, silent])
    (failure,) = report.failures
    assert failure.status == "unscored:missing"
    assert failure.message.startswith("silent: ")
    assert len(report.scores) == 11


def recovering(run: Run, criterion: Criterion) -> str | None:
    CALLS["recovering"] += 1
    return "yes" if CALLS["recovering"] > 12 else None


def test_a_member_that_answers_later_completes_the_panel() -> None:
    judges = [kind, recovering]
    assert agenteval.quantify(RUNS, [RIGHT], judge=judges).scores == []
    report = agenteval.quantify(RUNS, [RIGHT], judge=judges, retry_failed=True)
    assert (len(report.scores), report.failures) == (12, [])


def test_another_order_of_levels_computes_the_panel_again() -> None:
    panel: dict[str, Any] = {"judge": [strict, kind], "panel": "veto"}
    agenteval.quantify(RUNS, [RIGHT], **panel)
    turned = RIGHT.model_copy(update={"accepted_values": ("yes", "no")})
    calls = CALLS.total()
    report = agenteval.quantify(RUNS, [turned], **panel)
    assert CALLS.total() == calls
    assert {s.label for s in report.scores} == {"yes", "no"}
    assert sum(s.label == "yes" for s in report.scores) == 11  # now one yes is a veto


def test_a_cap_holds_for_all_members_together() -> None:
    judges = [strict, middle, kind]
    report = agenteval.quantify(RUNS, [RIGHT], judge=judges, limits=Limits(max_calls=20))
    assert CALLS.total() == 20
    assert (report.exit_code, report.ratings) == (3, ())
    assert agenteval.quantify(RUNS, [RIGHT], judge=judges).exit_code == 0
    assert CALLS == {"strict": 12, "middle": 12, "kind": 12}


def test_a_dry_run_prices_every_member() -> None:
    report = agenteval.quantify(
        RUNS,
        [RIGHT],
        judge=["a", "b"],
        task=Task(name="sums", description="Say the number."),
        base_url="http://127.0.0.1:1/v1",
        limits=Limits(price=Price(1.0, 2.0)),
        dry_run=True,
    )
    assert report.estimate is not None
    plan = report.estimate.to_json()
    assert [part["who"] for part in plan["parts"]] == ["judge a", "judge b"]
    assert plan["requests"] == {"least": 24, "most": 48}
    costs = [part["most"]["cost"] for part in plan["parts"]]
    assert plan["cost"]["most"] == pytest.approx(sum(costs))
    assert min(costs) > 0


def test_a_panel_averages_the_totals_of_rubrics() -> None:
    items = read_rubric([{"requirement": "Names 1.", "weight": 1}], "r1")
    runs = [Run(id="r1", task="sums", input="1?", output="It is 1, I think.", rubric=items)]
    report = agenteval.quantify(runs, [], judge=[kind, middle])
    assert [score.value for score in report.scores] == [0.5]  # r1: kind accepts it, middle does not
    with pytest.raises(InputError, match="--panel-rule mean"):
        agenteval.quantify(runs, [], judge=[kind, strict], panel="veto")
    with pytest.raises(InputError, match="no levels to agree on"):
        agenteval.quantify(
            runs, [], judge=kind, escalation=Escalation(strict), labels=score_table([])
        )


# -- rules that labels choose ----------------------------------------------------------------------


def cells(
    count: int, rng: np.random.Generator, *, tpr: float = 0.96, tnr: float = 0.25, members: int = 3
) -> list[LabelledCell]:
    """Answers of members that recognize good runs with `tpr` and bad ones with `tnr`."""
    good = rng.random(count) < 0.6
    says = np.where(
        good[:, None], rng.random((count, members)) < tpr, rng.random((count, members)) >= tnr
    )
    return [
        LabelledCell(
            RIGHT,
            f"c{i}",
            {f"m{j}": vote(RIGHT, "yes" if says[i, j] else "no") for j in range(members)},
            "yes" if good[i] else "no",
            float(good[i]),
        )
        for i in range(count)
    ]


def test_a_veto_beats_the_majority_of_agreeable_judges() -> None:
    rng = np.random.default_rng(1)
    drawn = cells(4000, rng)
    veto, majority = (mean_error(PanelRule.of(r, 3), drawn) for r in ("veto", "majority"))
    # majority: .6 * P(2+ of 3 err | good) + .4 * P(2+ of 3 accept | bad), by the binomial
    assert majority == pytest.approx(0.6 * 0.004672 + 0.4 * 0.84375, abs=0.03)
    assert veto == pytest.approx(0.6 * (1 - 0.96**3) + 0.4 * 0.75**3, abs=0.03)
    chosen = choose_rule(PanelRule("auto"), [RIGHT], cells(160, rng), 0)
    assert chosen.rule.name in ("veto:1", "regression")


def test_the_error_on_the_held_out_half_is_not_optimistic() -> None:
    rng = np.random.default_rng(2)
    fresh, gaps = cells(3000, rng), []
    for seed in range(60):
        chosen = choose_rule(PanelRule("regression"), [RIGHT], cells(60, rng), seed)
        cases = {c.case for c in chosen.fitted}, {c.case for c in chosen.held_out}
        assert not cases[0] & cases[1]
        assert [len(part) for part in cases] == [30, 30]
        gaps.append(mean_error(chosen.rule, chosen.held_out) - mean_error(chosen.rule, fresh))
    assert abs(np.mean(gaps)) <= 2.6 * np.std(gaps) / len(gaps) ** 0.5


def test_a_regression_turns_an_upside_down_member_around() -> None:
    rng = np.random.default_rng(3)
    drawn = cells(200, rng, tpr=0.1, tnr=0.1, members=2)
    chosen = choose_rule(PanelRule("auto"), [RIGHT], drawn, 0)
    assert chosen.rule.name == "regression"
    assert all(weight < 0 for weight in chosen.rule.weights["right"][1:])
    assert mean_error(chosen.rule, chosen.held_out) < 0.25
    assert None not in errors_of(chosen.rule, chosen.held_out)


def test_labels_choose_the_rule_of_a_command() -> None:
    labels = score_table(
        {
            "run": r.id,
            "criterion": "right",
            "label": "yes" if number(r) >= 8 else "no",
            "value": float(number(r) >= 8),
        }
        for r in RUNS
    )
    report = agenteval.quantify(
        RUNS, [RIGHT], judge=[strict, middle, kind], panel="auto", labels=labels
    )
    assert report.source.parameters["rule"] == "veto:1"  # the strictest is always right
    (table,) = (t for t in report.tables if t.key == "panel")
    assert "6 labelled cases, on which the rule was not chosen" in table.notes[0]
    errors = {row["judge"]: row["error"].value for row in table.rows}
    assert errors["panel (veto:1)"] == errors["strict"] == 0
    again = agenteval.quantify(RUNS, [RIGHT], judge=[strict, middle, kind], panel="veto")
    assert again.source == report.source


# -- verification ----------------------------------------------------------------------------------


def level(run: Run, criterion: Criterion, name: str, change: Callable[[int], float]) -> str:
    true = truth(run.output, run.input).levels[list(world.LABELS).index(criterion.id)]
    noise = random.Random(f"{name} {run.output} {criterion.id}").choice((-0.6, 0, 0, 0.6))
    return criterion.accepted_values[min(4, max(0, round(change(true) + noise)))]


def good_1(run: Run, criterion: Criterion) -> str:
    return level(run, criterion, "1", lambda true: true)


def good_2(run: Run, criterion: Criterion) -> str:
    return level(run, criterion, "2", lambda true: true)


def good_3(run: Run, criterion: Criterion) -> str:
    return level(run, criterion, "3", lambda true: true)


def turned_1(run: Run, criterion: Criterion) -> str:
    return level(run, criterion, "1", lambda true: 4 - true)


def turned_2(run: Run, criterion: Criterion) -> str:
    return level(run, criterion, "2", lambda true: 4 - true)


def long_1(run: Run, criterion: Criterion) -> str:
    return criterion.accepted_values[min(4, len(run.output) // 300)]


def long_2(run: Run, criterion: Criterion) -> str:
    return criterion.accepted_values[min(4, len(run.output) // 200)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judges", "rule", "trusted"),
    [
        ([good_1, good_2, good_3], "mean", True),
        ([good_1, good_2, turned_1], "majority", True),  # outvoted
        ([good_1, turned_1, turned_2], "majority", False),
        ([long_1, long_2], "mean", False),
    ],
)
def test_verdicts_on_panels(judges: list[Any], rule: str, trusted: bool) -> None:
    runs = world.make_runs(80, np.random.default_rng(4))
    report = agenteval.verify(runs, world.criteria(), judge=judges, panel=rule, task=world.TASK)
    assert report.judge.verdict.startswith("trustworthy") == trusted, report.judge.reasons


# -- refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criteria", "options", "said"),
    [
        ([RIGHT], {"judge": kind, "panel": "mean"}, "--panel-rule: needs several judges"),
        ([RIGHT], {"judge": [kind, kind]}, "kind is the same judge twice"),
        ([RIGHT], {"judge": [kind, strict], "panel": "median"}, "no rule 'median'"),
        ([RIGHT], {"judge": [kind, strict], "panel": "veto:3"}, "K from 1 to 2"),
        ([RIGHT], {"judge": [kind, strict], "panel": "auto"}, "auto needs labels"),
        ([STYLE], {"judge": [kind, strict]}, "criterion style has no order"),
        ([SIZE], {"judge": [kind, strict], "panel": "majority"}, "criterion size has no levels"),
        ([RIGHT], {"judge": kind, "labels": "l"}, "--labels: are for several judges"),
    ],
)
def test_panels_that_cannot_work(criteria: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=r"^[^\n]*$") as refused:
        agenteval.quantify(RUNS, criteria, **options)
    assert said in str(refused.value)
    assert not Path("agenteval.db").exists()


@pytest.mark.parametrize(
    ("labelled", "said"),
    [(["r1"], "have 1 usable cases"), (["x1"], "none of the labelled runs is among the runs")],
)
def test_labels_that_choose_nothing(labelled: list[str], said: str) -> None:
    labels = score_table(
        {"run": run, "criterion": "right", "label": "yes", "value": 1.0} for run in labelled
    )
    with pytest.raises(InputError, match=said):
        agenteval.quantify(RUNS, [RIGHT], judge=[kind, strict], panel="auto", labels=labels)


def test_verify_probes_only_single_judges() -> None:
    with pytest.raises(InputError, match="probe each judge"):
        agenteval.verify(RUNS, [RIGHT], judge=[kind, strict], probes=True, task="sums")
