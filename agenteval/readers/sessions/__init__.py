"""Recorded sessions of agents, in the formats of other tools, as runs with spans."""

from agenteval.readers.sessions.formats import FORMATS, SessionFormat, session_format, session_runs

__all__ = ["FORMATS", "SessionFormat", "session_format", "session_runs"]
