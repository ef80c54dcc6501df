"""Pairs of runs of two systems on one case, as a judge sees them: a first and a second response."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.records import Criterion, Message, Run, View
from agenteval.utility.evaluator import Item

SEPARATOR = " | "  # between the systems of a pair, in the order shown; not allowed in their names
LEVELS = ("second", "tie", "first")  # of the response shown first, from worst to best
OVERALL = Criterion(id="preference", name="preference", accepted_values=LEVELS)


def preference_on(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return the criteria with first, second and tie as their levels; sub-criteria one by one.

    Without criteria it is one preference, by the description of the task.
    """
    leaves = [leaf for criterion in criteria for leaf in criterion.leaves()]
    kept = {"accepted_values": LEVELS, "scale": "ordinal", "order": "worst_to_best"}
    dropped = {"allow_na": False, "numeric_range": None, "order_confirmed": False}
    return tuple(
        leaf.model_copy(update={"id": path.replace("/", "-"), **kept, **dropped})
        for path, leaf in leaves
    ) or (OVERALL,)


@dataclass(frozen=True)
class Pair:
    """The runs of two systems on one case, as judges of single runs see them."""

    a: Item
    b: Item

    def shown(self, *, swapped: bool) -> Item:
        """Return the pair as one text to judge: A is the first response, unless `swapped`.

        The run has the responses as its messages, and the systems in the order shown as its system.
        """
        (first, first_view), (second, second_view) = (
            (self.b, self.a) if swapped else (self.a, self.b)
        )
        texts = first_view.trajectory, second_view.trajectory
        both = "[first response]\n{}\n\n[second response]\n{}".format(*texts)
        ids = dict.fromkeys((first.id, second.id))
        run = Run(
            id=SEPARATOR.join(ids),
            task=first.task,
            system=f"{first.system}{SEPARATOR}{second.system}",
            input=first.input,
            output=both,
            messages=tuple(Message(role="assistant", content=text) for text in texts),
        )
        view = View(
            run_id=run.id,
            problem=first_view.problem,
            trajectory=both,
            reference=first_view.reference,
            owner=(run.task, run.system),
        )
        return run, view
