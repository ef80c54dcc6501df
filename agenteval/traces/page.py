"""The HTML page that shows findings at their spans."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agenteval.records import Finding, Findings, content_hash
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
    Words,
    badge,
    foldouts,
    render,
    summary,
)
from agenteval.reporting.text import cut
from agenteval.text import plural
from agenteval.traces.outline import Bounds, Drawn, Outline, OutlineSpan, forest, nodes
from agenteval.traces.tables import FinderFindings, categories_of, category_of
from agenteval.traces.taxonomy import built_in

if TYPE_CHECKING:
    from agenteval.traces.api import FindingsReport

_MAX_CARDS = 200  # findings shown per trace
_MAX_TEXT = 1500
_MAX_PLAIN = 160  # characters of the texts of a span without findings


def traces_page(
    report: FindingsReport,
    *,
    facts: Sequence[tuple[str, str]] = (),
    most_traces: int = 100,
    spans: int = 200,
) -> str:
    """Return the page as HTML; the output is deterministic.

    Shows at most `most_traces` traces, those with the most findings first, and the total number.
    `facts` are (name, text) for the end of the page.
    """
    taxonomy, finders = report.taxonomy or built_in(), report.finders
    outlines = {outline.trace: outline for outline in report.outlines}
    every = dict.fromkeys(outlines)
    for finder in finders:
        every.update(dict.fromkeys(finder.findings))
    ordered = worth_reading(list(every), finders)
    examined = [findings for finder in finders for findings in finder.examined()]
    failures = sum(finder.failures().total() for finder in finders)
    tiles = [
        (len(every), "traces"),
        (sum(outline.total for outline in outlines.values()), "spans"),
        (len(finders), "finders"),
        (sum(len(findings.findings) for findings in examined), "findings"),
        (len(categories_of(finders, taxonomy)), "categories"),
        (failures, "failures"),
    ]
    answer = Answer(
        "Errors found by",
        ", ".join(finder.name for finder in finders) or "no one yet",
        [headline(f, len(every)) for f in finders] or ["These traces have not been examined."],
    )
    lead = (
        "Traces with the most findings come first. The number next to a span counts findings at it "
        "and below it. Long texts are cut."
    )
    some = [
        trace_item(report, trace, outlines.get(trace), Bounds(spans=spans), first=i == 0)
        for i, trace in enumerate(ordered[:most_traces])
    ]
    sections = [
        summary(answer, tiles, report.flags),
        PageSection("tables", "Tables", report.tables),
        foldouts("traces", "Traces", some, len(ordered), "trace{s}", lead),
    ]
    title, lead = "Errors in traces", "Errors in agent traces, shown at their spans."
    facts = [("taxonomy", f"{taxonomy.name}, version {taxonomy.version}"), *facts]
    return render(Page("trace report", title, lead, sections, report.unfinished, facts))


def worth_reading(traces: Sequence[str], finders: Sequence[FinderFindings]) -> list[str]:
    """Order traces: those with the most findings first, then those that a finder failed on."""

    places = {}
    for trace in traces:
        results = [f.findings[trace] for f in finders if trace in f.findings]
        failed = sum(findings.status is not None for findings in results)
        places[trace] = (-sum(len(findings.findings) for findings in results), -failed, trace)
    return sorted(traces, key=places.__getitem__)


def headline(finder: FinderFindings, traces: int) -> str:
    """Return one sentence: how many errors a finder found in how many traces, and its failures."""
    examined, name = finder.examined(), finder.title
    failed, untried = finder.failures().total(), traces - len(finder.findings)
    gaps = f"; could not examine {failed:,}" if failed else ""
    gaps += f"; has not examined {untried:,}" if untried else ""
    if not examined:
        return f"{name}: no findings are available{gaps}."
    errors = sum(len(findings.findings) for findings in examined)
    with_errors = sum(bool(findings.findings) for findings in examined)
    return (
        f"{name} found {plural(errors, 'error')} in {with_errors:,} of "
        f"{plural(len(examined), 'trace')} examined{gaps}."
    )


def trace_item(
    report: FindingsReport, trace: str, outline: Outline | None, bounds: Bounds, *, first: bool
) -> Foldout:
    """Return a trace with all finders' findings; its id is the same on every page."""
    results = [(f, f.findings[trace]) for f in report.finders if trace in f.findings]
    findings = [(finder, finding) for finder, of in results for finding in of.findings]
    cards: defaultdict[str, list[Card]] = defaultdict(list)
    for finder, finding in findings[:_MAX_CARDS]:
        cards[finding.span].append(_card(report, finder, finding))
    spans = outline.spans if outline else ()
    drawn = forest(spans, set(cards), bounds)
    visible = {node.span.id for node in nodes(drawn.roots)}
    elsewhere = []
    for span in [span for span in cards if span not in visible]:
        place = Text(["at ", Fragment(span or "(no span)", "code")], "quiet")
        elsewhere += [Card(c.head, [place, *c.blocks], c.kind) for c in cards[span]]
    blocks: list[Block] = [
        Text(cut(f"{finder.name}: {of.status}: {of.message}", _MAX_TEXT), "warning")
        for finder, of in results
        if of.status is not None
    ]
    blocks += [Text(cut(text, _MAX_TEXT), "pre", name) for name, text in brief(outline)]
    grades = [line for finder, of in results for line in _grades(finder, of)]
    if grades:
        blocks.append(Lines(grades, "Grades"))
    if elsewhere:
        title = "Findings at spans that are not shown or not in the trace"
        blocks.append(Cards(elsewhere, title, "list"))
    if len(findings) > _MAX_CARDS:
        more = len(findings) - _MAX_CARDS
        blocks.append(Text(f"{more:,} more findings are not shown.", "warning"))
    roots = [_span(root, cards) for root in drawn.roots]
    beyond = outline.total - len(spans) if outline else 0
    blocks.append(Items(roots, "tree", _hidden(drawn.hidden, beyond)))
    return Foldout(
        f"trace-{content_hash(trace)[:12]}",
        trace,
        blocks,
        [_badge(finder, finder.findings.get(trace)) for finder in report.finders],
        _about(outline),
        open=first,
        kind="trace",
        signs=next((flag.signs for flag in report.flags.found if flag.run == trace), ()),
    )


def brief(outline: Outline | None) -> list[tuple[str, str]]:
    """Return (name, text) of the task, the last answer, and the location of withheld gold."""
    if outline is None:
        return []
    origins = {span.id: f", from {span.kind} {span.name} ({span.id})" for span in outline.spans}
    both = (
        ("The task", outline.task, outline.task_span),
        ("Final answer", outline.ending, outline.ending_span),
    )
    rows = [(title + origins.get(span or "", ""), text) for title, text, span in both if text]
    if outline.withheld:
        places = (path.removeprefix("spans.") for path in outline.withheld)
        rows.append(("Gold answers, withheld from judges at", ", ".join(places)))
    return rows


def facts_of(span: OutlineSpan) -> str:
    """Format duration, tokens and cost of a span, as in "1.2 s · 340 tokens"."""
    parts = []
    if span.seconds is not None:
        digits = 0 if span.seconds >= 100 else 1
        short = f"{1000 * span.seconds:.0f} ms"
        parts.append(short if span.seconds < 0.1 else f"{span.seconds:,.{digits}f} s")
    if span.tokens is not None:
        parts.append(plural(span.tokens, "token"))
    if span.cost is not None:
        parts.append(f"cost {span.cost:.4g}")
    return " · ".join(parts)


def kinds_of(kinds: Mapping[str, int]) -> str:
    """Format counts as in "3 llm, 2 tool", most frequent first."""
    return ", ".join(f"{n:,} {kind}" for kind, n in Counter(kinds).most_common() if n)


def _span(drawn: Drawn, cards: Mapping[str, Sequence[Card]]) -> Foldout:
    """Return a span with its findings and the spans below it, expanded if it has findings."""
    span = drawn.span
    at_span = sorted(cards.get(span.id, ()), key=_words)
    children = [_span(child, cards) for child in drawn.children]
    marked = sum(len(cards.get(node.span.id, ())) for node in nodes([drawn]))
    error = span.status == "error"
    most = 10 * _MAX_PLAIN if at_span or error else _MAX_PLAIN
    badges = [badge("error", "repair")] if error else []
    badges += [badge(plural(marked, "finding"), "drop")] if marked else []
    blocks: list[Block] = [Cards(at_span, form="list")] if at_span else []
    if span.note:
        blocks.append(Text(cut(span.note, most), "warning"))
    sides = (("input", span.input), ("output", span.output))
    texts = [Text(cut(text, most), "pre", name) for name, text in sides if text]
    if texts:
        title = f"input and output of {span.id}"
        blocks.append(Items([Foldout("", title, texts, open=bool(at_span))]))
    else:
        blocks.append(Text([Fragment(span.id, "code"), " has no input or output"], "note"))
    if children or drawn.hidden:
        blocks.append(Items(children, "tree", _hidden(drawn.hidden, 0)))
    open_ = bool(marked) or error or any(child.open for child in children) or not drawn.depth
    name = cut(span.name or "(no name)", 200)
    return Foldout("", name, blocks, badges, facts_of(span), open_, f"span {span.kind}")


def _words(card: Card) -> str:
    return "".join(p if isinstance(p, str) else p.text for p in card.head)


def _hidden(kinds: Counter[str], beyond: int) -> str:
    """Format the number of omitted spans."""
    if not kinds and not beyond:
        return ""
    text = f"… {plural(kinds.total() + beyond, 'more span')} not shown"
    return text + (f" ({kinds_of(kinds)})" if kinds else "")


def _card(report: FindingsReport, finder: FinderFindings, finding: Finding) -> Card:
    parts = [finder.title]
    parts += [] if finding.source in ("", finder.name) else [finding.source]
    if finding.confidence is not None:
        parts.append(f"confidence {finding.confidence:.2f}")
    category = category_of(finding.category, report.taxonomy or built_in())
    head: list[str | Fragment] = [Fragment(category or "(no category)", "strong"), " "]
    if finding.impact:
        impact = finding.impact.lower()
        head += [badge(impact, "drop") if impact == "high" else Fragment(impact, "small"), " "]
    head.append(Fragment(", ".join(parts), "quiet"))
    blocks = [Text(cut(finding.description, _MAX_TEXT))] if finding.description else []
    blocks += [Text(cut(finding.evidence, _MAX_TEXT), "quote")] if finding.evidence else []
    return Card(head, blocks, "finding gold" if finder.gold else "finding")


def _about(outline: Outline | None) -> str:
    if outline is None:
        return "the trace is not stored"
    parts = [plural(outline.total, "span"), kinds_of(outline.kinds)]
    if outline.tokens is not None:
        parts.append(plural(outline.tokens, "token"))
    if outline.cost is not None:
        parts.append(f"cost {outline.cost:.4g}")
    if outline.errors:
        parts.append(plural(outline.errors, "span") + " with an error")
    return " · ".join(p for p in parts if p)


def _badge(finder: FinderFindings, findings: Findings | None) -> Fragment:
    if findings is None:
        return badge(f"{finder.name}: not examined", "undecided")
    if findings.status is not None:
        return badge(f"{finder.name}: failed", "repair")
    if findings.findings:
        return badge(f"{finder.name}: {plural(len(findings.findings), 'finding')}", "drop")
    # No success mark: the finder may have missed errors.
    return Fragment(f"{finder.name}: no findings", "small")


def _grades(finder: FinderFindings, findings: Findings) -> list[Words]:
    lines: list[Words] = []
    for name, grade in findings.grades.items():
        value = "no value" if grade.value is None else f"{grade.value:g}"
        reason = f", {cut(grade.reason, _MAX_TEXT)}" if grade.reason else ""
        text = Fragment(f"{name.replace('_', ' ')} {value}", "strong")
        lines.append([f"{finder.name}: ", text, reason])
    return lines
