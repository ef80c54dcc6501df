"""agenteval: is an LLM agent useful, and can the judge that says so be trusted?

What users do; what asks a model or an agent has an async twin (`aquantify`, ...):

    propose, quantify, verify, perturb      criteria, scores, trust in a judge
    agree, compare, sample_to_label, design questions to ratings
    plan_suite, plan_test, dissect          planning tests
    locate, detect, score_findings          errors in traces
    flow_sessions, flow_turns, conform,     workflows
    flow_import
    scores, sources, results, export, page  what is stored

The names below load on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval.api.agreement import agree as agree
    from agenteval.api.agreement import sample_to_label as sample_to_label
    from agenteval.api.comparison import compare as compare
    from agenteval.api.design import design as design
    from agenteval.api.dissections import adissect as adissect
    from agenteval.api.dissections import dissect as dissect
    from agenteval.api.flow_import import flow_import as flow_import
    from agenteval.api.planning import aplan_test as aplan_test
    from agenteval.api.planning import plan_test as plan_test
    from agenteval.api.procedures import conform as conform
    from agenteval.api.running import Interrupted as Interrupted
    from agenteval.api.stored import export as export
    from agenteval.api.stored import page as page
    from agenteval.api.stored import results as results
    from agenteval.api.stored import scores as scores
    from agenteval.api.stored import sources as sources
    from agenteval.api.suites import aplan_suite as aplan_suite
    from agenteval.api.suites import plan_suite as plan_suite
    from agenteval.api.trace_scores import score_findings as score_findings
    from agenteval.api.traces import alocate as alocate
    from agenteval.api.traces import detect as detect
    from agenteval.api.traces import locate as locate
    from agenteval.api.utility import apropose as apropose
    from agenteval.api.utility import aquantify as aquantify
    from agenteval.api.utility import perturb as perturb
    from agenteval.api.utility import propose as propose
    from agenteval.api.utility import quantify as quantify
    from agenteval.api.verifying import averify as averify
    from agenteval.api.verifying import verify as verify
    from agenteval.api.workflows import aflow_sessions as aflow_sessions
    from agenteval.api.workflows import aflow_turns as aflow_turns
    from agenteval.api.workflows import flow_sessions as flow_sessions
    from agenteval.api.workflows import flow_turns as flow_turns
    from agenteval.errors import AgentevalError as AgentevalError
    from agenteval.models.client import Client as Client
    from agenteval.models.factory import ChatModel as ChatModel
    from agenteval.models.limits import Limits as Limits
    from agenteval.models.limits import Price as Price
    from agenteval.readers import read_runs as read_runs
    from agenteval.records import CriteriaSet as CriteriaSet
    from agenteval.records import Criterion as Criterion
    from agenteval.records import Failure as Failure
    from agenteval.records import Message as Message
    from agenteval.records import Run as Run
    from agenteval.records import Score as Score
    from agenteval.records import Source as Source
    from agenteval.records import Task as Task
    from agenteval.report.report import Report as Report
    from agenteval.store import Store as Store

_HOME = {
    # criteria, scores, trust in a judge
    "apropose": "agenteval.api.utility",
    "aquantify": "agenteval.api.utility",
    "averify": "agenteval.api.verifying",
    "perturb": "agenteval.api.utility",
    "propose": "agenteval.api.utility",
    "quantify": "agenteval.api.utility",
    "verify": "agenteval.api.verifying",
    # questions to ratings and to what is stored
    "agree": "agenteval.api.agreement",
    "compare": "agenteval.api.comparison",
    "design": "agenteval.api.design",
    "export": "agenteval.api.stored",
    "page": "agenteval.api.stored",
    "results": "agenteval.api.stored",
    "sample_to_label": "agenteval.api.agreement",
    "scores": "agenteval.api.stored",
    "sources": "agenteval.api.stored",
    # what all share
    "AgentevalError": "agenteval.errors",
    "ChatModel": "agenteval.models.factory",
    "Client": "agenteval.models.client",
    "Interrupted": "agenteval.api.running",
    "Limits": "agenteval.models.limits",
    "Price": "agenteval.models.limits",
    "Report": "agenteval.report.report",
    "Store": "agenteval.store",
    "read_runs": "agenteval.readers",
    # records
    "CriteriaSet": "agenteval.records",
    "Criterion": "agenteval.records",
    "Failure": "agenteval.records",
    "Message": "agenteval.records",
    "Run": "agenteval.records",
    "Score": "agenteval.records",
    "Source": "agenteval.records",
    "Task": "agenteval.records",
    # planning tests, errors in traces
    "adissect": "agenteval.api.dissections",
    "dissect": "agenteval.api.dissections",
    "aplan_suite": "agenteval.api.suites",
    "plan_suite": "agenteval.api.suites",
    "aplan_test": "agenteval.api.planning",
    "plan_test": "agenteval.api.planning",
    "alocate": "agenteval.api.traces",
    "locate": "agenteval.api.traces",
    "detect": "agenteval.api.traces",
    "score_findings": "agenteval.api.trace_scores",
    # workflows
    "aflow_sessions": "agenteval.api.workflows",
    "aflow_turns": "agenteval.api.workflows",
    "conform": "agenteval.api.procedures",
    "flow_import": "agenteval.api.flow_import",
    "flow_sessions": "agenteval.api.workflows",
    "flow_turns": "agenteval.api.workflows",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'agenteval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
