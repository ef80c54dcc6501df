"""A small text household: its rules, three scripted agents, and the maker of `runs.jsonl`."""
