"""agenteval: is an LLM agent useful, and can its judge be trusted?

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
    from agenteval.utility.agents import VerifierAgent as VerifierAgent
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
    from agenteval.utility.verifying import averify as averify
    from agenteval.utility.verifying import verify as verify
    from agenteval.workflows.api import aflow_sessions as aflow_sessions
    from agenteval.workflows.api import aflow_turns as aflow_turns
    from agenteval.workflows.api import flow_sessions as flow_sessions
    from agenteval.workflows.api import flow_turns as flow_turns
    from agenteval.workflows.import_api import flow_import as flow_import
    from agenteval.workflows.procedure_api import conform as conform

_NAMES = {
    "app.agreement": "agree sample_to_label",
    "app.comparison": "compare",
    "app.design": "design",
    "app.evaluation": "run",
    "app.stored": "export page results scores sources",
    "cli.running": "Interrupted",
    "errors": "AgentevalError",
    "models.client": "Client",
    "models.factory": "ChatModel",
    "models.limits": "Limits Price",
    "planning.api": "aplan_test plan_test",
    "planning.dissect_api": "adissect dissect",
    "planning.suite_api": "aplan_suite plan_suite",
    "readers": "read_runs",
    "records": "CriteriaSet Criterion Failure Message Run Score Source Task",
    "reporting.report": "Report",
    "store": "Store",
    "traces.api": "alocate locate detect",
    "traces.score_api": "score_findings",
    "utility.agents": "CriticAgent QuantifierAgent VerifierAgent",
    "utility.anchoring": "aanchor acheck_anchor anchor check_anchor",
    "utility.api": "apropose aquantify perturb propose quantify",
    "utility.autogen": "generate_criteria quantify_criteria",
    "utility.pairwise.api": "aprefer prefer",
    "utility.verifying": "averify verify",
    "workflows.api": "aflow_sessions aflow_turns flow_sessions flow_turns",
    "workflows.import_api": "flow_import",
    "workflows.procedure_api": "conform",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"agenteval.{_HOME[name]}"), name)
    raise AttributeError(f"module 'agenteval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
