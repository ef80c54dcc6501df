"""What the page unfolds of a trace: its spans as a tree, with the findings where they belong."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.evaluators.traces.forest import DEFAULT, Bounds, Drawn, forest
from agenteval.evaluators.traces.outline import Outline, OutlineSpan
from agenteval.evaluators.traces.tables import Finder
from agenteval.records import Finding, content_hash
from agenteval.report.text import cut, shown
from agenteval.report.traces_material import Material
from agenteval.text import plural

MOST_CARDS = 200  # findings shown of one trace
_MOST_WORDS = 1500
_PLAIN = 160  # characters of the texts of a span that nothing was found at


@dataclass(frozen=True)
class Card:
    """One finding."""

    finder: str
    gold: bool
    category: str
    impact: str
    about: str
    description: str
    evidence: str
    span: str


@dataclass(frozen=True)
class Node:
    """One span: `found` counts the findings here and below, `open` unfolds it."""

    kind: str
    name: str
    id: str
    facts: str
    error: bool
    note: str
    input: str
    output: str
    cards: tuple[Card, ...]
    children: tuple[Node, ...]
    hidden: str
    found: int
    open: bool


@dataclass(frozen=True)
class Tree:
    """One trace; `id` is its anchor, the same on every page."""

    id: str
    trace: str
    about: str
    badges: tuple[tuple[str, str], ...]  # text, class
    task: str
    failed: tuple[str, ...]
    grades: tuple[tuple[str, str, str], ...]  # finder, grade, reason
    roots: tuple[Node, ...]
    hidden: str
    elsewhere: tuple[Card, ...]
    more: str
    signs: tuple[str, ...]  # that the text is meant for the judge


def tree(material: Material, trace: str, bounds: Bounds = DEFAULT) -> Tree:
    """A trace with what all finders said of it."""
    outline = material.outlines.get(trace)
    said = material.of(trace)
    cards: defaultdict[str, list[Card]] = defaultdict(list)
    for finder, finding in said[:MOST_CARDS]:
        cards[finding.span].append(_card(material, finder, finding))
    spans = outline.spans if outline else ()
    drawn = forest(spans, set(cards), bounds)
    roots = tuple(_node(root, cards) for root in drawn.roots)
    seen = _ids(drawn.roots)
    beyond = outline.total - len(spans) if outline else 0
    rest = len(said) - MOST_CARDS
    return Tree(
        id=f"trace-{content_hash(trace)[:12]}",
        trace=shown(trace),
        about=_about(outline),
        badges=_badges(material, trace),
        task=cut(outline.task, _MOST_WORDS) if outline else "",
        failed=_failed(material, trace),
        grades=_grades(material, trace),
        roots=roots,
        hidden=_hidden(drawn.hidden, beyond),
        elsewhere=tuple(card for span in cards for card in cards[span] if span not in seen),
        more=f"{rest:,} more findings are not shown." if rest > 0 else "",
        signs=next((flag.signs for flag in material.flags.found if flag.run == trace), ()),
    )


def facts_of(span: OutlineSpan) -> str:
    """Duration and tokens of a span, as in "1.2 s · 340 tokens"."""
    parts = []
    if span.seconds is not None:
        parts.append(f"{span.seconds:,.{0 if span.seconds >= 100 else 1}f} s"
                     if span.seconds >= 0.1 else f"{1000 * span.seconds:.0f} ms")  # fmt: skip
    if span.tokens is not None:
        parts.append(plural(span.tokens, "token"))
    return " · ".join(parts)


def kinds_of(kinds: Mapping[str, int]) -> str:
    """Counts as in "3 llm, 2 tool", the most frequent first."""
    return ", ".join(f"{n:,} {shown(kind)}" for kind, n in Counter(kinds).most_common() if n)


def _node(drawn: Drawn, cards: Mapping[str, Sequence[Card]]) -> Node:
    span = drawn.span
    own = tuple(sorted(cards.get(span.id, ()), key=lambda c: (c.category, c.finder)))
    children = tuple(_node(child, cards) for child in drawn.children)
    error = span.status == "error"
    found = len(own) + sum(child.found for child in children)
    most = 10 * _PLAIN if own or error else _PLAIN
    return Node(
        kind=span.kind,
        name=cut(span.name or "(no name)", 200),
        id=shown(span.id),
        facts=facts_of(span),
        error=error,
        note=cut(span.note, most),
        input=cut(span.input, most),
        output=cut(span.output, most),
        cards=own,
        children=children,
        hidden=_hidden(drawn.hidden, 0),
        found=found,
        open=bool(found) or error or any(child.open for child in children) or not drawn.depth,
    )


def _hidden(kinds: Counter[str], beyond: int) -> str:
    """What stands here and is not drawn."""
    if not kinds and not beyond:
        return ""
    text = f"… {plural(kinds.total() + beyond, 'more span')} not drawn"
    return text + (f" ({kinds_of(kinds)})" if kinds else "")


def _ids(roots: Sequence[Drawn]) -> set[str]:
    found, stack = set(), list(roots)
    while stack:
        node = stack.pop()
        found.add(node.span.id)
        stack.extend(node.children)
    return found


def _card(material: Material, finder: Finder, finding: Finding) -> Card:
    parts = [] if finding.source in ("", finder.name) else [finding.source]
    if finding.confidence is not None:
        parts.append(f"confidence {finding.confidence:.2f}")
    return Card(
        finder=shown(finder.name),
        gold=finder.gold,
        category=shown(material.category(finding.category) or "(no category)"),
        impact=(finding.impact or "").lower(),
        about=shown(", ".join(parts)),
        description=cut(finding.description, _MOST_WORDS),
        evidence=cut(finding.evidence, _MOST_WORDS),
        span=shown(finding.span),
    )


def _about(outline: Outline | None) -> str:
    if outline is None:
        return "the trace itself is not stored"
    parts = [plural(outline.total, "span"), kinds_of(outline.kinds)]
    if outline.tokens is not None:
        parts.append(plural(outline.tokens, "token"))
    if outline.errors:
        parts.append(plural(outline.errors, "span") + " with an error")
    return " · ".join(p for p in parts if p)


def _badges(material: Material, trace: str) -> tuple[tuple[str, str], ...]:
    badges = []
    for finder in material.finders:
        said = finder.findings.get(trace)
        name = shown(finder.name)
        if said is None:
            badges.append((f"{name}: not tried", "undecided"))
        elif said.status is not None:
            badges.append((f"{name}: failed", "repair"))
        else:
            badges.append((f"{name}: {len(said.findings)}", "drop" if said.findings else "keep"))
    return tuple(badges)


def _failed(material: Material, trace: str) -> tuple[str, ...]:
    return tuple(
        cut(f"{finder.name}: {said.status}: {said.message}", _MOST_WORDS)
        for finder in material.finders
        if (said := finder.findings.get(trace)) is not None and said.status is not None
    )


def _grades(material: Material, trace: str) -> tuple[tuple[str, str, str], ...]:
    rows = []
    for finder in material.finders:
        said = finder.findings.get(trace)
        for name, grade in (said.grades if said else {}).items():
            value = "no value" if grade.value is None else f"{grade.value:g}"
            text = shown(f"{name.replace('_', ' ')} {value}")
            rows.append((shown(finder.name), text, cut(grade.reason, _MOST_WORDS)))
    return tuple(rows)
