"""Reports of quantify, verify and propose: tables, and the figures as attributes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agenteval.analysis.disagreement import disagreement_table, disagreements
from agenteval.analysis.flagged import Flags
from agenteval.analysis.gates import UNSCORED, Gate, Outcome, exit_code, mean_gate, unscored_gate
from agenteval.analysis.means import ALL, Rating, ScoreRow, lines_on_failed_runs, summarize
from agenteval.analysis.rubric_tables import rubric_tables
from agenteval.analysis.rubrics import pooled
from agenteval.analysis.spread import spread_line, spread_table, spreads
from agenteval.analysis.tables import outcomes, score_notes, score_tables, score_title, spent
from agenteval.errors import InputError
from agenteval.records import CriteriaSet, Criterion, Failure, Score, Source, Usage
from agenteval.records.table import Table
from agenteval.records.verification import JudgeVerdict, Verification, VerifiedSet
from agenteval.reporting import plots
from agenteval.reporting.report import Report
from agenteval.stats.scores import ORIGINAL, ScoreTable, TableBuilder
from agenteval.store import Store
from agenteval.store.postgres import without_password
from agenteval.utility.page_data import arranged
from agenteval.utility.probes.result import Probe
from agenteval.utility.proposals import Proposals
from agenteval.utility.tables import probe_tables, proposal_tables, proposal_title, verified_tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Plots:
    """Figures of ratings. Each takes `ax=` to draw into; without it a figure of its own is made.

    matplotlib is loaded when the first one is drawn.
    """

    table: ScoreTable

    def radar(self, *, ax: Axes | None = None) -> Axes:
        """Draw the mean by criterion, a polygon for each system or outcome."""
        return plots.radar(self.table, ax=ax)

    def bars(self, *, ax: Axes | None = None) -> Axes:
        """Draw the mean of runs that succeeded and of those that failed, by criterion."""
        return plots.success_bars(self.table, ax=ax)

    def boxes(self, *, ax: Axes | None = None) -> Axes:
        """Draw the spread of the ratings by criterion."""
        return plots.repeat_boxes(self.table, ax=ax)

    def heatmap(self, *, ax: Axes | None = None) -> Axes:
        """Draw the rank correlation of every two criteria."""
        return plots.correlation_map(self.table, ax=ax)

    def coverage(self, *, ax: Axes | None = None) -> Axes:
        """Draw the outcomes of the cells, by criterion."""
        return plots.coverage_bars(self.table.of(variant=ORIGINAL), ax=ax)

    def repeats(self) -> Figure:
        """Draw the mean by repeat, one panel for each criterion."""
        return plots.repeat_lines(self.table)

    def perturbations(self, *, ax: Axes | None = None) -> Figure:
        """Draw the mean of originals and perturbed copies, a panel for each perturbation."""
        return plots.perturbation_bars(self.table, ax=ax)


@dataclass(frozen=True)
class VerifyPlots(Plots):
    """Charts of a verification. Those with `reports` compare it with others, by name."""

    report: VerifyReport

    def evidence(self, **reports: VerifyReport) -> Figure:
        """Draw agreement of repeats and discrimination of success by criterion."""
        return plots.judge_points(self._judges(reports), self.report.names)

    def effects(self, **reports: VerifyReport) -> Figure:
        """Draw effects by criterion, perturbation and system. Raises InputError for one system."""
        return plots.effect_forest(self._judges(reports), self.report.names)

    def _judges(self, reports: Mapping[str, VerifyReport]) -> dict[str, Sequence[Verification]]:
        return {
            name.replace("_", " "): report.result.criteria
            for name, report in {"this judge": self.report, **reports}.items()
        }


@dataclass(frozen=True, kw_only=True)
class ScoreReport(Report):
    """Scores of runs on criteria by one judge.

    `criteria` has the rubrics of all runs as one, `judged` each of them. `ratings` holds every
    result with what is known of its run, `source` who judged, `cells` how many results were asked
    for. `plot` draws the ratings.
    """

    source: Source
    criteria: tuple[Criterion, ...]
    judged: tuple[Criterion, ...] = ()
    ratings: tuple[Rating, ...]
    cells: int
    store: str | Path

    @property
    def rows(self) -> list[ScoreRow]:
        """Means by criterion and system."""
        return summarize(self.ratings, self.criteria)

    @cached_property
    def scores(self) -> list[Score]:
        """All judgements with a result, read from the store."""
        return [r for r in self._results if isinstance(r, Score)]

    @cached_property
    def failures(self) -> list[Failure]:
        """All failed judgements with the reason, read from the store."""
        return [r for r in self._results if isinstance(r, Failure)]

    @cached_property
    def _results(self) -> list[Score | Failure]:
        if not self.ratings:
            return []
        runs = {rating.run_key for rating in self.ratings}
        criteria = {c.sha256 for c in self.judged}
        repeats = 1 + max((rating.repeat for rating in self.ratings), default=-1)
        with Store(self.store, create=False) as store:
            return [
                r
                for r in store.results(self.source.sha256, variant=ORIGINAL)
                if r.key.run in runs and r.key.criterion in criteria and r.key.repeat < repeats
            ]

    @cached_property
    def table(self) -> ScoreTable:
        """The ratings in columns, as the functions of `agenteval.stats` take them."""
        return rating_table(self.ratings)

    @property
    def plot(self) -> Plots:
        """Figures: `report.plot.radar()`."""
        names = {c.id: c.name for c in self.criteria}
        return Plots(plots.with_names(arranged(self.table, list(names)), names))

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each rating."""
        of_run = ("run_id", "system", "case", "success")
        keys = (*of_run, "criterion_id", "repeat", "status", "label", "value", "message")
        return [
            {"case_key" if k == "case" else k: getattr(r, k) for k in keys} for r in self.ratings
        ]

    def gate(
        self,
        *,
        min_mean: Mapping[str, float] | None = None,
        max_unscored: float | None = None,
        undecided_passes: bool = False,
    ) -> Self:
        """Return the report with gates on its figures, and the exit code that follows.

        `min_mean`: by criterion (id or name), what the mean must reach: missed where its whole
        interval lies below, met where none of it does, else undecided. `max_unscored`: the largest
        share of cells without a score; what a judge cannot see or leaves to a person, and runs
        whose system failed, are not held against it. Raises KeyError for an unknown criterion.
        """
        report = self
        gates = [self._mean_gate(name, least) for name, least in (min_mean or {}).items()]
        if max_unscored is not None:  # takes the place of an earlier one
            other_gates = [gate for gate in self.gates if gate.name != UNSCORED]
            code = self.exit_code if self.unfinished else exit_code(other_gates)
            report = replace(self, gates=tuple(other_gates), exit_code=code)
            counts = Counter(r.status for r in self.ratings if ":" in r.status)
            by_intent = counts["unscored:unsupported"] + counts["unscored:undecided"]
            bad = counts.total() - by_intent
            failed = sum(n for status, n in counts.items() if status.startswith("no_answer:"))
            if failed < self.cells:  # where there is no answer at all, nothing was scored
                bad -= failed
            gates.append(unscored_gate(self.cells, bad, max_unscored))
        return report.gated(*gates, undecided_passes=undecided_passes)

    def _mean_gate(self, name: str, least: float) -> Gate:
        criteria = {key: c for c in self.criteria for key in (c.id, c.name)}
        if name not in criteria:
            raise KeyError(f"no criterion {name!r}; there are {', '.join(criteria)}")
        rows = [r for r in self.rows if r.criterion_id == criteria[name].id]
        row = next((r for r in rows if r.system == ALL), rows[0] if rows else None)
        if row is None:
            return Gate("min-mean", "undecided", "no ratings", name, least)
        return mean_gate("min-mean", name, row.overall, least, f"holds {least:g}")


def rating_table(ratings: Sequence[Rating]) -> ScoreTable:
    """Return ratings of originals in columns."""
    builder = TableBuilder()
    for r in ratings:
        names: dict[str, str | None] = {"run": r.run_id, "case": r.case, "system": r.system}
        names |= {"criterion": r.criterion_id, "variant": ORIGINAL}
        names |= {"status": r.status, "label": r.label}
        builder.add(names, repeat=r.repeat, success=r.success, value=r.value)
    return builder.table()


def near_path(store: str | Path) -> str:
    """Return the name of a store: a relative path if possible, or a URL without password."""
    if isinstance(store, str):
        return without_password(store)
    here = Path.cwd()
    return str(store.relative_to(here) if store.is_relative_to(here) else store)


def score_report(
    source: Source,
    criteria: Sequence[Criterion],
    ratings: Sequence[Rating],
    usage: Usage,
    store: str | Path,
    flags: Flags,
    *,
    cells: int | None = None,
    notes: Sequence[str] = (),
    unfinished: Sequence[str] = (),
    levels: bool = False,
    exit_code: int = 0,
    now: int | None = None,
) -> ScoreReport:
    """Return the scores of one judge; `cells` is how many were asked for where some are missing.
    `levels` shows levels counted from 0 instead of values. `usage` is all that the judge took,
    `now` the requests of this command."""
    failures = Counter(r.status for r in ratings if ":" in r.status)
    table = rating_table(ratings)
    judged, criteria = criteria, pooled(criteria, items=False)
    names = {c.id: c.name for c in criteria}
    title, tables, more = "", list[Table](), list[str]()
    if ratings:
        by_criterion = spreads(table, criteria)
        repeats = spread_line(by_criterion)
        foot = (
            *([repeats] if repeats else ()),
            "intervals treat the case as the unit: repeats of a case do not add to n",
            f"spent: {spent(usage, now)}; store: {near_path(store)}",
        )
        title = score_title(source, criteria, ratings)
        more = list(score_notes(source, ratings))
        tables = [
            *score_tables(ratings, criteria, levels=levels, foot=foot),
            *rubric_tables(ratings, judged),
            *([spread_table(by_criterion, names)] if by_criterion else ()),
            disagreement_table(disagreements({source.model: table}), names, "repeats"),
        ]
    flagged = (flags.line,) if flags.found else ()
    data = {
        "source": source.model_dump(),
        "runs": outcomes(ratings),
        "ratings": len(ratings),
        "failures": dict(sorted(failures.items())),
        "no_answer": table.runs_by_status("no_answer:"),
        "flagged": flags.json(),
        "usage": usage.model_dump(),
    }
    return ScoreReport(
        title=title,
        tables=tuple(tables),
        notes=(*notes, *lines_on_failed_runs(table), *more, *flagged),
        unfinished=tuple(unfinished),
        data=data,
        source=source,
        criteria=tuple(criteria),
        judged=tuple(judged),
        ratings=tuple(ratings),
        cells=len(ratings) if cells is None else cells,
        store=store,
        exit_code=exit_code,
    )


_OUTCOMES: dict[int, Outcome] = {0: "met", 4: "undecided", 5: "missed"}


@dataclass(frozen=True, kw_only=True)
class VerifyReport(Report):
    """Which criteria can be kept, and whether the judge can be trusted.

    `judge` has `verdict` and `reasons`. Only a verdict equal to "trustworthy" has no limits:
    "trustworthy except accuracy" and "trustworthy for differences within a case" differ from it.
    `criteria` by id each criterion's `verdict` ("keep", "repair", "drop", "undecided") and
    `reasons`. `table` holds the ratings, those of perturbed copies included, `names` the names of
    the criteria by id.
    """

    result: VerifiedSet
    probes: tuple[Probe, ...] = ()
    table: ScoreTable | None = None
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def judge(self) -> JudgeVerdict:
        """The verdict on the judge as a whole."""
        return self.result.judge

    @property
    def criteria(self) -> dict[str, Verification]:
        """The verdict on every criterion, by id."""
        return {v.criterion_id: v for v in self.result.criteria}

    @property
    def plot(self) -> VerifyPlots:
        """Figures: `report.plot.effects()`. Raises ValueError where nothing was judged."""
        if self.table is None:
            raise ValueError("there are no judgements to draw")
        table = plots.with_names(arranged(self.table, list(self.names)), self.names)
        return VerifyPlots(table, report=self)

    def gate(self, allow: Sequence[str] = ()) -> Self:
        """Return the report with the exit code of the verdict on the judge.

        5 where the judge is not trustworthy, or where a criterion is refuted that is not among
        `allow` (ids or names); 4 where data are missing, labels of success among them; else 0.
        The code of work that was broken off stays. Raises InputError for an unknown criterion.
        """
        names = {c.criterion_id.casefold(): c.criterion_id for c in self.result.criteria}
        names |= {self.names.get(i, i).casefold(): i for i in names.values()}
        if unknown := [name for name in allow if name.casefold() not in names]:
            listed = ", ".join(c.criterion_id for c in self.result.criteria)
            raise InputError(
                f"there is no criterion {unknown[0]!r}; there are {listed}", "--allow-criterion"
            )
        allowed = {names[name.casefold()] for name in allow}
        code, judge = self.judge.exit_code(allowed), self.judge
        detail = judge.verdict
        if refuted := [name for name in judge.refuted if name not in allowed]:
            first = self.criteria[refuted[0]].refuted[0]
            detail += f"; refuted: {', '.join(refuted)} ({first})"
        elif code:
            detail += f"; {judge.reasons[0] if code == 5 else judge.next_step}"
        gate = Gate("judge", _OUTCOMES[code], detail)
        return replace(self, gates=(*self.gates, gate), exit_code=self.exit_code or code)


def verify_report(
    result: VerifiedSet,
    criteria: Sequence[Criterion],
    about: str,
    table: ScoreTable,
    *,
    probes: Sequence[Probe] | None = None,
    flags: Flags | None = None,
    notes: Sequence[str] = (),
) -> VerifyReport:
    """Return the report of a verification; `probes` and `flags` are None where not examined."""
    data: dict[str, Any] = {**result.model_dump(mode="json"), "about": [about]}
    if probes is not None:
        data["probes"] = [probe.model_dump(mode="json") for probe in probes]
    if flags is not None:
        data["flagged"] = flags.json()
    tables = list(verified_tables(result, criteria))
    if probes is not None:
        tables[3:3] = probe_tables(probes)  # behind verdicts and evidence
    return VerifyReport(
        title=about,
        tables=tuple(tables),
        notes=(*notes, *((flags.line,) if flags is not None and flags.found else ())),
        data=data,
        result=result,
        probes=tuple(probes or ()),
        table=table,
        names={c.id: c.name for c in criteria},
    )


def unverified(why: str, notes: Sequence[str] = ()) -> VerifyReport:
    """Return the report of a verification without a verdict, because the judging stopped."""
    judge = JudgeVerdict(verdict="not enough data", reasons=("the judging did not finish",))
    result = VerifiedSet(judge=judge, criteria=())
    return VerifyReport(
        title="",
        tables=(),
        notes=tuple(notes),
        unfinished=(why,),
        data=result.model_dump(mode="json"),
        exit_code=3,
        result=result,
    )


@dataclass(frozen=True, kw_only=True)
class CriteriaReport(Report):
    """Proposed criteria. `proposals` says how they came about, None after a dry run; `written` is
    the file, if any."""

    proposals: Proposals | None
    written: Path | None = None

    @property
    def criteria(self) -> CriteriaSet:
        """The merged criteria. Raises ValueError after a dry run."""
        return self._made.criteria

    @property
    def plot(self) -> CurvePlots:
        """Figures: `report.plot.curves()`. Raises ValueError after a dry run."""
        return CurvePlots(self._made)

    @property
    def _made(self) -> Proposals:
        if self.proposals is None:
            raise ValueError("nothing was judged: there are no criteria")
        return self.proposals


@dataclass(frozen=True)
class CurvePlots:
    """Figures of proposals."""

    proposals: Proposals

    def curves(self, *, ax: Axes | None = None) -> Axes:
        """Draw unique criteria against the number of seeds, a line for each threshold."""
        return plots.unique_curves(self.proposals.curves, ax=ax)


def criteria_report(
    proposals: Proposals, written: Path | None, notes: Sequence[str] = ()
) -> CriteriaReport:
    """Return the report of criteria that critics proposed."""
    failed = [f"seed {f.seed}: {f.status}: {f.message}" for f in proposals.failures]
    return CriteriaReport(
        title=proposal_title(proposals),
        tables=proposal_tables(proposals),
        notes=(*notes, *failed),
        data=proposals.to_json(),
        proposals=proposals,
        written=written,
    )
