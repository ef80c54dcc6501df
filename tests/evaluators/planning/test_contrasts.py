"""Differences by clause form and between systems, against hand and published examples."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from agenteval.evaluators.planning.contrasts import by_form, difference, paired, within_sizes
from agenteval.evaluators.planning.tallies import clustered_share
from agenteval.evaluators.planning.trials import Attempt
from agenteval.stats import proportion_interval
from tests.evaluators.planning.campaigns import attempt, campaign, case, failure

RIGHT, WRONG = "ab", "ba"
_JOINED = re.compile(r"; |, (?:and|but|yet|while|whereas) ")


def outcomes(hits: str, *, n: int = 2, name: str = "c", system: str = "s") -> list[Attempt]:
    """One case per character, 1 right and 0 wrong."""
    rest = "cdefgh"[: n - 2]
    return [
        attempt(case(f"{name}{n}-{i}", n), (RIGHT if h == "1" else WRONG) + rest, system=system)
        for i, h in enumerate(hits)
    ]


def test_newcombes_own_example() -> None:
    """56/70 - 48/80: .0524 to .3339 (Newcombe 1998, table II, method 10)."""
    found = difference(proportion_interval(56, 70), proportion_interval(48, 80))
    assert found.mean == pytest.approx(0.2)
    assert (found.low, found.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_a_side_without_rate_or_interval_gives_none() -> None:
    empty, one = clustered_share([], []), clustered_share([True, False], ["a", "a"])
    assert difference(empty, one).mean is None
    assert difference(one, proportion_interval(1, 4)).low is None


def test_within_sizes_takes_the_size_out() -> None:
    """Two actions: right in half of both sides; three: never. Plainly 1/6 against 2/6."""
    holding = outcomes("10", name="h") + outcomes("0000", n=3, name="h")
    others = outcomes("1010", name="o") + outcomes("00", n=3, name="o")
    found = within_sizes(holding, others)
    assert found.mean == 0
    assert found.low is not None
    assert found.low < -0.2  # few cases say little
    assert within_sizes(outcomes("1"), outcomes("1", n=3)).mean is None


def test_mantel_haenszel_weights() -> None:
    """Strata of 1 : 3 and 2 : 2 cases weigh 3/4 and 1; differences are 1 - 1/3 and .5 - 0."""
    holding = outcomes("1", name="h") + outcomes("10", n=3, name="h")
    others = outcomes("100", name="o") + outcomes("00", n=3, name="o")
    assert within_sizes(holding, others).mean == pytest.approx((0.75 * 2 / 3 + 0.5) / 1.75)


def test_a_planted_form_is_found() -> None:
    """An agent that fails wherever clauses are joined, and nowhere else."""
    trials = [
        a if a.verdict is None or (a.outcome == "pass") != bool(_JOINED.search(a.case.text))
        else replace(a, verdict=a.verdict.model_copy(
            update={"outcome": "order_error" if _JOINED.search(a.case.text) else "pass"}))
        for a in campaign({3: 60, 4: 60}, {"s": 0.7})
    ]  # fmt: skip
    found = {c.form: c for c in by_form(trials).contrasts}
    joined = found["conjunction"]
    assert (joined.holding.rate.mean, joined.others.rate.mean) == (0.0, 1.0)
    assert joined.difference.mean == joined.within.mean == -1.0
    assert joined.difference.high is not None
    assert joined.difference.high < -0.85
    for name, contrast in found.items():
        assert contrast.holding.rate.n + contrast.others.rate.n == joined.holding.rate.n + (
            joined.others.rate.n
        )
        assert name == "conjunction" or (contrast.within.mean or 0) > -1


def test_texts_outside_of_the_language_are_counted() -> None:
    trials = [*campaign({3: 2}, {"s": 1.0}), attempt(case("hand"), RIGHT)]
    found = by_form(trials)
    assert found.unread == 1
    assert {c.holding.rate.n + c.others.rate.n for c in found.contrasts} == {2}


def test_pairs_are_mcnemar_on_common_cases() -> None:
    """Only the first right 5 times: p = 2 (1/2)^5. One case of three is lost to a failure."""
    first = outcomes("11111100")
    second = [*outcomes("00000100", system="t"), failure(case("x"), system="t")]
    (found,) = paired([*first, attempt(case("x"), RIGHT), *second])
    assert (found.first, found.second, found.tasks, found.left_out) == ("s", "t", 8, 1)
    assert (found.only_first, found.only_second) == (5, 0)
    assert found.p == found.corrected == pytest.approx(0.0625)
    assert found.difference.mean == pytest.approx(5 / 8)
    assert found.reason is not None  # five pairs cannot reach .05
    assert paired(first) == []


def test_three_systems_are_corrected() -> None:
    a, b = outcomes("1" * 8), outcomes("0" * 8, system="t")
    c = outcomes("0" * 8, system="u")
    found = paired([*a, *b, *c])
    assert [p.p for p in found] == pytest.approx([2 * 0.5**8, 2 * 0.5**8, 1.0])
    assert [p.corrected for p in found] == pytest.approx([6 * 0.5**8, 6 * 0.5**8, 1.0])


def test_repeated_trials_are_one_pair_per_case() -> None:
    def trials(system: str, rows: dict[str, str]) -> list[Attempt]:
        return [
            attempt(case(k), RIGHT if h == "1" else WRONG, system=system, trial=i)
            for k, hits in rows.items() for i, h in enumerate(hits)
        ]  # fmt: skip

    (found,) = paired(
        trials("s", {"k": "110", "l": "11", "m": "0"})
        + trials("t", {"k": "1", "l": "10", "m": "0"})
    )
    assert found.tasks == 3
    assert (found.only_first, found.only_second) == (1, 1)  # l is better, k worse, m equal
    assert found.p == 1.0
    assert found.difference.mean == pytest.approx((-1 / 3 + 1 / 2 + 0) / 3)
    assert "sign test" in found.method
