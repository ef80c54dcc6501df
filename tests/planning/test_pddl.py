"""Verdicts on plans in PDDL. Expected values are by hand, from the definition of STRIPS."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.planning.pddl import check_plans, plan_steps, read_problem, verdict_of

# Blocksworld of PlanBench. c on a, b on the table; wanted: a on b, b on c (Sussman's anomaly).
DATA = Path(__file__).parents[1] / "golden" / "data" / "pddl"
BLOCKS, SUSSMAN = (DATA / "domain.pddl").read_text(), (DATA / "instance-2.pddl").read_text()
SOLUTION = """(unstack c a)
(put-down c)
(pick-up b)
(stack b c)
(pick-up a)
(stack a b)
"""
TYPED = """
(define (domain trips) (:requirements :strips :typing :equality :negative-preconditions)
 (:types truck - vehicle vehicle - object place)
 (:constants depot - place)
 (:action drive :parameters (?v - vehicle ?from ?to - place)
  :precondition (and (at ?v ?from) (not (= ?from ?to)) (not (closed ?to)))
  :effect (and (not (at ?v ?from)) (at ?v ?to))))
"""
TRIP = """
(define (problem one) (:domain trips) (:objects t - truck p q - place)
 (:init (at t p) (closed q)) (:goal (and (at t depot) (not (at t p)))))
"""


@pytest.mark.parametrize(
    ("plan", "step", "reason"),
    [
        (SOLUTION, None, ""),
        (SOLUTION.upper(), None, ""),
        ("0: (unstack c a) [1]\n1: (put-down c)\n" + "\n".join(SOLUTION.split("\n")[2:]), None, ""),
        ("; cost 0\nunstack c a", None, "goal not reached: (on a b), (on b c)"),
        ("(pick-up a)", 1, "unmet: (clear a)"),
        ("(unstack c a)\n(pick-up b)", 2, "unmet: (handempty)"),
        ("(unstack c a)\n(stack c c)", 2, "unmet: (clear c)"),
        ("(unstack c a)\n(lift b)", 2, "unknown action lift"),
        ("(unstack c)", 1, "unstack takes 2 arguments, not 1"),
        ("(unstack c d)", 1, "unknown object d"),
        ("", None, "goal not reached: (on a b), (on b c)"),
    ],
)
def test_blocks(plan: str, step: int | None, reason: str) -> None:
    verdict = verdict_of(read_problem(BLOCKS, SUSSMAN), plan_steps(plan))
    assert (verdict.valid, verdict.step, verdict.reason) == (not reason, step, reason)


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        ("(drive t p depot)", ""),
        ("(drive t p p)", "unmet: (not (= p p))"),
        ("(drive t p q)", "unmet: (not (closed q))"),
        ("(drive p p depot)", "p is not of type vehicle"),
        ("(drive t p depot)\n(drive t depot p)", "goal not reached: (at t depot), (not (at t p))"),
    ],
)
def test_types_equality_and_negation(plan: str, reason: str) -> None:
    assert verdict_of(read_problem(TYPED, TRIP), plan_steps(plan)).reason == reason


def test_no_shorter_plan_than_six_steps_solves_sussmans_anomaly() -> None:
    problem = read_problem(BLOCKS, SUSSMAN)
    ones = [(name, x) for name in ("pick-up", "put-down") for x in "abc"]
    twos = [(name, x, y) for name in ("stack", "unstack") for x, y in product("abc", repeat=2)]
    begun = [[]]  # every plan that can be executed, step by step
    for _ in range(5):
        longer = [[*plan, step] for plan in begun for step in (*ones, *twos)]
        begun = [plan for plan in longer if verdict_of(problem, plan).step is None]
        assert not any(verdict_of(problem, plan).valid for plan in begun)
    assert verdict_of(problem, plan_steps(SOLUTION)).valid


@pytest.mark.parametrize(
    ("domain", "problem", "words"),
    [
        (
            BLOCKS.replace(":strips", ":strips :conditional-effects"),
            SUSSMAN,
            "domain: :conditional",
        ),
        (BLOCKS.replace("(holding ?ob)\n", "(or (holding ?ob))\n"), SUSSMAN, "put-down: 'or'"),
        (BLOCKS[:-3], SUSSMAN, "domain: not one complete"),
        (BLOCKS, SUSSMAN + ")", "problem: one closing"),
        (SUSSMAN, SUSSMAN, "domain: not a definition of a domain"),
        (BLOCKS, SUSSMAN.replace(":goal", ":aim"), "problem: the problem needs exactly one :goal"),
        ("(" * 100_000, SUSSMAN, "domain: nested deeper than 50"),
    ],
)
def test_broken_and_other_pddl_is_refused(domain: str, problem: str, words: str) -> None:
    with pytest.raises(InputError) as refusal:
        read_problem(domain, problem)
    assert words in str(refusal.value)


def test_results_of_planbench(tmp_path: Path) -> None:
    (tmp_path / "domain.pddl").write_text(BLOCKS)
    for number in (2, 3, 4):
        (tmp_path / f"instance-{number}.pddl").write_text(SUSSMAN)
    instances = [
        {"instance_id": 2, "extracted_llm_plan": SOLUTION, "llm_correct": True},
        {"instance_id": 3, "extracted_llm_plan": "(pick-up a)\n"},
        {"instance_id": 4},
    ]
    results = tmp_path / "task_1_plan_generation.json"
    results.write_text(json.dumps({"task": "t1", "instances": instances}))
    report = check_plans(results, domain=tmp_path / "domain.pddl", problem=tmp_path)
    rows = [(row["plan"], row["verdict"], row["step"]) for row in report.tables[0].rows]
    assert rows == [("2", "valid", None), ("3", "invalid", 1), ("4", "invalid", None)]
    assert report.exit_code == 1
    results.write_text("{}")
    with pytest.raises(InputError, match="instances"):
        check_plans(results, domain=tmp_path / "domain.pddl", problem=tmp_path)
