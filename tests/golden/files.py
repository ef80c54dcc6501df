"""The folders of the golden data, and published figures read from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE / "data"
FROZEN = HERE / "frozen"
CAPABLE = HERE.parents[1] / "benchmarks" / "capable"


def published(name: str) -> Any:
    """The JSON of `published/NAME.json`: cases with the figures they must get."""
    return json.loads((HERE / "published" / f"{name}.json").read_text(encoding="utf-8"))
