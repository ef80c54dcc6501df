"""What a command writes must not be what it reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agenteval.errors import InputError


def refuse_input(output: Path | None, inputs: Iterable[str | Path | None]) -> None:
    """Raise InputError when the file to write is one of those that are read, by any name."""
    if output is None:
        return
    for one in inputs:
        try:
            same = one is not None and Path(one).samefile(output)
        except (OSError, ValueError):  # one of them is not there, or is no file: it is told later
            continue
        if same:
            raise InputError("this file is read; name another one to write", str(output))
