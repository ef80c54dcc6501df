"""The calls of a whole session against the gold ones (strict mode); their order is not looked at.

One to one, as many as can be (`values.assigned`). So no call counts twice and precision stays
within 1. A call equals a gold one when the names are the same and every gold parameter that states
something is given with an equal value; further ones are free.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from agenteval.records import Record
from agenteval.workflows.align import Call
from agenteval.workflows.equality import Decision, Equality, decided
from agenteval.workflows.rates import MatchCounts
from agenteval.workflows.scenario import Action
from agenteval.workflows.values import assigned, filled


class SessionCounts(Record):
    """Counts of correct calls in a session.

    Calls are matched twice if values need a judge: with all of these counted as different, and as
    equal. `right` is the lower number, and `unjudged` the difference to the higher one. `pairs` are
    indices (gold, call) matched with decided values. `arguments_unreadable` counts calls whose
    arguments were not a JSON object.
    """

    session: str
    scenario: str = ""
    right: int = Field(ge=0)
    unjudged: int = Field(default=0, ge=0)
    generated: int = Field(ge=0)
    gold: int = Field(ge=0)
    pairs: tuple[tuple[int, int], ...] = ()
    arguments_unreadable: int = Field(default=0, ge=0)

    @property
    def matches(self) -> MatchCounts:
        """The counts that rates are made of."""
        return MatchCounts(self.right, self.unjudged, self.generated, self.gold)


async def score_session(
    session: str,
    gold: Sequence[Action],
    calls: Sequence[Call],
    equality: Equality,
    scenario: str = "",
) -> SessionCounts:
    """Return the counts of one session.

    The judge is asked only where pairs that differ by no rule could add to those that are sure.
    Raises what `Equality.compare` raises.
    """
    decisions = [[_by_rule(action, call, equality) for call in calls] for action in gold]
    sure, possible = _matched(decisions, "right"), _matched(decisions, "right", "undecided")
    for action, row in zip(gold, decisions, strict=True):
        expected = filled(action.arguments)
        for j, call in enumerate(calls):  # what is sure is logged too
            if row[j] == "right" or (row[j] == "undecided" and len(possible) > len(sure)):
                stated = filled(call.arguments)
                row[j] = decided(
                    [
                        await equality.compare(action.tool, k, expected[k], stated[k])
                        for k in expected
                    ]
                )
    sure, possible = _matched(decisions, "right"), _matched(decisions, "right", "undecided")
    return SessionCounts(
        session=session,
        scenario=scenario,
        right=len(sure),
        unjudged=len(possible) - len(sure),
        generated=len(calls),
        gold=len(gold),
        pairs=tuple(sure),
        arguments_unreadable=sum(call.unreadable for call in calls),
    )


def _matched(decisions: Sequence[Sequence[Decision]], *taken: Decision) -> list[tuple[int, int]]:
    return assigned([[int(decision in taken) for decision in row] for row in decisions])


def _by_rule(gold: Action, call: Call, equality: Equality) -> Decision:
    expected, stated = filled(gold.arguments), filled(call.arguments)
    if gold.tool.strip() != call.tool.strip() or call.unreadable or expected.keys() - stated.keys():
        return "wrong"
    return decided(
        [equality.by_rule(gold.tool, key, expected[key], stated[key]) for key in expected]
    )
