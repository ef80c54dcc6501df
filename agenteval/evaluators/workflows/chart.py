"""Charts of procedures, read from Mermaid flowcharts. The subset of Mermaid:

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
from collections.abc import Iterable
from typing import Literal, NoReturn

from pydantic import Field

from agenteval.errors import InputError
from agenteval.evaluators.workflows.conditions import (
    Comparison,
    Condition,
    ConditionError,
    split_label,
)
from agenteval.records import Record

Shape = Literal["start", "reply", "call"]  # (Start), [what is said or decided], >a tool is called]


class Node(Record):
    """A step. `text` is its label as written, lines joined by "\\n"; `line` where it is declared.

    Names of tools stand literally in the text of a `call` node, in the order of their calls.
    """

    id: str
    shape: Shape
    text: str
    line: int = Field(default=0, ge=0)

    def calls(self, tools: Iterable[str]) -> tuple[str, ...]:
        """The tools that the node calls, in the order in which its text first names them.

        Each stands once, however often it occurs: a call is repeated by a cycle of the chart.
        Nodes of other shapes call nothing.
        """
        return tuple(dict.fromkeys(names_in(self.text, tools))) if self.shape == "call" else ()


class Edge(Record):
    """A transition. `label` is all that stands on it; `intent` the label without its condition.

    A condition stands in parentheses at the end of the label: `Seats are left (free >= 1)`.
    Without one, whether the transition is right depends on what the user says.
    """

    source: str
    target: str
    label: str = ""
    intent: str = ""
    condition: Condition | None = None
    line: int = Field(default=0, ge=0)


class Chart(Record):
    """A procedure. `parameters` is the auxiliary text after the chart: name → description."""

    direction: str = "TD"
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    parameters: dict[str, str] = Field(default_factory=dict)

    def node(self, id: str) -> Node:
        """The node of that id. Raises KeyError."""
        return {n.id: n for n in self.nodes}[id]

    def leaving(self, id: str) -> tuple[Edge, ...]:
        """Edges out of a node, in the order of the chart."""
        return tuple(e for e in self.edges if e.source == id)

    @property
    def start(self) -> Node:
        """The first start node. Raises StopIteration when there is none."""
        return next(n for n in self.nodes if n.shape == "start")

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Those of the conditions on all edges."""
        return tuple(c for e in self.edges if e.condition for c in e.condition.comparisons)

    def called(self, tools: Iterable[str]) -> tuple[str, ...]:
        """The tools that some node calls, each once."""
        names = list(tools)
        return tuple(dict.fromkeys(call for node in self.nodes for call in node.calls(names)))


WORD = re.compile(r"\w+")
_FIELD = re.compile(r"\.\w")


def names_in(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """All occurrences of the names as whole words, in order; `lend_book.due` names a field."""
    known = set(names)
    return tuple(
        match.group()
        for match in WORD.finditer(text)
        if match.group() in known and not _FIELD.match(text, match.end())
    )


_IGNORED = re.compile(r"(?:\s|%%[^\n]*)*")
# A line that ends with a full-width colon, or the colon alone before the first word.
_STRAY = re.compile(r"[^\n]*\uff1a[ \t]*(?=\n|flowchart\b)")
_HEAD = re.compile(r"flowchart[ \t]+(TD|TB|LR|RL|BT)\b")
_BLANKS = re.compile(r"[ \t\u00a0\u3000]*")
_END = re.compile(r"[\n;]|\Z")
_AND = re.compile("&")
_ARROW = re.compile(
    r"-->[ \t\u00a0\u3000]*+(?:\|[ \t\u00a0\u3000]*"
    r'(?:"(?P<quoted>[^"]*)"[ \t\u00a0\u3000]*|(?P<piped>(?!")[^|]*))\||(?!\|))'
    r"|--(?![->])(?P<label>.*?)-->",
    re.DOTALL,
)
# A line within an edge's label that begins as a statement does.
_CONTINUES = re.compile(r"\n[ \t]*(?:%%|\w+[ \t]*(?:[\[(>&]|--))")
_HEADING = re.compile(
    r"The[ \t]+auxiliary[ \t]+parameter[ \t]+information[ \t]+in[ \t]+the[ \t]+workflow[ \t]+"
    r"is[ \t]+as[ \t]+follows[ \t]*[:\uff1a]?",
    re.IGNORECASE,
)
_SKIPPED = re.compile(r"[\s{},]*")
_PARAMETER = re.compile(
    r'"([^"\n]*)"[ \t]*[:\uff1a][ \t]*"([^\n]*)"[ \t]*,?[ \t]*}?[ \t]*(?=\n|\Z)'
)
_ENTITY = re.compile(r"#(\w{1,31});")
_SHAPES: dict[str, tuple[Shape, str]] = {
    "(": ("start", ")"),
    "[": ("reply", "]"),
    ">": ("call", "]"),
}
_BRACKETS = {"]": re.compile(r"[\[\]]"), ")": re.compile(r"[()]")}
_QUOTED = {end: re.compile(rf'.\s*"([^"]*)"\s*{re.escape(end)}', re.DOTALL) for end in _BRACKETS}
_OTHER_SHAPES = ("((", "([", "[[", "[(", "[/", "[\\")
# Words with a meaning of their own in Mermaid.
_KEYWORDS = frozenset(
    ("subgraph", "end", "classDef", "class", "style", "linkStyle", "click", "direction",
     "graph", "flowchart", "accTitle", "accDescr")
)  # fmt: skip
_FORMS = "A--label-->B, A-->|label|B, A-->B, A & B-->C, with nodes A(start), A[reply], A>call]"
_MOST_NODES = 2_000  # the checks take time by their square
_MOST_EDGES = 10_000  # a join of many with many names more edges than anybody can follow


def parse_chart(text: str, where: str = "flowchart") -> Chart:
    """The chart that the text states. Nodes stand in the order in which they are declared.

    Raises InputError with line and column for what is outside the subset (see the module).
    """
    return _Parser(text, where).chart()


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self._text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        self._where = where
        self._at = 0
        self._nodes: dict[str, Node] = {}
        self._edges: list[Edge] = []
        self._mentioned: dict[str, int] = {}  # id → offset of its first mention

    def chart(self) -> Chart:
        self._take(_IGNORED)
        if self._take(_STRAY):
            self._take(_IGNORED)
        head = self._take(_HEAD)
        if head is None:
            self._fail("a chart begins with `flowchart` and one of TD, TB, LR, RL, BT")
        self._end()
        parameters: dict[str, str] = {}
        while self._take(_IGNORED) and self._at < len(self._text):
            if self._take(_HEADING):
                parameters = self._parameters()
                break
            sources = self._group()
            while (link := self._link()) is not None:
                targets = self._group()
                self._connect(sources, targets, *link)
                sources = targets
            self._end()
        if not self._nodes:
            self._fail(f"the chart has no nodes; write {_FORMS}")
        for id, at in self._mentioned.items():
            if id not in self._nodes:
                self._fail(
                    f"{id!r} is used but has no label anywhere; write {id}[what is done]", at
                )
        return Chart(
            direction=head[1],
            nodes=tuple(self._nodes.values()),
            edges=tuple(self._edges),
            parameters=parameters,
        )

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def _end(self) -> None:
        self._take(_BLANKS)
        if self._take(_END) is None:
            self._fail(f"{self._shown()} cannot stand here; the forms are {_FORMS}")

    def _group(self) -> list[str]:
        ids = [self._node()]
        while self._take(_BLANKS) and self._take(_AND):
            ids.append(self._node())
        return ids

    def _node(self) -> str:
        self._take(_BLANKS)
        start = self._at
        match = self._take(WORD)
        if match is None:
            self._fail(f"here a node is expected, not {self._shown()}")
        id = match.group()
        if id in _KEYWORDS:
            self._fail(f"`{id}` is outside the subset of Mermaid; the forms are {_FORMS}", start)
        if self._text[self._at : self._at + 1] in _SHAPES:
            self._declare(id, start)
        self._mentioned.setdefault(id, start)
        return id

    def _declare(self, id: str, start: int) -> None:
        shape, closer = _SHAPES[self._text[self._at]]
        opened = self._at
        label = _decoded(self._node_label(closer))
        if not label:
            self._fail(f"the label of {id} is empty", opened)
        if len(self._nodes) >= _MOST_NODES and id not in self._nodes:
            self._fail(f"more than {_MOST_NODES:,} nodes", start)
        node = Node(id=id, shape=shape, text=label, line=self._line(start))
        known = self._nodes.setdefault(id, node)
        if known.shape != shape or known.text.split() != label.split():
            self._fail(f"{id} is declared otherwise in line {known.line}", start)

    def _node_label(self, closer: str) -> str:
        """A quoted label ends with a quote and the bracket; in any other, brackets balance."""
        opened = self._at
        shape = self._text[opened : opened + 2]
        if shape in _OTHER_SHAPES:
            self._fail(f"the shape {shape}..: allowed are (start), [reply] and >call]; quote a "
                       "label in brackets")  # fmt: skip
        if quoted := self._take(_QUOTED[closer]):
            return quoted[1]
        depth, end = 1, opened
        for match in _BRACKETS[closer].finditer(self._text, opened + 1):
            depth += -1 if match.group() == closer else 1
            if depth == 0:
                end = match.start()
                break
        label = self._text[opened + 1 : end]
        if depth or "-->" in label:
            before = "" if depth else " before the next arrow"
            self._fail(f"the label is not closed{before}: `{closer}` is missing", opened)
        self._at = end + 1
        return label

    def _link(self) -> tuple[str, int] | None:
        """The label of the arrow that stands here, and where it stands; None without one."""
        self._take(_BLANKS)
        start = self._at
        arrow = self._take(_ARROW)
        if arrow is None:
            if self._text.startswith("-->", start):
                self._fail('the label is not closed: write -->|label| or -->|"label"|')
            if self._text.startswith("--", start) and self._text[start + 2 : start + 3] != "-":
                self._fail("the label has no arrow: write --label-->")
            return None
        group = next((g for g in ("quoted", "piped", "label") if arrow[g] is not None), None)
        if group is None:
            return "", start
        raw, begin = arrow[group], arrow.start(group)
        if _CONTINUES.search(self._text, begin, arrow.end()):
            self._fail("the label is not closed before the next statement", start)
        if group == "label" and ("--" in raw or raw.endswith("-")):
            self._fail("the label holds another arrow: write A--label-->B", start)
        return raw, begin

    def _connect(self, sources: list[str], targets: list[str], raw: str, at: int) -> None:
        label = " ".join(_decoded(raw).split())
        try:
            intent, condition = split_label(label)
        except ConditionError as error:
            self._fail(error.problem, at)
        if len(self._edges) + len(sources) * len(targets) > _MOST_EDGES:
            self._fail(f"more than {_MOST_EDGES:,} edges", at)
        line = self._line(at)
        self._edges += [
            Edge(source=s, target=t, label=label, intent=intent, condition=condition, line=line)
            for s in sources
            for t in targets
        ]

    def _parameters(self) -> dict[str, str]:
        """Name → description, to the end of the text."""
        parameters: dict[str, str] = {}
        while self._take(_SKIPPED) and self._at < len(self._text):
            start = self._at
            line = self._take(_PARAMETER)
            if line is None:
                self._fail('here a line `"name": "description"` is expected')
            name, description = (_unescaped(part).strip() for part in line.groups())
            if not name or parameters.setdefault(name, description) != description:
                self._fail(f"the parameter {name!r} is described twice or has no name", start)
        return parameters

    def _shown(self) -> str:
        here = self._text[self._at : self._at + 30].partition("\n")[0].strip()
        return f"`{here}`" if here else "the end of the line"

    def _line(self, at: int) -> int:
        return self._text.count("\n", 0, at) + 1

    def _fail(self, problem: str, at: int | None = None) -> NoReturn:
        at = self._at if at is None else at
        column = at - self._text.rfind("\n", 0, at)
        raise InputError(problem, f"{self._where}, line {self._line(at)}, column {column}")


def _unescaped(written: str) -> str:
    """As JSON where it is JSON, else as written: people put quotes into descriptions."""
    try:
        return str(json.loads(f'"{written}"'))
    except ValueError:
        return written


def _decoded(written: str) -> str:
    """Mermaid's entities resolved (`#quot;`, `#35;`), lines stripped and joined by line feeds,
    without empty ones at the beginning and the end."""

    def character(match: re.Match[str]) -> str:
        name = f"&#{match[1]};" if match[1].isdigit() else f"&{match[1]};"
        text = html.unescape(name)
        return match.group() if text.startswith("&") and len(text) > 1 else text

    text = _ENTITY.sub(character, written)
    return "\n".join(line.strip() for line in text.split("\n")).strip("\n")
