"""Read charts of procedures from handwritten Mermaid flowcharts.

flowchart TD                          or graph; TD, TB, LR, RL, BT or nothing; after front matter
AB000(Start)--Ask for it-->AB001>Call look_up,
and go by the returned found]         labels may have several lines, and brackets that balance
AB001--Found (found = true)-->AB002[Tell the price]; AB001-->|"Not found"|AB003{{Say so}}
AB002 & AB003-.->AB004@{ shape: stadium, label: "Say goodbye" }
subgraph one [Title] ... end          groups, styles, classes and links are skipped
%% a comment
The auxiliary parameter information in the workflow is as follows:
"colour": "asked for, and sent to no tool"

The notation is that of flow.jison of github.com/mermaid-js/mermaid and its documentation, with two
differences: `A--other-->B` has the label `other` (there `--o` is a link with a circle), and a
label in brackets may hold quotes, and brackets that balance.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from agenteval.errors import InputError
from agenteval.readers.strict_yaml import load_yaml
from agenteval.workflows.chart import (
    Chart,
    ConditionError,
    Edge,
    Node,
    Remark,
    RemarkKind,
    Shape,
    reached,
    split_label,
)

_IGNORED = re.compile(r"(?:[\s;]|%%\{(?:[^%]|%(?!%))*\}%%|%%[^\n]*)*")
_FENCE = re.compile(r"^[ \t]*(```|~~~|:::)[ \t]*\{?\.?mermaid\b[^\n]*\n(.*?)^[ \t]*\1", re.M | re.S)
_FLOWCHART = re.compile(r"^[ \t]*(?:flowchart|graph)\b", re.M)
_FRONT_MATTER = re.compile(r"\s*---[ \t]*\n(?:.*?\n)??[ \t]*---[ \t]*(?=\n|\Z)", re.S)
# A line that ends with a full-width colon, or only the colon before the first word.
_STRAY = re.compile(r"[^\n]*\uff1a[ \t]*(?=\n|(?:flowchart|graph)\b)")
_HEAD = re.compile(
    r"(?:flowchart(?:-elk)?|graph)(?:[ \t]+(?:TD|TB|LR|RL|BT|BR|[<>^v]))?[ \t]*(?=[\n;]|\Z)"
)
_BLANKS = re.compile(r"[ \t\u00a0\u3000]*")
_END = re.compile(r"(?:%%[^\n]*)?(?:[\n;]|\Z)")
_BROKEN = re.compile(r"\s*(?=<?(?:--|==|-\.|~~~))")  # a line may end before and after a link
_SPACE = re.compile(r"\s*")
_AND = re.compile("&")
_ID = re.compile(r"\w+(?:[./-](?=\w)(?!-)\w+)*")
_CLASS = re.compile(r":::[\w-]+")
_REST = r'(?:"[^"\n]*"|[^"\n;])*'
_SUBGRAPH = re.compile(
    rf'subgraph(?=[ \t;\n]|\Z)[ \t]*(?:(?P<id>[^\s"\[\];:]+)(?=[ \t]*(?:\[|:::|[\n;]|\Z)))?{_REST}'
)
_CLOSED = re.compile(r"end(?=[ \t]*(?:[\n;]|%%|\Z))")
_APPEARANCE = re.compile(
    r"(?:style|classDef|class|linkStyle|click|direction)[ \t]+(?![-=<>&~@(\[{])"
    + _REST
    + r"|(?:accTitle|accDescr)[ \t]*(?::[^\n]*|\{[^}]*\})"
)
# A link of two nodes: a line split by a label, or a line with its ends and optionally |a label|.
# An x or o after `--` ends the line if it is separate, or if no label can follow.
_LABELLED = "".join(
    rf"|{pair}(?![{pair[0]}>]|[xo](?:(?:(?<=\s{pair}[xo])|(?<=\s[xo]{pair}[xo]))(?=[ \t|])"
    rf'|(?![^\n]*?{pair})))(?P<label{i}>\s*"[^"]*"\s*(?={pair})'
    rf"|(?:[^{pair[0]}]|{pair[0]}(?!{pair[0]}))*+)"
    rf"(?P<close{i}>{pair}+(?:[{pair[0]}>]|[xo](?=\s)))"
    for i, pair in enumerate(("--", "=="))
)
_LINK = re.compile(
    r"(?:(?P<edge>\w[\w.]*)@(?=[<xo]?[-=~]))?(?P<tail>[<xo](?=--|==|-\.))?(?:"
    r'-\.(?![.-])(?P<label2>\s*"[^"]*"\s*(?=\.)|(?:[^.]|\.++(?!-))*+)(?P<close2>\.+-(?:[>xo]|(?![.-])))'
    + _LABELLED
    + r"|(?P<line>--+[->xo]|==+[=>xo]|-\.+-[>xo]?|~~~+)[ \t\u00a0\u3000]*+"
    r'(?:\|(?P<piped>\s*"[^"]*"\s*(?=\|)|[^|]*)\||(?!\|)))',
    re.DOTALL,
)
_LINK_BEGINS = re.compile(r"[<xo]?(?:--|==|-\.)")
_ENDS = {"<": ">", "x": "x", "o": "o"}
# A line within a label that begins like a statement.
_CONTINUES = re.compile(r"\n[ \t]*(?:%%|\w+[ \t]*(?:[\[({>&]|--|==[=>]|-\.->))")
_ARROW = re.compile(r"-->|==>|-\.->")
_HEADING = re.compile(
    "The auxiliary parameter information in the workflow is as follows".replace(" ", r"[ \t]+")
    + r"[ \t]*[:\uff1a]?",
    re.IGNORECASE,
)
_SKIPPED = re.compile(r"[\s{},]*")
_PARAMETER = re.compile(
    r'"([^"\n]*)"[ \t]*[:\uff1a][ \t]*"([^\n]*)"[ \t]*,?[ \t]*}?[ \t]*(?=\n|\Z)'
)
_CLOSERS = {"(": ")", "[": "]", "{": "}", ">": "]"}
_BRACKETS = {"]": re.compile(r"[\[\]]"), ")": re.compile(r"[()]"), "}": re.compile(r"[{}]")}
_QUOTED = re.compile(
    r'(?P<open>[(\[{>][(\[{/\\]{0,2})\s*"(?P<text>[^"]*)"\s*(?P<close>[/\\]?[)\]}]{1,3})'
)
_MIRROR = str.maketrans("([{>\\", ")]}]/")
_INNER = {"(": "([-", "[": "[(/\\", "{": "{", ">": ""}  # a second bracket makes a different shape
_SHAPE_DATA = re.compile(r'@\{((?:[^"}]|"[^"]*")*)\}')
_ROUND = re.compile(
    r"rounded|event|stadium|pill|terminal|circle|circ|start|sm-circ|small-circle|stop|fr-circ|"
    r"framed-circle|dbl-circ|double-circle"
)
_KEYWORD = re.compile(
    r"subgraph|end|classDef|class|style|linkStyle|click|direction|graph|flowchart|accTitle|accDescr"
)
_ENTITY = re.compile(r"[#&]#?(\w{1,31});")
_BREAK = re.compile(r"<br\s*/?>", re.I)
_TAG = re.compile(
    r"</?(?:b|i|u|s|em|strong|small|sub|sup|code|span|div|p|font|center|a|img|hr)(?:\s[^<>]*)?/?>",
    re.I,
)
_EMPHASIS = re.compile(r"(\*{1,3})(?=[^\s*])([^*]+)(?<=\S)\1")
_FORMS = (
    "A--label-->B, A-->|label|B, A-->B, A & B-->C, with nodes A(start), A[reply], A{question}, "
    "A>call]"
)


def parse_chart(text: str, where: str = "flowchart") -> Chart:
    """Return the only chart of a text, or of the fenced blocks of a Markdown text.

    Nodes are in the order of their declarations, then those without a label. Raises InputError with
    line and column if the text cannot be read as a procedure (see the module), and for a Markdown
    text with several charts.
    """
    charts = charts_in(text)
    if len(charts) > 1:
        lines = ", ".join(str(1 + len(chart) - len(chart.lstrip("\n"))) for chart in charts)
        raise InputError(f"{len(charts)} charts, at lines {lines}, where one is meant", where)
    return _Parser(charts[0], where).chart()


def charts_in(text: str) -> list[str]:
    """Return the flowcharts in the fenced blocks of a Markdown text, padded with empty lines to
    keep their line numbers; the text itself if it has no such block."""
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    blocks = ["\n" * text.count("\n", 0, f.start(2)) + f[2] for f in _FENCE.finditer(text)]
    return [block for block in blocks if _FLOWCHART.search(block)] or blocks[:1] or [text]


@dataclass(frozen=True, slots=True)
class _Link:
    """A label as written, with its offset. `both`: heads at both ends; `drawn`: not invisible."""

    label: str
    at: int
    both: bool
    drawn: bool


class _OpenSubgraph(NamedTuple):
    """A subgraph that has not ended: its offset, its id and the nodes mentioned in it."""

    at: int
    id: str | None
    nodes: dict[str, None]


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self._text, self._where, self._at = text, where, 0
        self._breaks = [match.end() for match in re.finditer("\n", text)]
        self._nodes: dict[str, Node] = {}
        self._round: set[str] = set()  # ids of round nodes
        self._edges: list[Edge] = []
        self._mentioned: dict[str, int] = {}  # id → offset of its first mention
        self._groups: dict[str, list[str]] = {}  # nodes of subgraphs by id, inner ones first
        self._open: list[_OpenSubgraph] = []
        self._edge_ids: set[str] = set()
        self._remarks: list[Remark] = []
        self._headless: list[int] = []  # lines of edges without an arrow head

    def chart(self) -> Chart:
        self._head()
        parameters: dict[str, str] = {}
        while self._take(_IGNORED) and self._at < len(self._text):
            if self._take(_HEADING):
                parameters = self._parameters()
                break
            if not self._appearance():
                self._statement()
            self._end()
        if self._open:
            problem = "this subgraph is not closed: a line `end` is missing"
            self._fail(problem, self._open[-1].at)
        self._finish_groups()
        if not self._mentioned:
            self._fail(f"the chart has no nodes; write {_FORMS}")
        self._finish_nodes()
        begins = self._finish_starts()
        if self._headless:
            reading = "are read from left to right, with o or x at both ends both ways"
            self._remark("no_arrow_head", f"edges without an arrow head {reading}", self._headless)
        return Chart(
            nodes=tuple(self._nodes.values()),
            edges=tuple(self._edges),
            parameters=parameters,
            begins=begins,
            remarks=tuple(self._remarks),
        )

    def _head(self) -> None:
        """Read everything before the first statement."""
        self._take(_FRONT_MATTER)
        self._take(_IGNORED)
        if self._take(_STRAY):
            self._take(_IGNORED)
        if self._take(_HEAD) is None:
            self._fail(
                "a chart begins with `flowchart` or `graph` and one of TD, TB, LR, RL, BT, "
                f"not with {self._shown()}"
            )
        self._end()

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def _end(self) -> None:
        self._take(_BLANKS)
        if self._take(_END) is None:
            self._fail(f"{self._shown()} cannot stand here; the forms are {_FORMS}")

    def _appearance(self) -> bool:
        """Skip a statement that does not affect the steps or their order, if there is one."""
        start = self._at
        if group := self._take(_SUBGRAPH):
            self._open.append(_OpenSubgraph(start, group["id"], {}))
        elif self._take(_CLOSED):
            if not self._open:
                self._fail("`end` closes no subgraph", start)
            self._close_group()
        else:
            self._take(_APPEARANCE)
        return self._at > start

    def _statement(self) -> None:
        id = _ID.match(self._text, self._at)
        if id and id[0] in self._edge_ids and self._text.startswith("@{", id.end()):
            self._at = id.end()  # how an edge is drawn
            self._data()
            return
        sources = self._group()
        while (link := self._link()) is not None:
            targets = self._group()
            self._connect(sources, targets, link)
            sources = targets

    def _group(self) -> list[str]:
        ids = [self._node()]
        while self._take(_BLANKS) and self._take(_AND):
            ids.append(self._node())
        return ids

    def _node(self) -> str:
        self._take(_BLANKS)
        start = self._at
        match = self._take(_ID)
        if match is None:
            self._fail(f"here a node is expected, not {self._shown()}")
        id = match.group()
        if _KEYWORD.fullmatch(id):
            self._fail(
                f"`{id}` is a word of Mermaid and cannot stand here; the forms are {_FORMS}", start
            )
        self._mentioned.setdefault(id, start)
        # As in Mermaid, a subgraph does not get a node that belongs to an earlier one.
        if self._open and not any(id in nodes for nodes in self._groups.values()):
            self._open[-1].nodes[id] = None
        opened = self._at
        if (opener := self._text[opened : opened + 1]) in _CLOSERS:
            self._declare(id, self._label(id), opener, start, opened)
        opened = self._at
        if self._text.startswith("@{", opened):
            data = self._data()
            name = str(data.get("shape", ""))
            opener = "(" if _ROUND.fullmatch(name) else ">" if name == "odd" else "["
            if "label" in data:
                self._declare(id, str(data["label"]), opener, start, opened)
            elif opener == "(":
                self._round.add(id)
        self._take(_CLASS)
        return id

    def _declare(self, id: str, written: str, opener: str, start: int, opened: int) -> None:
        """Read a node whose label, in brackets like `opener`, begins at `opened`."""
        label = _decoded(written)
        if not label:
            self._fail(f"the label of {id} is empty", opened)
        shape: Shape = "call" if opener == ">" else "reply"
        is_round = opener == "("
        node = Node(id=id, shape=shape, text=label, line=self._line(start))
        first = self._nodes.setdefault(id, node)
        same = first.text.split() == label.split() and first.shape == shape
        if first is not node and not (same and (id in self._round) == is_round):
            message = (
                f"{id} has one text or shape in line {first.line} and another in line "
                f"{node.line}: the later one stands, as in Mermaid"
            )
            self._remark("doubled", message, [node.line])
            self._nodes[id] = node
        (self._round.add if is_round else self._round.discard)(id)

    def _label(self, id: str) -> str:
        """Read the text in brackets that begins here. A quoted one ends with a quote and the
        brackets that close the shape; in any other, brackets balance."""
        opened, opener = self._at, self._text[self._at]
        quoted = _QUOTED.match(self._text, opened)
        if quoted and quoted["close"].replace("\\", "/") == quoted["open"][::-1].translate(_MIRROR):
            self._at = quoted.end()
            return quoted["text"]
        closer = _CLOSERS[opener]
        end = _closing(self._text, opened, closer)
        label = self._text[opened + 1 : end]
        if end < 0 or _ARROW.search(label):
            self._fail(
                f"the label of {id} is not closed before the next arrow: close each bracket in it, "
                f'or quote it: {id}["label"]',
                opened,
            )
        self._at = end + 1
        for _ in range(2):
            if len(label) < 3 or label[0] not in _INNER[opener]:
                break
            last = label[0].translate(_MIRROR)
            paired = last not in ")]}" or _closing(label, 0, last) == len(label) - 1
            if not paired or label[-1].replace("\\", "/") != last:
                break
            opener, label = "(" if opener + label[0] == "((" else ">", label[1:-1]
        return label

    def _data(self) -> dict[str, object]:
        """Read `@{ ... }`, which is YAML."""
        start = self._at
        match = self._take(_SHAPE_DATA)
        if match is None:
            self._fail("`@{` is not closed: `}` is missing")
        try:
            data = load_yaml(match[1] if "\n" in match[1] else f"{{{match[1]}}}", "")
        except InputError as error:
            self._fail(f"what stands in @{{...}} cannot be read ({error})", start)
        if not isinstance(data, dict):
            self._fail('write @{ shape: rect, label: "text" }', start)
        return data

    def _link(self) -> _Link | None:
        """Read the link of two nodes; None at the end of a statement."""
        self._take(_BROKEN) or self._take(_BLANKS)
        start = self._at
        link = self._take(_LINK)
        if link is None:
            if _LINK_BEGINS.match(self._text, start):
                self._fail(
                    "the label has no arrow or is not closed: write --label-->, -->|label| "
                    'or -->|"label"|'
                )
            return None
        labels = (
            name for name in ("piped", "label0", "label1", "label2") if link[name] is not None
        )
        name = next(labels, None)
        at = start if name is None else link.start(name)
        if _CONTINUES.search(self._text, at, link.end()):
            self._fail("the label is not closed before the next statement", start)
        line = link["line"] or link["close0"] or link["close1"] or link["close2"]
        if link["tail"] and _ENDS[link["tail"]] != line[-1]:
            self._fail(
                "an arrow with a head only where it begins: write it the other way round, B-->A",
                start,
            )
        if link["edge"]:
            self._edge_ids.add(link["edge"])
        self._take(_SPACE)
        if line[0] != "~" and line[-1] != ">":
            self._headless.append(self._line(start))
        return _Link(link[name] if name else "", at, bool(link["tail"]), line[0] != "~")

    def _connect(self, sources: list[str], targets: list[str], link: _Link) -> None:
        label = " ".join(_decoded(_unquoted(link.label)).split())
        try:
            intent, condition = split_label(label)
        except ConditionError as error:
            self._fail(error.problem, link.at)
        line = self._line(link.at)
        ends = [(s, t) for s in sources for t in targets] if link.drawn else []
        ends += [(t, s) for s, t in ends] if link.both else []
        self._edges += [
            Edge(source=s, target=t, label=label, intent=intent, condition=condition, line=line)
            for s, t in ends
        ]

    def _close_group(self) -> None:
        group = self._open.pop()
        # Nothing can refer to a subgraph without an id; use its line as the id.
        id = group.id or f"\n{group.at}"
        self._groups[id] = list(dict.fromkeys([*self._groups.get(id, ()), *group.nodes]))
        if self._open:
            self._open[-1].nodes.update(group.nodes)

    def _finish_groups(self) -> None:
        """Replace arrows to and from subgraphs, which are not steps, by arrows between nodes."""
        groups = self._groups.keys() & self._mentioned.keys()
        if not groups:
            return
        left_out: set[int] = set()
        for id, nodes in self._groups.items():
            left_out |= self._resolve(id, nodes)
        for id in groups:
            self._mentioned.pop(id)
            self._nodes.pop(id, None)
        self._round -= groups
        if left_out:
            problem = "arrows to or from a subgraph without such a node are left out"
            self._remark("subgraph", problem, sorted(left_out))

    def _resolve(self, id: str, nodes: list[str]) -> set[int]:
        """Replace the edges to and from a subgraph, and return the lines of those left out.

        An edge to it leads to its entries (nodes without an edge from inside), or else to its first
        node. An edge from it leaves its exits (nodes without an outgoing edge inside). An edge
        between it and its own nodes is left out.
        """
        inside = {id, *nodes}
        steps = [node for node in nodes if node not in self._groups]
        inner = [
            (e.source, e.target)
            for e in self._edges
            if e.source != e.target and {e.source, e.target} <= inside
        ]
        entered = {target for source, target in inner if source != id}
        exited = {source for source, target in inner if target != id}
        entries = [node for node in steps if node not in entered] or steps[:1]
        exits = [node for node in steps if node not in exited]
        edges, left_out = list[Edge](), set[int]()
        for edge in self._edges:
            if id not in (edge.source, edge.target):
                edges.append(edge)
                continue
            end, ends = ("source", exits) if edge.source == id else ("target", entries)
            ends = [] if {edge.source, edge.target} <= inside else ends
            edges += [edge.model_copy(update={end: node}) for node in ends]
            left_out |= set() if ends else {edge.line}
        self._edges = edges
        return left_out

    def _finish_nodes(self) -> None:
        """Use the id of nodes without a label as their text."""
        unlabelled = [id for id in self._mentioned if id not in self._nodes]
        for id in unlabelled:
            line = self._line(self._mentioned[id])
            self._nodes[id] = Node(id=id, shape="reply", text=id, line=line)
        if unlabelled:
            names = ", ".join(unlabelled[:10]) + (", …" if len(unlabelled) > 10 else "")
            message = f"without a label, so that the id stands for it: {names}"
            self._remark("no_label", message, [self._nodes[unlabelled[0]].line])

    def _finish_starts(self) -> str | None:
        """Mark the starts: round nodes without incoming edges. Without any, the start is the first
        node from which most nodes can be reached; return its id if it is not round."""
        entered = {edge.target for edge in self._edges if edge.source != edge.target}
        starts, first = self._round - entered, None
        if not starts:
            targets: dict[str, list[str]] = {id: [] for id in self._mentioned}
            for edge in self._edges:
                targets[edge.source].append(edge.target)
            allowed = self._round | (targets.keys() - entered)
            candidates = [id for n, id in enumerate(self._mentioned) if n == 0 or id in allowed]
            first = max(candidates, key=lambda id: len(reached([id], targets)))  # first of equals
            starts = self._round & {first}
        for id in starts:
            self._nodes[id] = self._nodes[id].model_copy(update={"shape": "start"})
        if starts or first is None:
            return None
        message = (
            f"no node has the shape (Start): {first} is taken for it, since it is the first "
            "that leads to the most nodes"
        )
        self._remark("no_start", message, [self._nodes[first].line])
        return first

    def _remark(self, kind: RemarkKind, message: str, lines: list[int]) -> None:
        if len(lines) > 1:
            message += f": lines {', '.join(map(str, lines))}"
        self._remarks.append(Remark(kind=kind, message=message, line=lines[0]))

    def _parameters(self) -> dict[str, str]:
        """Read name → description, to the end of the text."""
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
        return bisect(self._breaks, at) + 1

    def _fail(self, problem: str, at: int | None = None) -> NoReturn:
        at = self._at if at is None else at
        column = at - self._text.rfind("\n", 0, at)
        raise InputError(problem, f"{self._where}, line {self._line(at)}, column {column}")


def _closing(text: str, opened: int, closer: str) -> int:
    """Return where the bracket that opens at `opened` is closed, else -1."""
    depth = 1
    for match in _BRACKETS[closer].finditer(text, opened + 1):
        depth += -1 if match.group() == closer else 1
        if depth == 0:
            return match.start()
    return -1


def _unquoted(written: str) -> str:
    inner = written.strip()
    quoted = len(inner) > 1 and inner[0] == inner[-1] == '"' and '"' not in inner[1:-1]
    return inner[1:-1] if quoted else inner


def _unescaped(written: str) -> str:
    """Return the text decoded as JSON, or unchanged, because descriptions may contain quotes."""
    try:
        return str(json.loads(f'"{written}"'))
    except ValueError:
        return written


def _decoded(written: str) -> str:
    """Return what a label shows: Markdown, tags and entities (`#quot;`, `&lt;`, `#35;`) resolved,
    lines stripped and joined by "\\n", without empty ones at the beginning and the end."""

    def character(match: re.Match[str]) -> str:
        name = f"&#{match[1]};" if match[1].isdigit() else f"&{match[1]};"
        text = html.unescape(name)
        return match.group() if text.startswith("&") and len(text) > 1 else text

    text = written.strip()
    if len(text) > 1 and text[0] == text[-1] == "`":
        text = _EMPHASIS.sub(r"\2", text[1:-1])
    text = _ENTITY.sub(character, _TAG.sub("", _BREAK.sub("\n", text)))
    return "\n".join(line.strip() for line in text.split("\n")).strip("\n")
