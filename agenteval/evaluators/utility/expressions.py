"""Expressions of arithmetic and algebra, compared by value; needs sympy (extra `math`).

Only numbers, the names and functions below, single letters and signs are let through to sympy's
parser, which would else evaluate any Python.
"""

from __future__ import annotations

import re
from typing import Any

from agenteval.errors import ModelUnavailable

_FUNCTIONS = ("sqrt", "exp", "log", "ln", "sin", "cos", "tan")
_TOKEN = re.compile(r"\d+(?:\.\d+)?|\.\d+|[A-Za-z]+|\*\*|[-+*/^()]|\s+")
# A power or exp of a power or exp: its value may have more digits than there is memory.
_TOWER = re.compile(
    r"(?:\^|\*\*)[\s(-]*(?:[\d.]+|[A-Za-z]+)[\s)]*(?:\^|\*\*)|exp\b.*(?:exp\b|\^|\*\*)|(?:\^|\*\*).*exp\b"
)
_LONGEST, _LARGEST_POWER = 200, 1000
_POINTS = ((0.37, 1.21), (1.93, 0.58), (2.71, 3.14))  # where letters are tried


def expressions_of(text: str) -> list[Any]:
    """The expressions that a text states, as sympy objects: the first in it with words around it,
    and those that follow in a list ("0, 4"); empty where there is none."""
    stated: list[Any] = []
    for part in re.split(r"[,;]|\band\b", text):
        words = part.strip().strip(".").split(" ")
        runs = [(0, len(words))] if stated else [
            (start, end) for start in range(len(words)) for end in range(len(words), start, -1)
        ]  # fmt: skip
        parsed = (_parsed(" ".join(words[start:end]).strip(" .")) for start, end in runs)
        found = next((expression for expression in parsed if expression is not None), None)
        if found is not None:
            stated.append(found)
        elif stated:
            break
    return stated


def _parsed(text: str) -> Any:
    if (
        not text
        or len(text) > _LONGEST
        or not re.search(r"\d|pi\b", text)
        or re.search(r"\d[eE]\d", text)
    ):
        return None
    try:
        from sympy import Symbol
        from sympy.parsing.sympy_parser import (
            convert_xor,
            implicit_multiplication,
            parse_expr,
            standard_transformations,
        )
    except ImportError as error:
        raise ModelUnavailable("expressions need sympy: pip install 'agenteval[math]'") from error
    tokens = _TOKEN.findall(text)
    words = [t for t in tokens if t[0].isalpha()]
    if "".join(tokens) != text or any(len(w) > 1 and w not in (*_FUNCTIONS, "pi") for w in words):
        return None
    powers = re.findall(r"(?:\^|\*\*)\s*\(?-?(\d+)", text)
    if (
        _TOWER.search(text)
        or any(int(power) > _LARGEST_POWER for power in powers)
        or len(powers) > 5
    ):
        return None
    letters: dict[str, Any] = {w: Symbol(w) for w in words if len(w) == 1}
    rules = (*standard_transformations, convert_xor, implicit_multiplication)
    try:
        return parse_expr(text, local_dict=letters, transformations=rules, evaluate=False)
    except Exception:  # noqa: BLE001  the parser raises whatever Python's does
        return None


def same_expressions(first: list[Any], second: list[Any]) -> bool:
    """Whether two lists hold expressions of the same values, in any order."""
    left = list(second)
    for one in first:
        match = next((n for n, other in enumerate(left) if equal_expressions(one, other)), None)
        if match is None:
            return False
        del left[match]
    return not left


def equal_expressions(first: Any, second: Any) -> bool:
    """Whether both have the same value: to 25 digits, with letters at three points."""
    letters = sorted(first.free_symbols | second.free_symbols, key=str)
    points = _POINTS if letters else ((),)
    for point in points:
        values = {letter: point[n % 2] + n for n, letter in enumerate(letters)}
        difference = (first - second).subs(values).evalf(25)
        if not difference.is_number or abs(difference) > 1e-15 * (
            1 + abs(second.subs(values).evalf())
        ):
            return False
    return True
