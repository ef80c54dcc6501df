"""Evaluator agents: one folder each, none imports another."""
