"""Two systems on the same cases, against hand calculations."""

from __future__ import annotations

import pytest

from agenteval.planning.evaluator import Attempt
from agenteval.planning.tallies import paired
from tests.planning.campaigns import attempt, case, failure

RIGHT, WRONG = "ab", "ba"


def outcomes(hits: str, *, n: int = 2, name: str = "c", system: str = "s") -> list[Attempt]:
    """One case per character, 1 right and 0 wrong."""
    rest = "cdefgh"[: n - 2]
    return [
        attempt(case(f"{name}{n}-{i}", n), (RIGHT if h == "1" else WRONG) + rest, system=system)
        for i, h in enumerate(hits)
    ]


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
