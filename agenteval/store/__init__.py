"""Results that survive: one SQLite file, group commit, resume by what is missing."""

from agenteval.store.connect import of_one_state
from agenteval.store.store import CellState, Store, default_path, is_there
from agenteval.store.trials import Trials

__all__ = ["CellState", "Store", "Trials", "default_path", "is_there", "of_one_state"]
