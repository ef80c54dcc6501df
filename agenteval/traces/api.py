"""Errors in traces: read traces, find errors by rules or by a judge, show what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
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
from agenteval.engine import Estimate, Experiment, ExperimentResult
from agenteval.engine.executor import Executor, make_executor
from agenteval.errors import InputError
from agenteval.models.client import Client
from agenteval.models.factory import choose_model, make_client
from agenteval.models.limits import Budget, Limits
from agenteval.models.windows import UNKNOWN, context_of
from agenteval.readers import make_view
from agenteval.readers.leaks import leak_lines
from agenteval.records import Findings, Span
from agenteval.records.table import Table
from agenteval.reporting.report import Report
from agenteval.store import Store, Trials, default_path, is_there
from agenteval.store.experiments import Unfinished, unfinished_trials
from agenteval.traces.annotation_files import write_folder
from agenteval.traces.annotations import Annotation, official_text, read_annotation
from agenteval.traces.condense import LEGEND, Options
from agenteval.traces.detectors import detect as detected
from agenteval.traces.evaluator import (
    EVALUATOR,
    Stored,
    TraceCase,
    TracesEvaluator,
    case_of,
    load_findings,
    load_outlines,
)
from agenteval.traces.finders import DetectorsFinder, LocatorFinder, finder_key
from agenteval.traces.forest import Bounds
from agenteval.traces.input import (
    TaxonomyLike,
    Traces,
    flags_of,
    flags_of_outlines,
    name_of,
    read_each,
    read_findings,
    read_taxonomy,
    together,
)
from agenteval.traces.locator import Locator
from agenteval.traces.locator_prompt import LocatorOptions
from agenteval.traces.options import LocateKeywords, LocateOptions
from agenteval.traces.outline import Outline, outline, trace_key
from agenteval.traces.score import Scoring, evaluate
from agenteval.traces.score_tables import score_tables
from agenteval.traces.tables import (
    FinderFindings,
    TraceStats,
    finding_tables,
    stats_tables,
    trace_stats,
)
from agenteval.traces.taxonomy import Taxonomy, built_in

StorePath = str | Path | Store | None
_AT_ONCE = 8  # traces in memory


@dataclass(frozen=True, kw_only=True)
class FindingsReport(Report):
    """What finders found, and the traces whose text seems to talk to the judge (`flags`)."""

    finders: tuple[FinderFindings, ...] = ()
    taxonomy: Taxonomy | None = None
    outlines: tuple[Outline, ...] = ()
    flags: Flags = Flags()  # noqa: RUF009  frozen
    scores: tuple[Table, ...] = ()
    excerpts: bool = False  # the flags are of stored excerpts alone

    @property
    def findings(self) -> tuple[Findings, ...]:
        """What was found in each trace, by finder; with a status where it could not be examined."""
        return tuple(one for finder in self.finders for one in finder.findings.values())

    @property
    def failures(self) -> tuple[Findings, ...]:
        """Those of traces that could not be examined."""
        return tuple(one for one in self.findings if one.status is not None)

    def records(self) -> list[dict[str, Any]]:
        """A row per error."""
        return [
            {
                "finder": finder.name,
                "trace": findings.trace,
                **one.model_dump(mode="json", include=set(_FIELDS)),
            }
            for finder in self.finders
            for findings in finder.findings.values()
            for one in findings.findings
        ]

    def page(self, *, most_traces: int = 100, spans: int = 200) -> str:
        """A self-contained HTML page that shows the errors at their spans, of so many traces and
        spans at most."""
        from agenteval.traces.page import TraceMaterial, traces_page

        labels = self.taxonomy or built_in()
        outlines = {one.trace: one for one in self.outlines}
        material = TraceMaterial(outlines, self.finders, labels, self.scores, self.flags)
        facts = [("taxonomy", f"{labels.name}, version {labels.version}")]
        if self.excerpts:
            facts.append(("signs of talk to the judge", _EXCERPTS))
        return traces_page(
            material,
            facts=facts,
            most_traces=most_traces,
            bounds=Bounds(spans=spans),
            unfinished=self.unfinished,
        )

    def write(self, folder: str | Path) -> list[Path]:
        """Write the findings as annotations in the official layout, one file per trace."""
        return write_folder(Path(folder), self.findings, extra=True)


_EXCERPTS = (
    "looked for in the stored excerpts; name the files of the traces to have all of their text "
    "looked through"
)
_FIELDS = ("span", "category", "impact", "description", "evidence", "confidence", "source")


def stats(traces: Traces, *, budget: int | None = None, notify: Notify | None = None) -> Report:
    """Spans by kind, depth, errors, tokens, and what condensing (within `budget` tokens) leaves."""
    watch = Watch(notify)
    every: list[TraceStats] = [trace_stats(run, budget) for run, _ in read_each(traces, watch)]
    return Report(
        title="",
        tables=stats_tables(every),
        notes=tuple(watch.notes),
        data={"traces": [asdict(one) for one in every]},
    )


# -- finding ---------------------------------------------------------------------------------------


def detect(
    traces: Traces,
    *,
    taxonomy: TaxonomyLike = None,
    notify: Notify | None = None,
) -> FindingsReport:
    """Find failed steps without a model. Sends and stores nothing."""
    watch, labels = Watch(notify), read_taxonomy(taxonomy)
    findings: dict[str, Findings] = {}
    flags: list[Flags] = []
    for run, _ in read_each(traces, watch):
        findings[run.id] = Findings(trace=run.id, findings=detected(run, labels))
        flags.append(flags_of([run]))
    return _report([FinderFindings("detectors", findings)], labels, watch, flags=together(flags))


@dataclass
class Location:
    """What `locate` is to do, read and checked: a finder over traces, into a store."""

    cases: list[TraceCase]
    finder: DetectorsFinder | LocatorFinder
    taxonomy: Taxonomy
    client: Callable[[Store | None], Client] | None
    limits: Limits
    options: LocateOptions
    watch: Watch
    executor: Executor

    async def run(self) -> FindingsReport:
        """Examine what is missing. Raises Stopped with what is there when it is cancelled."""
        if self.options.dry_run:
            return FindingsReport(title="", tables=(), estimate=await self._estimate())
        key = finder_key(self.finder)
        with opened(self.options.store) as store, self.executor:
            experiment, client = self._experiment(store)
            try:
                result = await experiment.run(self.watch.progress)
            except asyncio.CancelledError:
                raise Stopped(self._report(store, key, None)) from None
            finally:
                if client is not None:
                    await client.close()
            return self._report(store, key, result)

    def _experiment(self, store: Store) -> tuple[Experiment[TraceCase], Client | None]:
        """The finder over the traces, with a client that keeps its replies in the store; None for
        rules."""
        client, finder = None, self.finder
        if self.client is not None and isinstance(finder, LocatorFinder):
            client, locator = self.client(store), finder.locator
            client.budget = self._budget(store)
            locator = Locator(client, locator.taxonomy, locator.options, legend=locator.legend)
            finder = replace(finder, locator=locator)
        # rules compute: more at once would only hold more traces in memory
        at_once = min(self.limits.concurrency, _AT_ONCE)
        concurrency = at_once if client or self.executor.distributed else 1
        return Experiment(
            TracesEvaluator.of(store, self.cases, finder),
            store,
            concurrency=concurrency,
            retry_failed=self.options.retry_failed,
            notify=self.watch.note,
            warn=self.watch.warn,
            executor=self.executor,
        ), client

    def _budget(self, store: Store) -> Budget:
        return self.limits.budget(Trials(store).usage(EVALUATOR, finder_key(self.finder)))

    async def _estimate(self) -> Estimate:
        """What is missing of the traces would ask."""
        with planned(self.options.store) as store:
            experiment, _ = self._experiment(store)
            left = experiment.pending().units
            estimate = await experiment.dry_run()
            budget = self._budget(store)
        about = [
            f"finder: {self.finder.name}",
            f"traces: {len(self.cases)}, of them to examine: {len(left)}",
        ]
        if isinstance(self.finder, LocatorFinder):
            about += withheld_line(self.cases)
            about += self.finder.size_lines([unit.content.load() for unit in left])
        else:
            about.append("rules; all of it is computed on this machine: no requests, no cost")
        return replace(estimate, command="trace locate", about=tuple(about), budget=budget)

    def _report(self, store: Store, key: str, ended: ExperimentResult | None) -> FindingsReport:
        with store.snapshot():
            stored = load_findings(store, traces=[c.key for c in self.cases], finders=[key])
        order = {case.key: i for i, case in enumerate(self.cases)}
        stored = sorted(stored, key=lambda one: order[one.trace_key])
        flags = flags_of(case.load() for case in self.cases)
        lost = len(self.cases) - sum(one.findings.status is None for one in stored)
        gate = unscored_gate(
            len(self.cases), lost, self.options.max_unscored, "traces were not examined"
        )
        report = _report(_finders(stored), self.taxonomy, self.watch, flags=flags)
        signs = {flag.run: list(flag.signs) for flag in flags.found}
        unfinished, code = how_it_ended(ended, "traces not examined")
        notes = [] if stored else ["no trace has been examined"]
        for one in stored:
            why = ": ".join(filter(None, (one.findings.status, one.findings.message)))
            notes += [f"{one.findings.trace}: {why}"] if why else []
        return replace(
            report,
            title=f"Errors found by {self.finder.name}",
            notes=(*report.notes, *notes),
            unfinished=unfinished,
            data={
                "findings": [
                    {
                        "finder": one.finder,
                        "signs": signs.get(one.findings.trace, []),
                        **one.findings.model_dump(mode="json"),
                    }
                    for one in stored
                ]
            },
            exit_code=code,
        ).gated(gate)


async def alocate(traces: Traces, **options: Unpack[LocateKeywords]) -> FindingsReport:
    """Find errors in traces by asking a model; `detectors_only` stores what rules find instead.

    `mode`: one question for each area of errors, or a broad one for all. `context` and
    `reply_tokens` are those of the model (None: the window of a well-known one, else 8,192),
    `budget` the tokens of a condensed trace; each part is judged `repeats` times. `quotes`
    says where quoted words must stand to count (see `Quotes`). With `hints` the judge is told what
    rules have found; `with_reference` shows it the gold answers that stand in
    spans and are withheld otherwise. `limit`: only the first traces. `output` is a folder that
    findings are to be written to later. Only what `store` lacks is examined; `max_unscored` is the
    share that may stay without. With `dry_run` nothing is sent or stored, and the report's
    `estimate` says what would be asked.

    Raises InputError for the embedded model, which cannot be asked, and for options that cannot
    work.
    `agenteval.traces.options` lists all keywords.
    """
    how = read_options(LocateOptions, options, alocate)
    watch, labels = Watch(how.notify, how.progress), read_taxonomy(how.taxonomy)
    limits = how.limits or Limits()
    finder: DetectorsFinder | LocatorFinder = DetectorsFinder(labels)
    client: Callable[[Store | None], Client] | None = None
    if not how.detectors_only:
        choice = choose_model(how.model, how.base_url, need_key=not how.dry_run)
        if choice.kind == "embedded":
            raise InputError(
                "locating needs a chat model: PROVIDER:MODEL, or --base-url; --detectors-only "
                "finds what rules can, without a model",
                "--model",
            )

        def connect(store: Store | None) -> Client:
            return make_client(choice, limits, store)

        locator_options = LocatorOptions(
            mode=how.mode,
            context=how.context or context_of(choice.name) or UNKNOWN,
            reply_tokens=how.reply_tokens,
            repeats=how.repeats,
            temperature=how.temperature,
            seed=how.seed,
            quotes=how.quotes,
        )
        locator = Locator(connect(None), labels, locator_options, legend=LEGEND)
        locator.check()
        finder, client = (
            LocatorFinder(locator, Options(budget=how.budget), how.hints, how.with_reference),
            connect,
        )
    cases = []
    leaks: list[str] = []
    for run, again in read_each(traces, watch, with_gold=how.with_reference):
        cases.append(case_of(run, again))
        if client is not None and not how.with_reference:
            leaks += leak_lines(run, make_view(run))
        if len(cases) == how.limit:
            break
    watch.warn_list("the judge may see the answer or the verdict:", leaks, most=5)
    for name in (case.trace for case in cases) if how.output is not None else ():
        if Path(name).name != name or "\\" in name or name[0] == ".":
            raise InputError(f"the trace id {name!r} cannot name a file", str(how.output))
    executor = make_executor(how.workers, how.ray)
    location = Location(cases, finder, labels, client, limits, how, watch, executor)
    return await location.run()


locate = synchronous(alocate)


def withheld_line(cases: Sequence[TraceCase]) -> list[str]:
    """Return a line about gold answers that the judge does not see; none where there are none."""
    withheld = [case.outline.withheld for case in cases if case.outline.withheld]
    if not withheld:
        return []
    names = sorted({path.rpartition(".")[2] for paths in withheld for path in paths})
    return [
        f"gold answers: withheld from {len(withheld)} of {len(cases)} traces "
        f"({', '.join(names)}); --with-reference shows them to the judge"
    ]


def _finders(stored: Iterable[Stored]) -> list[FinderFindings]:
    by_name: dict[str, dict[str, Findings]] = {}
    for one in stored:
        by_name.setdefault(one.finder, {})[one.findings.trace] = one.findings
    return [FinderFindings(name, findings) for name, findings in by_name.items()]


def _report(
    finders: Sequence[FinderFindings],
    taxonomy: Taxonomy,
    watch: Watch,
    *,
    flags: Flags,
    outlines: Sequence[Outline] = (),
    scores: Sequence[Table] = (),
) -> FindingsReport:
    traces = dict.fromkeys(one.trace for one in outlines)
    traces |= dict.fromkeys(name for finder in finders for name in finder.findings)
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


# -- what is stored --------------------------------------------------------------------------------


def findings_report(
    traces: Traces | None = None,
    *,
    findings: Sequence[str | Path] = (),
    gold: str | Path | None = None,
    taxonomy: TaxonomyLike = None,
    store: StorePath = None,
    notify: Notify | None = None,
) -> FindingsReport:
    """What all finders have stored (of the `traces`, by default of all), beside folders of
    `findings`; with `gold`, annotations of people, they are scored against it.

    Raises InputError when nothing is there.
    """
    watch, labels = Watch(notify), read_taxonomy(taxonomy)
    keys: set[str] | None = None
    outlines: dict[str, Outline] = {}
    read: list[Flags] = []
    if traces:
        keys = set()
        for run, _ in read_each(traces, watch):
            keys.add(trace_key(run))
            outlines[run.id] = outline(run)
            read.append(flags_of([run]))
    stored, more, unfinished = _stored(store, keys, needed=not (findings or gold))
    outlines = {**{one.trace: one for one in more}, **outlines}
    finders = _finders(stored)
    for folder in findings:
        said = read_findings(folder, labels, watch, f"findings {folder}")
        finders.append(FinderFindings(name_of(folder), {one.trace: one.findings for one in said}))
    scores: list[Table] = []
    if gold is not None:
        truth = read_findings(gold, labels, watch, "gold")
        for finder in finders:
            scores += _scores(finder, truth, outlines.values(), labels)
        people = {one.trace: one.findings for one in truth}
        finders.append(FinderFindings(name_of(gold), people, gold=True))
    if keys is not None:
        finders = [
            replace(f, findings={t: one for t, one in f.findings.items() if t in outlines})
            for f in finders
        ]
    flags = together(read) if keys is not None else flags_of_outlines(outlines.values())
    report = _report(
        finders, labels, watch, flags=flags, outlines=list(outlines.values()), scores=scores
    )
    signs = {flag.run: list(flag.signs) for flag in flags.found}
    excerpts = keys is None and flags.examined > 0
    about = (f"signs of talk to the judge: {_EXCERPTS}",) if excerpts else ()
    return replace(
        report,
        notes=(*report.notes, *about),
        excerpts=excerpts,
        unfinished=tuple(one.line for one in unfinished),
        data={
            "findings": [
                {
                    "finder": finder.name,
                    "gold": finder.gold,
                    "findings": [
                        {"signs": signs.get(one.trace, []), **one.model_dump(mode="json")}
                        for one in finder.findings.values()
                    ],
                }
                for finder in finders
            ],
            "unfinished": [one.json() for one in unfinished],
        },
    )


def _stored(
    store: StorePath, keys: set[str] | None, *, needed: bool
) -> tuple[list[Stored], list[Outline], list[Unfinished]]:
    path = default_path() if store is None else store
    if not isinstance(path, Store) and not is_there(path) and not needed:
        return [], [], []
    with opened(path, create=False) as kept, kept.snapshot():
        unfinished = unfinished_trials(kept, [EVALUATOR], keys)
        stored = load_findings(kept, traces=keys)
        outlines = list(load_outlines(kept, {one.trace_key for one in stored}).values())
    if not stored and needed:
        told = "".join(f"; {one.line}" for one in unfinished)
        raise InputError(
            f"nothing is stored of these traces; run `agenteval trace locate` first{told}"
        )
    seen: set[str] = set()
    for one in outlines:
        if one.trace in seen:
            raise InputError(
                "the store holds different traces of this id; name the files you mean", one.trace
            )
        seen.add(one.trace)
    return stored, outlines, unfinished


def _scores(
    finder: FinderFindings,
    truth: Sequence[Annotation],
    outlines: Iterable[Outline],
    labels: Taxonomy,
) -> list[Table]:
    """The first tables of a finder against gold, its name in their titles."""
    said = [
        read_annotation(official_text(f, extra=True), t, labels) for t, f in finder.findings.items()
    ]
    spans = {
        one.trace: tuple(Span(id=s.id, parent_id=s.parent_id, kind=s.kind) for s in one.spans)
        for one in outlines
        if one.total == len(one.spans)
    }
    try:
        result = evaluate(truth, said, Scoring(taxonomy=labels), spans)
    except ValueError as error:
        raise InputError(str(error), "--gold") from error
    return [
        replace(t, key=f"{t.key} {finder.name}", title=f"{finder.name}: {t.title}")
        for t in score_tables(result)[:2]
    ]
