"""agenteval: is an LLM agent useful, and can the judge that says so be trusted?

What users do; what asks a model or an agent has an async twin (`aquantify`, ...):

    propose, quantify, verify, perturb      criteria, scores, trust in a judge
    prefer                                  systems compared pair by pair
    anchor, check_anchor                    watch a judge: has it changed?
    generate_criteria, quantify_criteria    the functions of AutoGen 0.2
    CriticAgent, QuantifierAgent            agents for teams of AutoGen AgentChat
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
    from agenteval.app.agreement import agree as agree
    from agenteval.app.agreement import sample_to_label as sample_to_label
    from agenteval.app.comparison import compare as compare
    from agenteval.app.design import design as design
    from agenteval.app.evaluation import run as run
    from agenteval.app.stored import export as export
    from agenteval.app.stored import page as page
    from agenteval.app.stored import results as results
    from agenteval.app.stored import scores as scores
    from agenteval.app.stored import sources as sources
    from agenteval.cli.running import Interrupted as Interrupted
    from agenteval.errors import AgentevalError as AgentevalError
    from agenteval.models.client import Client as Client
    from agenteval.models.factory import ChatModel as ChatModel
    from agenteval.models.limits import Limits as Limits
    from agenteval.models.limits import Price as Price
    from agenteval.planning.api import aplan_test as aplan_test
    from agenteval.planning.api import plan_test as plan_test
    from agenteval.planning.dissect_api import adissect as adissect
    from agenteval.planning.dissect_api import dissect as dissect
    from agenteval.planning.suite_api import aplan_suite as aplan_suite
    from agenteval.planning.suite_api import plan_suite as plan_suite
    from agenteval.readers import read_runs as read_runs
    from agenteval.records import CriteriaSet as CriteriaSet
    from agenteval.records import Criterion as Criterion
    from agenteval.records import Failure as Failure
    from agenteval.records import Message as Message
    from agenteval.records import Run as Run
    from agenteval.records import Score as Score
    from agenteval.records import Source as Source
    from agenteval.records import Task as Task
    from agenteval.reporting.report import Report as Report
    from agenteval.store import Store as Store
    from agenteval.traces.api import alocate as alocate
    from agenteval.traces.api import detect as detect
    from agenteval.traces.api import locate as locate
    from agenteval.traces.score_api import score_findings as score_findings
    from agenteval.utility.agents import CriticAgent as CriticAgent
    from agenteval.utility.agents import QuantifierAgent as QuantifierAgent
    from agenteval.utility.anchoring import aanchor as aanchor
    from agenteval.utility.anchoring import acheck_anchor as acheck_anchor
    from agenteval.utility.anchoring import anchor as anchor
    from agenteval.utility.anchoring import check_anchor as check_anchor
    from agenteval.utility.api import apropose as apropose
    from agenteval.utility.api import aquantify as aquantify
    from agenteval.utility.api import perturb as perturb
    from agenteval.utility.api import propose as propose
    from agenteval.utility.api import quantify as quantify
    from agenteval.utility.autogen import generate_criteria as generate_criteria
    from agenteval.utility.autogen import quantify_criteria as quantify_criteria
    from agenteval.utility.pairwise.api import aprefer as aprefer
    from agenteval.utility.pairwise.api import prefer as prefer
    from agenteval.utility.verifier_agent import VerifierAgent as VerifierAgent
    from agenteval.utility.verifying import averify as averify
    from agenteval.utility.verifying import verify as verify
    from agenteval.workflows.api import aflow_sessions as aflow_sessions
    from agenteval.workflows.api import aflow_turns as aflow_turns
    from agenteval.workflows.api import flow_sessions as flow_sessions
    from agenteval.workflows.api import flow_turns as flow_turns
    from agenteval.workflows.import_api import flow_import as flow_import
    from agenteval.workflows.procedure_api import conform as conform

_HOME = {
    # criteria, scores, trust in a judge
    "aanchor": "agenteval.utility.anchoring",
    "acheck_anchor": "agenteval.utility.anchoring",
    "anchor": "agenteval.utility.anchoring",
    "check_anchor": "agenteval.utility.anchoring",
    "apropose": "agenteval.utility.api",
    "aquantify": "agenteval.utility.api",
    "aprefer": "agenteval.utility.pairwise.api",
    "averify": "agenteval.utility.verifying",
    "perturb": "agenteval.utility.api",
    "prefer": "agenteval.utility.pairwise.api",
    "propose": "agenteval.utility.api",
    "quantify": "agenteval.utility.api",
    "verify": "agenteval.utility.verifying",
    # for AutoGen: agents of AgentChat, and the functions of AutoGen 0.2
    "CriticAgent": "agenteval.utility.agents",
    "QuantifierAgent": "agenteval.utility.agents",
    "generate_criteria": "agenteval.utility.autogen",
    "quantify_criteria": "agenteval.utility.autogen",
    "VerifierAgent": "agenteval.utility.verifier_agent",
    # questions to ratings and to what is stored
    "agree": "agenteval.app.agreement",
    "compare": "agenteval.app.comparison",
    "design": "agenteval.app.design",
    "export": "agenteval.app.stored",
    "page": "agenteval.app.stored",
    "results": "agenteval.app.stored",
    "sample_to_label": "agenteval.app.agreement",
    "run": "agenteval.app.evaluation",
    "scores": "agenteval.app.stored",
    "sources": "agenteval.app.stored",
    # what all share
    "AgentevalError": "agenteval.errors",
    "ChatModel": "agenteval.models.factory",
    "Client": "agenteval.models.client",
    "Interrupted": "agenteval.cli.running",
    "Limits": "agenteval.models.limits",
    "Price": "agenteval.models.limits",
    "Report": "agenteval.reporting.report",
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
    "adissect": "agenteval.planning.dissect_api",
    "dissect": "agenteval.planning.dissect_api",
    "aplan_suite": "agenteval.planning.suite_api",
    "plan_suite": "agenteval.planning.suite_api",
    "aplan_test": "agenteval.planning.api",
    "plan_test": "agenteval.planning.api",
    "alocate": "agenteval.traces.api",
    "locate": "agenteval.traces.api",
    "detect": "agenteval.traces.api",
    "score_findings": "agenteval.traces.score_api",
    # workflows
    "aflow_sessions": "agenteval.workflows.api",
    "aflow_turns": "agenteval.workflows.api",
    "conform": "agenteval.workflows.procedure_api",
    "flow_import": "agenteval.workflows.import_api",
    "flow_sessions": "agenteval.workflows.api",
    "flow_turns": "agenteval.workflows.api",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'agenteval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
