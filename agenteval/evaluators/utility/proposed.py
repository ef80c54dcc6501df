"""What a model proposes is shown to the next one: bounded in length, and harmless as text.

A critic that saw the work of a system may repeat what stands in it, and its words become part of
the prompt of every later judge. So texts are cut to a length, kept on one line, and neutralised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenteval.models.prompts import one_line
from agenteval.records import Criterion

NAME, DESCRIPTION, LEVEL, HINT = 120, 1000, 300, 3000  # characters
MOST = 40  # criteria, and parts of a criterion


def tamed(
    criteria: Sequence[Criterion], problems: list[str], *, most: int = MOST
) -> list[Criterion]:
    """The criteria with texts that can be shown; what was cut or left out is added to `problems`.

    A criterion whose levels are the same after the cut is left out: half a level is another level.
    """
    kept: list[Criterion] = []
    for criterion in criteria[:most]:
        name = _cut(criterion.name, NAME)
        made = _tame(criterion, name, problems)
        if made is not None:
            kept.append(made)
    if len(criteria) > most:
        problems.append(f"{len(criteria) - most} criteria beyond the first {most} were left out")
    return kept


def _tame(criterion: Criterion, name: str, problems: list[str]) -> Criterion | None:
    levels = tuple(_cut(value, LEVEL) for value in criterion.accepted_values)
    if len({level.casefold() for level in levels}) < len(levels) or not all(levels):
        problems.append(f"{name}: left out: its levels cannot be told apart when cut to {LEVEL}")
        return None
    changes: dict[str, Any] = {
        "name": name,
        "description": _cut(criterion.description, DESCRIPTION),
        "accepted_values": levels,
        "hint": None if criterion.hint is None else _cut(criterion.hint, HINT),
    }
    if any(
        len(before) > most
        for before, most in (
            (criterion.name, NAME),
            (criterion.description, DESCRIPTION),
            (criterion.hint or "", HINT),
            *((value, LEVEL) for value in criterion.accepted_values),
        )
    ):
        problems.append(f"{name}: texts were cut: too long to be shown")
    if criterion.sub_criteria:
        changes["sub_criteria"] = tuple(tamed(criterion.sub_criteria, problems))
        if not changes["sub_criteria"]:
            return None
    return criterion.model_copy(update=changes)


def _cut(text: str, most: int) -> str:
    shown = one_line(text)
    return shown if len(shown) <= most else shown[: most - 2].rstrip() + " …"
