"""What a benchmark found, in the one form that the table of all of them is made from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `met` is None where there is no target or it is not judged at these settings."""

    what: str
    measured: str
    target: str | None = None
    met: bool | None = None


def finish(name: str, rows: Sequence[Row], **more: Any) -> int:
    """Print the last line of a benchmark: JSON with `benchmark`, `rows` and what else is given.

    Returns the exit code: 1 when a row misses its target, else 0. Raises ValueError for NaN.
    """
    line = {"benchmark": name, "rows": [asdict(row) for row in rows], **more}
    print(json.dumps(line, allow_nan=False, ensure_ascii=False), flush=True)
    return 1 if any(row.met is False for row in rows) else 0
