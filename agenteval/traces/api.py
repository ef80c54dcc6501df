"""Read traces, find errors in them with detectors or a judge, and show stored findings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from agenteval.analysis.flagged import Flags
from agenteval.analysis.gates import unscored_gate
from agenteval.cli.options import read_options
from agenteval.cli.running import (
    Notify,
    Stopped,
    Watch,
    how_it_ended,
    opened,
    planned,
    synchronous,
)
from agenteval.engine import CostEstimate, Experiment, ExperimentResult
from agenteval.engine.executor import Executor, make_executor
from agenteval.errors import InputError
from agenteval.models.factory import choose_model, make_client
from agenteval.models.limits import Budget, Limits
from agenteval.models.windows import UNKNOWN, context_of
from agenteval.readers import make_view
from agenteval.readers.leaks import leak_lines
from agenteval.records import Findings
from agenteval.records.table import Table
from agenteval.reporting.report import Report
from agenteval.store import Store, Trials
from agenteval.text import plural
from agenteval.traces.annotations import write_folder
from agenteval.traces.condense import Options
from agenteval.traces.evaluator import (
    EVALUATOR,
    DetectorsFinder,
    StoredFindings,
    TraceCase,
    TracesEvaluator,
    case_of,
    detected,
    finder_key,
    load_findings,
)
from agenteval.traces.input import (
    TaxonomyLike,
    Traces,
    combined,
    flags_of,
    read_each,
    read_taxonomy,
)
from agenteval.traces.locator import Locator
from agenteval.traces.locator_prompt import LocatorOptions
from agenteval.traces.options import LocateKeywords, LocateOptions
from agenteval.traces.outline import Outline, unexplained
from agenteval.traces.tables import FinderFindings, finding_tables, stats_tables, trace_stats
from agenteval.traces.taxonomy import Taxonomy
from agenteval.traces.whole import WholeTraceFinder

StorePath = str | Path | Store | None
Judge = Locator | WholeTraceFinder
_MAX_CONCURRENCY = 8  # traces in memory
EXCERPTS = "only stored excerpts were searched; pass the trace files to search the full text"
_FIELDS = {"span", "category", "impact", "description", "evidence", "confidence", "source"}


@dataclass(frozen=True, kw_only=True)
class FindingsReport(Report):
    """The findings of all finders, and the traces that seem to address the judge (`flags`)."""

    finders: tuple[FinderFindings, ...] = ()
    taxonomy: Taxonomy | None = None
    outlines: tuple[Outline, ...] = ()
    flags: Flags = Flags()  # noqa: RUF009  frozen
    scores: tuple[Table, ...] = ()
    excerpts: bool = False  # the flags come from stored excerpts only

    @property
    def findings(self) -> tuple[Findings, ...]:
        """The findings of each trace, by finder; they have a status if it could not be examined."""
        return tuple(f for finder in self.finders for f in finder.findings.values())

    @property
    def failures(self) -> tuple[Findings, ...]:
        """The findings of traces that could not be examined."""
        return tuple(findings for findings in self.findings if findings.status is not None)

    def records(self) -> list[dict[str, Any]]:
        """Return one row per error."""
        return [
            {
                "finder": finder.name,
                "trace": findings.trace,
                **finding.model_dump(mode="json", include=_FIELDS),
            }
            for finder in self.finders
            for findings in finder.findings.values()
            for finding in findings.findings
        ]

    def page(self, *, most_traces: int = 100, spans: int = 200) -> str:
        """Return a self-contained HTML page that shows errors at their spans.

        Shows at most `most_traces` traces and `spans` spans of each.
        """
        from agenteval.traces.page import traces_page

        facts = [("text addressed to the judge", EXCERPTS)] if self.excerpts else []
        return traces_page(self, facts=facts, most_traces=most_traces, spans=spans)

    def write(self, folder: str | Path) -> list[Path]:
        """Write the findings as annotations in the official layout, one file per trace."""
        return write_folder(Path(folder), self.findings, extra=True)


def stats(traces: Traces, *, budget: int | None = None, notify: Notify | None = None) -> Report:
    """Count spans by kind, depth, errors, tokens, and tokens after condensing to `budget`."""
    watch = Watch(notify)
    figures = [trace_stats(run, budget) for run, _ in read_each(traces, watch)]
    return Report(
        title="",
        tables=stats_tables(figures),
        notes=tuple(watch.notes),
        data={"traces": [asdict(of_trace) for of_trace in figures]},
    )


# -- finding ---------------------------------------------------------------------------------------


def detect(
    traces: Traces,
    *,
    taxonomy: TaxonomyLike = None,
    notify: Notify | None = None,
) -> FindingsReport:
    """Find failed steps with detectors. Needs no model, and sends and stores nothing.

    Returns a report of the findings. Raises InputError for traces that cannot be read.
    """
    watch, labels = Watch(notify), read_taxonomy(taxonomy)
    findings: dict[str, Findings] = {}
    flags: list[Flags] = []
    for run, _ in read_each(traces, watch):
        findings[run.id] = detected(run, labels)
        flags.append(flags_of([run]))
    return findings_of([FinderFindings("detectors", findings)], labels, watch, combined(flags))


@dataclass
class _Location:
    """Runs a finder over traces and stores the findings."""

    cases: list[TraceCase]
    finder: DetectorsFinder | Judge
    taxonomy: Taxonomy
    limits: Limits
    options: LocateOptions
    watch: Watch
    executor: Executor

    async def run(self) -> FindingsReport:
        """Examine the missing traces. Raises Stopped, with the stored findings, when cancelled."""
        if self.options.dry_run:
            return FindingsReport(title="", tables=(), estimate=await self._estimate())
        with opened(self.options.store) as store, self.executor:
            experiment = self._experiment(store)
            try:
                result = await experiment.run(self.watch.progress)
            except asyncio.CancelledError:
                raise Stopped(self._report(store, None)) from None
            finally:
                if isinstance(self.finder, Judge):
                    await self.finder.client.close()
            return self._report(store, result)

    def _experiment(self, store: Store) -> Experiment[TraceCase]:
        # Detectors are CPU-bound: running more at once would only hold more traces in memory.
        parallel = isinstance(self.finder, Judge) or self.executor.distributed
        if isinstance(self.finder, Judge):
            client = self.finder.client
            client.cache, client.secret, client.budget = store, store.secret, self._budget(store)
        return Experiment(
            TracesEvaluator.of(store, self.cases, self.finder),
            store,
            concurrency=min(self.limits.concurrency, _MAX_CONCURRENCY) if parallel else 1,
            retry_failed=self.options.retry_failed,
            notify=self.watch.note,
            warn=self.watch.warn,
            executor=self.executor,
        )

    def _budget(self, store: Store) -> Budget:
        return self.limits.budget(Trials(store).usage(EVALUATOR, finder_key(self.finder)))

    async def _estimate(self) -> CostEstimate:
        """Estimate the requests for the missing traces."""
        with planned(self.options.store) as store:
            experiment = self._experiment(store)
            pending = experiment.pending().units
            estimate = await experiment.dry_run()
            budget = self._budget(store)
        about = [
            f"finder: {self.finder.name}",
            f"traces: {len(self.cases)}, to examine: {len(pending)}",
        ]
        if isinstance(self.finder, Judge):
            about += withheld_line(self.cases)
            about += self.finder.size_lines([unit.content.load() for unit in pending])
        else:
            about.append("detectors run on this machine: no requests, no cost")
        return replace(estimate, command="trace locate", about=tuple(about), budget=budget)

    def _report(self, store: Store, ended: ExperimentResult | None) -> FindingsReport:
        order = {case.key: i for i, case in enumerate(self.cases)}
        with store.snapshot():
            stored = load_findings(store, traces=order, finders=[finder_key(self.finder)])
        stored.sort(key=lambda row: order[row.trace_key])
        flags = flags_of(case.load() for case in self.cases)
        lost = len(order) - sum(row.findings.status is None for row in stored)
        gate = unscored_gate(
            len(order), lost, self.options.max_unscored, "traces were not examined"
        )
        report = findings_of(by_finder(stored), self.taxonomy, self.watch, flags)
        unfinished, code = how_it_ended(ended, "traces not examined")
        notes = [] if stored else ["no trace has been examined"]
        for findings in (row.findings for row in stored):
            why = ": ".join(filter(None, (findings.status, findings.message)))
            notes += [f"{findings.trace}: {why}"] if why else []
        if isinstance(self.finder, DetectorsFinder):
            notes += self._unexplained({row.trace_key: row.findings for row in stored})
        rows = [{"finder": row.finder, **as_json(row.findings, flags)} for row in stored]
        return replace(
            report,
            title=f"Errors found by {self.finder.name}",
            notes=(*report.notes, *notes),
            unfinished=unfinished,
            data={"findings": rows},
            exit_code=code,
        ).gated(gate)

    def _unexplained(self, findings: Mapping[str, Findings]) -> list[str]:
        """Return a line about traces with failed spans that no detector explains, if any."""
        traces = []
        for case in self.cases:
            of_case = findings.get(case.key)
            if of_case is not None and of_case.status is None:
                spans = unexplained(case.outline.spans, of_case)
                traces += [f"{case.trace}: {', '.join(spans[:4])}"] if spans else []
        if not traces:
            return []
        count, more = plural(len(traces), "trace"), "; …" if len(traces) > 3 else ""
        what = f"{count} with spans of status error that no detector explains"
        return [f"{what} ({'; '.join(traces[:3])}{more}): a model reads them (--model)"]


async def alocate(traces: Traces, **options: Unpack[LocateKeywords]) -> FindingsReport:
    """Find errors in traces with a model, or only with detectors (`detectors_only`).

    `mode` selects what each request asks: about a part of a trace, one area of errors ("areas") or
    all of them ("broad"); or about the whole trace at once ("whole"), without condensing, quotes,
    hints or repeats, where a trace longer than the context fails. `context` and `reply_tokens` are
    the limits of the model (None: the window of a well-known model, else 8,192). `budget` limits
    the tokens of a condensed trace. Each part is judged `repeats` times. `quotes` sets where quoted
    words must occur (see `Quotes`). `hints` adds the findings of detectors to the prompts, and
    `with_reference` adds gold answers in spans, which are otherwise withheld.

    `limit` selects the first traces, and `output` is a folder for findings. Traces already in
    `store` are not examined again; `max_unscored` is the share that may fail. With `dry_run`,
    nothing is sent or stored, and the report has an `estimate`. `agenteval.traces.options` lists
    all keywords.

    Returns a report of the findings. Raises InputError for the embedded model and for invalid
    options, Unauthorized when a key is refused, and StoreError.
    """
    settings = read_options(LocateOptions, options, alocate)
    watch, labels = Watch(settings.notify, settings.progress), read_taxonomy(settings.taxonomy)
    limits = settings.limits or Limits()
    finder = (
        DetectorsFinder(labels) if settings.detectors_only else _judge(settings, limits, labels)
    )
    cases: list[TraceCase] = []
    leaks: list[str] = []
    for run, load in read_each(traces, watch, with_gold=settings.with_reference):
        cases.append(case_of(run, load))
        if isinstance(finder, Judge) and not settings.with_reference:
            leaks += leak_lines(run, make_view(run))
        if len(cases) == settings.limit:
            break
    watch.warn_list("the judge may see the answer or the verdict:", leaks, most=5)
    for name in (case.trace for case in cases) if settings.output is not None else ():
        if Path(name).name != name or "\\" in name or name[0] == ".":
            raise InputError(
                f"the trace id {name!r} cannot be used as a file name", str(settings.output)
            )
    executor = make_executor(settings.workers, settings.ray)
    return await _Location(cases, finder, labels, limits, settings, watch, executor).run()


locate = synchronous(alocate)


def _judge(settings: LocateOptions, limits: Limits, taxonomy: Taxonomy) -> Judge:
    choice = choose_model(settings.model, settings.base_url, need_key=not settings.dry_run)
    if choice.kind == "embedded":
        raise InputError(
            "locating needs a chat model: PROVIDER:MODEL, or --base-url. --detectors-only needs "
            "no model",
            "--model",
        )
    options = LocatorOptions(
        mode=settings.mode,
        context=settings.context or context_of(choice.name) or UNKNOWN,
        reply_tokens=settings.reply_tokens,
        repeats=settings.repeats,
        temperature=settings.temperature,
        seed=settings.seed,
        quotes=settings.quotes,
    )
    client = make_client(choice, limits, None)  # the store becomes its cache once it is open
    reference = settings.with_reference
    if settings.mode == "whole":
        if settings.repeats > 1:
            raise InputError("--mode whole sends each trace once; remove --repeats", "--mode whole")
        return WholeTraceFinder(client, taxonomy, options, reference)
    condensing = Options(budget=settings.budget)
    locator = Locator(client, taxonomy, options, condensing, settings.hints, reference)
    locator.check()
    return locator


def withheld_line(cases: Sequence[TraceCase]) -> list[str]:
    """Return a line about gold answers withheld from the judge; empty if there are none."""
    withheld = [case.outline.withheld for case in cases if case.outline.withheld]
    if not withheld:
        return []
    names = sorted({path.rpartition(".")[2] for paths in withheld for path in paths})
    return [
        f"gold answers: withheld from {len(withheld)} of {len(cases)} traces "
        f"({', '.join(names)}); --with-reference shows them to the judge"
    ]


def as_json(findings: Findings, flags: Flags) -> dict[str, Any]:
    """Return findings for JSON, with the flags of text that seems to address the judge."""
    signs = next((flag.signs for flag in reversed(flags.found) if flag.run == findings.trace), ())
    return {"signs": list(signs), **findings.model_dump(mode="json")}


def by_finder(stored: Iterable[StoredFindings]) -> list[FinderFindings]:
    """Return the findings of each finder by trace id."""
    by_name: dict[str, dict[str, Findings]] = {}
    for row in stored:
        by_name.setdefault(row.finder, {})[row.findings.trace] = row.findings
    return [FinderFindings(name, findings) for name, findings in by_name.items()]


def findings_of(
    finders: Sequence[FinderFindings],
    taxonomy: Taxonomy,
    watch: Watch,
    flags: Flags,
    *,
    outlines: Sequence[Outline] = (),
    scores: Sequence[Table] = (),
) -> FindingsReport:
    """Return a report of all finders' findings, with its tables."""
    traces = {of_trace.trace for of_trace in outlines}
    traces.update(name for finder in finders for name in finder.findings)
    return FindingsReport(
        title="Errors in traces",
        tables=(*finding_tables(finders, taxonomy, len(traces)), *scores),
        notes=(*watch.notes, *([flags.line] if flags.line else [])),
        finders=tuple(finders),
        taxonomy=taxonomy,
        outlines=tuple(outlines),
        flags=flags,
        scores=tuple(scores),
    )
