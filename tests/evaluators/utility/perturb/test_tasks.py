"""Over all runs of the tasks: who stays unchanged, and that there is a reason."""

from __future__ import annotations

from agenteval.evaluators.utility.perturb import BANK_OPERATORS, check_changed
from tests.evaluators.utility.perturb.cases import do, views


def unchanged(task: str) -> dict[str, dict[str, int]]:
    pairs = [(v, do(v, name, seed=s)) for v in views(task) for name in BANK_OPERATORS
             for s in (0, 1)]  # fmt: skip
    report = check_changed(pairs)
    assert all(c.n == 2 * len(views(task)) for c in report.by_operator.values())
    assert all(c.blank_only == 0 for c in report.by_operator.values())
    return {name: c.reasons for name, c in report.by_operator.items() if c.unchanged}


def test_math() -> None:
    """Three of 60 have two sentences, whose middle is nothing; some have no phrase of a rule."""
    found = unchanged("math")
    assert set(found) == {"drop_middle", "paraphrase"}
    assert found["drop_middle"] == {"2 sentences have no middle": 2 * 3}
    assert set(found["paraphrase"]) == {"no rule fits"}
    assert found["paraphrase"]["no rule fits"] <= 2 * 9  # at most 15 %


def test_support() -> None:
    """One of 30 mails has no number."""
    found = unchanged("support")
    assert set(found) == {"swap_numbers", "paraphrase"}
    assert found["swap_numbers"] == {"no number that may be swapped": 2 * 1}
    assert found["paraphrase"]["no rule fits"] <= 2 * 6


def test_shares_are_met_on_average() -> None:
    """25 % asked of texts with 2 to 30 sentences; the mean over all runs is near it."""
    for name in ("drop_sentences", "drop_words", "swap_numbers", "pad", "truncate"):
        got = [do(v, name) for t in ("math", "support") for v in views(t)]
        shares = [g.share_applied for g in got if g.changed and g.share_applied is not None]
        assert 0.23 <= sum(shares) / len(shares) <= 0.33, name
