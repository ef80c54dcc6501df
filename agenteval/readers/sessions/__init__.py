"""Convert recorded agent sessions of other tools to runs with spans."""

from agenteval.readers.sessions.formats import FORMATS, SessionFormat, session_format, session_runs

__all__ = ["FORMATS", "SessionFormat", "session_format", "session_runs"]
