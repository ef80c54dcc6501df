"""What every scorer here computes: the length of an answer, or whether it is the right one."""

from __future__ import annotations

import re


def length(answer: str) -> float:
    return min(1.0, len(answer) / 500)


def right(answer: str, reference: str) -> bool:
    """Whether its last numbers are those of the reference."""
    wanted = _numbers(reference)
    return _numbers(answer)[-len(wanted) :] == wanted


def _numbers(text: str) -> list[float]:
    plain = re.sub(r"\\d?frac\{(\d+)\}\{(\d+)\}", r"\1/\2", text)
    plain = re.sub(r"(?<=\d)(?:,|\{,\})(?=\d{3})", "", plain)
    found = re.findall(r"(-?\d+(?:\.\d+)?)(?:/(\d+))?", plain)
    return [float(top) / float(bottom or 1) for top, bottom in found]
