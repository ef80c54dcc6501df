"""Over all runs of the tasks: who stays unchanged, and that there is a reason."""

from __future__ import annotations

from collections import Counter

from agenteval.evaluators.utility.perturb import BANK_OPERATORS
from agenteval.records import View
from tests.evaluators.utility.perturb.cases import do, views


def shown(view: View) -> tuple[str, ...]:
    return view.problem, view.trajectory, view.reference or ""


def unchanged(task: str) -> dict[str, dict[str, int]]:
    """Reasons of the copies whose text is the original's, by operator, whatever they say of it."""
    reasons: dict[str, Counter[str]] = {}
    for name in BANK_OPERATORS:
        for view in views(task):
            for copy in (do(view, name, seed=seed) for seed in (0, 1)):
                before, after = shown(view), shown(copy.view)
                if before == after:
                    reasons.setdefault(name, Counter())[copy.reason or "no reason given"] += 1
                elif name != "whitespace":
                    assert [t.split() for t in before] != [t.split() for t in after], name
    return {name: dict(found) for name, found in reasons.items()}


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
        shares = [g.applied / g.of for g in got if g.changed and g.of]
        assert 0.23 <= sum(shares) / len(shares) <= 0.33, name
