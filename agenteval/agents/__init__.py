"""Agents under test: one small protocol, and adapters from other frameworks to it."""

from agenteval.agents.drive import drive
from agenteval.agents.protocol import (
    Agent,
    AgentFailure,
    AgentLimits,
    AgentLog,
    Dialogue,
    System,
    Tool,
    ToolEvent,
)
from agenteval.agents.toolbox import AsyncBackend, Backend, Toolbox

__all__ = [
    "Agent",
    "AgentFailure",
    "AgentLimits",
    "AgentLog",
    "AsyncBackend",
    "Backend",
    "Dialogue",
    "System",
    "Tool",
    "ToolEvent",
    "Toolbox",
    "drive",
]
