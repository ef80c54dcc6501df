"""The command line, and functions that answer questions across the rooms."""
