"""Agents without a model: one that walks the charts, and the same with planted mistakes."""
