"""Mermaid flowcharts, as far as procedures need them, into charts. The subset:

flowchart TD                          first line; TD, TB, LR, RL or BT
AB000(Start)--Ask for it-->AB001>Call look_up,
and go by the returned found]         labels may have several lines
AB001--Found (found = true)-->AB002[Tell the price]
AB001-->|Not found|AB003["Say (politely) that there is none"]
AB002 & AB003-->AB004[Say goodbye]    joins, chains A-->B-->C, edges without a label
%% a comment
The auxiliary parameter information in the workflow is as follows:
"colour": "asked for, and sent to no tool"
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.conditions import ConditionError, split_label
from agenteval.evaluators.workflows.chart.nouns import Chart, Edge, Node, Shape

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


_ENTITY = re.compile(r"#(\w{1,31});")


def decoded(written: str) -> str:
    """Mermaid's entities resolved (`#quot;`, `#35;`), and the text `cleaned`."""
    text = _ENTITY.sub(_character, written)
    return cleaned(text)


def _character(match: re.Match[str]) -> str:
    name = f"#{match[1]};" if match[1].isdigit() else f"{match[1]};"
    text = html.unescape(f"&{name}")
    return match.group() if text.startswith("&") and len(text) > 1 else text


def cleaned(text: str) -> str:
    """Lines stripped and joined by line feeds, without empty ones at the beginning and the end."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line.strip() for line in lines).strip("\n")


HEADING = "The auxiliary parameter information in the workflow is as follows:"
_HEADING = re.compile(HEADING[:-1].replace(" ", r"[ \t]+") + r"[ \t]*[:\uff1a]?", re.IGNORECASE)
_SKIPPED = re.compile(r"[\s{},]*")
_LINE = re.compile(r'"([^"\n]*)"[ \t]*[:\uff1a][ \t]*"([^\n]*)"[ \t]*,?[ \t]*}?[ \t]*(?=\n|\Z)')


def is_heading(text: str, at: int) -> bool:
    """Whether the paragraph begins there."""
    return _HEADING.match(text, at) is not None


def read_parameters(text: str, at: int, fail: Fail) -> dict[str, str]:
    """Name → description, from the heading at `at` to the end of the text."""
    heading = _HEADING.match(text, at)
    assert heading is not None
    found: dict[str, str] = {}
    at = heading.end()
    while (at := _SKIPPED.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        line = _LINE.match(text, at)
        if line is None:
            fail('here a line `"name": "description"` is expected', at)
        name, description = _unescaped(line[1]).strip(), _unescaped(line[2]).strip()
        if not name or found.setdefault(name, description) != description:
            fail(f"the parameter {name!r} is described twice or has no name", at)
        at = line.end()
    return found


def _unescaped(written: str) -> str:
    """As JSON where it is JSON, else as written: people put quotes into descriptions."""
    try:
        return str(json.loads(f'"{written}"'))
    except ValueError:
        return written


_MOST_NODES = 2_000  # the checks take time by their square
_MOST_EDGES = 10_000  # a join of many with many names more edges than anybody can follow
_SHAPES: dict[str, tuple[Shape, str]] = {
    "(": ("start", ")"),
    "[": ("reply", "]"),
    ">": ("call", "]"),
}
_FORMS = "A--label-->B, A-->|label|B, A-->B, A & B-->C, with nodes A(start), A[reply], A>call]"


def parse_chart(text: str, where: str = "flowchart") -> Chart:
    """The chart that the text states. Nodes stand in the order in which they are declared.

    Raises InputError with line and column for what is outside the subset (see the module).
    """
    return _Parser(text, where).chart()


@dataclass(slots=True)
class _Found:
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    mentioned: dict[str, int] = field(default_factory=dict)  # id → offset of its first mention


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self._text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self._where = where
        self._at = 0
        self._lines = [0, *(i + 1 for i, c in enumerate(self._text) if c == "\n")]
        self._found = _Found()

    def chart(self) -> Chart:
        direction = self._head()
        parameters: dict[str, str] = {}
        while self._to_statement():
            if is_heading(self._text, self._at):
                parameters = read_parameters(self._text, self._at, self._fail)
                break
            self._statement()
            self._statement_end()
        found = self._found
        if not found.nodes:
            self._fail(f"the chart has no nodes; write {_FORMS}", self._at)
        for id, at in found.mentioned.items():
            if id not in found.nodes:
                self._fail(
                    f"{id!r} is used but has no label anywhere; write {id}[what is done]", at
                )
        return Chart(
            direction=direction,
            nodes=tuple(found.nodes.values()),
            edges=tuple(found.edges),
            parameters=parameters,
        )

    def _head(self) -> str:
        self._to_statement()
        stray = STRAY.match(self._text, self._at)
        if stray is not None:
            self._at = stray.end()
            self._to_statement()
        match = HEAD.match(self._text, self._at)
        if match is None or match[1] not in DIRECTIONS:
            allowed = ", ".join(DIRECTIONS)
            self._fail(f"a chart begins with `flowchart` and one of {allowed}", self._at)
        self._at = match.end()
        self._statement_end()
        return match[1]

    def _to_statement(self) -> bool:
        """Past blank lines and comments; False at the end."""
        while self._at < len(self._text):
            if self._text[self._at].isspace():
                self._at += 1
            elif self._text.startswith("%%", self._at):
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end
            else:
                return True
        return False

    def _statement(self) -> None:
        sources = self._group()
        while (edge := self._link()) is not None:
            label, intent_at = edge
            targets = self._group()
            self._connect(sources, targets, label, intent_at)
            sources = targets

    def _statement_end(self) -> None:
        self._blanks()
        if self._at < len(self._text) and self._text[self._at] not in "\n;":
            said = unsupported(self._text, self._at)
            self._fail(f"{said} cannot stand here; the forms are {_FORMS}", self._at)
        self._at += 1

    def _group(self) -> list[str]:
        ids = [self._node()]
        while self._blanks() and self._text.startswith("&", self._at):
            self._at += 1
            ids.append(self._node())
        return ids

    def _node(self) -> str:
        self._blanks()
        start = self._at
        match = ID.match(self._text, start)
        if match is None:
            self._fail(f"here a node is expected, not {unsupported(self._text, start)}", start)
        id = match.group()
        if id in KEYWORDS:
            self._fail(f"`{id}` is outside the subset of Mermaid; the forms are {_FORMS}", start)
        self._at = match.end()
        self._blanks()
        opener = self._text[self._at : self._at + 1]
        if opener in _SHAPES:
            self._declare(id, start, *_SHAPES[opener])
        self._found.mentioned.setdefault(id, start)
        return id

    def _declare(self, id: str, start: int, shape: Shape, closer: str) -> None:
        opened = self._at
        begin, end, after = closing(self._text, opened, closer, self._fail)
        label = decoded(self._text[begin:end])
        if not label:
            self._fail(f"the label of {id} is empty", opened)
        if len(self._found.nodes) >= _MOST_NODES and id not in self._found.nodes:
            self._fail(f"more than {_MOST_NODES:,} nodes", start)
        node = Node(id=id, shape=shape, text=label, line=self._line(start))
        known = self._found.nodes.setdefault(id, node)
        if known.shape != shape or known.text.split() != label.split():
            self._fail(f"{id} is declared otherwise in line {known.line}", start)
        self._at = after

    def _link(self) -> tuple[str, int] | None:
        """The label of the arrow that stands here, and where it begins; None without one."""
        self._blanks()
        text, start = self._text, self._at
        if text.startswith(ARROW, start):
            self._at = start + len(ARROW)
            self._blanks()
            return self._piped() if text.startswith("|", self._at) else ("", self._at)
        if not text.startswith("--", start) or text.startswith("---", start):
            return None
        begin = start + 2
        end = text.find(ARROW, begin)
        if end < 0:
            self._fail("the label has no arrow: write --label-->", start)
        self._check_label(begin, end, start)
        if "--" in text[begin:end] or text[end - 1] == "-":
            self._fail("the label holds another arrow: write A--label-->B", start)
        self._at = end + len(ARROW)
        return text[begin:end], begin

    def _piped(self) -> tuple[str, int]:
        text, start = self._text, self._at
        begin = BLANKS.match(text, start + 1).end()  # type: ignore[union-attr]
        quoted = text.startswith('"', begin)
        end = text.find('"' if quoted else "|", begin + quoted)
        after = BLANKS.match(text, end + 1).end() if quoted and end >= 0 else end  # type: ignore[union-attr]
        if end < 0 or not text.startswith("|", after):
            self._fail('the label is not closed: write -->|label| or -->|"label"|', start)
        self._check_label(begin + quoted, end, start)
        self._at = after + 1
        return text[begin + quoted : end], begin + quoted

    def _check_label(self, begin: int, end: int, start: int) -> None:
        if CONTINUES.search(self._text, begin, end + len(ARROW)):
            self._fail("the label is not closed before the next statement", start)

    def _connect(self, sources: list[str], targets: list[str], raw: str, at: int) -> None:
        label = " ".join(decoded(raw).split())
        try:
            intent, condition = split_label(label)
        except ConditionError as error:
            self._fail(error.problem, at + _column_in(raw, label, error.column))
        if len(self._found.edges) + len(sources) * len(targets) > _MOST_EDGES:
            self._fail(f"more than {_MOST_EDGES:,} edges", at)
        line = self._line(at)
        self._found.edges += [
            Edge(source=s, target=t, label=label, intent=intent, condition=condition, line=line)
            for s in sources
            for t in targets
        ]

    def _blanks(self) -> bool:
        self._at = BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
        return True

    def _line(self, at: int) -> int:
        return bisect_right(self._lines, at)

    def _fail(self, problem: str, at: int) -> NoReturn:
        line = self._line(at)
        column = at - self._lines[line - 1] + 1
        raise InputError(problem, f"{self._where}, line {line}, column {column}")


def _column_in(raw: str, label: str, column: int) -> int:
    """Offset in the label as written of a column of the label with its blanks collapsed."""
    seen = sum(not c.isspace() for c in label[: column - 1])
    places = [i for i, c in enumerate(raw) if not c.isspace()]
    return places[min(seen, len(places) - 1)] if cleaned(raw) else 0
