"""The file in which a person marks the errors of a trace: YAML with the spans as comments, or the
official JSON. What is filled in is checked, with the line of everything that is wrong.

`errors` is empty (null) until somebody has looked: a sheet that nobody has filled in must not
pass for a trace without errors.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from agenteval.errors import InputError
from agenteval.evaluators.traces.annotations import OVERALL, official_object, read_annotation
from agenteval.evaluators.traces.outline import Outline, OutlineSpan
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.records import GRADES, Findings

_FIELDS = ("category", "location", "evidence", "description", "impact", "confidence", "source")
_IMPACTS = ("HIGH", "MEDIUM", "LOW")
_KEYS = ("trace_id", "errors", "scores", "spans")
_DEEPEST = 12  # levels that indent in the list of spans
_WIDE = 160
_MOST_VALUES = 20_000  # of a sheet; an error has ten


@dataclass(frozen=True)
class Filled:
    """What a sheet says. `findings` is None while nobody has filled in `errors`.

    `problems` are lines "FILE:LINE: what is wrong"; with any of them the sheet does not count.
    """

    trace: str
    findings: Findings | None
    problems: tuple[str, ...] = field(default=())


def worksheet(outline: Outline, taxonomy: Taxonomy, start: Findings | None = None) -> str:
    """The YAML sheet of a trace; `start` are findings to begin with, for somebody to review."""
    head = [
        f"# Trace {outline.trace}: mark what went wrong, and where.",
        "# One entry under `errors` for each error; `errors: []` when there is none.",
        "#",
        "#   - category: one of the kinds below",
        "#     location: id of the span, from the list below",
        "#     evidence: words of the span that show it",
        "#     description: what is wrong",
        "#     impact: HIGH, MEDIUM or LOW",
        "#",
        "# Mark the first span that shows the error"
        + "".join(f"; for {leaf.name} the last" for leaf in taxonomy.assigned
                  if leaf.locate == "last") + ".",
        "# Scores: 1 (bad) to 5 (good), or empty.",
        "#",
        "# Kinds of errors:",
    ]  # fmt: skip
    head += [_comment(f"  {leaf.name}: {leaf.definition}") for leaf in taxonomy.assigned]
    head += ["#", "# Spans:", *(_comment(line) for line in _span_lines(outline))]
    body = _body(outline.trace, start)
    text = yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=10_000)
    return "\n".join(head) + "\n" + text


def worksheet_json(outline: Outline, start: Findings | None = None) -> str:
    """The sheet in the official layout; `spans` lists the spans, and is left out on import."""
    body = {**_body(outline.trace, start), "spans": list(_span_lines(outline))}
    return json.dumps(body, ensure_ascii=False, indent=1) + "\n"


def read_worksheet(
    text: str, where: str, taxonomy: Taxonomy, spans: Collection[str] | None = None
) -> Filled:
    """What was filled in, of either form. `spans` are the ids of the trace (None: not checked).

    Raises InputError, naming the line, for what is neither YAML nor JSON.
    """
    root = _composed(text, where)
    sheet = _Sheet(where, taxonomy, spans)
    value = sheet.whole(root)
    trace = str(value.get("trace_id") or "")
    if sheet.problems or value.get("errors") is None:
        return Filled(trace, None, tuple(sheet.problems))
    wanted = {key: value.get(key) for key in ("trace_id", "errors", "scores")}
    read = read_annotation(json.dumps(wanted), trace, taxonomy)
    told = tuple(f"{where}: {text}" for text in read.warnings)
    return Filled(trace, None if told else read.findings, told)


def _body(trace: str, start: Findings | None) -> dict[str, Any]:
    scores: dict[str, Any] = {}
    for name in GRADES:
        scores |= {f"{name}_score": None, f"{name}_reasoning": None}
    scores[OVERALL] = None
    errors = None
    if start is not None and start.status is None:
        given = official_object(start)
        errors = given["errors"]
        scores |= given["scores"][0] if given["scores"] else {}
    return {"trace_id": trace, "errors": errors, "scores": [scores]}


def _span_lines(outline: Outline) -> Iterator[str]:
    depths: dict[str, int] = {}
    for span in outline.spans:
        depth = depths.get(span.parent_id or "", -1) + 1
        depths.setdefault(span.id, depth)
        indent = "  " * (1 + min(depth, _DEEPEST))
        yield f"{indent}{span.id}  {span.kind}  {_line(span.name)}{_outcome(span)}"
        for name, said in (("in: ", span.input), ("out: ", span.output)):
            if said:
                yield f"{indent}    {name}{_line(said)}"
    left = outline.total - len(outline.spans)
    if left:
        yield f"  ... {left:,} more spans"


def _outcome(span: OutlineSpan) -> str:
    return f"  ERROR {_line(span.note)}".rstrip() if span.status == "error" else ""


def _line(text: str) -> str:
    line = " ".join(text[: 4 * _WIDE].split())
    return line if len(line) <= _WIDE else line[: _WIDE - 1] + "…"


def _comment(text: str) -> str:
    """One line of comment; what YAML does not allow or takes for the end of a line is shown."""
    line = "".join(c if c.isprintable() else f"[U+{ord(c):04X}]" for c in text)
    return f"# {line}".rstrip()


class _Loader(yaml.SafeLoader):
    """Without aliases: a few lines of them stand for gigabytes. With no more than people write."""

    _values = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._values += 1
        problem = ""
        if isinstance(event, yaml.AliasEvent):
            problem = "aliases are not read"
        elif self._values > _MOST_VALUES:
            problem = f"more than {_MOST_VALUES:,} values in a sheet"
        if problem:
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        return super().compose_node(parent, index)


def _composed(text: str, where: str) -> yaml.MappingNode:
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark else where
        why = getattr(error, "problem", None) or str(error)
        raise InputError(f"not valid YAML or JSON ({' '.join(str(why).split())})", place) from error
    except RecursionError as error:
        raise InputError("nested too deeply", where) from error
    if not isinstance(node, yaml.MappingNode):
        raise InputError("a sheet has the keys trace_id, errors and scores", where)
    return node


@dataclass
class _Sheet:
    """Checks a sheet as it is read; every text stays text, so that no id becomes a number."""

    where: str
    taxonomy: Taxonomy
    spans: Collection[str] | None
    problems: list[str] = field(default_factory=list)

    def whole(self, root: yaml.MappingNode) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for key, node in self._members(root, _KEYS):
            if key == "errors" and not _is_null(node):
                value[key] = [self._error(one) for one in self._items(node, "errors")]
            elif key == "scores" and not _is_null(node):
                value[key] = [self._scores(one) for one in self._items(node, "scores")]
            elif key == "trace_id":
                value[key] = self._text(node, "trace_id")
        if not value.get("trace_id"):
            self._say(root, "no trace_id")
        return value

    def _error(self, node: yaml.Node) -> dict[str, Any]:
        if not isinstance(node, yaml.MappingNode):
            self._say(node, "an error is an entry with category and location")
            return {}
        members = dict(self._members(node, _FIELDS))
        error = {key: self._text(one, key) for key, one in members.items()}
        for key in ("category", "location"):
            if not error.get(key):
                self._say(members.get(key, node), f"no {key}")
        category, location = error.get("category"), error.get("location")
        if category and self.taxonomy.find(category) is None:
            self._say(members["category"], f"unknown category {category!r}{self._near(category)}")
        if location and self.spans is not None and location not in self.spans:
            self._say(members["location"], f"the trace has no span {location!r}")
        impact = error.get("impact")
        if impact and impact.upper() not in _IMPACTS:
            self._say(members["impact"], f"impact {impact!r} is not HIGH, MEDIUM or LOW")
        return {key: said for key, said in error.items() if said is not None}

    def _scores(self, node: yaml.Node) -> dict[str, Any]:
        names = [f"{n}_{part}" for n in GRADES for part in ("score", "reasoning")]
        scores = {}
        for key, one in self._members(node, (*names, OVERALL)):
            said = self._text(one, key)
            if said is not None and not key.endswith("_reasoning") and not _is_grade(said):
                self._say(one, f"{key} {said!r} is not a number from 1 to 5")
            if said is not None:
                scores[key] = said
        return scores

    def _members(self, node: yaml.Node, known: Collection[str]) -> Iterator[tuple[str, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            self._say(node, "an entry with keys is expected here")
            return
        seen: set[str] = set()
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            if name not in known:
                self._say(key, f"unknown key {name!r}, known are {', '.join(known)}")
            elif name in seen:
                self._say(key, f"the key {name} stands here twice")
            else:
                seen.add(name)
                yield name, value

    def _items(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        self._say(node, f"{what} is a list")
        return []

    def _text(self, node: yaml.Node, what: str) -> str | None:
        if isinstance(node, yaml.ScalarNode):
            return None if _is_null(node) else str(node.value).strip()
        self._say(node, f"{what} is a text")
        return None

    def _near(self, category: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(category, [leaf.name for leaf in self.taxonomy.leaves], n=1)
        return f"; meant is perhaps {close[0]!r}" if close else ""

    def _say(self, node: yaml.Node, problem: str) -> None:
        self.problems.append(f"{self.where}:{node.start_mark.line + 1}: {problem}")


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _is_grade(text: str) -> bool:
    try:
        return 1 <= float(text) <= 5
    except ValueError:
        return False
