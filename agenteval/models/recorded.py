"""Lines of a recording, read and checked."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.intake import LINES, decoded, read_bytes

Cell = tuple[str, int, str]  # run, repeat, role

_log = logging.getLogger(__name__)


def read(path: Path) -> bytes:
    return read_bytes(path, LINES)


def numbered(data: bytes, path: Path) -> list[tuple[int, str]]:
    """Numbered lines that are not empty, without a last one that broke off."""
    tail = data[data.rfind(b"\n") + 1 :]
    if tail.strip() and not is_json(tail.decode("utf-8-sig", "replace")):
        # as bytes: a line that broke off may end within a character
        number = data.count(b"\n") + 1
        _log.warning("%s:%d: the last line broke off and is left out", path, number)
        if len(tail) == len(data):
            decoded(data, str(path))  # another encoding is named as that
        data = data[: len(data) - len(tail)]
    text = decoded(data, str(path))
    # not splitlines: JSON may hold U+2028 and other separators inside a string
    return [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]


def is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def entry_of(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a recorded reply ({error})", where) from error
    if not isinstance(entry, dict):
        raise InputError("not a recorded reply (no JSON object)", where)
    return entry


def text_of(entry: dict[str, Any], name: str, where: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"`{name}` must be a text", where)
    return value or None


def cell_of(entry: dict[str, Any], where: str) -> Cell | None:
    run, repeat, role = entry.get("run"), entry.get("repeat", 0), text_of(entry, "role", where)
    if run is None:
        return None
    if isinstance(repeat, bool) or not isinstance(repeat, int):
        raise InputError("`repeat` must be a whole number", where)
    return str(run), repeat, role or ""
