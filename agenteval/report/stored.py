"""From a store to the material of a report: one judge, one task, newest versions only."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from agenteval.errors import InputError
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records import Criterion, Source, Usage
from agenteval.report.material import Findings, Material, arranged, findings_of, recorded
from agenteval.report.queries import Judged, StoredTexts, judged_texts
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store, of_one_state
from agenteval.store.experiments import unfinished_of
from agenteval.trust.scores import scores_from_store
from agenteval.trust.verification import verify_keys


@dataclass(frozen=True)
class Wanted:
    """What of a source goes into the report; None means everything, the newest version.

    `criteria` are those of a file with its name, `runs` the hashes of the views.
    """

    task: str | None = None
    criteria: tuple[Criterion, ...] | None = None
    criteria_file: str = ""
    runs: frozenset[str] | None = None


@of_one_state
def from_store(
    store: Store, source_key: str, source: Source, wanted: Wanted, options: VerifyOptions
) -> Material:
    """Everything that a judge has judged of one task. Verdicts are computed where the store holds
    perturbed copies, else taken from the criteria file where it has them.

    Raises InputError when nothing fits, or when the judge knows several tasks and none is chosen.
    """
    open_ = unfinished_of(store, [source_key], wanted.runs)
    texts = judged_texts(store, source_key)
    task = _task(texts, wanted)
    originals, copies = _newest([t for t in texts if t.task == task], wanted.runs)
    chosen = _criteria(store, source_key, wanted)
    table = arranged(
        scores_from_store(
            store,
            source_key,
            criteria=set(chosen),
            runs={t.run_key for t in originals},
            copies={(t.run_key, t.variant) for t in copies},
        ),
        [c.id for c in chosen.values()],
    )
    if not len(table):
        raise InputError("the judge has not rated these runs on these criteria", "--source")
    criteria = tuple(c for c in chosen.values() if c.id in set(table.present("criterion")))
    try:
        written = recorded(criteria, f"read from {wanted.criteria_file}")
    except ValueError as error:
        raise InputError("the verification in this file is not in form",
                         wanted.criteria_file) from error  # fmt: skip
    verified = _verified(store, source_key, table, criteria, (originals, copies), options)
    usage = store.usage(source_key)
    by_run: dict[str, dict[str, str]] = {}
    for copy in copies:
        by_run.setdefault(copy.run_id, {})[copy.variant] = copy.run_key
    reader = StoredTexts(
        store, source_key, {t.run_id: t.run_key for t in originals}, by_run,
        {key: c.id for key, c in chosen.items()},
    )  # fmt: skip
    return Material(
        title=task or "runs",
        facts=_facts(source, source_key, usage, [*originals, *copies], store.path.name),
        criteria=criteria,
        table=table,
        findings=verified or written,
        unverified="no perturbed copy of these runs was judged: run `agenteval verify`",
        usage=usage,
        texts=reader,
        show=f"agenteval show --store {store.path.name} --source {source_key[:12]} --run {{run}}",
        notes=tuple(_differences(written, verified)),
        unfinished=tuple(one.line for one in open_),
    )


def _task(texts: Sequence[Judged], wanted: Wanted) -> str:
    """The task asked for, or the only one."""
    fitting = [t for t in texts if wanted.runs is None or t.run_key in wanted.runs]
    if not fitting:
        raise InputError("none of these runs was judged by this judge", "RUNS")
    tasks = sorted({t.task for t in fitting if t.origin is None})
    if wanted.task is not None:
        if wanted.task not in tasks:
            raise InputError(f"this judge has no runs of it; it has {', '.join(tasks)}", "--task")
        return wanted.task
    if len(tasks) != 1:
        raise InputError(f"this judge has runs of several tasks: {', '.join(tasks)}", "--task")
    return tasks[0]


def _newest(
    texts: Sequence[Judged], runs: Collection[str] | None
) -> tuple[list[Judged], list[Judged]]:
    """The version used last of every original, and of every copy of these."""
    found = {t.run_id: t for t in texts if t.origin is None and (runs is None or t.run_key in runs)}
    keys = {t.run_key for t in found.values()}
    copies = {(t.run_id, t.variant): t for t in texts if t.origin in keys}
    return sorted(found.values(), key=lambda t: t.run_id), sorted(
        copies.values(), key=lambda t: (t.run_id, t.variant)
    )


def _criteria(store: Store, source_key: str, wanted: Wanted) -> dict[str, Criterion]:
    """Criteria by content hash, in the order of the file, else of the store."""
    if wanted.criteria is None:
        return store.newest_criteria(source_key)
    stored = store.criteria_of(source_key)
    chosen = {c.sha256: c for c in wanted.criteria if c.sha256 in stored}
    if not chosen:
        raise InputError(
            "this judge has rated none of these criteria in this wording", wanted.criteria_file
        )
    return chosen


def _verified(
    store: Store, source_key: str, table: ScoreTable, criteria: tuple[Criterion, ...],
    texts: tuple[list[Judged], list[Judged]], options: VerifyOptions,
) -> Findings | None:  # fmt: skip
    """The verdicts of `agenteval verify` on what it judged, None where no copy was judged.

    Runs without a copy are not in its evidence: it did not look at them. Empty replies, which no
    perturbation changes, are, where other runs of their system have copies. Of originals as many
    repeats count as there are of copies, and only criteria that copies were rated on.
    """
    originals, copies = texts
    of_copies = table.where(table.variant.codes != table.variant.code(ORIGINAL))
    if not len(of_copies):
        return None
    rated = set(of_copies.present("criterion"))
    copied = {copy.origin for copy in copies}
    systems = {text.system for text in originals if text.run_key in copied}
    answered = table.of(variant=ORIGINAL)
    answered = answered.where(answered.status.codes != answered.status.code("degenerate"))
    answering = set(answered.present("run"))
    runs = {
        text.run_key
        for text in originals
        if text.run_key in copied or (text.system in systems and text.run_id not in answering)
    }
    result = verify_keys(
        store,
        source_key,
        tuple(c for c in criteria if c.id in rated),
        options,
        runs=runs,
        copies={(copy.run_key, copy.variant) for copy in copies},
        repeats=int(of_copies.repeat.max()) + 1,
        lengths={(t.run_id, t.variant): t.length for t in (*originals, *copies)},
    )
    some = f", from the {len(runs)} of {len(originals)} runs that `agenteval verify` judged"
    return findings_of(
        result, "computed from the store" + (some if len(runs) < len(originals) else "")
    )


def _differences(written: Findings | None, found: Findings | None) -> list[str]:
    """Where the file says something else than the store gives now."""
    if written is None or found is None:
        return []
    said = []
    for old in written.criteria:
        new = found.of(old.criterion_id)
        if new is not None and new.verdict != old.verdict:
            said.append(
                f"{old.criterion_id}: the criteria file says {old.verdict}, "
                f"the store now gives {new.verdict}"
            )
    return said


def _facts(
    source: Source, key: str, usage: Usage, texts: Sequence[Judged], name: str
) -> tuple[tuple[str, str], ...]:
    first, last = (f(t.used for t in texts) for f in (min, max))
    days = list(dict.fromkeys(_day(t) for t in (first, last)))
    tokens = (
        "unknown"
        if usage.prompt_tokens is None
        else f"{usage.prompt_tokens:,} read, {usage.completion_tokens or 0:,} written"
    )
    facts = [
        ("judge", f"{source.model} ({source.evaluator}, version {source.version})"),
        ("seed", str(source.seed)),
        ("parameters", json.dumps(source.parameters, ensure_ascii=False, sort_keys=True)),
        ("source", key[:16]),
        ("store", name),
        ("runs last registered", " to ".join(days)),
        ("requests", f"{usage.requests:,}"),
        ("tokens", tokens),
        ("cost", "unknown" if usage.cost is None else f"{usage.cost:,.4f}"),
    ]
    return tuple(facts)


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")
