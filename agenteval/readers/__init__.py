"""Readers: convert files of other tools to Runs, and a Run to the text that a judge sees."""

from agenteval.readers.guard import degenerate
from agenteval.readers.leaks import Leak, find_leaks
from agenteval.readers.runs import read_runs
from agenteval.readers.source_files import ReadResult, Skipped
from agenteval.readers.view import make_view

__all__ = ["Leak", "ReadResult", "Skipped", "degenerate", "find_leaks", "make_view", "read_runs"]
