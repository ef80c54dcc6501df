"""Charts of procedures from Mermaid flowcharts, as people write them by hand.

flowchart TD                          or graph; TD, TB, LR, RL, BT or nothing; after front matter
AB000(Start)--Ask for it-->AB001>Call look_up,
and go by the returned found]         labels may have several lines, and brackets that balance
AB001--Found (found = true)-->AB002[Tell the price]; AB001-->|"Not found"|AB003{{Say so}}
AB002 & AB003-.->AB004@{ shape: stadium, label: "Say goodbye" }
subgraph one [Title] ... end          groups, styles, classes and links are passed over
%% a comment
The auxiliary parameter information in the workflow is as follows:
"colour": "asked for, and sent to no tool"

Facts on the notation: flow.jison of github.com/mermaid-js/mermaid, and its documentation. Read
otherwise than there: `A--other-->B` has the label `other` (there `--o` is a link with a circle),
and a text in brackets may hold quotes, and brackets that balance.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect
from typing import NoReturn

from agenteval.errors import InputError
from agenteval.readers.strict_yaml import load_yaml
from agenteval.records import Record
from agenteval.workflows.chart import (
    Chart,
    Edge,
    Node,
    Remark,
    RemarkKind,
    Shape,
    reached,
)
from agenteval.workflows.conditions import ConditionError, split_label

_IGNORED = re.compile(r"(?:[\s;]|%%\{(?:[^%]|%(?!%))*\}%%|%%[^\n]*)*")
_FENCE = re.compile(r"^[ \t]*(```|~~~|:::)[ \t]*\{?\.?mermaid\b[^\n]*\n(.*?)^[ \t]*\1", re.M | re.S)
_FLOWCHART = re.compile(r"^[ \t]*(?:flowchart|graph)\b", re.M)
_FRONT_MATTER = re.compile(r"\s*---[ \t]*\n(?:.*?\n)??[ \t]*---[ \t]*(?=\n|\Z)", re.S)
# A line that ends with a full-width colon, or the colon alone before the first word.
_STRAY = re.compile(r"[^\n]*\uff1a[ \t]*(?=\n|(?:flowchart|graph)\b)")
_HEAD = re.compile(
    r"(?:flowchart(?:-elk)?|graph)(?:[ \t]+(TD|TB|LR|RL|BT|BR|[<>^v]))?[ \t]*(?=[\n;]|\Z)"
)
_BLANKS = re.compile(r"[ \t\u00a0\u3000]*")
_END = re.compile(r"(?:%%[^\n]*)?(?:[\n;]|\Z)")
_BROKEN = re.compile(r"\s*(?=<?(?:--|==|-\.|~~~))")  # a line may end before a link, and behind it
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
    r"(?P<what>style|classDef|class|linkStyle|click|direction)[ \t]+(?![-=<>&~@(\[{])"
    + _REST
    + r"|(?P<access>accTitle|accDescr)[ \t]*(?::[^\n]*|\{[^}]*\})"
)
# What joins two nodes: a line that a label parts, or a line with its ends and perhaps |a label|.
# An x or o behind `--` ends the line when it stands apart, or when no label can follow.
_LABELLED = "".join(
    rf"|{pair}(?![{pair[0]}>]|[xo](?:(?:(?<=\s{pair}[xo])|(?<=\s[xo]{pair}[xo]))(?=[ \t|])"
    rf'|(?![^\n]*?{pair})))(?P<label{i}>\s*"[^"]*"\s*(?={pair})'
    rf"|(?:[^{pair[0]}]|{pair[0]}(?!{pair[0]}))*+)"
    rf"(?P<close{i}>{pair}+(?:[{pair[0]}>]|[xo](?=\s)))"
    for i, pair in enumerate(("--", "=="))
)
_LINK = re.compile(
    r"(?:\w[\w.]*@(?=[<xo]?[-=~]))?(?P<tail>[<xo](?=--|==|-\.))?(?:"
    r'-\.(?![.-])(?P<label2>\s*"[^"]*"\s*(?=\.)|(?:[^.]|\.++(?!-))*+)(?P<close2>\.+-(?:>|[xo](?=\s)|(?=\s)))'
    + _LABELLED
    + r"|(?P<line>--+[->xo]|==+[=>xo]|-\.+-[>xo]?|~~~+)[ \t\u00a0\u3000]*+"
    r'(?:\|(?P<piped>\s*"[^"]*"\s*(?=\|)|[^|]*)\||(?!\|)))',
    re.DOTALL,
)
_ENDS = {"<": ">", "x": "x", "o": "o"}
# A line within a label that begins as a statement does.
_CONTINUES = re.compile(r"\n[ \t]*(?:%%|\w+[ \t]*(?:[\[({>&]|--|==[=>]|-\.->))")
_ARROW = re.compile(r"-->|==>|-\.->")
_HEADING = re.compile(
    r"The[ \t]+auxiliary[ \t]+parameter[ \t]+information[ \t]+in[ \t]+the[ \t]+workflow[ \t]+"
    r"is[ \t]+as[ \t]+follows[ \t]*[:\uff1a]?",
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
_INNER = {"(": "([-", "[": "[(/\\", "{": "{", ">": ""}  # a second bracket makes another shape
_SHAPE_DATA = re.compile(r'@\{((?:[^"}]|"[^"]*")*)\}')
_ROUND = frozenset(
    (
        "rounded",
        "event",
        "stadium",
        "pill",
        "terminal",
        "circle",
        "circ",
        "start",
        "sm-circ",
        "small-circle",
        "stop",
        "fr-circ",
        "framed-circle",
        "dbl-circ",
        "double-circle",
    )
)
_ENTITY = re.compile(r"[#&]#?(\w{1,31});")
_BREAK = re.compile(r"<br\s*/?>", re.I)
_TAG = re.compile(
    r"</?(?:b|i|u|s|em|strong|small|sub|sup|code|span|div|p|font|center|a|img|hr)(?:\s[^<>]*)?/?>",
    re.I,
)
_EMPHASIS = re.compile(r"(\*{1,3})(?=[^\s*])([^*]+)(?<=\S)\1")
# Words with a meaning of their own in Mermaid.
_KEYWORDS = frozenset(
    (
        "subgraph",
        "end",
        "classDef",
        "class",
        "style",
        "linkStyle",
        "click",
        "direction",
        "graph",
        "flowchart",
        "accTitle",
        "accDescr",
    )
)
_HEADLESS = (
    "edges without an arrow head are read from left to right, with o or x at both ends both ways"
)
_FORMS = (
    "A--label-->B, A-->|label|B, A-->B, A & B-->C, with nodes A(start), A[reply], A{question}, "
    "A>call]"
)
_MOST_NODES = 2_000  # the checks take time by their square
_MOST_EDGES = 10_000  # a join of many with many names more edges than anybody can follow


def parse_chart(text: str, where: str = "flowchart") -> Chart:
    """The one chart that a text states, or that stands in a fenced block of a Markdown text.

    Nodes stand in the order in which they are declared, then those without a label. Raises
    InputError with line and column for what is no flowchart, or of which it is not clear what it
    means as a procedure (see the module), and for a Markdown text with several charts.
    """
    charts = charts_in(text)
    if len(charts) > 1:
        lines = ", ".join(str(1 + len(one) - len(one.lstrip("\n"))) for one in charts)
        raise InputError(f"{len(charts)} charts, at lines {lines}, where one is meant", where)
    return _Parser(charts[0], where).chart()


def charts_in(text: str) -> list[str]:
    """The flowcharts in the fenced blocks of a Markdown text, each behind as many empty lines as
    lines stand before it; the text itself when it has no such block."""
    text = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    blocks = ["\n" * text.count("\n", 0, f.start(2)) + f[2] for f in _FENCE.finditer(text)]
    return [block for block in blocks if _FLOWCHART.search(block)] or blocks[:1] or [text]


class _Link(Record):
    """A label as written and where it stands; `both` ends have a head, `drawn` is not invisible."""

    label: str = ""
    at: int
    both: bool = False
    drawn: bool = True


class _Parser:
    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._breaks = [match.end() for match in re.finditer("\n", text)]
        self._where = where
        self._at = 0
        self._nodes: dict[str, Node] = {}
        self._round: set[str] = set()
        self._edges: list[Edge] = []
        self._mentioned: dict[str, int] = {}  # id → offset of its first mention
        self._groups: set[str] = set()  # ids of subgraphs
        self._open: list[int] = []  # offsets of subgraphs that are not closed
        self._links: set[str] = set()  # ids of edges
        self._remarks: list[Remark] = []
        self._passed: dict[str, list[int]] = {}  # what was passed over → its lines

    def chart(self) -> Chart:
        direction = self._head()
        parameters: dict[str, str] = {}
        while self._take(_IGNORED) and self._at < len(self._text):
            if self._take(_HEADING):
                parameters = self._parameters()
                break
            if not self._apart():
                self._statement()
            self._end()
        if not self._mentioned:
            self._fail(f"the chart has no nodes; write {_FORMS}")
        if self._open:
            self._fail("this subgraph is not closed: a line `end` is missing", self._open[-1])
        self._finish_nodes()
        begins = self._finish_starts()
        self._assumed()
        return Chart(
            direction=direction,
            nodes=tuple(self._nodes.values()),
            edges=tuple(self._edges),
            parameters=parameters,
            begins=begins,
            remarks=tuple(self._remarks),
        )

    def _head(self) -> str:
        """The direction, behind what may stand before it."""
        if self._take(_FRONT_MATTER):
            self._pass("front matter", 0)
        self._take(_IGNORED)
        if self._take(_STRAY):
            self._take(_IGNORED)
        head = self._take(_HEAD)
        if head is None:
            self._fail(
                "a chart begins with `flowchart` or `graph` and one of TD, TB, LR, RL, BT, "
                f"not with {self._shown()}"
            )
        self._end()
        return head[1] or "TD"

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def _end(self) -> None:
        self._take(_BLANKS)
        if self._take(_END) is None:
            here = self._text[self._at]
            if here in ")]}":
                self._fail(
                    f"this `{here}` closes nothing: remove it, or quote the label that it "
                    'belongs to: A["label"]'
                )
            self._fail(f"{self._shown()} cannot stand here; the forms are {_FORMS}")

    def _apart(self) -> bool:
        """Whether a statement stood here that says nothing on the steps and their order."""
        start = self._at
        if group := self._take(_SUBGRAPH):
            self._open.append(start)
            self._groups |= {group["id"]} - {None}
            self._pass("subgraph", start)
            return True
        if self._take(_CLOSED):
            if not self._open:
                self._fail("`end` closes no subgraph", start)
            self._open.pop()
            return True
        if look := self._take(_APPEARANCE):
            self._pass(look["what"] or look["access"], start)
        return look is not None

    def _statement(self) -> None:
        id = _ID.match(self._text, self._at)
        if id and id[0] in self._links and self._text.startswith("@{", id.end()):
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
        if id in _KEYWORDS:
            self._fail(
                f"`{id}` is a word of Mermaid and cannot stand here; the forms are {_FORMS}", start
            )
        if id not in self._mentioned and len(self._mentioned) >= _MOST_NODES:
            self._fail(f"more than {_MOST_NODES:,} nodes", start)
        self._mentioned.setdefault(id, start)
        if self._text[self._at : self._at + 1] in _CLOSERS:
            opened, shape = self._at, self._text[self._at]
            self._declare(id, start, self._label(id), shape, opened)
        if self._text.startswith("@{", self._at):
            opened = self._at
            data = self._data()
            shape = str(data.get("shape", ""))
            shape = "(" if shape in _ROUND else ">" if shape == "odd" else "["
            if "label" in data:
                self._declare(id, start, str(data["label"]), shape, opened)
            elif shape == "(":
                self._round.add(id)
        if self._take(_CLASS):
            self._pass(":::class", start)
        return id

    def _declare(self, id: str, start: int, written: str, opener: str, opened: int) -> None:
        label = _decoded(written)
        if not label:
            self._fail(f"the label of {id} is empty", opened)
        shape: Shape = "call" if opener == ">" else "reply"
        node = Node(id=id, shape=shape, text=label, line=self._line(start))
        known = self._nodes.setdefault(id, node)
        rounded = opener == "("
        if known is not node and (
            known.text.split() != label.split()
            or (known.shape, id in self._round) != (shape, rounded)
        ):
            message = (
                f"{id} has one text or shape in line {known.line} and another in line "
                f"{node.line}: the later one stands, as in Mermaid"
            )
            self._remark("doubled", message, node.line)
            self._nodes[id] = node
        (self._round.add if rounded else self._round.discard)(id)

    def _label(self, id: str) -> str:
        """The text in brackets that begins here. A quoted one ends with a quote and the brackets
        that close the shape; in any other, brackets balance."""
        opened, opener = self._at, self._text[self._at]
        quoted = _QUOTED.match(self._text, opened)
        if quoted and quoted["close"].replace("\\", "/") == quoted["open"][::-1].translate(_MIRROR):
            self._at = quoted.end()
            return quoted["text"]
        end = _closing(self._text, opened, _CLOSERS[opener])
        label = self._text[opened + 1 : end]
        if end < 0 or _ARROW.search(label):
            self._not_closed(id, opened, _CLOSERS[opener])
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

    def _not_closed(self, id: str, opened: int, closer: str) -> NoReturn:
        """Names the bracket that is one too many, or the one that is missing."""
        ends = (p.search(self._text, opened + 1) for p in (_ARROW, _CONTINUES))
        until = min((end.start() for end in ends if end), default=len(self._text))
        marks = list(_BRACKETS[closer].finditer(self._text, opened + 1, until))
        closers = [at for at, mark in enumerate(marks) if mark.group() == closer]
        unmatched: list[int] = []
        for mark in marks[: closers[-1]] if closers else []:  # the last one closes the label
            if mark.group() != closer:
                unmatched.append(mark.start())
            elif unmatched:
                unmatched.pop()
        if unmatched:
            self._fail(
                f"this `{self._text[unmatched[-1]]}` in the label of {id} is one too many: remove "
                f'it, close it with `{closer}`, or quote the label: {id}["label"]',
                unmatched[-1],
            )
        place = "" if until == len(self._text) else " before the next arrow or statement"
        self._fail(f"the label of {id} is not closed{place}: `{closer}` is missing", opened)

    def _data(self) -> dict[str, object]:
        """What stands in `@{ ... }`, which is YAML."""
        start = self._at
        match = self._take(_SHAPE_DATA)
        if match is None:
            self._fail("`@{` is not closed: `}` is missing")
        written = match[1] if "\n" in match[1] else f"{{{match[1]}}}"
        try:
            data = load_yaml(written, "")
        except InputError as error:
            self._fail(f"what stands in @{{...}} cannot be read ({error})", start)
        if not isinstance(data, dict):
            self._fail('write @{ shape: rect, label: "text" }', start)
        return data

    def _link(self) -> _Link | None:
        """What joins the nodes before and behind this place; None when a statement ends here."""
        self._take(_BROKEN) or self._take(_BLANKS)
        start = self._at
        link = self._take(_LINK)
        if link is None:
            if re.match(r"[<xo]?(?:--|==|-\.)", self._text[start : start + 3]):
                self._fail(
                    "the label has no arrow or is not closed: write --label-->, -->|label| "
                    'or -->|"label"|'
                )
            return None
        group = next(
            (g for g in ("piped", "label0", "label1", "label2") if link[g] is not None), ""
        )
        raw, at = (link[group], link.start(group)) if group else ("", start)
        if _CONTINUES.search(self._text, at, link.end()):
            self._fail("the label is not closed before the next statement", start)
        line = next(link[g] for g in ("line", "close0", "close1", "close2") if link[g])
        if link["tail"] and _ENDS[link["tail"]] != line[-1]:
            self._fail(
                "an arrow with a head only where it begins: write it the other way round, B-->A",
                start,
            )
        if "@" in link.group().partition(line)[0]:
            self._links.add(link.group().partition("@")[0])
        self._take(_SPACE)
        drawn = line[0] != "~"
        if not drawn:
            self._pass("~~~", start)
        elif line[-1] != ">":
            self._pass(_HEADLESS, start)
        return _Link(label=raw, at=at, both=bool(link["tail"]), drawn=drawn)

    def _connect(self, sources: list[str], targets: list[str], link: _Link) -> None:
        label = " ".join(_decoded(_unquoted(link.label)).split())
        try:
            intent, condition = split_label(label)
        except ConditionError as error:
            self._fail(error.problem, link.at)
        if len(self._edges) + (1 + link.both) * len(sources) * len(targets) > _MOST_EDGES:
            self._fail(f"more than {_MOST_EDGES:,} edges", link.at)
        line = self._line(link.at)
        ways = [(s, t) for s in sources for t in targets] if link.drawn else []
        ways += [(t, s) for s, t in ways] if link.both else []
        self._edges += [
            Edge(source=s, target=t, label=label, intent=intent, condition=condition, line=line)
            for s, t in ways
        ]

    def _finish_nodes(self) -> None:
        """Nodes without a label have their id as text."""
        for id, at in self._mentioned.items():
            if id in self._groups:
                self._fail(f"{id} is a subgraph, which is no step: name a node in it", at)
        bare = [id for id in self._mentioned if id not in self._nodes]
        for id in bare:
            line = self._line(self._mentioned[id])
            self._nodes[id] = Node(id=id, shape="reply", text=id, line=line)
        if bare:
            names = ", ".join(bare[:10]) + (", …" if len(bare) > 10 else "")
            message = f"without a label, so that the id stands for it: {names}"
            self._remark("no_label", message, self._nodes[bare[0]].line)

    def _finish_starts(self) -> str | None:
        """Round nodes that no edge enters are starts. Without any it is the first of the nodes that
        lead to the most nodes; its id is returned when it is not round."""
        entered = {edge.target for edge in self._edges if edge.source != edge.target}
        starts, first = self._round - entered, None
        if not starts:
            ways: dict[str, list[str]] = {id: [] for id in self._mentioned}
            for edge in self._edges:
                ways[edge.source].append(edge.target)
            others = self._round | (ways.keys() - entered)
            candidates = [id for n, id in enumerate(self._mentioned) if n == 0 or id in others]
            first = max(candidates, key=lambda id: len(reached([id], ways)))  # the first of equals
            starts = self._round & {first}
        for id in starts:
            self._nodes[id] = self._nodes[id].model_copy(update={"shape": "start"})
        if starts or first is None:
            return None
        message = (
            f"no node has the shape (Start): {first} is taken for it, since it is the first "
            "that leads to the most nodes"
        )
        self._remark("no_start", message, self._nodes[first].line)
        return first

    def _assumed(self) -> None:
        """What was passed over in the text, and edges whose direction is not drawn."""
        for what, lines in self._passed.items():
            listed = ", ".join(map(str, lines[:20])) + (", …" if len(lines) > 20 else "")
            if what == _HEADLESS:
                self._remark("no_arrow_head", f"{what}: lines {listed}", lines[0])
            else:
                message = f"`{what}` says nothing on the procedure and was skipped: lines {listed}"
                self._remark("skipped", message, lines[0])

    def _remark(self, kind: RemarkKind, message: str, line: int) -> None:
        self._remarks.append(Remark(kind=kind, message=message, line=line))

    def _pass(self, what: str, at: int) -> None:
        self._passed.setdefault(what, []).append(self._line(at))

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
        return bisect(self._breaks, at) + 1

    def _fail(self, problem: str, at: int | None = None) -> NoReturn:
        at = self._at if at is None else at
        column = at - self._text.rfind("\n", 0, at)
        raise InputError(problem, f"{self._where}, line {self._line(at)}, column {column}")


def _closing(text: str, opened: int, closer: str) -> int:
    """Where the bracket that opens at a place is closed; -1 when it is not."""
    depth = 1
    for match in _BRACKETS[closer].finditer(text, opened + 1):
        depth += -1 if match.group() == closer else 1
        if depth == 0:
            return match.start()
    return -1


def _unquoted(written: str) -> str:
    inner = written.strip()
    whole = len(inner) > 1 and inner[0] == inner[-1] == '"' and '"' not in inner[1:-1]
    return inner[1:-1] if whole else inner


def _unescaped(written: str) -> str:
    """As JSON where it is JSON, else as written: people put quotes into descriptions."""
    try:
        return str(json.loads(f'"{written}"'))
    except ValueError:
        return written


def _decoded(written: str) -> str:
    """What a label shows: Markdown, tags and entities (`#quot;`, `&lt;`, `#35;`) resolved, lines
    stripped and joined by line feeds, without empty ones at the beginning and the end."""

    def character(match: re.Match[str]) -> str:
        name = f"&#{match[1]};" if match[1].isdigit() else f"&{match[1]};"
        text = html.unescape(name)
        return match.group() if text.startswith("&") and len(text) > 1 else text

    text = written.strip()
    if len(text) > 1 and text[0] == text[-1] == "`":
        text = _EMPHASIS.sub(r"\2", text[1:-1])
    text = _ENTITY.sub(character, _TAG.sub("", _BREAK.sub("\n", text)))
    return "\n".join(line.strip() for line in text.split("\n")).strip("\n")
