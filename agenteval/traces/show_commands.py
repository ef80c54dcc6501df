"""agenteval trace show: a trace as a tree in the terminal, with what was found in it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import arguments as options
from agenteval.cli.command import grouped
from agenteval.cli.console import clean, note, notify, out, print_json, warn
from agenteval.errors import InputError
from agenteval.text import plural, visible

if TYPE_CHECKING:
    from rich.tree import Tree

    from agenteval.records import Finding, Findings, Run
    from agenteval.traces.forest import Drawn
    from agenteval.traces.outline import Outline, OutlineSpan

_COLOURS = {"llm": "cyan", "tool": "yellow", "agent": "magenta", "user": "green", "chain": "dim"}
_NAME, _WORDS = 60, 240
TaxonomyFile = Annotated[
    Path | None, typer.Option("--taxonomy", help="Your own kinds of errors (JSON or YAML).")
]
FindingsDirs = Annotated[
    list[Path] | None,
    typer.Option("--findings", help="Folder of findings, one JSON file per trace; repeatable."),
]


@grouped
def show(
    path: Annotated[str, typer.Argument(help="A trace file.", metavar="FILE")],
    trace: Annotated[
        str | None, typer.Option(help="Id of the trace, where the file holds several.")
    ] = None,
    detect: Annotated[
        bool, typer.Option("--detect", help="Find errors by rules, without a model.")
    ] = False,
    findings: FindingsDirs = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Show what finders have stored of this trace.")
    ] = False,
    taxonomy: TaxonomyFile = None,
    spans: Annotated[
        int, typer.Option(help="Spans drawn at most; the rest is counted.", min=1)
    ] = 200,
    chars: Annotated[
        int, typer.Option(help="Characters of an input or output; 0 shows none.", min=0)
    ] = 100,
    store: options.StorePath = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Print a trace as a tree: kind, name, duration, tokens, status, and findings at their span."""
    from agenteval.cli.running import Watch, opened
    from agenteval.traces.api import detect as detected
    from agenteval.traces.evaluator import load_findings
    from agenteval.traces.input import (
        flags_of,
        name_of,
        read_findings,
        read_taxonomy,
    )
    from agenteval.traces.outline import outline, trace_key

    labels = read_taxonomy(taxonomy)
    run = _chosen(path, trace)
    by_finder: list[tuple[str, Findings]] = []
    if detect:
        report = detected([run], taxonomy=labels)
        by_finder += [("detectors", one) for one in report.findings]
    for folder in findings or ():
        every = read_findings(folder, labels, Watch(notify), f"findings {folder}")
        own = [(name_of(folder), one.findings) for one in every if one.trace == run.id]
        by_finder += own
        if not own:
            note(f"{folder} has nothing about trace {run.id}")
    if stored:
        with opened(store, create=False) as kept, kept.snapshot():
            own = [
                (one.finder, one.findings) for one in load_findings(kept, traces=[trace_key(run)])
            ]
        by_finder += own
        if not own:
            note("nothing is stored of this trace; run `agenteval trace locate`")
    known = {span.id for span in run.spans}
    for _, one in by_finder:
        lost = [f"{f.category} at {f.span!r}" for f in one.findings if f.span not in known]
        if lost:
            warn(f"{len(lost)} findings stand at no span of this trace: {'; '.join(lost[:3])}")
    # all spans, so that a finding far down is drawn; texts only as long as they are shown
    seen = outline(run, most=len(run.spans), excerpt=max(chars, 200))
    signs = [sign for flag in flags_of([run]).found for sign in flag.signs]
    if as_json:
        print_json(
            {
                "trace": seen.model_dump(mode="json"),
                "signs": signs,
                "findings": [{"finder": n, **f.model_dump(mode="json")} for n, f in by_finder],
            }
        )
        return
    print_trace(seen, by_finder, most=spans, chars=chars)
    if signs:
        listed = clean(", ".join(signs))
        out().print(f"[yellow]its text seems to talk to the judge: {listed}[/yellow]")


def _chosen(path: str, trace: str | None) -> Run:
    """The trace of this id, or the only one. Raises InputError where there is none, or several."""
    from agenteval.cli.running import Watch
    from agenteval.traces.input import read_each

    runs = {}
    for run, _ in read_each(path, Watch(notify)):
        if run.id == trace:
            return run
        runs[run.id] = run
    names = ", ".join(list(runs)[:5])
    if trace is not None:
        raise InputError(f"no trace {trace!r} in {path}; there are {names}", "--trace")
    if len(runs) > 1:
        raise InputError(f"{len(runs)} traces are here ({names}...); name one with --trace", path)
    return next(iter(runs.values()))


def print_trace(seen: Outline, found: list[tuple[str, Findings]], *, most: int, chars: int) -> None:
    """The tree with its head, and how many findings there are."""
    from rich.tree import Tree

    from agenteval.traces.forest import Bounds, forest
    from agenteval.traces.page import brief, kinds_of

    at: defaultdict[str, list[tuple[str, Finding]]] = defaultdict(list)
    for finder, one in found:
        for finding in one.findings:
            at[finding.span].append((finder, finding))
    drawn = forest(seen.spans, set(at), Bounds(spans=most))
    kinds = _safe(kinds_of(seen.kinds))
    head = f"[bold]trace {_safe(seen.trace)}[/bold]  {seen.total:,} spans ({kinds})"
    if seen.tokens is not None:
        head += f", {seen.tokens:,} tokens reported"
    if seen.errors:
        head += f", [red]{seen.errors:,} with status error[/red]"
    for name, text in brief(seen) if chars else ():
        head += f"\n[dim]{_short(name, _WORDS)}:[/dim] {_short(text, 16 * chars)}"
    root = Tree(head, guide_style="dim")
    for node in drawn.roots:
        _add(root, node, at, chars)
    _rest(root, drawn.hidden)
    out().print(root, soft_wrap=False)
    for finder, one in found:
        out().print(_summary(finder, one))
        if finder == "detectors" and (failed := _unexplained(seen, one)):
            out().print(
                f"[yellow]{plural(len(failed), 'span')} with status error that no rule explains: "
                f"{_short(', '.join(failed), _WORDS)}; trace locate --model reads them[/yellow]"
            )


def _unexplained(seen: Outline, found: Findings) -> list[str]:
    """Ids of spans with an error without a finding at them, or below, from where it rises."""
    above = {span.id: span.parent_id for span in seen.spans}
    explained: set[str] = set()
    for finding in found.findings:
        span: str | None = finding.span
        while span is not None and span not in explained:
            explained.add(span)
            span = above.get(span)
    return [s.id for s in seen.spans if s.status == "error" and s.id not in explained]


def _add(above: Tree, node: Drawn, at: dict[str, list[tuple[str, Finding]]], chars: int) -> None:
    branch = above.add(_span_line(node.span, chars))
    for finder, finding in at.get(node.span.id, ()):
        branch.add(_finding_line(finder, finding), guide_style="red")
    for child in node.children:
        _add(branch, child, at, chars)
    _rest(branch, node.hidden)


def _rest(branch: Tree, hidden: dict[str, int]) -> None:
    from agenteval.traces.page import kinds_of

    if hidden:
        count = plural(sum(hidden.values()), "more span")
        branch.add(f"[dim]… {count} ({_safe(kinds_of(hidden))})[/dim]")


def _span_line(span: OutlineSpan, chars: int) -> str:
    from agenteval.traces.page import facts_of

    colour = _COLOURS.get(span.kind, "dim")
    parts = [f"[{colour}]{_safe(span.kind)}[/{colour}] [bold]{_short(span.name, _NAME)}[/bold]"]
    if facts := facts_of(span):
        parts.append(f"[dim]{facts}[/dim]")
    if span.status == "error":
        parts.append(f"[red]error[/red] {_short(span.note, _WORDS)}".rstrip())
    parts.append(f"[dim]{_safe(span.id)}[/dim]")
    lines = ["  ".join(parts)]
    for name, text in (("in ", span.input), ("out", span.output)):
        if chars and text:
            lines.append(f"[dim]{name}[/dim] {_short(text, chars)}")
    return "\n".join(lines)


def _finding_line(finder: str, finding: Finding) -> str:
    head = f"[red]✗ {_safe(finding.category)}[/red]"
    about = [finding.impact or "", finding.source or finder]
    if finding.confidence is not None:
        about.append(f"confidence {finding.confidence:.2f}")
    text = f"{head} [dim]({_safe(', '.join(filter(None, about)))})[/dim]"
    for part in (finding.description, f"“{finding.evidence}”" if finding.evidence else ""):
        if part:
            text += f" {_short(part, _WORDS)}"
    return text


def _summary(finder: str, said: Findings) -> str:

    if said.status is not None:
        why = f": {_safe(said.message)}" if said.message else ""
        return f"[yellow]{_safe(finder)}: no findings are known, {said.status}{why}[/yellow]"
    text = f"{_safe(finder)}: {plural(len(said.findings), 'finding')}"
    grades = [
        f"{name.replace('_', ' ')} {grade.value:g}"
        for name, grade in said.grades.items()
        if grade.value is not None
    ]
    if grades:
        text += f"; grades: {_safe(', '.join(grades))}"
    if said.rejected:
        text += f"; {len(said.rejected):,} not taken"
    return text + (f" ({_safe(said.message)})" if said.message else "")


def _short(text: str, most: int) -> str:
    """On one line, nothing hidden, markup escaped, at most `most` characters."""
    line = " ".join(text[: 8 * most].split())
    return _safe(line if len(line) <= most else line[: most - 1] + "…")


def _safe(text: str) -> str:
    """Nothing hidden or reordered, markup escaped."""

    return clean(visible(text))
