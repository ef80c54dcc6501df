"""Durable results: one SQLite file, group commit, and resuming with the missing results."""

from agenteval.store.connect import of_one_state
from agenteval.store.store import CellState, Store, default_path, is_there
from agenteval.store.trials import Trials

__all__ = ["CellState", "Store", "Trials", "default_path", "is_there", "of_one_state"]
