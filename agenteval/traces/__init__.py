"""Errors in traces of agents: find, locate and grade them (TRAIL, arXiv 2505.08638)."""
