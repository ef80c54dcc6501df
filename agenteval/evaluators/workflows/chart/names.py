"""Which tools a node calls: their names stand literally in its text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agenteval.evaluators.workflows.chart.nouns import Node

WORD = re.compile(r"\w+")
_FIELD = re.compile(r"\.\w")


def calls_in(node: Node, tools: Iterable[str]) -> tuple[str, ...]:
    """Names of `tools` that occur as whole words in the node's text, in order of first occurrence.

    Each stands once, however often it occurs: a call is repeated by a cycle of the chart.
    `lend_book.due` names a returned value and no call. The shape of the node is not looked at: a
    name in a reply node is found as well.
    """
    return tuple(dict.fromkeys(names_in(node.text, tools)))


def names_in(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """All occurrences in any text, in order."""
    known = set(names)
    return tuple(
        match.group()
        for match in WORD.finditer(text)
        if match.group() in known and not _FIELD.match(text, match.end())
    )
