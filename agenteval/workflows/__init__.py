"""Agents that must follow a procedure, turn by turn and in whole sessions (arXiv 2406.14884)."""
