"""Where judges and labels of `agree` come from: score files, or the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.cli.console import note, warn, warn_list
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.records import Criterion
    from agenteval.stats.scores import ScoreTable
    from agenteval.store import Store


@dataclass(frozen=True)
class Asked:
    """What the command line asked for. `sources`: raters of the score files, or stored judges."""

    labels: Path | None
    raters: tuple[str, ...]
    scores: tuple[Path, ...]
    sources: tuple[str, ...]
    store: Path | None
    task: str | None
    criteria: Path | None
    runs: str | None


@dataclass(frozen=True)
class Material:
    """Tables by the name of who rated, and the criteria as far as they are known."""

    judges: dict[str, ScoreTable]
    labels: dict[str, ScoreTable]
    criteria: tuple[Criterion, ...]


def load(asked: Asked) -> Material:
    """Read everything. Raises InputError for what cannot be used, in one line."""
    known = _criteria(asked)
    if asked.scores:
        if asked.store is not None:
            raise InputError("give --store or --scores, not both", "--scores")
        judges = _from_files(asked, known)
    else:
        judges, known = _from_store(asked, known)
    labels = _labels(asked, known)
    return _placed(Material(judges, labels, known), asked)


def _criteria(asked: Asked) -> tuple[Criterion, ...]:
    from agenteval.evaluators.utility.criteria_file import find_criteria, load_criteria

    path = asked.criteria or (find_criteria(asked.task) if asked.task else None)
    if path is None:
        return ()
    loaded = load_criteria(path, task=Path(asked.task or "").name)
    warn_list("about the criteria:", loaded.notes)
    return loaded.criteria.criteria


def raters_of(path: Path) -> list[str | None]:
    """Names in the field `rater`, in the order of the file; None for rows without one."""
    from agenteval.readers.scores import score_rows

    named = (row.get("rater") for _, row in score_rows(path))
    return list(dict.fromkeys(None if r in (None, "") else str(r) for r in named))


def _chosen(path: Path, wanted: Sequence[str], option: str) -> list[str | None]:
    """The raters asked for; without a wish all of the file."""
    there = raters_of(path)
    strange = [r for r in wanted if r not in there]
    if strange:
        known = ", ".join(r for r in there if r is not None) or "none named"
        raise InputError(f"there is no rater {strange[0]!r} in {path}; there are: {known}", option)
    if len(there) > 1 and None in there:
        raise InputError("some rows name a rater and some do not", str(path))
    return list(wanted) or there


def _labels(asked: Asked, known: tuple[Criterion, ...]) -> dict[str, ScoreTable]:
    from agenteval.readers.scores import read_scores

    if asked.labels is None:
        return {}
    chosen = _chosen(asked.labels, asked.raters, "--rater")
    return {r or asked.labels.stem: read_scores(asked.labels, known, rater=r) for r in chosen}


def _from_files(asked: Asked, known: tuple[Criterion, ...]) -> dict[str, ScoreTable]:
    from agenteval.files import same_file
    from agenteval.readers.scores import read_scores

    found: dict[str, ScoreTable] = {}
    for path in asked.scores:
        there = raters_of(path)
        if there == [None] and path.stem in asked.sources:
            wanted: list[str | None] = [None]  # a file without raters goes by its name
        else:
            wanted = [r for r in asked.sources if r in there]
        chosen = wanted or ([] if asked.sources else there)
        same = asked.labels is not None and same_file(path, asked.labels)
        if same:
            own: set[str | None] = set(asked.raters) or set(there)
            if set(wanted) & own:
                raise InputError(f"rater {wanted[0]!r} is judge and label at once", "--source")
            chosen = [r for r in chosen if r not in own]
        for rater in chosen:
            name = rater or path.stem
            if name in found:
                name = f"{name} ({path})"
            if name in found:
                raise InputError(f"{path} is given twice", "--scores")
            found[name] = read_scores(path, known, rater=rater)
    strange = [s for s in asked.sources if s not in found]
    if strange:
        raise InputError(f"no --scores file has a rater {strange[0]!r}", "--source")
    if not found:
        raise InputError("no rater is left to be the judge: labels and scores are the same",
                         "--scores")  # fmt: skip
    return found


def _from_store(
    asked: Asked, known: tuple[Criterion, ...]
) -> tuple[dict[str, ScoreTable], tuple[Criterion, ...]]:
    """Tables of the judges asked for (default: the latest), and the criteria they rated."""
    from agenteval.cli.compare_sides import find_source
    from agenteval.cli.job import relabel
    from agenteval.store import Store, default_path
    from agenteval.store.experiments import unfinished_of

    found: dict[str, ScoreTable] = {}
    criteria = {c.id: c for c in known}
    with Store(asked.store or default_path(), create=False) as store:
        relabel(store, known)
    with Store(asked.store or default_path(), create=False) as store, store.snapshot():
        for start in asked.sources or (None,):
            key, source = find_source(store, start)
            name = source.model if source.model not in found else f"{source.model} {key[:12]}"
            if name in found:
                raise InputError(f"{start!r} names the same judge again", "--source")
            own = _rated_alike(store, key, criteria, fixed=bool(known))
            for criterion in own.values():
                criteria.setdefault(criterion.id, criterion)
            found[name] = _stored(store, key, set(own), asked.task)
            for one in unfinished_of(store, [key]):
                warn(f"{name}: {one.line}")
    return found, known or tuple(criteria.values())


def _rated_alike(
    store: Store, key: str, criteria: dict[str, Criterion], *, fixed: bool
) -> dict[str, Criterion]:
    """The newest version of each criterion, by content hash, if its levels are those known.

    With `fixed` criteria that are not known are left out.
    """
    kept: dict[str, Criterion] = {}
    for sha, criterion in store.newest_criteria(key).items():
        name = criterion.id
        if name not in criteria:
            if not fixed:
                kept[sha] = criterion
        elif criterion.accepted_values != criteria[name].accepted_values:
            warn(f"{name}: the stored judge used other levels than the criteria; left out")
        else:
            kept[sha] = criterion
    if not kept:
        raise InputError("the stored judge has rated none of the criteria", "--source")
    return kept


def _stored(store: Store, key: str, criteria: set[str], task: str | None) -> ScoreTable:
    from agenteval.stats.scores import ORIGINAL
    from agenteval.trust.scores import scores_from_store

    known, judged = store.items(), store.judged(key, variant=ORIGINAL)
    runs = {k: r for k, r in known.items() if k in judged and (task is None or r["task"] == task)}
    tasks = sorted({str(known[k]["task"]) for k in judged})
    if not runs:
        raise InputError(f"there are no runs of {task!r}; tasks: {', '.join(tasks)}", "--task")
    if len({r["task"] for r in runs.values()}) > 1:
        raise InputError(f"runs of several tasks, choose one: {', '.join(tasks)}", "--task")
    newest = {r["run_id"]: k for k, r in runs.items()}
    return scores_from_store(
        store, key, criteria=criteria, runs=set(newest.values()), variants={ORIGINAL}
    )


def _placed(material: Material, asked: Asked) -> Material:
    """Cases and success from the runs file, if one is named or lies beside the labels."""
    from agenteval.readers import read_runs
    from agenteval.records.base import content_hash
    from agenteval.trust.ratings import with_runs

    beside = None if asked.labels is None else asked.labels.parent / "runs.jsonl"
    path = asked.runs or (str(beside) if beside is not None and beside.is_file() else None)
    if path is None:
        return material
    runs = read_runs(path).runs
    case = {r.id: content_hash(r.input) for r in runs if r.input}
    success = {r.id: r.success for r in runs}
    tables = [*material.judges.values(), *material.labels.values()]
    if not any(name in success for table in tables for name in table.run.names):
        if asked.runs is None:
            return material
        raise InputError("none of the rated runs is in this file", path)
    note(f"cases and success of the runs: {path}")
    return Material(
        {name: with_runs(t, case, success) for name, t in material.judges.items()},
        {name: with_runs(t, case, success) for name, t in material.labels.items()},
        material.criteria,
    )
