"""Output for readers: tables on a terminal, charts, and one self-contained HTML page per
subject."""
