"""Checks of the maintainers' ratings of ``tasks/household`` (``pytest -s`` prints the figures).

The same checks as for ``tasks/math`` (where alpha itself is tested against published figures), and
two that only this task allows: a program knows the success and counted the refused commands, so
two criteria can be compared with facts. Each check is also applied to damaged copies.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.tasks.ratings import (
    Line,
    Material,
    agreement,
    alpha_table,
    complaints_about,
    distribution,
    guess,
    illegal,
    load,
    mean_guess,
    misprinted,
    rank,
    rated_runs,
    spread_share,
    uncovered,
)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tasks" / "household"
CRITERIA = ROOT / "criteria" / "household.reviewed.json"
RUNS, NAMES = 90, 7
RATED, GOALS, SECOND = 30, 10, 10
SYSTEMS = {"atlas", "birch", "cedar"}
SPREAD_MIN = 0.20  # share of runs with different levels
GUESS_MAX = 0.80  # levels predicted from success, system and length, averaged over criteria
# Of 30 runs, for both comparisons with facts. Ratings are what a reader found and are not mended
# to fit a program; a slip in one run of ten is allowed for counting over up to 24 turns. The
# commonest level given to all runs would agree in 20 (correctness) and 12 (execution) of them.
FACTS_MIN = 27
SLIP_MAX = 1  # levels: miscounting by one command moves a level by one step at most


@pytest.fixture(scope="module")
def material() -> Material:
    return load(FOLDER, CRITERIA)


def relabelled(material: Material, criterion: str, labels: dict[str, str]) -> Material:
    """A copy in which the levels of one criterion are replaced by others."""
    return material.with_lines(
        {**line, "label": labels.get(line["label"], line["label"])}
        if line["criterion"] == criterion
        else line
        for line in material.by("A")
    )


# --- the file ---------------------------------------------------------------------------------


def test_thirty_runs_are_ten_goals_of_each_system(material: Material) -> None:
    runs = [material.runs[name] for name in rated_runs(material, "A")]
    assert (len(material.runs), len(material.criteria), len(runs)) == (RUNS, NAMES, RATED)
    pairs = {(run["input"], run["system"]) for run in runs}
    goals = {goal for goal, _ in pairs}
    assert len(goals) == GOALS
    assert pairs == set(itertools.product(goals, SYSTEMS))


def test_every_rated_run_is_rated_once_on_every_criterion(material: Material) -> None:
    assert uncovered(material, "A", rated_runs(material, "A")) == []
    assert len(material.by("A")) == RATED * NAMES


def test_lines_of_the_first_rater_are_in_the_order_of_runs_and_criteria(
    material: Material,
) -> None:
    order = [(line["run"], line["criterion"]) for line in material.by("A")]
    rated = set(rated_runs(material, "A"))
    due = [name for name in material.runs if name in rated]
    assert order == list(itertools.product(due, material.criteria))


def test_labels_are_accepted_values_and_evidence_occurs_in_the_run(material: Material) -> None:
    assert illegal(material) == []


def test_second_rater_finishes_every_run_begun_and_the_first_rated_it(material: Material) -> None:
    second = rated_runs(material, "B")
    if not second:
        pytest.skip("NO SECOND RATINGS: tasks/household/ratings.jsonl has no lines of rater B")
    assert len(second) == SECOND
    assert uncovered(material, "B", second) == []
    assert set(second) <= set(rated_runs(material, "A"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"label": "excellent"}, "not an accepted value"),
        ({"label": "Correct"}, "not an accepted value"),  # a level of another criterion
        ({"label": None, "status": "not_applicable"}, "always applies"),
        ({"status": "failed"}, "unknown status"),
        ({"evidence": "Bring a book to the coffee table"}, "not in the run"),  # the user's words
        ({"evidence": "The green book is now on the sofa."}, "not in the run"),
        ({"evidence": "a book"}, "6 characters"),
        ({"rater": "C"}, "unknown rater"),
        ({"run": "household-31-atlas"}, "no such run"),
        ({"criterion": "beauty"}, "no such run or criterion"),
        ({"success": True}, "keys"),
    ],
)
def test_damaged_line_is_noticed(material: Material, change: Line, complaint: str) -> None:
    line = material.by("A")[0]
    assert (line["run"], line["criterion"]) == ("household-01-atlas", "task-understanding")
    (found,) = complaints_about({**line, **change}, material)
    assert complaint in found


def test_missing_and_double_ratings_are_noticed(material: Material) -> None:
    lines = material.by("A")
    due = rated_runs(material, "A")
    place = "household-01-atlas × task-understanding"
    assert uncovered(material.with_lines(lines[1:]), "A", due) == [f"{place}: 0 ratings by A"]
    double = material.with_lines([*lines, lines[0]])
    assert uncovered(double, "A", due) == [f"{place}: 2 ratings by A"]


# --- levels say more than success, system and length -------------------------------------------


def test_runs_have_different_levels(material: Material) -> None:
    share = spread_share(material, "A")
    wide = spread_share(material, "A", gap=2 / 3)
    print(f"\nruns whose criteria differ by >= 1/3: {share:.2f}; by >= 2/3: {wide:.2f}")
    for name, counts in distribution(material, "A").items():
        print(f"{name:21s}", ", ".join(f"{value}: {n}" for value, n in counts.items()))
    assert share >= SPREAD_MIN


def test_equal_levels_are_noticed(material: Material) -> None:
    best = [
        {**line, "label": material.criteria[line["criterion"]]["accepted_values"][-1]}
        for line in material.by("A")
    ]
    assert spread_share(material.with_lines(best), "A") == 0
    best[1]["label"] = "Average"  # two of five levels down in one of 30 runs
    assert spread_share(material.with_lines(best), "A") == pytest.approx(1 / 30)


def test_success_system_and_length_do_not_say_the_levels(material: Material) -> None:
    found = guess(material, "A")
    print(f"\n{'criterion':21s} {'n':>3s} {'majority':>9s} {'boosting':>9s} {'logistic':>9s}")
    for name, g in found.items():
        print(f"{name:21s} {g.n:3d} {g.majority:9.2f} {g.boosting:9.2f} {g.logistic:9.2f}")
    print(f"mean of the better classifier: {mean_guess(found):.3f} (limit {GUESS_MAX})")
    assert {g.n for g in found.values()} == {RATED}
    assert mean_guess(found) <= GUESS_MAX


def test_levels_made_from_success_and_system_are_noticed(material: Material) -> None:
    few = {n: material.criteria[n] for n in ("plan-making", "action-decision")}
    made = []
    for line in (r for r in material.by("A") if r["criterion"] in few):
        run, values = material.runs[line["run"]], material.criteria[line["criterion"]]
        level = 2 if run["system"] == "cedar" else (-1 if run["success"] else 0)
        made.append({**line, "label": values["accepted_values"][level]})
    copied = Material(runs=material.runs, criteria=few, lines=made)
    assert mean_guess(guess(copied, "A")) > GUESS_MAX


# --- levels against facts -----------------------------------------------------------------------


def against_success(material: Material) -> list[str]:
    """The rated runs whose level of correctness contradicts the state of the house at the end."""
    lines = [r for r in material.by("A") if r["criterion"] == "correctness-of-action"]
    return [
        f"{line['run']}: rated {line['label']}, success {material.runs[line['run']]['success']}"
        for line in lines
        if (line["label"] == "Correct") != material.runs[line["run"]]["success"]
    ]


def execution_level(refused: int, steps: int) -> str:
    """The level that the description of action execution gives for these counts."""
    if 2 * refused > steps:
        return "Terrible"
    return ("Excellent", "Good", "Average", "Average", "Poor")[min(refused, 4)]


def against_count(material: Material) -> dict[str, int]:
    """Run → distance in levels, where action execution is not what the counts give."""
    found = {}
    for line in (r for r in material.by("A") if r["criterion"] == "action-execution"):
        counted = material.runs[line["run"]]["metadata"]["measured"]
        due = execution_level(counted["invalid_actions"], counted["steps"])
        place, wanted = rank(line, material), rank({**line, "label": due}, material)
        assert place is not None
        assert wanted is not None
        if place != wanted:
            found[line["run"]] = abs(place - wanted)
    return found


def test_correctness_agrees_with_the_world(material: Material) -> None:
    differing = against_success(material)
    print(f"\ncorrectness agrees with success in {RATED - len(differing)} of {RATED}; {differing}")
    assert RATED - len(differing) >= FACTS_MIN


def test_execution_agrees_with_the_refused_commands(material: Material) -> None:
    differing = against_count(material)
    print(f"\nexecution agrees with counts in {RATED - len(differing)} of {RATED}; {differing}")
    assert RATED - len(differing) >= FACTS_MIN
    assert all(distance <= SLIP_MAX for distance in differing.values())


@pytest.mark.parametrize(
    ("refused", "steps", "level"),
    [
        (0, 4, "Excellent"),
        (1, 9, "Good"),
        (2, 11, "Average"),
        (3, 24, "Average"),
        (4, 19, "Poor"),
        (12, 24, "Poor"),  # exactly half
        (13, 24, "Terrible"),
        (3, 5, "Terrible"),  # more than half of all goes before the bare number
    ],
)
def test_level_for_counts_is_what_the_description_says(
    refused: int, steps: int, level: str
) -> None:
    assert execution_level(refused, steps) == level


def test_levels_that_contradict_the_facts_are_noticed(material: Material) -> None:
    swapped = {"Correct": "Incorrect", "Incorrect": "Correct"}
    inverted = relabelled(material, "correctness-of-action", swapped)
    agreeing = RATED - len(against_success(material))
    assert len(against_success(inverted)) == agreeing > RATED - FACTS_MIN
    believed = relabelled(material, "correctness-of-action", {"Incorrect": "Correct"})
    assert len(against_success(believed)) > RATED - FACTS_MIN
    kind = relabelled(material, "action-execution", {"Average": "Excellent", "Poor": "Excellent"})
    assert len(against_count(kind)) > RATED - FACTS_MIN
    assert max(against_count(kind).values()) > SLIP_MAX


# --- agreement with a second rater --------------------------------------------------------------


def test_agreement_is_what_the_readme_prints(material: Material) -> None:
    if not material.by("B"):
        pytest.skip("NO SECOND RATINGS: alpha cannot be computed, nothing is compared")
    print(f"\n{alpha_table(agreement(material))}")
    assert misprinted(material, (FOLDER / "README.md").read_text(encoding="utf-8")) == []


def test_readme_table_is_compared_with_the_ratings(material: Material) -> None:
    chosen = set(rated_runs(material, "A")[::3])
    second = [{**line, "rater": "B"} for line in material.by("A") if line["run"] in chosen]
    same = material.with_lines([*material.by("A"), *second])
    figures = agreement(same)
    assert {n for n, _ in figures.values()} == {SECOND}
    assert all(value in (None, pytest.approx(1)) for _, value in figures.values())
    readme = f"# Task\n\n{alpha_table(figures)}\n"
    assert misprinted(same, readme) == []
    (wrong,) = misprinted(same, readme.replace("plan-making | 10 |", "plan-making | 30 |"))
    assert wrong.startswith("plan-making: printed 30")
    (absent,) = misprinted(same, "no table")
    assert alpha_table(figures) in absent
