"""The next round: dropped criteria stay away, known ones do not come back in other words."""

from __future__ import annotations

from agenteval.evaluators.utility.verify.rounds import next_round
from agenteval.records import Criterion
from agenteval.records.verification import JudgeVerdict, Verdict, Verification, VerifiedSet

LEVELS = ("bad", "good")


def named(name: str) -> Criterion:
    return Criterion(name=name, accepted_values=LEVELS)


def verified(**verdicts: Verdict) -> VerifiedSet:
    judge = JudgeVerdict(verdict="not enough data", reasons=("few",))
    return VerifiedSet(judge=judge, criteria=tuple(
        Verification(criterion_id=i, verdict=v, reasons=("so",), runs=1, cases=1, repeats=1,
                     coverage=1.0, mean=0.5)
        for i, v in verdicts.items()
    ))  # fmt: skip


CLARITY, TONE, DEPTH = named("Clarity"), named("Tone"), named("Depth")


def test_what_is_dropped_goes_and_does_not_come_back() -> None:
    result = verified(clarity="keep", tone="drop", depth="undecided")
    proposed = [named("tone"), named("CLARITY"), named("Brevity"), named("brevity")]
    found = next_round([CLARITY, TONE, DEPTH], result, proposed, None)
    assert [c.id for c in found.criteria] == ["clarity", "depth", "brevity"]
    assert (found.dropped, found.new, found.known) == (("tone",), ("brevity",), 3)


def test_what_an_earlier_round_dropped_is_known_as_well() -> None:
    found = next_round([CLARITY], verified(clarity="keep"), [named("Tone")], None, seen=[TONE])
    assert (found.criteria, found.new, found.known) == ((CLARITY,), (), 1)


def test_nothing_proposed() -> None:
    found = next_round([CLARITY], verified(clarity="repair"), [], None)
    assert (found.criteria, found.new, found.known) == ((CLARITY,), (), 0)


def test_another_criterion_of_the_same_id_gets_a_number() -> None:
    other = named("Clarity of thought").model_copy(update={"id": "clarity"})
    found = next_round([CLARITY], verified(clarity="keep"), [other], None)
    assert [c.id for c in found.criteria] == ["clarity", "clarity-2"]
