"""Watch a judge: freeze its scores, ask it again later, and report drift: `anchor`."""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path
from typing import Unpack

import numpy as np

from agenteval.cli.options import keywords, read_options, with_default
from agenteval.cli.running import Watch, synchronous
from agenteval.errors import InputError
from agenteval.readers import degenerate
from agenteval.records import Criterion, content_hash
from agenteval.records.table import Estimate, column, table_of
from agenteval.reporting.report import Report
from agenteval.stats.drift import Drift, find_drift
from agenteval.stats.vectors import Floats
from agenteval.store.rows import case_key
from agenteval.text import plural, public_url
from agenteval.utility import anchor_file as files
from agenteval.utility.api import aquantify
from agenteval.utility.evaluator import Item
from agenteval.utility.judging import Criteria, Judging, Runs, read_judging
from agenteval.utility.options import JudgeKeywords, JudgeOptions
from agenteval.utility.reports import ScoreReport

ALPHA = 0.05  # chance of any false alarm within a year
_PLAIN = (str, bool, int, float, dict)  # values that an anchor file can hold


@dataclass(frozen=True)
class AnchorOptions(JudgeOptions):
    """Like the options of `quantify`, but each text is judged five times."""

    repeats: int = with_default(JudgeOptions, "repeats", 5)


@dataclass(frozen=True)
class _DriftRow:
    criterion: str = column("criterion")
    frozen: float | None = column("frozen", "number", "mean of the frozen scores")
    drift: Estimate = column("drift", "signed", "mean difference new - frozen, over cases")
    cases: int = column("cases", "count")
    looks: int = column("looks", "count", "looks, from the last, that the drift is over")
    verdict: str = column("verdict")


@dataclass(frozen=True, kw_only=True)
class AnchorReport(Report):
    """The drift of each criterion, by its id, after a look."""

    drifts: Mapping[str, Drift] = field(default_factory=dict)


async def aanchor(
    runs: Runs,
    criteria: Criteria | None = None,
    *,
    output: str | Path,
    n: int = 60,
    looks: int = 52,
    **options: Unpack[JudgeKeywords],
) -> ScoreReport:
    """Let a judge score `n` runs `repeats` times (default 5), and freeze the scores in `output`.

    Runs are drawn by `seed`, from as many cases as possible; those without an answer are left out,
    and so are criteria without order and computed ones. `looks` is the planned number of checks a
    year. The other parameters are those of `quantify`, and stored scores are used.

    Returns the report of `quantify` on these runs. Nothing is written if it is unfinished. Raises
    InputError as `quantify`, for fewer than 2 repeats, an `output` that exists, and recorded
    replies, which never drift.
    """
    how = read_options(AnchorOptions, options, aanchor)
    least = (("--repeats", how.repeats, 2), ("--n", n, 2), ("--looks", looks, 1))
    for name, number, lowest in least:
        if number < lowest:
            raise InputError(f"must be at least {lowest}, not {number}", name)
    if Path(output).exists():
        what = "exists; choose another -o, or delete it and its log (.looks.jsonl)"
        raise InputError(what, str(output))
    judging = _read(runs, criteria, how)
    items = _drawn(judging.items, n, how.seed)
    report = await _asked(judging, items, how)
    if report.estimate is not None or report.unfinished:
        return report
    scores, statuses = _scores(report, items)
    call = {"runs": None if runs == "-" else runs, "criteria": criteria, **keywords(how)}
    call["base_url"] = how.base_url and public_url(how.base_url)
    plain = {k: str(v) if isinstance(v, Path) else v for k, v in call.items()}
    settings = {
        name: plain[name]
        for name in files.AnchorSettings.model_fields
        if isinstance(plain.get(name), _PLAIN)
    }
    keys = [files.run_key(item) for item in items]
    frozen = files.Anchor(
        anchor=files.VERSION,
        created=_now(),
        judge=report.source,
        settings=files.AnchorSettings(**settings),
        criteria={c.id: files.criterion_hash(c) for c in judging.criteria},
        looks=looks,
        statuses=statuses,
        runs=tuple(
            files.FrozenRun(
                key=key, case=case_key(item[0]), text=files.text_hash(item), scores=scores[key]
            )
            for key, item in zip(keys, items, strict=True)
        ),
    )
    files.write_lines(Path(output), [frozen])
    return replace(report, notes=(*report.notes, f"{plural(len(items), 'run')} frozen in {output}"))


async def acheck_anchor(
    path: str | Path,
    runs: Runs | None = None,
    criteria: Criteria | None = None,
    *,
    sample: int = 20,
    **options: Unpack[JudgeKeywords],
) -> AnchorReport:
    """Ask the judge of an anchor file again about `sample` of its runs, and test for drift.

    Runs, criteria and settings are those of the file unless given. Each look takes the next runs in
    turn, has a seed of its own, and is added to the log beside the file (`.looks.jsonl`); an
    interrupted look is continued. `store` is by default a file of its own beside it (`.db`), so
    that looks are not taken for results of `quantify`.

    Returns a report with `drifts`. Its `exit_code` is 5 when drift is shown, and 3 when judging
    stopped early or more than a tenth of the results is missing. Raises InputError for a file that
    cannot be read, and where runs, criteria or judge differ from the frozen ones.
    """
    path = Path(path)
    anchor = files.read_anchor(path)
    if not 1 <= sample <= len(anchor.runs):
        raise InputError(f"{sample} of {plural(len(anchor.runs), 'run')} in the anchor", "--sample")
    call = {**anchor.settings.model_dump(exclude={"runs", "criteria"}), **options}
    how = read_options(JudgeOptions, call, acheck_anchor)
    how = replace(how, store=how.store or path.with_suffix(".db"))
    runs = anchor.settings.runs if runs is None else runs
    if runs is None:
        raise InputError("the anchor was made from records; give the runs", "--runs")
    judging = _read(runs, anchor.settings.criteria if criteria is None else criteria, how)
    items = files.frozen_items(anchor, judging.items)
    judging = replace(judging, criteria=files.frozen_criteria(anchor, judging.criteria))
    source = judging.evaluator(None)[0].source
    if changes := files.differences(anchor.judge, source):
        what = f"not the frozen judge: {'; '.join(changes)}; create an anchor of this one"
        raise InputError(what, str(path))
    judge = content_hash(files.identity(source))[:16]
    log = path.with_suffix(".looks.jsonl")
    looks = files.read_looks(log, anchor)
    if not looks or looks[-1].ended or looks[-1].judge != judge:
        looks = [look for look in looks if look.ended]
        looks.append(_next_look(anchor, looks, sample, judge))
    if not how.dry_run:
        files.write_lines(log, looks)
    look = looks.pop()
    part = [item for item in items if files.run_key(item) in look.runs]
    report = await _asked(judging, part, replace(how, seed=look.seed, repeats=1))
    if report.estimate is not None:
        report = replace(report, estimate=replace(report.estimate, command="anchor check"))
    if report.estimate is not None or report.unfinished:  # nothing to compare
        return AnchorReport(**{f.name: getattr(report, f.name) for f in fields(Report)})
    scores, statuses = _scores(report, part)
    ended = {"ended": _now(), "scores": scores, "statuses": statuses}
    looks.append(look.model_copy(update=ended))
    files.write_lines(log, looks)
    drift = drift_report(anchor, [x for x in looks if x.judge == judge], judging.criteria)
    return replace(drift, notes=report.notes).gated(*report.gates)


anchor, check_anchor = synchronous(aanchor), synchronous(acheck_anchor)


def _read(runs: Runs, criteria: Criteria | None, how: JudgeOptions) -> Judging:
    """Return what can be judged, with the criteria that have an order and are not computed.

    Raises InputError.
    """
    judging = read_judging(runs, criteria, how, Watch(lambda line: None))
    rated = tuple(c for c in judging.criteria if c.ordered and not c.judge)
    if not rated:
        raise InputError("no criterion has an order and is rated by the judge", "--criteria")
    if judging.choice is not None and judging.choice.provider in ("recorded", "replay"):
        raise InputError("recorded replies never drift; name a judge that answers", "--model")
    return replace(judging, criteria=rated)


async def _asked(judging: Judging, items: Sequence[Item], how: JudgeOptions) -> ScoreReport:
    """Return the scores of these runs; their systems are named already."""
    changes = {"system": None, "limit": None, "mapping": None, "task": judging.task}
    return await aquantify([run for run, _ in items], judging.criteria, **keywords(how, **changes))


def _scores(
    report: ScoreReport, items: Sequence[Item]
) -> tuple[dict[str, files.Scores], dict[str, int]]:
    """Return the scores by run and criterion, and the number of results by status."""
    keys = {view.sha256: files.run_key((run, view)) for run, view in items}
    scores: dict[str, files.Scores] = {key: defaultdict(list) for key in keys.values()}
    for rating in report.ratings:
        if rating.value is not None:
            scores[keys[rating.run_key]][rating.criterion_id].append(rating.value)
    return scores, dict(Counter(rating.status for rating in report.ratings))


def _drawn(items: Sequence[Item], n: int, seed: int) -> list[Item]:
    """Return `n` runs with an answer, one of each case before any second one, in random order.

    Raises InputError for fewer than two.
    """
    by_case = defaultdict[str, list[Item]](list)
    for i in np.random.default_rng(seed).permutation(len(items)):
        if items[i][0].failure is None and degenerate(items[i][0]) is None:
            by_case[case_key(items[i][0])].append(items[i])
    turns = zip_longest(*by_case.values())
    drawn = {files.run_key(item): item for turn in turns for item in turn if item is not None}
    if len(drawn) < 2:
        raise InputError("an anchor needs at least 2 runs with an answer", "runs")
    return list(drawn.values())[:n]


def _next_look(
    anchor: files.Anchor, looks: Sequence[files.Look], sample: int, judge: str
) -> files.Look:
    """Return the next look: the runs whose turn it is, and a seed that no stored reply has.

    Raises InputError if there were as many looks within 365 days as planned.
    """
    free = [datetime.fromisoformat(x.begun) + timedelta(days=365) for x in looks][-anchor.looks :]
    if len(free) == anchor.looks and free[0] > datetime.now(UTC):
        raise InputError(
            f"{len(free)} looks within 365 days, as many as planned; the next can be made on "
            f"{free[0]:%Y-%m-%d} (`anchor create --looks N` plans more)",
            "anchor check",
        )
    start = sum(len(look.runs) for look in looks)
    keys = [anchor.runs[(start + i) % len(anchor.runs)].key for i in range(sample)]
    seed = secrets.randbelow(2**31)
    return files.Look(anchor=anchor.id, judge=judge, begun=_now(), seed=seed, runs=tuple(keys))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def drift_report(
    anchor: files.Anchor, looks: Sequence[files.Look], criteria: Sequence[Criterion]
) -> AnchorReport:
    """Return the drift of each criterion after the last of these looks, which are of one judge."""
    cases = np.unique([run.case for run in anchor.runs], return_inverse=True)[1]
    answers_so_far = np.cumsum([len(look.runs) for look in reversed(looks)])
    recent = 1 + int((answers_so_far < len(anchor.runs)).sum())
    alpha = ALPHA / anchor.looks / len(criteria)
    drifts, rows, shown = dict[str, Drift](), list[_DriftRow](), list[str]()
    for c in criteria:
        frozen = _matrix([run.scores.get(c.id, ()) for run in anchor.runs])
        by_look = [[x.scores.get(r.key, {}).get(c.id, ()) for r in anchor.runs] for x in looks]
        new = np.hstack([_matrix(scores) for scores in by_look])
        drift = drifts[c.id] = find_drift(frozen, new, cases, recent=recent, alpha=alpha)
        at, verdict = drift.interval, _verdict(drift)
        mean = None if np.isnan(frozen).all() else float(np.nanmean(frozen))
        rows.append(_DriftRow(c.name, mean, Estimate.of(at), at.n, drift.looks, verdict))
        if drift.shown:
            shown.append(f"{c.name} {verdict} by {abs(at.mean or 0):.2f}")
    now, then = (
        ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
        for statuses in (looks[-1].statuses, anchor.statuses)
    )
    notes = (
        "verdicts and intervals hold for all criteria and all looks of a year together (95%)",
        f"results of this look: {now}; frozen: {then}",
    )
    after = f"after {plural(len(looks), 'look')} ({plural(int(answers_so_far[-1]), 'answer')})"
    return AnchorReport(
        title=f"drift shown: {', '.join(shown)}" if shown else f"no drift shown {after}",
        tables=(table_of(_DriftRow, "drift", "", rows, notes=notes),),
        exit_code=5 if shown else 0,
        drifts=drifts,
    )


def _matrix(scores: Sequence[Sequence[float]]) -> Floats:
    """Return a row for each run, with NaN where it has fewer scores than others."""
    return np.array(list(zip_longest(*scores, [0.0], fillvalue=np.nan)), dtype=np.float64).T[:-1]


def _verdict(drift: Drift) -> str:
    low, high = drift.interval.low, drift.interval.high
    if low is None or high is None:
        return "too few answers"
    if not drift.shown:
        return f"none shown, at most {max(-low, high):.2f}"
    return "lower" if high < 0 else "higher" if low > 0 else "changed"
