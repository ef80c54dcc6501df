"""Simulated users and tools."""
