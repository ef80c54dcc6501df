"""The `agenteval trace` commands: find errors in traces of agents and report them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from agenteval.cli import arguments as options
from agenteval.cli.arguments import LimitOptions, OutputOptions, ReplyOptions
from agenteval.cli.command import CommandApp, finish, grouped
from agenteval.cli.console import clean, note, notify, out, print_json, warn
from agenteval.cli.options import keywords
from agenteval.cli.outputs import refuse_input
from agenteval.cli.progress import following
from agenteval.errors import InputError
from agenteval.text import plural, visible
from agenteval.traces.options import LocateOptions

if TYPE_CHECKING:
    from rich.tree import Tree

    from agenteval.records import Finding, Findings, Run
    from agenteval.traces.outline import Drawn, Forest, Outline, OutlineSpan

app = CommandApp(
    help="Find errors in agent traces, and score error finders.",
    no_args_is_help=True,
)

_COLORS = {"llm": "cyan", "tool": "yellow", "agent": "magenta", "user": "green", "chain": "dim"}
_NAME, _WORDS = 60, 240  # characters
Paths = Annotated[
    list[str], typer.Argument(help="Traces: files, folders, or globs in quotes.", metavar="PATHS")
]
TaxonomyFile = Annotated[
    Path | None, typer.Option("--taxonomy", help="Custom taxonomy of errors (JSON or YAML).")
]
FindingsDirs = Annotated[
    list[Path] | None,
    typer.Option("--findings", help="Folder of findings, one JSON file per trace. Repeatable."),
]


class WithoutErrors(StrEnum):
    """How to score a trace without gold errors."""

    correct = "correct"
    zero = "zero"
    leave_out = "leave-out"


@app.command("locate")
@grouped
def locate(
    paths: Paths,
    settings: LocateOptions,
    reply: ReplyOptions,
    limits: LimitOptions,
    output: OutputOptions,
) -> None:
    """Find errors in traces. If interrupted, run the same command to continue."""
    from agenteval.traces.api import locate as find_errors

    folder = settings.output
    refuse_input(folder, store=settings.store)
    with following("locating", "traces") as progress:
        report = find_errors(
            paths,
            **keywords(settings, limits=limits.limits(), notify=notify, progress=progress),
        )
    if folder is not None and report.estimate is None:
        note(f"{len(report.write(folder))} files written to {folder}")
    finish(report, output)


@app.command("score")
@grouped
def score(
    gold: Annotated[Path, typer.Option(help="Folder of annotations, one JSON file per trace.")],
    pred: Annotated[Path, typer.Option(help="Folder of findings to score.")],
    output: OutputOptions,
    traces: Annotated[
        list[str] | None,
        typer.Option(help="The traces: files, folders or globs. Repeatable."),
    ] = None,
    official: Annotated[
        bool,
        typer.Option(
            "--official", help="Reproduce TRAIL's official scores exactly, with their quirks."
        ),
    ] = False,
    without_errors: Annotated[
        WithoutErrors,
        typer.Option(
            help="Score of a trace without gold errors: 1 if nothing is predicted, always 0 "
            "(official), or excluded."
        ),
    ] = WithoutErrors.correct,
    leave_out_missing: Annotated[
        bool,
        typer.Option(
            "--leave-out-missing",
            help="Exclude traces without a readable prediction (official) instead of counting "
            "them as empty.",
        ),
    ] = False,
    taxonomy: TaxonomyFile = None,
    seed: options.Seed = 0,
    gate: Annotated[
        float | None,
        typer.Option(help="Exit with 1 if joint F1 (official: joint) is lower.", min=0, max=1),
    ] = None,
    max_unscored: Annotated[
        float,
        typer.Option(help="Exit with 3 if a larger share lacks a prediction.", min=0, max=1),
    ] = 0.1,
) -> None:
    """Score a folder of findings against a folder of annotations."""
    from agenteval.traces.score_api import score_findings

    report = score_findings(
        gold,
        pred,
        traces=traces,
        official=official,
        without_errors=cast(Literal["correct", "zero", "leave_out"], without_errors.name),
        leave_out_missing=leave_out_missing,
        taxonomy=taxonomy,
        seed=seed,
        gate=gate,
        max_unscored=max_unscored,
        notify=notify,
    )
    finish(report, output)


@app.command("stats")
@grouped
def stats(
    paths: Paths,
    output: OutputOptions,
    budget: Annotated[
        int | None,
        typer.Option(help="Maximum tokens of a condensed trace. Default: no limit.", min=256),
    ] = None,
) -> None:
    """Count spans, errors, and tokens before and after condensing."""
    from agenteval.traces.api import stats as stats_of

    finish(stats_of(paths, budget=budget, notify=notify), output)


@app.command("report")
@grouped
def report(
    output: OutputOptions,
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Only these traces. Default: all stored.", metavar="PATHS"),
    ] = None,
    page: Annotated[Path | None, typer.Option("-o", "--output", help="Output page (HTML).")] = None,
    findings: FindingsDirs = None,
    gold: Annotated[
        Path | None, typer.Option(help="Folder of annotations, to show and to score against.")
    ] = None,
    spans: Annotated[
        int, typer.Option(help="Maximum number of spans shown per trace.", min=1)
    ] = 200,
    most: Annotated[
        int, typer.Option("--traces", help="Maximum number of traces on the page.", min=1)
    ] = 100,
    taxonomy: TaxonomyFile = None,
    store: options.StorePath = None,
) -> None:
    """Count errors by category and finder; -o writes a page with spans."""
    from agenteval.files import write_atomically
    from agenteval.traces.findings_api import findings_report

    refuse_input(page, [*(paths or ()), gold, taxonomy], store=store)
    report = findings_report(
        paths, findings=findings or (), gold=gold, taxonomy=taxonomy, store=store, notify=notify
    )
    if page is not None:
        write_atomically(page, report.page(most_traces=most, spans=spans))
        note(f"written: {page}")
    finish(report, output)


@app.command("show")
@grouped
def show(
    path: Annotated[str, typer.Argument(help="A trace file.", metavar="FILE")],
    trace: Annotated[
        str | None, typer.Option(help="Id of the trace, if the file has several.")
    ] = None,
    detect: Annotated[
        bool, typer.Option("--detect", help="Find errors with detectors, without a model.")
    ] = False,
    findings: FindingsDirs = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Show stored findings on this trace.")
    ] = False,
    taxonomy: TaxonomyFile = None,
    spans: Annotated[
        int, typer.Option(help="Maximum number of spans shown; the rest are counted.", min=1)
    ] = 200,
    chars: Annotated[
        int, typer.Option(help="Maximum characters of an input or output; 0 hides them.", min=0)
    ] = 100,
    store: options.StorePath = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Print a trace as a tree, with findings at their spans."""
    from agenteval.cli.running import Watch, opened
    from agenteval.traces.api import detect as detect_errors
    from agenteval.traces.evaluator import load_findings
    from agenteval.traces.input import flags_of, name_of, read_findings, read_taxonomy
    from agenteval.traces.outline import outline, trace_key

    labels = read_taxonomy(taxonomy)
    run = _chosen(path, trace)
    results: list[tuple[str, Findings]] = []
    if detect:
        report = detect_errors([run], taxonomy=labels)
        results += [("detectors", of_run) for of_run in report.findings]
    for folder in findings or ():
        every = read_findings(folder, labels, Watch(notify), f"findings {folder}")
        in_folder = [(name_of(folder), a.findings) for a in every if a.trace == run.id]
        results += in_folder
        if not in_folder:
            note(f"{folder} has no findings on trace {run.id}")
    if stored:
        with opened(store, create=False) as opened_store, opened_store.snapshot():
            rows = load_findings(opened_store, traces=[trace_key(run)])
        results += [(row.finder, row.findings) for row in rows]
        if not rows:
            note("the store has no findings on this trace; run `agenteval trace locate`")
    ids = {span.id for span in run.spans}
    for _, of_finder in results:
        lost = [f"{f.category} at {f.span!r}" for f in of_finder.findings if f.span not in ids]
        if lost:
            some = "; ".join(lost[:3])
            warn(f"{len(lost)} findings are at spans that are not in this trace: {some}")
    # All spans, so that a finding far down is shown; texts only as long as they are shown.
    shown = outline(run, most=len(run.spans), excerpt=max(chars, 200))
    signs = [sign for flag in flags_of([run]).found for sign in flag.signs]
    if as_json:
        print_json(
            {
                "trace": shown.model_dump(mode="json"),
                "signs": signs,
                "findings": [{"finder": n, **f.model_dump(mode="json")} for n, f in results],
            }
        )
        return
    print_trace(shown, results, spans=spans, chars=chars)
    if signs:
        listed = clean(", ".join(signs))
        out().print(f"[yellow]its text seems to address the judge: {listed}[/yellow]")


def _chosen(path: str, trace: str | None) -> Run:
    """Return the trace with this id, or the only one. Raises InputError for none or several."""
    from agenteval.cli.running import Watch
    from agenteval.traces.input import read_each

    runs = {}
    for run, _ in read_each(path, Watch(notify)):
        if run.id == trace:
            return run
        runs[run.id] = run
    names = ", ".join(list(runs)[:5])
    if trace is not None:
        raise InputError(f"no trace {trace!r} in {path}; its traces are {names}", "--trace")
    if len(runs) > 1:
        raise InputError(
            f"{len(runs)} traces are in this file ({names}...); choose one with --trace", path
        )
    return next(iter(runs.values()))


def print_trace(
    trace: Outline, results: Sequence[tuple[str, Findings]], *, spans: int, chars: int
) -> None:
    """Print a heading, the tree, and a line for each finder."""
    from rich.tree import Tree

    from agenteval.traces.outline import Bounds, forest, unexplained
    from agenteval.traces.page import brief, kinds_of

    lines: defaultdict[str, list[str]] = defaultdict(list)
    for finder, findings in results:
        for finding in findings.findings:
            lines[finding.span].append(_finding_line(finder, finding))
    drawn = forest(trace.spans, set(lines), Bounds(spans=spans))
    kinds = _safe(kinds_of(trace.kinds))
    head = f"[bold]trace {_safe(trace.trace)}[/bold]  {trace.total:,} spans ({kinds})"
    if trace.tokens is not None:
        head += f", {trace.tokens:,} tokens reported"
    if trace.cost is not None:
        head += f", cost {trace.cost:.4g}"
    if trace.errors:
        head += f", [red]{trace.errors:,} with status error[/red]"
    for name, text in brief(trace) if chars else ():
        head += f"\n[dim]{_short(name, _WORDS)}:[/dim] {_short(text, 16 * chars)}"
    root = Tree(head, guide_style="dim")
    _add(root, drawn, drawn.roots, lines, chars)
    out().print(root, soft_wrap=False)
    for finder, findings in results:
        out().print(_summary(finder, findings))
        if finder == "detectors" and (failed := unexplained(trace.spans, findings)):
            out().print(
                f"[yellow]{plural(len(failed), 'span')} with status error, not explained by "
                f"a detector: {_short(', '.join(failed), _WORDS)}; "
                "trace locate --model reads them[/yellow]"
            )


def _add(
    branch: Tree,
    above: Drawn | Forest,
    children: Sequence[Drawn],
    lines: dict[str, list[str]],
    chars: int,
) -> None:
    """Add children with their findings, then the number of omitted spans."""
    from agenteval.traces.page import kinds_of

    for child in children:
        leaf = branch.add(_span_line(child.span, chars))
        for line in lines.get(child.span.id, ()):
            leaf.add(line, guide_style="red")
        _add(leaf, child, child.children, lines, chars)
    if above.hidden:
        count = plural(above.hidden.total(), "more span")
        branch.add(f"[dim]… {count} ({_safe(kinds_of(above.hidden))})[/dim]")


def _span_line(span: OutlineSpan, chars: int) -> str:
    from agenteval.traces.page import facts_of

    color = _COLORS.get(span.kind, "dim")
    parts = [f"[{color}]{_safe(span.kind)}[/{color}] [bold]{_short(span.name, _NAME)}[/bold]"]
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


def _summary(finder: str, findings: Findings) -> str:
    if findings.status is not None:
        why = f": {_safe(findings.message)}" if findings.message else ""
        return (
            f"[yellow]{_safe(finder)}: no findings are available, {findings.status}{why}[/yellow]"
        )
    text = f"{_safe(finder)}: {plural(len(findings.findings), 'finding')}"
    grades = [
        f"{name.replace('_', ' ')} {grade.value:g}"
        for name, grade in findings.grades.items()
        if grade.value is not None
    ]
    if grades:
        text += f"; grades: {_safe(', '.join(grades))}"
    if findings.rejected:
        text += f"; {len(findings.rejected):,} rejected"
    return text + (f" ({_safe(findings.message)})" if findings.message else "")


def _short(text: str, most: int) -> str:
    """Return one line of at most `most` characters; shows hidden characters, escapes markup."""
    line = " ".join(text[: 8 * most].split())
    return _safe(line if len(line) <= most else line[: most - 1] + "…")


def _safe(text: str) -> str:
    """Make hidden characters visible and escape markup."""
    return clean(visible(text))
