"""The engine: runs the units of an experiment that the store lacks, and stores each outcome."""

from agenteval.engine.dry_run import (
    Amount,
    CostEstimate,
    EstimateLine,
    RequestCounter,
    first_requests,
)
from agenteval.engine.experiment import Experiment, announcement, answered, run_workers
from agenteval.engine.resume import Pending, pending
from agenteval.engine.unit import (
    Evaluator,
    ExperimentResult,
    Outcome,
    Progress,
    RequestBounds,
    Requests,
    Unit,
)

__all__ = [
    "Amount",
    "CostEstimate",
    "EstimateLine",
    "Evaluator",
    "Experiment",
    "ExperimentResult",
    "Outcome",
    "Pending",
    "Progress",
    "RequestBounds",
    "RequestCounter",
    "Requests",
    "Unit",
    "announcement",
    "answered",
    "first_requests",
    "pending",
    "run_workers",
]
