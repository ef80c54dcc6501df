"""Signs of the flowchart language, and where a label ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn

Fail = Callable[[str, int], NoReturn]  # what is wrong, and the offset

DIRECTIONS = ("TD", "TB", "LR", "RL", "BT")
HEAD = re.compile(r"flowchart[ \t]+(\w+)")
# A line that ends with a full-width colon, or the colon alone before the first word.
STRAY = re.compile(r"[^\n]*\uff1a[ \t]*(?=\n|flowchart\b)")
ID = re.compile(r"\w+")
BLANKS = re.compile(r"[ \t\u00a0\u3000]*")
ARROW = "-->"
# Words with a meaning of their own in Mermaid.
KEYWORDS = frozenset(
    ("subgraph", "end", "classDef", "class", "style", "linkStyle", "click", "direction",
     "graph", "flowchart", "accTitle", "accDescr")
)  # fmt: skip
# A line within an edge's label that begins as a statement does.
CONTINUES = re.compile(r"\n[ \t]*(?:%%|\w+[ \t]*(?:[\[(>&]|--))")
_QUOTED = re.compile(r'[ \t\n]*"')
_OTHERS = (
    ("---", "a link without an arrow"),
    ("-.", "a dotted link"),
    ("==", "a thick link"),
    ("~~~", "an invisible link"),
    ("<--", "a link in both directions"),
    ("{", "the shape {..}"),
    (":::", "a class"),
    ("@", "an annotation"),
)
_OTHER_SHAPES = ("((", "([", "[[", "[(", "[/", "[\\")


def closing(text: str, opened: int, closer: str, fail: Fail) -> tuple[int, int, int]:
    """Begin and end of the label whose bracket opens at `opened`, and where the text goes on.

    A quoted label ends with a quote and the bracket; in any other, brackets are balanced.
    """
    if text[opened : opened + 2] in _OTHER_SHAPES:
        allowed = "allowed are (start), [reply] and >call]"
        fail(
            f"the shape {text[opened : opened + 2]}..: {allowed}; quote a label in brackets", opened
        )
    quoted = _QUOTED.match(text, opened + 1)
    if quoted is not None:
        end = text.find('"', quoted.end())
        last = re.compile(rf'"\s*{re.escape(closer)}').match(text, end) if end >= 0 else None
        if last is not None:
            return quoted.end(), end, last.end()
    end = _balanced(text, opened + 1, closer)
    if end < 0:
        fail(f"the label is not closed: `{closer}` is missing", opened)
    if ARROW in text[opened:end]:
        fail(f"the label is not closed before the next arrow: `{closer}` is missing", opened)
    return opened + 1, end, end + 1


_BRACKETS = {"]": re.compile(r"[\[\]]"), ")": re.compile(r"[()]")}


def _balanced(text: str, begin: int, closer: str) -> int:
    depth = 1
    for match in _BRACKETS[closer].finditer(text, begin):
        depth += -1 if match.group() == closer else 1
        if depth == 0:
            return match.start()
    return -1


def unsupported(text: str, at: int) -> str:
    """What stands there, named for a person."""
    for sign, name in _OTHERS:
        if text.startswith(sign, at):
            return f"{name} ({sign})"
    end = text.find("\n", at, at + 30)
    shown = text[at : at + 30 if end < 0 else end].strip()
    return f"`{shown}`" if shown else "the end of the line"
