"""Utility of an agent by criteria (AgentEval, arXiv 2402.09015): critic, quantifier, verifier."""

from agenteval.utility.autogen import generate_criteria, quantify_criteria
from agenteval.utility.criteria_file import load_criteria, save_criteria
from agenteval.utility.critic import Critic, SubCritic
from agenteval.utility.critic_reply import read_criteria
from agenteval.utility.embedded import EmbeddedJudge
from agenteval.utility.function_judge import FunctionJudge
from agenteval.utility.merge import merge_criteria
from agenteval.utility.quantifier import Quantifier, QuantifierOptions, chat_judge
from agenteval.utility.rubric_check import check_criteria

__all__ = [
    "Critic",
    "EmbeddedJudge",
    "FunctionJudge",
    "Quantifier",
    "QuantifierOptions",
    "SubCritic",
    "chat_judge",
    "check_criteria",
    "generate_criteria",
    "load_criteria",
    "merge_criteria",
    "quantify_criteria",
    "read_criteria",
    "save_criteria",
]
