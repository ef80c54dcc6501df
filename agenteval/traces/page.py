"""The page of errors in traces: what finders found, on the spans where they found it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agenteval.analysis.flagged import Flags
from agenteval.records import Finding, Findings, content_hash
from agenteval.records.table import Table
from agenteval.reporting.page import (
    Answer,
    Block,
    Card,
    Cards,
    Foldout,
    Fragment,
    Items,
    Lines,
    Page,
    PageSection,
    Text,
    Tile,
    Words,
    badge,
    foldouts,
    render,
    summary,
)
from agenteval.reporting.text import cut
from agenteval.text import plural
from agenteval.traces.forest import DEFAULT, Bounds, Drawn, forest
from agenteval.traces.outline import Outline, OutlineSpan
from agenteval.traces.tables import (
    FinderFindings,
    categories_of,
    category_of,
    finding_tables,
)
from agenteval.traces.taxonomy import Taxonomy

MOST_TRACES = 100
MOST_CARDS = 200  # findings shown of one trace
_MOST_WORDS = 1500
_PLAIN = 160  # characters of the texts of a span that nothing was found at


@dataclass(frozen=True)
class TraceMaterial:
    """Outlines by trace id (a trace may have none), finders, and the taxonomy for the order.

    `scores` are further tables, such as the scores against the gold. `flags` are
    the traces whose text seems to talk to the judge.
    """

    outlines: Mapping[str, Outline]
    finders: Sequence[FinderFindings]
    taxonomy: Taxonomy
    scores: Sequence[Table] = field(default=())
    flags: Flags = Flags()  # noqa: RUF009  frozen

    @property
    def traces(self) -> list[str]:
        """Ids of all traces, those with an outline first."""
        ids = dict.fromkeys(self.outlines)
        for finder in self.finders:
            ids.update(dict.fromkeys(finder.findings))
        return list(ids)

    def examined(self, trace: str) -> list[tuple[FinderFindings, Findings]]:
        """The finders that tried a trace, with what came of it."""
        return [(f, f.findings[trace]) for f in self.finders if trace in f.findings]

    def of(self, trace: str) -> list[tuple[FinderFindings, Finding]]:
        """All findings of a trace, by finder."""
        return [(f, finding) for f, found in self.examined(trace) for finding in found.findings]

    def category(self, name: str) -> str:
        """The leaf of a spelling; the spelling itself where the taxonomy does not know it."""
        return category_of(name, self.taxonomy)

    def categories(self) -> list[str]:
        """All categories that somebody named, in the taxonomy's order, then the unknown ones."""
        return categories_of(self.finders, self.taxonomy)


def traces_page(
    material: TraceMaterial,
    *,
    title: str = "Errors in traces",
    facts: Sequence[tuple[str, str]] = (),
    most_traces: int = MOST_TRACES,
    bounds: Bounds = DEFAULT,
    unfinished: Sequence[str] = (),
) -> str:
    """Return the page as HTML. The same material gives the same text.

    At most `most_traces` traces can be unfolded, those with most findings first; the page says how
    many there are. `facts` are (name, text) for the end.
    """
    ordered = worth_reading(material)
    some = [
        _trace(material, trace, bounds, first=i == 0)
        for i, trace in enumerate(ordered[:most_traces])
    ]
    answer = Answer(
        "Errors found by",
        ", ".join(f.name for f in material.finders) or "nobody yet",
        headlines(material) or ["No finder has examined these traces."],
    )
    tables = finding_tables(material.finders, material.taxonomy, len(material.traces))
    lead = (
        "Traces with most findings come first. The number beside a span counts the findings at it "
        "and below. Long texts are cut."
    )
    traces = foldouts("traces", "Traces", some, len(ordered), "trace{s}", lead)
    sections = [
        summary(answer, _tiles(material), material.flags),
        PageSection("tables", "Tables", [*tables, *material.scores]),
        traces,
    ]
    lead = "What went wrong in the traces of agents, and at which span."
    return render(Page("trace report", title, lead, sections, unfinished, facts))


def worth_reading(material: TraceMaterial) -> list[str]:
    """Return all traces: those with most findings first, then those that a finder failed on."""

    def place(trace: str) -> tuple[int, int, str]:
        results = [findings for _, findings in material.examined(trace)]
        failed = sum(s.status is not None for s in results)
        return -sum(len(s.findings) for s in results), -failed, trace

    return sorted(material.traces, key=place)


def headlines(material: TraceMaterial) -> list[str]:
    """One sentence for each finder: how much it found, in how many traces, where it failed."""
    return [_headline(finder, len(material.traces)) for finder in material.finders]


def _headline(finder: FinderFindings, total: int) -> str:
    known = list(finder.known())
    name = finder.title
    failed, untried = finder.failures().total(), total - len(finder.findings)
    gaps = [
        f"could not examine {failed:,}" if failed else "",
        f"has not tried {untried:,}" if untried else "",
    ]
    rest = "".join(f"; {gap}" for gap in gaps if gap)
    if not known:
        return f"{name}: nothing is known{rest}."
    errors = sum(len(f.findings) for f in known)
    holding = sum(bool(f.findings) for f in known)
    return (
        f"{name} found {plural(errors, 'error')} in {holding:,} of {plural(len(known), 'trace')} "
        f"examined{rest}."
    )


def _tiles(material: TraceMaterial) -> list[Tile]:
    known = [findings for finder in material.finders for findings in finder.known()]
    return [
        (len(material.traces), "traces"),
        (sum(o.total for o in material.outlines.values()), "spans"),
        (len(material.finders), "finders"),
        (sum(len(f.findings) for f in known), "findings"),
        (len(material.categories()), "categories"),
        (sum(finder.failures().total() for finder in material.finders), "failures"),
    ]


def _trace(material: TraceMaterial, trace: str, bounds: Bounds, *, first: bool) -> Foldout:
    """A trace with what all finders said of it; its id is the same on every page."""
    outline = material.outlines.get(trace)
    findings = material.of(trace)
    cards: defaultdict[str, list[Card]] = defaultdict(list)
    for finder, finding in findings[:MOST_CARDS]:
        cards[finding.span].append(_card(material, finder, finding))
    spans = outline.spans if outline else ()
    drawn = forest(spans, set(cards), bounds)
    seen = {node.span.id for node in _nodes(drawn.roots)}
    beyond = outline.total - len(spans) if outline else 0
    elsewhere = []
    for span in [span for span in cards if span not in seen]:
        place = Text(["at ", Fragment(span or "(no span)", "code")], "quiet")
        elsewhere += [Card(c.head, [place, *c.blocks], c.kind) for c in cards[span]]
    signs = next((flag.signs for flag in material.flags.found if flag.run == trace), ())
    blocks: list[Block] = [*_failed(material, trace)]
    blocks += [Text(cut(text, _MOST_WORDS), "pre", name) for name, text in brief(outline)]
    if grades := _grades(material, trace):
        blocks.append(Lines(grades, "Grades"))
    if elsewhere:
        title = "Found at spans that are not drawn here, or that the trace does not have"
        blocks.append(Cards(elsewhere, title, "list"))
    if len(findings) > MOST_CARDS:
        rest = len(findings) - MOST_CARDS
        blocks.append(Text(f"{rest:,} more findings are not shown.", "warning"))
    roots = [_span(root, cards) for root in drawn.roots]
    blocks.append(Items(roots, "tree", _hidden(drawn.hidden, beyond)))
    return Foldout(
        f"trace-{content_hash(trace)[:12]}",
        trace,
        blocks,
        _badges(material, trace),
        _about(outline),
        open=first,
        kind="trace",
        signs=signs,
    )


def brief(outline: Outline | None) -> list[tuple[str, str]]:
    """The task, the last answer of the agent, and where gold was withheld, with the spans."""
    if outline is None:
        return []
    named = {span.id: f", from {span.kind} {span.name} ({span.id})" for span in outline.spans}
    both = (
        ("The task", outline.task, outline.task_span),
        ("The last answer", outline.ending, outline.ending_span),
    )
    rows = [(title + named.get(span or "", ""), text) for title, text, span in both if text]
    if outline.withheld:
        places = (path.removeprefix("spans.") for path in outline.withheld)
        rows.append(("Gold answers, withheld from judges at", ", ".join(places)))
    return rows


def facts_of(span: OutlineSpan) -> str:
    """Duration and tokens of a span, as in "1.2 s · 340 tokens"."""
    parts = []
    if span.seconds is not None:
        digits = 0 if span.seconds >= 100 else 1
        short = f"{1000 * span.seconds:.0f} ms"
        parts.append(short if span.seconds < 0.1 else f"{span.seconds:,.{digits}f} s")
    if span.tokens is not None:
        parts.append(plural(span.tokens, "token"))
    return " · ".join(parts)


def kinds_of(kinds: Mapping[str, int]) -> str:
    """Counts as in "3 llm, 2 tool", the most frequent first."""
    return ", ".join(f"{n:,} {kind}" for kind, n in Counter(kinds).most_common() if n)


def _span(drawn: Drawn, cards: Mapping[str, Sequence[Card]]) -> Foldout:
    """A span with its findings and the spans below it; open where something was found."""
    span = drawn.span
    own = sorted(cards.get(span.id, ()), key=_order)
    children = [_span(child, cards) for child in drawn.children]
    marked = sum(len(cards.get(node.span.id, ())) for node in _nodes([drawn]))
    error = span.status == "error"
    most = 10 * _PLAIN if own or error else _PLAIN
    badges = [badge("error", "repair")] if error else []
    badges += [badge(plural(marked, "finding"), "drop")] if marked else []
    blocks: list[Block] = [Cards(own, form="list")] if own else []
    if span.note:
        blocks.append(Text(cut(span.note, most), "warning"))
    sides = (("input", span.input), ("output", span.output))
    texts = [Text(cut(text, most), "pre", name) for name, text in sides if text]
    if texts:
        blocks.append(Items([Foldout("", f"input and output of {span.id}", texts, open=bool(own))]))
    else:
        blocks.append(Text([Fragment(span.id, "code"), " tells no input or output"], "note"))
    if children or drawn.hidden:
        blocks.append(Items(children, "tree", _hidden(drawn.hidden, 0)))
    open_ = bool(marked) or error or any(child.open for child in children) or not drawn.depth
    name = cut(span.name or "(no name)", 200)
    return Foldout("", name, blocks, badges, facts_of(span), open_, f"span {span.kind}")


def _order(card: Card) -> str:
    return "".join(p if isinstance(p, str) else p.text for p in card.head)


def _nodes(roots: Sequence[Drawn]) -> list[Drawn]:
    """These and all below them."""
    nodes, stack = [], list(roots)
    while stack:
        nodes.append(stack.pop())
        stack.extend(nodes[-1].children)
    return nodes


def _hidden(kinds: Counter[str], beyond: int) -> str:
    """What stands here and is not drawn."""
    if not kinds and not beyond:
        return ""
    text = f"… {plural(kinds.total() + beyond, 'more span')} not drawn"
    return text + (f" ({kinds_of(kinds)})" if kinds else "")


def _card(material: TraceMaterial, finder: FinderFindings, finding: Finding) -> Card:
    parts = [finder.title]
    parts += [] if finding.source in ("", finder.name) else [finding.source]
    if finding.confidence is not None:
        parts.append(f"confidence {finding.confidence:.2f}")
    head: list[str | Fragment] = [
        Fragment(material.category(finding.category) or "(no category)", "strong"),
        " ",
    ]
    if finding.impact:
        impact = finding.impact.lower()
        head += [badge(impact, "drop") if impact == "high" else Fragment(impact, "small"), " "]
    head.append(Fragment(", ".join(parts), "quiet"))
    blocks = []
    if finding.description:
        blocks.append(Text(cut(finding.description, _MOST_WORDS)))
    if finding.evidence:
        blocks.append(Text(cut(finding.evidence, _MOST_WORDS), "quote"))
    return Card(head, blocks, "finding gold" if finder.gold else "finding")


def _about(outline: Outline | None) -> str:
    if outline is None:
        return "the trace itself is not stored"
    parts = [plural(outline.total, "span"), kinds_of(outline.kinds)]
    if outline.tokens is not None:
        parts.append(plural(outline.tokens, "token"))
    if outline.errors:
        parts.append(plural(outline.errors, "span") + " with an error")
    return " · ".join(p for p in parts if p)


def _badges(material: TraceMaterial, trace: str) -> list[Fragment]:
    badges = []
    for finder in material.finders:
        findings = finder.findings.get(trace)
        if findings is None:
            badges.append(badge(f"{finder.name}: not tried", "undecided"))
        elif findings.status is not None:
            badges.append(badge(f"{finder.name}: failed", "repair"))
        elif findings.findings:
            badges.append(
                badge(f"{finder.name}: {plural(len(findings.findings), 'finding')}", "drop")
            )
        else:  # no mark of success: what a finder misses may still be there
            badges.append(Fragment(f"{finder.name}: no findings", "small"))
    return badges


def _failed(material: TraceMaterial, trace: str) -> list[Block]:
    return [
        Text(cut(f"{finder.name}: {findings.status}: {findings.message}", _MOST_WORDS), "warning")
        for finder, findings in material.examined(trace)
        if findings.status is not None
    ]


def _grades(material: TraceMaterial, trace: str) -> list[Words]:
    rows: list[Words] = []
    for finder, findings in material.examined(trace):
        for name, grade in findings.grades.items():
            value = "no value" if grade.value is None else f"{grade.value:g}"
            reason = f", {cut(grade.reason, _MOST_WORDS)}" if grade.reason else ""
            text = Fragment(f"{name.replace('_', ' ')} {value}", "strong")
            rows.append([f"{finder.name}: ", text, reason])
    return rows
