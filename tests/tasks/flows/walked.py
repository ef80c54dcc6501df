"""Does an assistant that knows nothing but the charts do what the profiles' goals say?"""

from __future__ import annotations

import asyncio
from functools import cache

from agenteval.evaluators.workflows.behaviours import behaviours
from agenteval.evaluators.workflows.run_session import Serving
from agenteval.evaluators.workflows.scenario import Profile
from agenteval.evaluators.workflows.simulated_tools import ToolSimulator
from agenteval.evaluators.workflows.simulated_user import Heard, ScriptedUser
from agenteval.evaluators.workflows.walker import Book, Plan, Walker
from agenteval.records import Message
from tests.tasks.flows.flow import Flow

MOST_TURNS = 20  # of arXiv 2406.14884 for several scenarios


async def serve(flow: Flow, profile: Profile, book: Book) -> tuple[list[tuple[str, object]], bool]:
    """The calls of a session of the walker with the profile's scripted user; did it end?"""
    role, user = flow.role, ScriptedUser()
    tools = ToolSimulator(backend=flow.backend).open(role, profile)
    given = [t.tool() for t in role.tools_of(profile.scenarios)]
    serving = Serving(Walker(book, Plan()), "", given, tools)
    said: list[Message] = []
    while len(said) < 2 * MOST_TURNS:
        heard = await user.speak(Heard(profile=profile, now=role.now, messages=tuple(said)))
        if heard.done:
            break
        reply = await serving.turn(heard.text)
        said += [
            Message(role="user", content=heard.text),
            Message(role="assistant", content=reply),
        ]
    done = len(said) < 2 * MOST_TURNS
    return [(c.tool, c.arguments) for c in serving.calls if c.status == "ok"], done


def check_walker(flow: Flow) -> list[str]:
    """The walker makes exactly the gold calls for every profile, within the limit of turns."""
    faults, books = [], cache(lambda scenarios: Book.of(flow.role, scenarios))
    for group, profile in flow.profiles():
        calls, done = asyncio.run(serve(flow, profile, books(profile.scenarios)))
        if calls != [(a.tool, dict(a.arguments)) for a in profile.actions]:
            faults.append(f"{group}/{profile.id}: the walker calls {calls}")
        if not done:
            faults.append(f"{group}/{profile.id}: no end in {MOST_TURNS} turns")
    return faults


def check_mistakes(flow: Flow) -> list[str]:
    """A step can be left out for somebody so that it shows."""
    found = (behaviours(flow.role, p, backend=flow.backend) for _, p in flow.profiles())
    planted = any(own["skips_step"].system is not None for own in found)
    return [] if planted else ["skips_step can be planted for nobody"]
