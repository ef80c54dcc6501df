"""Checks of the maintainers' ratings of ``tasks/math`` (``pytest -s`` prints the figures).

As with the runs, each check gives complaints or a figure; it is applied to the real file and to
damaged copies, where it must notice the damage.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tasks.ratings import (
    Line,
    Material,
    agreement,
    alpha,
    alpha_table,
    complaints_about,
    distribution,
    guess,
    illegal,
    interval,
    load,
    mean_guess,
    misprinted,
    nominal,
    ordinal,
    printed_alphas,
    rated_runs,
    spread_share,
    uncovered,
)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tasks" / "math"
CRITERIA = ROOT / "criteria" / "math.reviewed.json"
RUNS, NAMES = 60, 9
SPREAD_MIN = 0.20  # share of runs with different levels
GUESS_MAX = 0.80  # levels predicted from success, system and length, averaged over criteria


@pytest.fixture(scope="module")
def material() -> Material:
    return load(FOLDER, CRITERIA)


def with_second(material: Material, change: Callable[[int, Line], Line]) -> Material:
    """A copy in which a rater B repeats A on every third run, apart from a change."""
    chosen = set(list(material.runs)[::3])
    second = [{**line, "rater": "B"} for line in material.by("A") if line["run"] in chosen]
    return material.with_lines([*material.by("A"), *itertools.starmap(change, enumerate(second))])


# --- the file ---------------------------------------------------------------------------------


def test_every_run_is_rated_once_on_every_criterion(material: Material) -> None:
    assert (len(material.runs), len(material.criteria)) == (RUNS, NAMES)
    assert uncovered(material, "A", material.runs) == []
    assert len(material.by("A")) == RUNS * NAMES


def test_lines_of_the_first_rater_are_in_the_order_of_runs_and_criteria(
    material: Material,
) -> None:
    order = [(line["run"], line["criterion"]) for line in material.by("A")]
    assert order == list(itertools.product(material.runs, material.criteria))


def test_labels_are_accepted_values_and_evidence_occurs_in_the_run(material: Material) -> None:
    assert illegal(material) == []


def test_second_rater_finishes_every_run_begun(material: Material) -> None:
    if not material.by("B"):
        pytest.skip("NO SECOND RATINGS: tasks/math/ratings.jsonl has no lines of rater B")
    assert uncovered(material, "B", rated_runs(material, "B")) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"label": "rather good"}, "not an accepted value"),
        ({"label": None}, "not an accepted value"),
        ({"label": None, "status": "not_applicable"}, "always applies"),
        ({"status": "skipped"}, "unknown status"),
        ({"evidence": "How many whole numbers from 1 to 500 are even"}, "not in the run"),
        ({"evidence": "so there are 35 such numbers."}, "not in the run"),
        ({"evidence": "So there"}, "8 characters"),
        ({"evidence": None}, "no evidence"),
        ({"rater": "C"}, "unknown rater"),
        ({"run": "math-21-duo"}, "no such run"),
        ({"criterion": "beauty"}, "no such run or criterion"),
        ({"score": 1}, "keys"),
    ],
)
def test_damaged_line_is_noticed(material: Material, change: Line, complaint: str) -> None:
    line = material.by("A")[0]
    assert line["run"] == "math-01-stepwise"
    (found,) = complaints_about({**line, **change}, material)
    assert complaint in found


def test_level_that_does_not_apply_is_legal_where_the_criterion_allows_it(
    material: Material,
) -> None:
    line = {**material.by("A")[0], "label": None, "status": "not_applicable", "evidence": None}
    allowing = {n: {**c, "allow_na": True} for n, c in material.criteria.items()}
    other = Material(runs=material.runs, criteria=allowing, lines=[line])
    assert illegal(other) == []
    (found,) = complaints_about({**line, "label": "right throughout"}, other)
    assert "there is a label" in found


def test_missing_and_double_ratings_are_noticed(material: Material) -> None:
    lines = material.by("A")
    (missing,) = uncovered(material.with_lines(lines[1:]), "A", material.runs)
    (double,) = uncovered(material.with_lines([*lines, lines[0]]), "A", material.runs)
    assert missing == "math-01-stepwise × accuracy: 0 ratings by A"
    assert double == "math-01-stepwise × accuracy: 2 ratings by A"
    (stray,) = uncovered(material.with_lines(lines[:10]), "A", ["math-01-stepwise"])
    assert stray == "math-01-coder × accuracy: 1 ratings by A"


# --- levels say more than success, system and length -------------------------------------------


def test_runs_have_different_levels(material: Material) -> None:
    share = spread_share(material, "A")
    wide = spread_share(material, "A", gap=2 / 3)
    print(f"\nruns whose criteria differ by >= 1/3: {share:.2f}; by >= 2/3: {wide:.2f}")
    for name, counts in distribution(material, "A").items():
        print(f"{name:15s}", ", ".join(f"{value}: {n}" for value, n in counts.items()))
    assert share >= SPREAD_MIN


def test_equal_levels_are_noticed(material: Material) -> None:
    best = [
        {**line, "label": material.criteria[line["criterion"]]["accepted_values"][-1]}
        for line in material.by("A")
    ]
    assert spread_share(material.with_lines(best), "A") == 0
    worse = [dict(line) for line in best]
    worse[0]["label"] = "right result, faulty step"  # one of four levels down in one of 60 runs
    assert spread_share(material.with_lines(worse), "A") == pytest.approx(1 / 60)
    assert spread_share(material.with_lines(worse), "A", gap=1 / 2) == 0


def test_success_system_and_length_do_not_say_the_levels(material: Material) -> None:
    found = guess(material, "A")
    print(f"\n{'criterion':15s} {'n':>3s} {'majority':>9s} {'boosting':>9s} {'logistic':>9s}")
    for name, g in found.items():
        print(f"{name:15s} {g.n:3d} {g.majority:9.2f} {g.boosting:9.2f} {g.logistic:9.2f}")
    print(f"mean of the better classifier: {mean_guess(found):.3f} (limit {GUESS_MAX})")
    assert mean_guess(found) <= GUESS_MAX


def test_levels_made_from_success_and_system_are_noticed(material: Material) -> None:
    made = []
    few = {name: material.criteria[name] for name in ("accuracy", "clarity")}
    for line in (r for r in material.by("A") if r["criterion"] in few):
        run, values = material.runs[line["run"]], material.criteria[line["criterion"]]
        level = (-1 if run["success"] else 0) if run["system"] != "coder" else 1
        made.append({**line, "label": values["accepted_values"][level]})
    copied = Material(runs=material.runs, criteria=few, lines=made)
    assert mean_guess(guess(copied, "A")) > GUESS_MAX


# --- agreement with a second rater --------------------------------------------------------------


def test_agreement_is_what_the_readme_prints(material: Material) -> None:
    if not material.by("B"):
        pytest.skip("NO SECOND RATINGS: alpha cannot be computed, nothing is compared")
    print(f"\n{alpha_table(agreement(material))}")
    assert misprinted(material, (FOLDER / "README.md").read_text(encoding="utf-8")) == []


# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability": four observers, twelve units
# (section C, with the figures of section D), and the two-observer examples of sections A and B.
FOUR = (
    "123321412...",
    "1233224125.3",
    ".3332342251.",
    "12332441251.",
)


def units_of(*rows: str) -> list[list[int | None]]:
    """One unit per column; a point is a missing value."""
    return [[None if c == "." else ord(c) for c in column] for column in zip(*rows, strict=True)]


def test_alpha_of_krippendorffs_four_observers() -> None:
    units = units_of(*FOUR)
    assert alpha(units, nominal) == pytest.approx(0.743, abs=5e-4)
    assert alpha(units, ordinal) == pytest.approx(0.815, abs=5e-4)
    assert alpha(units, interval) == pytest.approx(0.849, abs=5e-4)


def test_alpha_of_krippendorffs_two_observers() -> None:
    binary = units_of("0100000010", "1110010000")
    letters = units_of("aabbdcccedda", "babbbccceddd")
    assert alpha(binary, nominal) == pytest.approx(0.095, abs=5e-4)
    assert alpha(letters, nominal) == pytest.approx(0.692, abs=5e-4)


def test_alpha_of_a_hand_computed_ordinal_example() -> None:
    # Units (0, 0), (0, 1), (2, 2): counts 3, 1, 2 of 6 values. Squared distances: 0-1
    # (4 - 2)^2 = 4, 1-2 (3 - 1.5)^2 = 2.25, 0-2 (6 - 2.5)^2 = 12.25. Observed: 2 pairs of 4 = 8.
    # Expected: 2·(3·1·4 + 1·2·2.25 + 3·2·12.25) = 180. Alpha = 1 - 5·8/180 = 7/9.
    assert alpha([(0, 0), (0, 1), (2, 2)], ordinal) == pytest.approx(7 / 9)
    assert alpha([(0, 0), (1, 1)], ordinal) == 1
    assert alpha([(1, 1), (1, 1)], ordinal) is None
    assert alpha([(1, None)], ordinal) is None


def test_readme_table_is_compared_with_the_ratings(material: Material) -> None:
    same = with_second(material, lambda _, line: line)
    figures = agreement(same)
    assert {n for n, _ in figures.values()} == {20}
    assert all(value in (None, pytest.approx(1)) for _, value in figures.values())
    table = alpha_table(figures)
    readme = f"# Task\n\nText.\n\n{table}\n\nMore text | with a bar.\n"
    assert list(printed_alphas(readme)) == list(material.criteria)
    assert misprinted(same, readme) == []
    assert misprinted(same, readme.replace("| 1.000 |", "| 1.00 |")) == []
    (wrong,) = misprinted(same, readme.replace("accuracy | 20 | 1.000", "accuracy | 20 | 0.990"))
    assert wrong.startswith("accuracy: printed 20, 0.990")
    (count,) = misprinted(same, readme.replace("accuracy | 20", "accuracy | 19"))
    assert count.startswith("accuracy: printed 19")
    (absent,) = misprinted(same, "no table")
    assert table in absent


def test_a_second_rater_who_differs_lowers_alpha(material: Material) -> None:
    def invert(_: int, line: Line) -> Line:
        values = material.criteria[line["criterion"]]["accepted_values"]
        return {**line, "label": values[-1 - values.index(line["label"])]}

    other = with_second(material, invert)
    assert illegal(other) == []
    assert uncovered(other, "B", rated_runs(other, "B")) == []
    # Direction reversed: every criterion disagrees more than chance would.
    assert all(value is not None and value < 0 for _, value in agreement(other).values())
