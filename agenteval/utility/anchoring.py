"""Watch a judge: freeze its scores, ask it again later, and report drift: `anchor`."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from agenteval.analysis.gates import Gate, unscored_gate
from agenteval.cli.options import read_options, with_default
from agenteval.cli.running import Stopped, Watch, how_it_ended, opened, planned, synchronous
from agenteval.engine import CostEstimate, ExperimentResult
from agenteval.errors import InputError
from agenteval.readers import degenerate
from agenteval.records import Criterion, Score, Source
from agenteval.records.table import Estimate, column, table_of
from agenteval.reporting.report import Report
from agenteval.stats.drift import Drift, find_drift
from agenteval.stats.scores import ORIGINAL
from agenteval.stats.vectors import Floats
from agenteval.store import Store
from agenteval.store.rows import case_key
from agenteval.text import plural
from agenteval.utility import anchor_file as files
from agenteval.utility.evaluator import Item, JudgeEvaluator
from agenteval.utility.judging import Criteria, Judging, Runs, read_judging
from agenteval.utility.options import JudgeKeywords, JudgeOptions
from agenteval.utility.renamed import Renamed

if TYPE_CHECKING:
    from agenteval.models.client import Client

ALPHA = 0.05  # of any false alarm within a year
MAX_UNSCORED = 0.1
_SETTINGS = ("judge", "base_url", "task", "with_reference", "mapping", "system", "seed")
_SETTINGS += ("temperature", "one_per_call", "probabilities")
_PLAIN = str | bool | int | float | dict  # what an anchor file keeps of settings


@dataclass(frozen=True)
class AnchorOptions(JudgeOptions):
    """Like the options of `quantify`, but each text is judged several times."""

    repeats: int = with_default(JudgeOptions, "repeats", 5)


@dataclass(frozen=True)
class _DriftRow:
    criterion: str = column("criterion")
    frozen: float | None = column("frozen mean", "number")
    drift: Estimate = column("drift", "signed")
    cases: int = column("cases", "count")
    looks: int = column("looks", "count", "number of looks that the drift is over, from the last")
    verdict: str = column("verdict")


@dataclass(frozen=True, kw_only=True)
class AnchorReport(Report):
    """A frozen judge, or the drift of each criterion (by id) after a look."""

    drifts: dict[str, Drift] = field(default_factory=dict)


async def aanchor(
    runs: Runs,
    criteria: Criteria | None = None,
    *,
    output: str | Path,
    n: int = 60,
    looks: int = 52,
    **options: Unpack[JudgeKeywords],
) -> AnchorReport:
    """Let a judge score `n` runs `repeats` times (default 5) and freeze the scores in `output`.

    Runs are drawn by `seed`, from as many cases as possible; those without an answer are left out,
    and so are criteria without order and computed ones. `looks` is the planned number of checks a
    year. The other parameters are those of `quantify`, and stored scores are used.

    Returns a report. Nothing is written if judging stops early (exit code 3). Raises InputError as
    `quantify` does, for fewer than 2 repeats, and for recorded replies, which cannot drift.
    """
    how = read_options(AnchorOptions, options, aanchor)
    least = {"--repeats": (how.repeats, 2), "--n": (n, 2), "--looks": (looks, 1)}
    for name, (number, lowest) in least.items():
        if number < lowest:
            raise InputError(f"must be at least {lowest}, not {number}", name)
    judging = _read(runs, criteria, how)
    judging = replace(judging, items=_drawn(judging.items, n, how.seed))
    if len(judging.items) < 2:
        raise InputError("an anchor needs 2 runs with an answer", "runs")
    judged = await _judge(judging, "anchor create")
    if isinstance(judged, AnchorReport):
        return judged
    settings = {"runs": runs, "criteria": criteria} | {k: getattr(how, k) for k in _SETTINGS}
    settings = {k: str(v) if isinstance(v, Path) else v for k, v in settings.items()}
    frozen = files.Anchor(
        created=_now(),
        judge=judged.source,
        settings={k: v for k, v in settings.items() if isinstance(v, _PLAIN) and v != "-"},
        criteria={c.id: files.criterion_hash(c) for c in judging.criteria},
        looks=looks,
        statuses=judged.statuses,
        runs=tuple(
            files.FrozenRun(
                key=files.run_key(item),
                case=case_key(item[0]),
                text=files.text_hash(item),
                scores=judged.scores[files.run_key(item)],
            )
            for item in judging.items
        ),
    )
    files.write_lines(Path(output), [frozen])
    title = f"{plural(len(frozen.runs), 'run')} frozen in {output}: {_counts(frozen.statuses)}"
    report = AnchorReport(title=title, tables=(), notes=tuple(judging.watch.notes))
    return report.gated(_gate(judged.statuses))


async def acheck_anchor(
    path: str | Path,
    runs: Runs | None = None,
    criteria: Criteria | None = None,
    *,
    sample: int = 20,
    allow_changes: bool = False,
    **options: Unpack[JudgeKeywords],
) -> AnchorReport:
    """Ask the judge of an anchor file again about `sample` of its runs, and test for drift.

    Runs, criteria and settings are those of the file unless given. Each look takes the next runs in
    turn, has a seed of its own, and is added to the log beside the file (`.looks.jsonl`); an
    interrupted look is continued. `allow_changes` asks although the judge is not the frozen one;
    its looks are tested apart.

    Returns a report with `drifts`. Its `exit_code` is 5 when drift is shown, and 3 when judging
    stopped early or more than a tenth of the look is unscored. Raises InputError for a file that
    cannot be read, and where runs, criteria or judge differ from the frozen ones.
    """
    path = Path(path)
    anchor = files.read_anchor(path)
    if not 1 <= sample <= len(anchor.runs):
        raise InputError(f"{sample} of {plural(len(anchor.runs), 'run')} in the anchor", "--sample")
    given = {**anchor.settings, **options}
    given |= {k: v for k, v in {"runs": runs, "criteria": criteria}.items() if v is not None}
    judging, judge = _frozen_judging(anchor, given, allow_changes=allow_changes)
    log = path.with_suffix(".looks.jsonl")
    looks = files.read_looks(log, anchor)
    if not looks or looks[-1].ended or looks[-1].judge != judge:
        looks = [look for look in looks if look.ended]
        looks.append(_next_look(anchor, looks, sample, judge))
    look = looks[-1]
    if not judging.how.dry_run:
        files.write_lines(log, looks)
    part = tuple(item for item in judging.items if files.run_key(item) in look.runs)
    how = replace(judging.how, seed=look.seed, repeats=1)
    judged = await _judge(replace(judging, items=part, how=how), "anchor check", anchor.id)
    if isinstance(judged, AnchorReport):
        return judged
    ended = look.model_copy(
        update={"ended": _now(), "statuses": judged.statuses, "scores": judged.scores}
    )
    files.write_lines(log, [*looks[:-1], ended])
    pooled = [earlier for earlier in looks[:-1] if earlier.judge == judge]
    report = drift_report(anchor, [*pooled, ended], judging.criteria, judging.watch.notes)
    return report.gated(_gate(judged.statuses))


anchor, check_anchor = synchronous(aanchor), synchronous(acheck_anchor)


def _frozen_judging(
    anchor: files.Anchor, given: dict[str, Any], *, allow_changes: bool
) -> tuple[Judging, str]:
    """Return the runs and criteria of the anchor with its judge, and the hash of the judge.

    Raises InputError for what differs from the anchor.
    """
    runs, criteria = given.pop("runs", None), given.pop("criteria", None)
    if runs is None:
        raise InputError("the anchor was made from records; give the runs", "--runs")
    judging = _read(runs, criteria, read_options(JudgeOptions, given, acheck_anchor))
    judging = replace(
        judging,
        items=files.frozen_items(anchor, judging.items),
        criteria=files.frozen_criteria(anchor, judging.criteria),
    )
    source = judging.evaluator(None)[0].source
    if changes := files.differences(anchor.judge, source):
        if not allow_changes:
            raise InputError(f"not the frozen judge: {'; '.join(changes)}", "--allow-changes")
        judging.watch.warn_list("the judge is not the frozen one:", changes)
    return judging, files.identity(source)


def _read(runs: Runs, criteria: Criteria | None, how: JudgeOptions) -> Judging:
    """Return what is judged: criteria with an order that a judge rates. Raises InputError."""
    judging = read_judging(runs, criteria, how, Watch(how.notify, how.progress))
    rated = tuple(c for c in judging.criteria if c.ordered and not c.judge)
    if not rated:
        raise InputError("no criterion has an order and is rated by the judge", "--criteria")
    if omitted := [c.name for c in judging.criteria if c not in rated]:
        judging.watch.warn(f"left out, without order or computed: {', '.join(omitted)}")
    if judging.choice is not None and judging.choice.provider in ("recorded", "replay"):
        raise InputError("recorded replies cannot drift; name a judge that answers", "--model")
    return replace(judging, criteria=rated)


def _drawn(items: Sequence[Item], n: int, seed: int) -> tuple[Item, ...]:
    """Return `n` runs with an answer in random order, the first runs of all cases before others."""
    rng = np.random.default_rng(seed)
    by_key = {files.run_key(items[i]): items[i] for i in rng.permutation(len(items))}
    by_case = defaultdict[str, list[Item]](list)
    for item in by_key.values():
        if item[0].failure is None and degenerate(item[0]) is None:
            by_case[case_key(item[0])].append(item)
    turns = zip_longest(*by_case.values())
    return tuple(item for turn in turns for item in turn if item is not None)[:n]


def _next_look(
    anchor: files.Anchor, looks: Sequence[files.Look], sample: int, judge: str
) -> files.Look:
    """Return the next look: the runs whose turn it is, and a seed that no stored reply has.

    Raises InputError if there were as many looks within 365 days as planned.
    """
    year = timedelta(days=365)
    due = [datetime.fromisoformat(look.begun) + year for look in looks][-anchor.looks :]
    if len(due) == anchor.looks and due[0] > datetime.now(UTC):
        raise InputError(
            f"{len(due)} looks within 365 days, as many as planned; the next one can be made from "
            f"{due[0]:%Y-%m-%d} on (`anchor create --looks N` plans more)",
            "anchor check",
        )
    start = sum(len(look.runs) for look in looks)
    keys = [anchor.runs[(start + i) % len(anchor.runs)].key for i in range(sample)]
    seed = max(int(time.time()), *(look.seed + 1 for look in looks), 0)
    return files.Look(anchor=anchor.id, judge=judge, begun=_now(), seed=seed, runs=tuple(keys))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class _Judged:
    """Scores by run and criterion, and the number of results by status."""

    source: Source
    scores: dict[str, files.Scores]
    statuses: dict[str, int]


async def _judge(judging: Judging, command: str, anchor: str = "") -> _Judged | AnchorReport:
    """Judge the runs; the scores of a look have a source that names the anchor.

    Returns a report without scores after a dry run, or if judging stopped early. Raises Stopped.
    """
    if judging.how.dry_run:
        return AnchorReport(title=command, tables=(), estimate=await _estimate(judging, command))
    judging.say_judge()
    with opened(judging.how.store) as store, judging.executor:
        rated, client = _rated(judging, store, anchor)
        try:
            result = await judging.run(rated, client, store)
        except asyncio.CancelledError:
            raise Stopped(_unfinished(None)) from None
        if result.stopped:
            return _unfinished(result)
        runs = {view.sha256: files.run_key((run, view)) for run, view in judging.items}
        ids = {c.sha256: c.id for c in judging.criteria}
        scores = {key: {id: tuple[float, ...]() for id in ids.values()} for key in runs.values()}
        statuses: Counter[str] = Counter()
        for r in store.results(rated.source_key, variant=ORIGINAL):
            if r.key.run in runs and r.key.criterion in ids and r.key.repeat < rated.repeats:
                statuses[r.status] += 1
                if isinstance(r, Score) and r.value is not None:
                    scores[runs[r.key.run]][ids[r.key.criterion]] += (r.value,)
    return _Judged(rated.source, scores, dict(statuses))


def _rated(judging: Judging, store: Store, anchor: str) -> tuple[JudgeEvaluator, Client | None]:
    """Return the judge on the runs; a cap on a look counts what this look has used."""
    judge, client = judging.evaluator(store)
    if anchor:
        judge = Renamed(judge, probe=f"anchor/{anchor}")
        if client is not None:
            client.budget = judging.limits.budget(store.usage(judge.source.sha256))
    return JudgeEvaluator.of(judge, judging.items, judging.criteria, judging.repeats), client


async def _estimate(judging: Judging, command: str) -> CostEstimate:
    """Return what would be asked. Raises InputError for a cap without a price."""
    runs, criteria = plural(len(judging.items), "run"), plural(len(judging.criteria), "criterion")
    about = (f"cells: {runs} × {criteria} × {plural(judging.repeats, 'repeat')}",)
    total = CostEstimate(command=command, about=about, budget=judging.limits.budget())
    if judging.sends_nothing:
        calls = f"calls: {len(judging.items) * judging.repeats} at most; {judging.local_cost}"
        return replace(total, about=(*about, calls))
    with planned(judging.how.store) as store:
        rated, client = _rated(judging, store, "")
        return await judging.estimate(total, rated, client, store)


def _unfinished(result: ExperimentResult | None) -> AnchorReport:
    unfinished, code = how_it_ended(result, "calls not made")
    return AnchorReport(title="", tables=(), unfinished=unfinished, exit_code=code)


def _gate(statuses: Mapping[str, int]) -> Gate:
    failed = sum(n for status, n in statuses.items() if ":" in status)
    return unscored_gate(sum(statuses.values()), failed, MAX_UNSCORED)


def _counts(statuses: Mapping[str, int]) -> str:
    """Return a text such as "180 results (178 scored, 2 unscored:parse)"."""
    parts = ", ".join(f"{n} {status}" for status, n in sorted(statuses.items()))
    return f"{sum(statuses.values())} results ({parts})"


# -- the report ------------------------------------------------------------------------------------


def drift_report(
    anchor: files.Anchor,
    looks: Sequence[files.Look],
    criteria: Sequence[Criterion],
    notes: Sequence[str] = (),
) -> AnchorReport:
    """Return the drift of each criterion after the last of these looks, which are of one judge."""
    codes = {case: i for i, case in enumerate(dict.fromkeys(run.case for run in anchor.runs))}
    cases = np.array([codes[run.case] for run in anchor.runs])
    asked = np.cumsum([len(look.runs) for look in reversed(looks)])
    recent = 1 + int((asked < len(anchor.runs)).sum())
    alpha = ALPHA / anchor.looks / len(criteria)
    drifts, rows, found = dict[str, Drift](), list[_DriftRow](), list[str]()
    for c in criteria:
        frozen = _matrix([run.scores.get(c.id, ()) for run in anchor.runs])
        new = np.hstack(
            [
                _matrix([look.scores.get(run.key, {}).get(c.id, ()) for run in anchor.runs])
                for look in looks
            ]
        )
        drift = drifts[c.id] = find_drift(frozen, new, cases, recent=recent, alpha=alpha)
        at = drift.interval
        mean = None if np.isnan(frozen).all() else float(np.nanmean(frozen))
        rows.append(_DriftRow(c.name, mean, Estimate.of(at), at.n, drift.looks, _verdict(drift)))
        found += [f"{c.name} {_verdict(drift)} by {abs(at.mean or 0):.2f}"] * drift.shown
    answers = plural(sum(len(look.runs) for look in looks), "answer")
    none = f"no drift shown after {plural(len(looks), 'look')} ({answers})"
    notes_of_table = (
        "verdicts and intervals hold for all criteria and all looks of a year together (95%)",
        f"this look: {_counts(looks[-1].statuses)}; frozen: {_counts(anchor.statuses)}",
    )
    table = table_of(_DriftRow, "drift", "", rows, notes=notes_of_table)
    return AnchorReport(
        title=f"drift shown: {', '.join(found)}" if found else none,
        tables=(table,),
        notes=tuple(notes),
        exit_code=5 if found else 0,
        drifts=drifts,
    )


def _matrix(scores: Sequence[Sequence[float]]) -> Floats:
    """Return a row for each run, NaN where there are fewer scores than elsewhere."""
    rows = np.full((len(scores), max(1, *map(len, scores))), np.nan)
    for row, values in zip(rows, scores, strict=True):
        row[: len(values)] = values
    return rows


def _verdict(drift: Drift) -> str:
    low, high = drift.interval.low, drift.interval.high
    if low is None or high is None:
        return "changed" if drift.shown else "too few answers"
    if not drift.shown:
        return f"none shown, at most {max(-low, high):.2f}"
    return "lower" if high < 0 else "higher" if low > 0 else "changed"
