"""Can the mistakes of scripted assistants be planted in a role?"""

from __future__ import annotations

from agenteval.evaluators.workflows.scripted.behaviours import CAUSE, behaviours
from tests.tasks.flows.flow import Flow


def check_mistakes(flow: Flow) -> list[str]:
    """Every mistake can be planted for somebody, but for those that the role names."""
    wanted = set(CAUSE) - flow.hand.never
    for _, profile in flow.profiles():
        if not wanted:
            break
        found = behaviours(flow.role, profile, backend=flow.backend)
        wanted -= {name for name, b in found.items() if b.system is not None}
    return [f"{name} can be planted for nobody" for name in sorted(wanted)]


def check_branches(flow: Flow) -> list[str]:
    """A wrong branch leads straight to another call: the edge is the one that the role names."""
    faults, profiles = [], {profile.id: profile for _, profile in flow.profiles()}
    for user, edge in flow.hand.branches.items():
        wrong = behaviours(flow.role, profiles[user], backend=flow.backend)["wrong_branch"]
        taken = wrong.system and wrong.system.parameters["edge"]
        if taken != edge:
            faults.append(f"{user}: {taken} is taken, and not {edge}")
    return faults
