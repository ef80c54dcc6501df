"""The published scorer of arXiv 2406.14884 as it counts, its mistakes included.

For comparison with published numbers only; `turn_score` and `session_score` are what to use. The
released scripts cannot run: names they use are never imported. Here those are repaired, and with
`published=True` sessions are scored as if they were not.
"""
