"""Planning tests: requests with exact constraints, agents on mock tools, verdicts, and causes of
failures (arXiv 2404.17833)."""

from agenteval.planning.case import Activity, Before, Case, OrderRule, TimeLimit, TimeRule
from agenteval.planning.dissect import Dissection, DissectOptions
from agenteval.planning.evaluator import Attempt, load_attempts, run_case
from agenteval.planning.oracle import CheckRules, Verdict, check
from agenteval.planning.scripted import SCRIPTED
from agenteval.planning.suite import read_suite, write_suite
from agenteval.planning.synthesis import Generator, Shape
from agenteval.planning.tables import dissection_tables, planning_tables
from agenteval.planning.words import Topic, built_in_topics

__all__ = [
    "SCRIPTED",
    "Activity",
    "Attempt",
    "Before",
    "Case",
    "CheckRules",
    "DissectOptions",
    "Dissection",
    "Generator",
    "OrderRule",
    "Shape",
    "TimeLimit",
    "TimeRule",
    "Topic",
    "Verdict",
    "built_in_topics",
    "check",
    "dissection_tables",
    "load_attempts",
    "planning_tables",
    "read_suite",
    "run_case",
    "write_suite",
]
