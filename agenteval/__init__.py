"""agenteval: is an LLM agent useful, and can the judge that says so be trusted?

The names below load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval.api.dissections import adissect as adissect
    from agenteval.api.dissections import dissect as dissect
    from agenteval.api.planning import aplan_test as aplan_test
    from agenteval.api.planning import plan_test as plan_test
    from agenteval.api.procedures import conform as conform
    from agenteval.api.suites import aplan_suite as aplan_suite
    from agenteval.api.suites import plan_suite as plan_suite
    from agenteval.api.trace_scores import score_findings as score_findings
    from agenteval.api.traces import alocate as alocate
    from agenteval.api.traces import detect as detect
    from agenteval.api.traces import locate as locate
    from agenteval.api.workflows import aflow_sessions as aflow_sessions
    from agenteval.api.workflows import aflow_turns as aflow_turns
    from agenteval.api.workflows import flow_sessions as flow_sessions
    from agenteval.api.workflows import flow_turns as flow_turns
    from agenteval.errors import AgentevalError as AgentevalError
    from agenteval.evaluators.utility.critic import Critic as Critic
    from agenteval.evaluators.utility.merge import merge_criteria as merge_criteria
    from agenteval.evaluators.utility.quantifier import Quantifier as Quantifier
    from agenteval.models.client import Client as Client
    from agenteval.readers import make_view as make_view
    from agenteval.readers import read_runs as read_runs
    from agenteval.records import CriteriaSet as CriteriaSet
    from agenteval.records import Criterion as Criterion
    from agenteval.records import Failure as Failure
    from agenteval.records import Message as Message
    from agenteval.records import Run as Run
    from agenteval.records import Score as Score
    from agenteval.records import Source as Source
    from agenteval.records import Task as Task
    from agenteval.store import Store as Store

_HOME = {
    "AgentevalError": "agenteval.errors",
    "Client": "agenteval.models.client",
    "CriteriaSet": "agenteval.records",
    "Criterion": "agenteval.records",
    "Critic": "agenteval.evaluators.utility.critic",
    "Failure": "agenteval.records",
    "Message": "agenteval.records",
    "Quantifier": "agenteval.evaluators.utility.quantifier",
    "Run": "agenteval.records",
    "Score": "agenteval.records",
    "Source": "agenteval.records",
    "Store": "agenteval.store",
    "Task": "agenteval.records",
    "adissect": "agenteval.api.dissections",
    "aflow_sessions": "agenteval.api.workflows",
    "aflow_turns": "agenteval.api.workflows",
    "alocate": "agenteval.api.traces",
    "aplan_suite": "agenteval.api.suites",
    "aplan_test": "agenteval.api.planning",
    "conform": "agenteval.api.procedures",
    "detect": "agenteval.api.traces",
    "dissect": "agenteval.api.dissections",
    "flow_sessions": "agenteval.api.workflows",
    "flow_turns": "agenteval.api.workflows",
    "locate": "agenteval.api.traces",
    "plan_suite": "agenteval.api.suites",
    "plan_test": "agenteval.api.planning",
    "score_findings": "agenteval.api.trace_scores",
    "make_view": "agenteval.readers",
    "merge_criteria": "agenteval.evaluators.utility.merge",
    "read_runs": "agenteval.readers",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'agenteval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
