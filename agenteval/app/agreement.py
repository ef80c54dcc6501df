"""Agreement of judges with human labels, and an audit of success labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from agenteval.analysis.agreement import Agreement, AgreeOptions
from agenteval.analysis.gates import Gate
from agenteval.analysis.human_labels import LabelledQueue, labelled_queue
from agenteval.analysis.rater_comparison import (
    RaterComparison,
    RaterComparisonOptions,
    compare_raters,
)
from agenteval.analysis.rating_sources import StoredJudge, chosen_raters, file_table, raters_in
from agenteval.analysis.ratings import with_runs
from agenteval.analysis.rubrics import item_criteria, pooled, pooled_labels
from agenteval.analysis.sampling import By, Sample, draw, read_sample
from agenteval.analysis.scores import run_names
from agenteval.app.options import AgreementKeywords, AgreementOptions, Ratings
from agenteval.cli.options import read_options
from agenteval.cli.running import Watch, opened
from agenteval.errors import InputError, NoStoreYet
from agenteval.files import same_file
from agenteval.readers import make_view, read_runs
from agenteval.records import Criterion, Run
from agenteval.records.base import content_hash
from agenteval.records.table import column, table_of
from agenteval.reporting.page import report_page
from agenteval.reporting.plots import reliability_lines
from agenteval.reporting.report import Report
from agenteval.stats.scores import ScoreTable
from agenteval.store import Store
from agenteval.store.labels import Labels
from agenteval.text import plural
from agenteval.utility.judging import Criteria, read_criteria

_NO_LABELS = (
    "give labels to compare with (--labels), or --audit; the store has no human labels yet "
    "(`agenteval view --label` collects them)"
)

_VALUES = (
    "How people label runs, by the value that the judge gave them. On the dotted line judge and "
    "people agree; below it the judge is too lenient."
)
_PROBABILITIES = (
    "How often the judge's most probable level is the label. Below the dotted line the judge is "
    "overconfident."
)


@dataclass(frozen=True, kw_only=True)
class AgreementReport(RaterComparison, Report):
    """Agreement of every judge with every rater, of the raters among each other and of the judges
    as a panel, contradicted success labels, corrected means with calibration, and tests whether a
    judge can replace people. Parts that were not requested are empty."""

    def page(self) -> str:
        """Everything as one self-contained HTML page, with a reliability chart for each judge and
        rater."""
        names = {str(r["criterion_id"]): str(r["criterion"]) for r in self.tables[0].rows}
        plan: list[tuple[str, str, Callable[[], Any]]] = []
        for labelled in self.labelled:
            who = f"of {labelled.judge}, labels of {labelled.rater}"
            values = labelled.calibrations
            levels = [replace(c, bins=c.level_bins) for c in values if c.brier]
            if values:
                draw = partial(reliability_lines, values, names, of="value")
                plan.append((f"Reliability {who}", _VALUES, draw))
            if any(len(c.bins) > 1 for c in levels):
                draw = partial(reliability_lines, levels, names, of="probability")
                plan.append((f"Probabilities {who}", _PROBABILITIES, draw))
        return report_page(self.title, self.tables, self.notes, self.unfinished, plan)

    @property
    def criteria(self) -> Mapping[str, Agreement]:
        """The agreement by criterion. Raises InputError unless there is one judge and one rater."""
        if len(self.pairs) != 1:
            raise InputError(f"there are {len(self.pairs)} pairs of judge and rater: see `pairs`")
        return {agreement.criterion_id: agreement for agreement in self.pairs[0].criteria}


def agree(labels: Ratings | None = None, **options: Unpack[AgreementKeywords]) -> AgreementReport:
    """Compare judges with human labels: agreement per criterion, with intervals over cases.

    `labels` and `scores` are files of ratings (CSV, JSON Lines) or tables. Without `labels`, those
    of the newest labelling queue in the store (or of `queue`) are used. Without `scores`, the
    judges are those in the store, by model or start of the hash (default: the latest). Each rater
    counts separately; `raters` and `judges` select some of them. `criteria` (a file, a set or a
    list; default: those of the task) define the levels, worst to best. `runs` provide case and
    success (default: runs.jsonl in the folder of the labels). `audit` lists runs whose success
    label a judge contradicts.

    The mean of each criterion is corrected with labels drawn by `sample_to_label`: the labels' file
    describes its sample, or `sample` is the file that was drawn. `random_labels` declares that
    labels without a sample are a random sample. For the corrected rate, a run is good from the
    value `cut`. `alt_test` tests whether a judge can replace one of at least three raters, where a
    person costs `epsilon` more (Calderon et al. 2025). With `gate` the exit code is 4 when a
    criterion has fewer than `min_runs` runs with a label and a rating.

    `agenteval.app.options.AgreementOptions` lists all keywords. Returns a report with a table per
    question. Raises InputError for invalid input and StoreError when a store cannot be read.
    """
    settings = read_options(AgreementOptions, options, agree)
    stored = _stored_labels(labels, settings)
    if settings.alt_test and labels is None and stored is None:
        raise InputError("needs labels by several people", "--alt-test")
    if not 0 <= settings.epsilon < 1:
        problem = f"epsilon {settings.epsilon} must be at least 0 and less than 1"
        raise InputError(problem, "--epsilon")
    sample = stored.sample if stored else _sample(labels, settings.sample)
    judges = (settings.judges,) if isinstance(settings.judges, str) else tuple(settings.judges)
    criteria, notes = known_criteria(settings.criteria, settings.task)
    scores = settings.scores
    files = [scores] if isinstance(scores, str | Path | ScoreTable) else list(scores)
    if files and settings.store is not None:
        raise InputError("give --store or --scores, not both", "--scores")
    if files:
        tables = _from_files(files, judges, labels, settings.raters, criteria)
        rated = _JudgeTables(tables, criteria)
    else:
        task = settings.task and Path(settings.task).name
        if stored:
            judges, task = judges or (stored.queue.source_key,), task or stored.queue.task
            notes += [f"labels of the queue {stored.queue.name!r}", *stored.notes]
        rated = _from_store(settings.store, judges, task, criteria)
        notes += rated.notes
    people: dict[str, ScoreTable] = {}
    if isinstance(labels, ScoreTable):
        people = {"people": labels}
    elif stored:
        people = _chosen_people(stored, settings.raters)
    elif labels is not None:
        chosen = chosen_raters(Path(labels), settings.raters, "--rater")
        people = _labels_of(Path(labels), chosen, rated)
    place = _place_runs(labels, settings.runs, [*rated.tables.values(), *people.values()], notes)
    tables = {name: place(table) for name, table in rated.tables.items()}
    people = {name: place(table) for name, table in people.items()}
    compared = compare_raters(
        tables,
        people,
        rated.criteria,
        RaterComparisonOptions(
            AgreeOptions(few=settings.min_runs, cut=settings.cut, seed=settings.seed),
            sample,
            random=settings.random_labels,
            audit=settings.audit,
            epsilon=settings.epsilon if settings.alt_test else None,
            confusion=settings.confusion,
        ),
    )
    against = f" against labels of {', '.join(people)}"
    report = AgreementReport(
        title=", ".join(tables) + against if people else f"label audit by {', '.join(tables)}",
        notes=tuple(notes),
        unfinished=rated.unfinished,
        **vars(compared),
    )
    if not settings.gate:
        return report
    least = settings.min_runs
    gates = [
        Gate(
            "more runs rated by both",
            "met" if a.compared >= least else "undecided",
            f"{a.compared} runs rated by {pair.judge} and {pair.rater}",
            a.criterion_id,
            least,
        )
        for pair in compared.pairs
        for a in pair.criteria
    ]
    return report.gated(*gates)


def _stored_labels(labels: Ratings | None, settings: AgreementOptions) -> LabelledQueue | None:
    """Return the store's labels if no others are given. Raises InputError if labels are needed but
    missing."""
    if labels is not None or settings.scores:
        if settings.queue is not None:
            raise InputError("selects labels in the store; remove --labels and --scores", "--queue")
        if labels is None and not settings.audit:
            raise InputError(_NO_LABELS, "--labels")
        return None
    if settings.audit and settings.queue is None:
        return None
    try:
        with opened(settings.store, create=False) as store:
            if settings.queue is None and not Labels(store).queues():
                raise InputError(_NO_LABELS, "--labels")
            labelled = labelled_queue(store, settings.queue)
    except NoStoreYet:
        raise InputError(_NO_LABELS, "--labels") from None
    if not labelled.people:
        raise InputError(f"the queue {labelled.queue.name!r} has no labels yet", "--queue")
    return labelled


def _chosen_people(stored: LabelledQueue, raters: Sequence[str]) -> dict[str, ScoreTable]:
    if unknown := [rater for rater in raters if rater not in stored.people]:
        raise InputError(
            f"no rater {unknown[0]!r} in {stored.queue.name!r}; there are: "
            f"{', '.join(stored.people)}",
            "--rater",
        )
    return {rater: t for rater, t in stored.people.items() if not raters or rater in raters}


def _sample(labels: Ratings | None, sample: str | Path | None) -> Sample | None:
    """Return how the labels were drawn according to their file or `sample`, or None."""
    if sample is not None:
        drawn = read_sample(Path(sample))
        if drawn is None:
            raise InputError("this file does not describe a sample", str(sample))
        return drawn
    return read_sample(Path(labels)) if isinstance(labels, str | Path) else None


@dataclass(frozen=True, kw_only=True)
class SampleReport(Report):
    """Runs for people to label. `sample` holds their weights, `sheet` a row for each run and
    criterion: run, case, system, criterion, an empty label and rater, the allowed levels, weight
    and sample, and with the first row of a run its problem and text."""

    sample: Sample
    sheet: tuple[dict[str, Any], ...]

    def records(self) -> list[dict[str, Any]]:
        """The sheet."""
        return [dict(row) for row in self.sheet]


@dataclass(frozen=True)
class _SampledRun:
    run: str = column("run")
    system: str = column("system")
    weight: float = column("weight", "number", "runs that it stands for")


def sample_to_label(
    n: int,
    *,
    by: By = "random",
    seed: int = 0,
    scores: Ratings | None = None,
    store: str | Path | Store | None = None,
    judge: str | None = None,
    task: str | None = None,
    criteria: Criteria | None = None,
    runs: str | Path | Sequence[Run] | None = None,
) -> SampleReport:
    """Draw `n` of the runs rated by a judge, for people to label.

    The ratings are those of the store's latest judge, of `judge`, or of `scores`. The sheet has the
    inputs and outputs of the runs from the store, or from `runs`; ratings in a file have none
    without `runs`. `by` is explained at `analysis.sampling.draw`.

    Returns a report: save it as .csv or .jsonl, have the empty labels filled in, and pass the file
    to `agree`. Raises as `agree`, and InputError when `n` is less than 1.
    """
    if n < 1:
        raise InputError(f"{n} runs are too few to draw", "--n")
    name, table, criteria_of_judge, notes = judge_table(scores, store, judge, task, criteria)
    if runs is not None:
        table = _place_runs(None, runs, [table], notes)(table)
    sample = draw(table, n, by=by, seed=seed)
    texts: dict[str, tuple[str, str]] = {}
    if runs is not None:
        read = read_runs(str(runs)).runs if isinstance(runs, str | Path) else runs
        views = {name: make_view(run) for name, run in _by_name(read).items()}
        texts = {name: (view.problem, view.trajectory) for name, view in views.items()}
    elif scores is None:
        texts = _stored_texts(store, judge, task, sample.weights)
    if unrated := len(table.present("run")) - sample.total:
        notes.append(f"{plural(unrated, 'run')} without a rating; they cannot be drawn")
    levels = {c.id: " | ".join(c.accepted_values) for c in criteria_of_judge}
    entries = {entry.run: entry for entry in table.entries()}
    sheet = []
    for run, weight in sample.weights.items():
        problem, text = texts.get(run, (None, None))
        for number, criterion in enumerate(table.present("criterion")):
            sheet.append(
                {
                    "run": run,
                    "case": entries[run].case,
                    "system": entries[run].system or "",
                    "criterion": criterion,
                    "label": None,
                    "rater": None,
                    "allowed": levels.get(criterion, ""),
                    "weight": round(weight, 6),
                    "sample": sample.name,
                    "problem": None if number else problem,
                    "text": None if number else text,
                }
            )
    rows = [
        _SampledRun(run, entries[run].system or "", weight)
        for run, weight in sample.weights.items()
    ]
    return SampleReport(
        title=f"runs to label, of those rated by {name}: {sample.name}",
        tables=(table_of(_SampledRun, "sample", "Runs to label", rows, detail=True),),
        notes=tuple(notes),
        sample=sample,
        sheet=tuple(sheet),
    )


def _stored_texts(
    place: str | Path | Store | None, judge: str | None, task: str | None, runs: Iterable[str]
) -> dict[str, tuple[str, str]]:
    """Return input and output of runs as a judge of the store saw them, by run name."""
    with opened(place, create=False) as store, store.snapshot():
        stored = StoredJudge.find(store, judge, task and Path(task).name)
        names = stored.names
        keys = {names[key]: key for key in stored.newest_runs}
        read = store.bodies(keys[run] for run in runs)
        bodies = {run: body for run, (_, body) in zip(runs, read, strict=True)}
        return {run: (str(b["problem"]), str(b["trajectory"])) for run, b in bodies.items()}


def judge_table(
    scores: Ratings | None,
    store: str | Path | Store | None,
    judge: str | None,
    task: str | None,
    criteria: Criteria | None,
) -> tuple[str, ScoreTable, tuple[Criterion, ...], list[str]]:
    """Return name and ratings of one judge of a store (default: the latest) or of a table, with the
    criteria and notes. Raises InputError unless it is exactly one judge."""
    rated_criteria, notes = known_criteria(criteria, task)
    judges = (judge,) if judge else ()
    if scores is not None:
        tables = _from_files([scores], judges, None, (), rated_criteria)
        if len(tables) > 1:
            raise InputError(f"choose a judge: {', '.join(tables)}", "--source")
    else:
        stored = _from_store(store, judges, task and Path(task).name, rated_criteria)
        tables, rated_criteria = stored.tables, stored.criteria
        notes += [*stored.notes, *stored.unfinished]
    ((name, table),) = tables.items()
    rated_ids = {c.id for c in rated_criteria}
    unknown = [c for c in table.present("criterion") if c not in rated_ids]
    numeric = (Criterion(id=c, name=c, scale="numeric", numeric_range=(0, 1)) for c in unknown)
    return name, table, (*rated_criteria, *numeric), notes


def known_criteria(
    criteria: Criteria | None, task: str | None
) -> tuple[tuple[Criterion, ...], list[str]]:
    """Return the given criteria, else the task's, with notes on their file; none without both."""
    if criteria is None and not task:
        return (), []
    watch = Watch()
    return read_criteria(criteria, Path(task or "").name, watch), watch.notes


def _from_files(
    scores: Iterable[Ratings],
    judges: Sequence[str],
    labels: Ratings | None,
    raters: Sequence[str],
    criteria: tuple[Criterion, ...],
) -> dict[str, ScoreTable]:
    """Return tables by rater, without the raters of the labels."""
    tables: dict[str, ScoreTable] = {}
    for ratings in scores:
        if isinstance(ratings, ScoreTable):
            tables["judge" if not tables else f"judge {len(tables) + 1}"] = ratings
            continue
        path = Path(ratings)
        for rater in _judges_in(path, judges, labels, raters):
            name = rater or path.stem
            if name in tables:
                name = f"{name} ({path})"
            if name in tables:
                raise InputError(f"{path} is given twice", "--scores")
            tables[name] = file_table(path, criteria, rater=rater)
    unknown = [judge for judge in judges if judge not in tables]
    if unknown:
        raise InputError(f"no --scores file has a rater {unknown[0]!r}", "--source")
    if not tables:
        raise InputError(
            "the labels and scores come from the same raters, so there is no judge to compare; "
            "choose one with --source",
            "--scores",
        )
    return tables


def _judges_in(
    path: Path, judges: Sequence[str], labels: Ratings | None, raters: Sequence[str]
) -> list[str | None]:
    """Return the requested raters of a file, else all; in the labels' file, all others."""
    present = raters_in(path)
    if present == [None] and path.stem in judges:
        present_judges: list[str | None] = [None]  # a file without raters is named after the file
    else:
        present_judges = [rater for rater in judges if rater in present]
    chosen = present_judges or ([] if judges else present)
    if not isinstance(labels, str | Path) or not same_file(path, Path(labels)):
        return chosen
    people: set[str | None] = set(raters) or set(present)
    if set(present_judges) & people:
        raise InputError(f"rater {present_judges[0]!r} is both judge and label", "--source")
    return [rater for rater in chosen if rater not in people]


@dataclass(frozen=True)
class _JudgeTables:
    """Ratings by judge, the criteria they are on, and the rubrics of the runs by name."""

    tables: dict[str, ScoreTable]
    criteria: tuple[Criterion, ...]
    rubrics: Mapping[str, Criterion] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()


def _labels_of(
    path: Path, raters: Sequence[str | None], rated: _JudgeTables
) -> dict[str, ScoreTable]:
    """Return the labels of each rater of a file; those of items of rubrics are pooled."""
    criteria = (*rated.criteria, *item_criteria(rated.rubrics)) if rated.criteria else ()
    tables = {rater or path.stem: file_table(path, criteria, rater=rater) for rater in raters}
    return {name: pooled_labels(table, rated.rubrics) for name, table in tables.items()}


def _from_store(
    place: str | Path | Store | None,
    judges: Sequence[str],
    task: str | None,
    known: tuple[Criterion, ...],
) -> _JudgeTables:
    """Return the ratings of the chosen judges (default: the latest)."""
    rubrics: dict[str, Criterion] = {}
    tables: dict[str, ScoreTable] = {}
    criteria = {c.id: c for c in known}
    unfinished: list[str] = []
    with opened(place, create=False) as store:
        notes = [changed.line for changed in store.relabel(known)]
        with store.snapshot():
            for name in judges or (None,):
                judge = StoredJudge.find(store, name, task)
                model = judge.source.model
                shown = model if model not in tables else f"{model} {judge.key[:12]}"
                if shown in tables:
                    raise InputError(f"{name!r} is the same judge twice", "--source")
                rated = _rated_alike(judge, criteria, notes, fixed=bool(known))
                for criterion in pooled(rated.values()):
                    criteria.setdefault(criterion.id, criterion)
                rubrics.update(judge.rubrics)
                tables[shown] = judge.table(set(rated), judge.newest_runs)
                unfinished += [f"{shown}: {line}" for line in judge.unfinished]
    rated_criteria = known or tuple(criteria.values())
    return _JudgeTables(tables, rated_criteria, rubrics, tuple(notes), tuple(unfinished))


def _rated_alike(
    judge: StoredJudge, criteria: Mapping[str, Criterion], notes: list[str], *, fixed: bool
) -> dict[str, Criterion]:
    """Return the newest version of each criterion by content hash if its levels are the expected
    ones. With `fixed`, unknown criteria are dropped."""
    newest = judge.store.newest_criteria(judge.key)
    rated = {k: c for k, c in newest.items() if c.id in criteria or not fixed}
    differing = [
        key
        for key, c in rated.items()
        if c.id in criteria and c.accepted_values != criteria[c.id].accepted_values
    ]
    lines = [
        f"{rated[key].id}: skipped, because its levels in the store differ from those in the "
        "criteria file"
        for key in differing
    ]
    if len(differing) == len(rated):
        why = f" ({'; '.join(lines)})" if lines else ""
        raise InputError(f"the stored judge has rated none of the criteria{why}", "--source")
    notes += lines
    return {key: c for key, c in rated.items() if key not in differing}


def _place_runs(
    labels: Ratings | None,
    runs: str | Path | Sequence[Run] | None,
    tables: Sequence[ScoreTable],
    notes: list[str],
) -> Callable[[ScoreTable], ScoreTable]:
    """Return a function that gives a table cases and success of its runs, where runs are given or
    are in the folder of the labels."""
    place = runs
    if runs is None and isinstance(labels, str | Path):
        default = Path(labels).parent / "runs.jsonl"
        place = default if default.is_file() else None
    if place is None:
        return lambda table: table
    by_name = _by_name(read_runs(str(place)).runs if isinstance(place, str | Path) else place)
    if not any(name in by_name for table in tables for name in table.run.names):
        if runs is None:
            return lambda table: table
        raise InputError("none of the rated runs is in this file", str(place))
    if isinstance(place, str | Path):
        notes.append(f"cases and success of the runs: {place}")
    case = {name: content_hash(run.input) for name, run in by_name.items() if run.input}
    success = {name: run.success for name, run in by_name.items()}
    return lambda table: with_runs(table, case, success)


def _by_name(runs: Sequence[Run]) -> dict[str, Run]:
    """Return runs by the name that tables of ratings have for them (see `run_names`)."""
    items = {
        str(number): {"task": "", "system": run.system, "run_id": run.id}
        for number, run in enumerate(runs)
    }
    return {name: runs[int(number)] for number, name in run_names(items, items).items()}
