"""The longest questions that a probe by attacks may ask, while it is open which it will ask."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from typing import TYPE_CHECKING

from agenteval.cli.dry_judge import LOOKED_AT, Asker

if TYPE_CHECKING:
    from agenteval.evaluators.base import Unit
    from agenteval.evaluators.utility.plan import Item
    from agenteval.evaluators.utility.probes.result import ProbeOptions
    from agenteval.records import Criterion, View
    from agenteval.verification import Material


def dearest(asker: Asker, material: Material, options: ProbeOptions) -> Iterator[Unit]:
    """The calls that take most, for one side and one repeat: the longest runs that may be chosen,
    as many as are chosen at most, each with the longest text that may be added to it.

    What is stored plays no part: a run that is rated already may be chosen like any other. Of more
    than `LOOKED_AT` runs the requests of those with the most characters are compared.
    """
    from agenteval.evaluators.base import Unit
    from agenteval.evaluators.utility.probes.targets import may_be_low
    from agenteval.models.client import estimate_tokens

    judge = asker.judge()
    batches = judge.batches(material.criteria)

    def tokens(item: Item) -> int:
        units = (Unit(*item, batch) for batch in batches)
        return sum(estimate_tokens(judge.inner.request(unit)[0]) for unit in units)

    low = [item for item in material.items if may_be_low(item[0])]
    low = nlargest(max(LOOKED_AT, options.attacked), low, key=lambda item: _characters(item[1]))
    if len(low) > options.attacked:
        low = nlargest(options.attacked, low, key=tokens)
    for run, view in (_longest_copy(item, material.criteria, options.seed) for item in low):
        yield from (Unit(run, view, batch) for batch in batches)


def _characters(view: View) -> int:
    return len(view.problem) + len(view.trajectory) + len(view.reference or "")


def _longest_copy(item: Item, criteria: tuple[Criterion, ...], seed: int) -> Item:
    """The run with the attack or control that is longest as a prompt shows it: hidden characters
    are written out there."""
    from agenteval.evaluators.utility.probes.attacks import KINDS
    from agenteval.evaluators.utility.probes.targets import Target, add_texts
    from agenteval.models.prompts import neutralise

    run, view = item
    begins = len(view.trajectory.rstrip())
    targets = [Target(run, view, kind, (), 0.0, labelled=True) for kind in KINDS]
    copies = (copy for one in add_texts(targets, criteria, seed) for copy in one.items)
    return max(copies, key=lambda copy: len(neutralise(copy[1].trajectory[begins:]).encode()))
