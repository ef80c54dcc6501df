"""`prefer`: both orders of each pair, what is counted, and what is never a loss."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval import Criterion, Limits, Run
from agenteval.app.stored import results
from agenteval.errors import InputError
from agenteval.readers.rubrics import read_rubric
from agenteval.readers.strict_json import Notes
from agenteval.records import RunFailure, Task
from agenteval.testing import serve

TASK = Task(name="sums", description="Add the numbers.")
ANSWERS = {  # by case: the answers of old and new
    "1 + 1?": ("It is 2.", "It is 3."),
    "1 + 2?": ("It is 3.", "It is 3, since 1 + 2 = 3."),
    "1 + 3?": ("It is 5.", "It is 4."),
    "1 + 4?": ("It is 5!", "It is 5."),
}
RUNS = [
    Run(id=f"{system}-{i}", task="sums", system=system, input=problem, output=answers[side])
    for i, (problem, answers) in enumerate(ANSWERS.items())
    for side, system in enumerate(("old", "new"))
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)


def by_table(first: Run, second: Run, criterion: Criterion) -> str | tuple[str, str]:
    """Old wins the first case, the second is a tie, the third a flip, new wins the fourth."""
    if first.input == "1 + 1?":
        return ("first" if "2" in first.output else "second"), "only 2 is right"
    if first.input == "1 + 2?":
        return "tie"
    if first.input == "1 + 3?":
        return "first"
    return "second" if first.output.endswith("!") else "first"


def longer(first: Run, second: Run, criterion: Criterion) -> str:
    a, b = len(first.output), len(second.output)
    return "tie" if a == b else "first" if a > b else "second"


def preferred(**options: Any) -> Any:
    return agenteval.prefer("old", "new", **{"runs": RUNS, "judge": by_table, **options})


def test_both_orders_agree_or_it_is_a_flip_that_counts_as_half() -> None:
    (row,) = preferred().rows
    assert (row.system, row.against, row.cases) == ("old", "new", 4)
    assert (row.wins, row.losses, row.ties, row.flips, row.missing) == (1, 1, 1, 1, None)
    assert row.win_rate.mean == pytest.approx((1 + 0.5 + 0.5 + 0) / 4)
    assert row.without_flips.mean == pytest.approx((1 + 0.5 + 0) / 3)


def test_the_bias_is_the_share_of_the_first_position_minus_a_half() -> None:
    (row,) = preferred()["position"].rows
    # 1 + 1: first, second; 1 + 2: tie, tie; 1 + 3: first, first; 1 + 4: second, first
    assert (row["first"], row["second"], row["tie"]) == (4, 2, 2)
    assert row["bias"].value == pytest.approx((4 + 2 * 0.5) / 8 - 0.5)


def test_the_systems_in_the_other_order_use_the_same_results() -> None:
    preferred()
    calls: list[Run] = []

    def counted(first: Run, second: Run, criterion: Criterion) -> str:
        calls.append(first)
        return "tie"

    first = agenteval.prefer("old", "new", runs=RUNS, judge=counted, version="1")
    swapped = agenteval.prefer("new", "old", runs=RUNS, judge=counted, version="1")
    assert len(calls) == 8
    assert (first.rows[0].system, swapped.rows[0].system) == ("old", "new")


def test_a_missing_side_and_a_failed_run_are_reported_and_never_a_loss() -> None:
    runs = [r for r in RUNS if r.id != "new-0"]
    failure = RunFailure(kind="timeout", message="60 s")
    runs = [r.model_copy(update={"failure": failure}) if r.id == "old-3" else r for r in runs]
    report = preferred(runs=runs)
    (row,) = report.rows
    assert (row.wins, row.losses, row.ties, row.flips) == (0, 0, 1, 1)
    assert report.data["left_out"] == {
        "old against new: no run of new": 1,
        "old against new: run of old failed": 1,
    }


def test_a_judgment_without_a_result_is_missing_and_never_a_loss() -> None:
    def broken(first: Run, second: Run, criterion: Criterion) -> str:
        if first.input == "1 + 1?" and "2" in first.output:
            raise ValueError("no idea")
        return by_table(first, second, criterion)  # type: ignore[return-value]

    report = preferred(judge=broken, version="1")
    (row,) = report.rows
    assert (row.wins, row.losses, row.missing, row.cases) == (0, 1, 1, 3)
    assert report.exit_code == 3  # a quarter of the comparisons


def test_repeats_are_averaged_in_the_case() -> None:
    seen: list[str] = []

    def changing(first: Run, second: Run, criterion: Criterion) -> str:
        seen.append(first.input)
        old_first = "!" in first.output or first.id == "x" or "2." in first.output
        return "first" if old_first == (seen.count(first.input) <= 2) else "second"

    runs = [r for r in RUNS if r.input in ("1 + 1?", "1 + 4?")]
    (row,) = preferred(runs=runs, judge=changing, version="1", repeats=2).rows
    assert (row.wins, row.losses, row.cases) == (2, 2, 2)
    assert row.win_rate.mean == 0.5


@pytest.mark.parametrize("option", ["panel", "rubrics", "system"])
def test_options_of_single_runs_are_refused(option: str) -> None:
    with pytest.raises(InputError, match=option):
        preferred(**{option: "x"})
    with pytest.raises(InputError, match="--model"):
        preferred(judge=[by_table, by_table])
    assert not Path("agenteval.db").exists()


def test_rubrics_of_runs_are_not_used() -> None:
    rubric = read_rubric([{"statement": "adds correctly"}], "runs", Notes())
    report = preferred(runs=[r.model_copy(update={"rubric": rubric}) for r in RUNS])
    assert [n for n in report.notes if "rubric" in n] == ["rubrics are not used to compare pairs"]
    assert [row.criterion for row in report.rows] == ["preference"]


def test_an_empty_response_loses_without_a_call_of_a_function() -> None:
    runs = [r.model_copy(update={"output": ""}) if r.id == "new-0" else r for r in RUNS]
    inputs: list[str] = []

    def empty_wins(first: Run, second: Run, criterion: Criterion) -> str:
        inputs.append(first.input)
        return "tie" if first.output and second.output else "second" if first.output else "first"

    report = preferred(runs=runs, judge=empty_wins, version="1")
    assert (report.rows[0].wins, report.rows[0].ties) == (1, 3)
    assert (len(inputs), "1 + 1?" in inputs) == (6, False)


@pytest.mark.parametrize(
    ("preferences", "share", "n", "tied"),
    [([1.5] * 6, None, 0, 6), ([1.0, 2.0, 1.99, 1.2, 1.0, 1.5], 2 / 5, 5, 1)],
)
def test_tied_labels_are_left_out_of_the_agreement(
    preferences: list[float], share: float | None, n: int, tied: int
) -> None:
    """The judge always prefers the longer response, which a preference above 1.5 labels."""
    records = [
        {
            "instruction": f"q{i}",
            "output_1": "short",
            "output_2": "longer text",
            "generator_1": "ref",
            "generator_2": "mine",
            "preference": preference,
        }
        for i, preference in enumerate(preferences)
    ]
    Path("annotations.json").write_text(json.dumps(records))
    table = agenteval.prefer(pairs="annotations.json", judge=longer)["labels"]
    assert (table.rows[0]["value"].value, table.rows[0]["n"]) == (share, n)
    assert table.notes[0].startswith(f"left out: {tied} comparison")


def test_a_run_on_its_own_is_shown_with_the_pairs_that_it_is_in() -> None:
    preferred()
    with pytest.raises(InputError, match=r"old-0 \| new-0|new-0 \| old-0") as error:
        results("old-0")
    name = str(error.value).split("'")[3]
    assert "old-0" in name
    assert results(name).data["run"].endswith(name)


def test_cases_of_neither_system_are_not_counted_as_left_out() -> None:
    runs = [r for r in RUNS if r.id != "new-0"]
    third = [r.model_copy(update={"id": f"x{r.id}", "system": "third"}) for r in RUNS[4::2]]
    report = agenteval.prefer(runs=[*[r for r in runs if r.id != "old-1"], *third], judge=longer)
    assert report.data["left_out"] == {
        "old against new: no run of new": 1,
        "old against new: no run of old": 1,
        "old against third: no run of third": 1,
        "new against third: no run of third": 1,
    }
    assert len([n for n in report.notes if n.startswith("not compared:")]) == 3


def test_a_system_that_lost_every_comparison_is_named() -> None:
    third = [r.model_copy(update={"id": f"x{r.id}", "output": "?"}) for r in RUNS[::2]]
    third = [r.model_copy(update={"system": "third"}) for r in third]
    (note,) = agenteval.prefer(runs=[*RUNS, *third], judge=longer)["ranking"].notes
    assert "no strengths: third lost every comparison" in note
    assert not any(f"{name} lost" in note or f"{name} won" in note for name in ("old", "new"))


def test_three_systems_are_ranked() -> None:
    third = [r.model_copy(update={"id": f"x{r.id}", "system": "third"}) for r in RUNS[::2]]

    report = agenteval.prefer(runs=[*RUNS, *third], judge=longer)
    assert [(r.system, r.against) for r in report.rows] == [
        ("new", "third"),
        ("old", "new"),
        ("old", "third"),
    ]
    ranking = {row["system"]: row["win_rate"].value for row in report["ranking"].rows}
    assert ranking["old"] == pytest.approx(ranking["third"]) == pytest.approx(0.4375)
    assert ranking["new"] == pytest.approx(0.625)
    strengths = {row["system"]: row["strength"].value for row in report["ranking"].rows}
    assert strengths["new"] == max(strengths.values())
    assert sum(strengths.values()) == pytest.approx(0)


# -- a chat model ----------------------------------------------------------------------------------

Answer = Callable[[Any, int], str]


def reply(label: str) -> str:
    return json.dumps({"preference": {"explanation": "so", "label": label}})


def asked(answer: Answer, **options: Any) -> tuple[Any, list[str]]:
    """Compare by a chat model; return the report and the user messages that it got."""
    with serve(answer) as server:
        keywords = {"runs": RUNS, "task": TASK, **options}
        report = agenteval.prefer("old", "new", judge="m", base_url=server.base_url, **keywords)
        return report, [r.body["messages"][1]["content"] for r in server.requests]


def test_each_order_is_one_request_that_does_not_name_the_systems() -> None:
    report, texts = asked(lambda body, n: reply("first"))
    assert len(texts) == 8
    orders = {text.index("It is 2.") < text.index("It is 3.") for text in texts if "1 + 1?" in text}
    assert orders == {True, False}
    assert not any(word in text for text in texts for word in ("old", "new"))
    assert report.rows[0].flips == 4
    assert report["position"].rows[0]["bias"].value == 0.5


def test_what_is_stored_is_not_asked_again() -> None:
    with serve(lambda body, n: reply("tie")) as server:
        for repeats, requests in ((1, 8), (1, 8), (2, 16)):
            report = agenteval.prefer(
                *("old", "new"),
                runs=RUNS,
                task=TASK,
                judge="m",
                base_url=server.base_url,
                repeats=repeats,
            )
            assert server.count == requests
    assert report.rows[0].ties == 8


def test_criteria_are_compared_one_by_one_in_one_request() -> None:
    criteria = [
        Criterion(name="Accuracy", accepted_values=("wrong", "right")),
        Criterion(name="Clarity", accepted_values=("unclear", "fair", "clear")),
    ]

    def answer(body: Any, n: int) -> str:
        response = body["messages"][1]["content"].partition("END first response")[0]
        place = "first" if "since" in response else "tie"
        return json.dumps({"accuracy": {"label": "tie"}, "clarity": {"label": place}})

    report, texts = asked(answer, criteria=criteria)
    assert len(texts) == 8
    rows = {row.criterion: row for row in report.rows}
    assert rows["accuracy"].ties == 4
    assert (rows["clarity"].ties, rows["clarity"].flips) == (3, 1)


def test_the_budget_stops_the_comparison_and_a_second_call_continues() -> None:
    with serve(lambda body, n: reply("tie")) as server:
        keywords: dict[str, Any] = {"runs": RUNS, "task": TASK, "base_url": server.base_url}
        stopped = agenteval.prefer(judge="m", limits=Limits(max_calls=3), **keywords)
        assert (stopped.exit_code, server.count) == (3, 3)
        assert stopped.unfinished
        assert agenteval.prefer(judge="m", **keywords).rows[0].ties == 4
        assert server.count == 8


def test_a_dry_run_sends_nothing_and_counts_both_orders() -> None:
    report, texts = asked(lambda body, n: reply("tie"), dry_run=True, repeats=2)
    assert texts == []
    assert not Path("agenteval.db").exists()
    assert report.estimate is not None
    assert sum(line.least.requests for line in report.estimate.lines) == 16
