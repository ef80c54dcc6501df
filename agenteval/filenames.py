"""Ids from files as names of files: only those that can do no harm, and no two for one file."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from agenteval.errors import InputError

_LONGEST = 200  # bytes; systems allow 255, and a suffix and the name of a temporary file are added
_FORBIDDEN = re.compile(r'[/\\:*?"<>|\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]')
_DEVICE = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?")


def file_in(folder: Path, id: str, suffix: str, taken: set[str]) -> Path:
    """The file for `id` in `folder`, and nowhere else; `taken` is what this call adds names to.

    Raises InputError for an id with separators or control characters, one that begins with a dot
    or ends with one or a space, names of devices, above 200 bytes, for one that differs from an
    earlier one only in case or in the composition of its characters (one file on many systems),
    and where a link stands at the place.
    """
    why = _why_not(id)
    if why:
        shown = ascii(id if len(id) <= 80 else id[:77] + "...")
        raise InputError(f"the trace id {shown} cannot name a file: {why}", str(folder))
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", id).casefold())
    if folded in taken:
        raise InputError(
            f"the id {id!r} names the same file as another one on many systems", str(folder)
        )
    taken.add(folded)
    path = folder / f"{id}{suffix}"
    if path.is_symlink():
        raise InputError("a link stands at this place", str(path))
    return path


def _why_not(id: str) -> str:
    if not id or id.startswith(".") or id != id.strip() or id.endswith("."):
        return "it is empty, or begins or ends with a dot or a space"
    if _FORBIDDEN.search(id):
        return 'it holds one of / \\ : * ? " < > | or a control character'
    if _DEVICE.fullmatch(id):
        return "it is the name of a device"
    try:
        size = len(id.encode("utf-8"))
    except UnicodeEncodeError:
        return "it holds half a character"
    return f"it has {size} bytes, more than {_LONGEST}" if size > _LONGEST else ""


def same_file(a: Path, b: Path) -> bool:
    """Whether both paths name one file, there or not; links in a circle name themselves."""
    return os.path.realpath(a) == os.path.realpath(b)
