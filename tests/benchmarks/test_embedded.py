"""The bench of the embedded judge: its statistics, its copies and its rule, on made-up numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, mannwhitneyu

from benchmarks.embedded import __main__ as embedded
from benchmarks.embedded import scores as embedded_scores

OPERATORS = embedded_scores.OPERATORS
N = 32


@pytest.mark.parametrize(("wins", "n"), [(0, 8), (5, 8), (32, 32), (17, 23)])
def test_wilson(wins: int, n: int) -> None:
    expected = binomtest(wins, n).proportion_ci(method="wilson")
    assert embedded.wilson(wins, n) == pytest.approx((expected.low, expected.high))


def test_compare_shares_and_auc() -> None:
    good = [3.0, 1.0, 5.0, 2.0]
    others = [[1.0, 4.0], [0.5, 1.0], [2.0, 3.0], []]
    found = embedded.compare(good, others)
    assert found.problems == 3
    assert found.texts == 6
    # per problem: 1 of 2 won; won and tied; both won
    assert found.share == pytest.approx((0.5 + 0.75 + 1) / 3)
    flat = [x for other in others for x in other]
    u = mannwhitneyu(good[:3], flat).statistic
    assert found.auc == pytest.approx(u / (3 * 6))
    assert found.auc_low <= found.auc <= found.auc_high
    assert embedded.compare([1.0], [[]]) is None


def test_every_copy_differs_from_its_original_and_is_the_same_each_time() -> None:
    for item in embedded_scores.load_items()[:8]:
        made = embedded_scores.copies(item)
        assert made == embedded_scores.copies(item)
        assert set(made) == set(OPERATORS)
        assert all(text != item["good"] for texts in made.values() for text in texts)
        assert len(made["drop"]) == len(made["shuffle"]) == embedded_scores.SEEDS
        assert len(set(made["drop"])) == len(made["drop"])


def texts(effects: dict[str, dict[str, float]]) -> Any:
    """Made-up statistics: `effects[statistic][operator]` is the share of pairs won."""
    rng = np.random.default_rng(0)

    def row(level: Sequence[float]) -> dict[str, Any]:
        values = dict(zip(embedded.ROWS, level, strict=True))
        return {**values, embedded.CHECKED: (True, values[embedded.CHECKED])}

    good = [row(rng.normal(size=len(embedded.ROWS)).tolist()) for _ in range(N)]
    other: dict[str, list[list[dict[str, Any]]]] = {}
    for op in OPERATORS:
        other[op] = []
        for i in range(N):
            level = []
            for name in embedded.ROWS:
                own = good[i][name][1] if name == embedded.CHECKED else good[i][name]
                wins = i < round(effects.get(name, {}).get(op, 0.5) * N)
                level.append(own - 1 if wins else own + 1)
            other[op].append([row(level)])
    items = [{"id": f"dev-{i:03d}", "problem": f"p{i}", "good": f"g{i}"} for i in range(N)]
    return embedded_scores.Texts(items, good, other)


def chosen(effects: dict[str, dict[str, float]]) -> dict[str, dict[str, Any]]:
    made = texts(effects)
    result: dict[str, dict[str, Any]] = embedded.choose(made, embedded.figures(made))
    return result


def test_nothing_is_supported_at_chance() -> None:
    kinds = chosen({})
    assert {name for name, kind in kinds.items() if kind["supported"]} == set()
    assert all(kind["reason"] for kind in kinds.values())


def test_the_strongest_is_chosen_by_its_weakest_operator() -> None:
    kinds = chosen(
        {
            "mean": {"drop": 1.0, "shuffle": 1.0, "pad": 0.6},
            "worst": {"drop": 0.9, "shuffle": 0.9, "pad": 0.9},
            "start": {"drop": 0.95, "shuffle": 1.0, "tail": 0.9, "head": 0.9},
        }
    )
    assert kinds["clarity"]["statistic"] == "worst"
    assert kinds["clarity"]["supported"]
    assert kinds["coherence"]["statistic"] == "mean"  # ties go to the order of the table
    # mean and worst are at chance on the length-matched cuts, so only start may serve
    assert kinds["completeness"]["statistic"] == "start"
    assert kinds["completeness"]["supported"]
    assert not kinds["calculation"]["supported"]


def test_the_threshold_is_on_the_lower_bound() -> None:
    """With 32 problems .78 has the lower bound .61, and .75 has .58."""
    assert embedded.wilson(25, 32)[0] > 0.60 > embedded.wilson(24, 32)[0]
    assert chosen({"mean": {"shuffle": 25 / 32}})["coherence"]["supported"]
    assert not chosen({"mean": {"shuffle": 24 / 32}})["coherence"]["supported"]


def test_checked_numbers_are_stored_as_number_evidence() -> None:
    kinds = chosen({embedded.CHECKED: {"swap": 1.0, "slip": 1.0}})
    assert kinds["calculation"]["chosen"] == embedded.CHECKED
    assert kinds["calculation"]["statistic"] == "numbers"
    assert kinds["calculation"]["relative"]


def test_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    made = texts({"mean": {"shuffle": 1.0}})
    calls = {"n": 0}

    class Fixed:
        def __init__(self, value: float) -> None:
            self.value = value

        def statistics(self) -> dict[str, float]:
            return {"mean": self.value}

    def fake(values: object, item: dict[str, Any], text: str, paraphrase: int) -> Fixed:
        calls["n"] += 1
        own = made.good[int(item["id"][-3:])]["mean"]
        return Fixed(own + 0.25 * paraphrase)

    class Tokens:
        logprobs = np.zeros(20)

    monkeypatch.setattr(embedded, "featured", fake)
    values = {("", item["problem"]): Tokens() for item in made.items}
    found = embedded.constants(made, "coherence", "mean", values)
    good = [g["mean"] for g in made.good]
    pool = [*good, *(v - 1 for v in good)]  # every copy lies one below its original
    assert found["center"] == pytest.approx(np.mean(pool), abs=1e-6)
    assert found["scale"] == pytest.approx(np.std(pool), abs=1e-6)
    assert found["offsets"] == pytest.approx([0, 0.25, 0.5, 0.75], abs=1e-6)
    assert found["slope"] == 0
    json.dumps(found, allow_nan=False)


def test_problem_lengths() -> None:
    class Tokens:
        logprobs = np.zeros(9)

    found = embedded_scores.problem_lengths([{"problem": "p"}], {("", "p"): Tokens()})
    assert found.tolist() == [pytest.approx(math.log(10))]
