"""One function for each thing that a user does: sync, with an async twin; all return a Report.

The public names are those of `agenteval` itself, which loads them from here on first use.
"""
