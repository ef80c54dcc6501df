"""What people read: tables on a terminal, charts, and one self-contained HTML page per subject."""
