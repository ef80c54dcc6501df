"""How `criteria` and the rounds of `verify` ask critics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.cli.ending import say_waiting

if TYPE_CHECKING:
    from agenteval.models.factory import ModelChoice
    from agenteval.models.limits import Limits
    from agenteval.proposals import CriticOptions, Proposals
    from agenteval.records import Task


def ask_critics(
    choice: ModelChoice,
    wanted: CriticOptions,
    task: Task,
    limits: Limits,
    store: Path,
    record: Path | None,
) -> Proposals:
    """What the critics propose; paid replies are stored and recorded.

    Raises what `proposals.propose` raises, and KeyboardInterrupt: of the embedded critic at once,
    else when the replies under way are kept.
    """
    import asyncio

    from agenteval.proposals import propose, propose_from_bank

    if choice.kind == "embedded":  # nothing is paid for: no event loop that holds back Ctrl-C
        return propose_from_bank(choice, wanted, task)
    return asyncio.run(
        propose(choice, wanted, task, limits, store=store, record=record, on_cancel=say_waiting)
    )
