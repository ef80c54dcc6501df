"""Results that survive: one SQLite file, group commit, resume by what is missing."""

from agenteval.store.store import CellState, Store, default_path

__all__ = ["CellState", "Store", "default_path"]
