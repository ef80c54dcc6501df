"""Where the two sides of a comparison come from: systems, judges, stores or score files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.errors import InputError
from agenteval.files import same_file

if TYPE_CHECKING:
    from agenteval.records import Criterion, Source
    from agenteval.stats.scores import ScoreTable
    from agenteval.store import Store
    from agenteval.trust.pairing import PairBy


@dataclass(frozen=True)
class Wanted:
    """What the command line asked for. `names`: systems; `sources`: judges, or raters in a file."""

    names: tuple[str, ...]
    sources: tuple[str, ...]
    store: Path | None
    scores: Path | None
    other: Path | None
    task: str | None
    criteria: Path | None


@dataclass(frozen=True)
class Sides:
    """Two tables, what to call them, what is paired, and what must be said about it."""

    first: ScoreTable
    second: ScoreTable
    names: tuple[str, str]
    pair_by: PairBy
    about: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)  # criterion id -> why


def load_sides(wanted: Wanted) -> Sides:
    """Read both sides. Raises InputError for what cannot be compared, in one line."""
    _check(wanted)
    if wanted.scores is not None:
        return _from_files(wanted, wanted.scores)
    return _from_stores(wanted)


def _check(wanted: Wanted) -> None:
    if len(wanted.sources) > 2:
        raise InputError("at most two judges can be compared", "--source")
    two_judges = len(wanted.sources) == 2
    if len(set(wanted.names)) == 2 and two_judges:
        raise InputError("two systems and two judges at once: a difference could come from either")
    if len(wanted.names) == 2 and wanted.names[0] == wanted.names[1] and wanted.other is None:
        raise InputError(f"{wanted.names[0]!r} is compared with itself", "compare")
    here = wanted.scores or wanted.store
    if wanted.other is not None and here is not None and _same(here, wanted.other):
        raise InputError(f"{wanted.other} is compared with itself", "--with")
    if len(wanted.names) < 2 and wanted.other is None and not two_judges:
        raise InputError(
            "say what to compare: two systems, two judges (--source twice), or a second store or "
            "score file (--with)",
            "compare",
        )


def _same(a: Path, b: Path) -> bool:
    return same_file(a, b)


def _pair_by(wanted: Wanted) -> PairBy:
    if wanted.other is None and len(wanted.sources) == 2:
        return "run"
    return "case" if len(wanted.names) == 2 else "system"


def _system(table: ScoreTable, wanted: Wanted, side: int, where: str) -> ScoreTable:
    """The rows of the system asked for on this side; one name alone is meant for both sides."""
    if not wanted.names:
        return table
    name = wanted.names[min(side, len(wanted.names) - 1)]
    own = table.of(system=name)
    if not len(own):
        known = ", ".join(sorted(table.present("system"))) or "none named"
        raise InputError(f"there is no system {name!r}; there are: {known}", where)
    return own


# ---- score files ---------------------------------------------------------------------------------


def _from_files(wanted: Wanted, path: Path) -> Sides:
    from agenteval.readers.scores import read_scores

    if wanted.store is not None:
        raise InputError("give --store or --scores, not both", "--scores")
    known = _criteria(wanted)
    paths = (path, wanted.other or path)
    raters = [
        wanted.sources[min(i, len(wanted.sources) - 1)] if wanted.sources else None for i in (0, 1)
    ]
    if paths[0] == paths[1] and raters[0] == raters[1]:
        tables = [read_scores(path, known, rater=raters[0])] * 2
        if len(wanted.names) < 2:
            raise InputError(f"rater {raters[0]!r} is compared with itself", "--source")
    else:
        tables = [read_scores(p, known, rater=r) for p, r in zip(paths, raters, strict=True)]
    sides = [_system(t, wanted, i, str(paths[i])) for i, t in enumerate(tables)]
    pair_by = _pair_by(wanted)
    parts = [_named(wanted, i, raters[i], str(paths[i])) for i in (0, 1)]
    return Sides(sides[0], sides[1], (parts[0], parts[1]), pair_by, tuple(_places(wanted, paths)))


def _named(wanted: Wanted, side: int, judge: str | None, place: str) -> str:
    """The name of a side: what the sides differ in."""
    if len(wanted.names) == 2:
        return wanted.names[side]
    return judge if wanted.other is None and judge is not None else place


def _places(wanted: Wanted, paths: Sequence[Path]) -> list[str]:
    places = list(dict.fromkeys(str(p) for p in paths))
    of = f" (system {wanted.names[0]})" if len(wanted.names) == 1 else ""
    return [f"ratings of {' and '.join(places)}{of}"]


def _criteria(wanted: Wanted) -> tuple[Criterion, ...]:
    from agenteval.evaluators.utility.criteria_file import find_criteria, load_criteria

    path = wanted.criteria or (find_criteria(wanted.task) if wanted.task else None)
    return () if path is None else load_criteria(path).criteria.criteria


# ---- stores --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """One judge in one store: the newest run of each id, and the criteria it has judged."""

    store: Store
    key: str
    source: Source
    runs: dict[str, list[str]]  # run id -> run keys, oldest first
    criteria: dict[str, list[str]]  # criterion id -> content hashes, oldest first


def _from_stores(wanted: Wanted) -> Sides:
    from contextlib import ExitStack

    from agenteval.store import Store, default_path

    path = wanted.store or default_path()
    paths = (path, wanted.other or path)
    if wanted.other is not None and _same(*paths):
        raise InputError(f"{wanted.other} is compared with itself", "--with")
    with ExitStack() as stack:
        stores = [stack.enter_context(Store(paths[0], create=False))]
        if wanted.other is not None:
            stores.append(stack.enter_context(Store(paths[1], create=False)))
        for opened in stores:
            stack.enter_context(opened.snapshot())
        places = [_place(stores[min(i, len(stores) - 1)], wanted, i) for i in (0, 1)]
        return _stored_sides(wanted, places, paths)


def _place(store: Store, wanted: Wanted, side: int) -> _Place:
    start = wanted.sources[min(side, len(wanted.sources) - 1)] if wanted.sources else None
    key, source = find_source(store, start)
    judged = store.judged(key, variant="original")
    runs = {k: r for k, r in store.items().items() if k in judged}
    tasks = sorted({str(r["task"]) for r in runs.values()})
    if wanted.task is None and len(tasks) > 1:
        raise InputError(
            f"the store holds runs of several tasks, choose one: {', '.join(tasks)}", "--task"
        )
    by_id: dict[str, list[str]] = {}
    for run_key, run in runs.items():
        if wanted.task in (None, run["task"]):
            by_id.setdefault(run["run_id"], []).append(run_key)
    if not by_id:
        raise InputError(f"there are no runs of {wanted.task!r}; tasks: {', '.join(tasks)}",
                         "--task")  # fmt: skip
    criteria: dict[str, list[str]] = {}
    for criterion_key, criterion in store.criteria_of(key).items():
        criteria.setdefault(criterion.id, []).append(criterion_key)
    return _Place(store, key, source, by_id, criteria)


def find_source(store: Store, start: str | None) -> tuple[str, Source]:
    """The judge, agent or finder of this name, or whose hash starts so; when nothing is asked, the
    latest judge, in a store without one the latest of all.

    Raises InputError when none or several fit.
    """
    from agenteval.cli.show import pick_source

    known = (store.sources() if start is None else []) or store.sources(trials=True)
    named = [k for k in known if k[1].model == start]
    if len(named) == 1:
        return named[0]
    if len(named) > 1:
        listed = ", ".join(k[:12] for k, _ in named)
        raise InputError(f"{len(named)} judges have the model {start!r}: {listed}", "--source")
    if known and start is not None and not any(k.startswith(start) for k, _ in known):
        listed = ", ".join(f"{k[:12]} ({s.model})" for k, s in known)
        raise InputError(f"no judge is called {start!r}; there are: {listed}", "--source")
    return pick_source(known, start)


def _stored_sides(wanted: Wanted, places: list[_Place], paths: Sequence[Path]) -> Sides:
    a, b = places
    same_judge = a.key == b.key
    if wanted.other is None and same_judge and len(wanted.sources) == 2:
        raise InputError("both name the same judge", "--source")
    if len(set(wanted.names)) == 2 and not same_judge:
        raise InputError(
            f"the systems were judged by different judges ({_judge(a)} and {_judge(b)}); "
            "choose one with --source"
        )
    criteria, left_out = _same_criteria(places)
    tables = []
    for i, place in enumerate(places):
        runs = _chosen_runs(place, places, same_texts=_pair_by(wanted) == "run")
        tables.append(_system(_load(place, criteria[i], runs), wanted, i, str(paths[i])))
    kept = [t for t in (_without(t, left_out) for t in tables) if len(t)]
    if len(kept) < 2:
        why = "; ".join(f"{k}: {v}" for k, v in left_out.items()) or "nothing is rated"
        raise InputError(f"no criterion can be compared ({why})", "compare")
    names = tuple(_named(wanted, i, _judge(p), str(paths[i])) for i, p in enumerate(places))
    about = _places(wanted, paths)
    if same_judge:
        about.append(f"judge: {_judge(a)}, {a.source.evaluator}")
    else:
        about.append(f"judges: {_judge(a)}, {_judge(b)}")
        if wanted.other is not None:
            about.append("the judges differ too: a difference may be theirs")
    about += _open(places)
    return Sides(kept[0], kept[1], (names[0], names[1]), _pair_by(wanted), tuple(about), left_out)


def _open(places: Sequence[_Place]) -> list[str]:
    """What of the two sides is not all there, each said once."""
    from agenteval.store.experiments import unfinished_of

    lines = [
        f"{_judge(place)}: {one.line}"
        for place in places
        for one in unfinished_of(place.store, [place.key])
    ]
    return list(dict.fromkeys(lines))


def _judge(place: _Place) -> str:
    return f"{place.source.model} {place.key[:8]}"


def _same_criteria(places: Sequence[_Place]) -> tuple[list[set[str]], dict[str, str]]:
    """The newest version of every criterion that both sides have; the same text on both."""
    a, b = (p.criteria for p in places)
    chosen: set[str] = set()
    left_out: dict[str, str] = {}
    for name in dict.fromkeys([*a, *b]):
        shared = [k for k in a.get(name, []) if k in b.get(name, [])]
        if shared:
            chosen.add(shared[-1])
        elif name in a and name in b:
            left_out[name] = "its text or scale differs between the two sides"
        else:
            left_out[name] = f"only {'A' if name in a else 'B'} was rated on it"
    return [chosen, chosen], left_out


def _chosen_runs(place: _Place, places: Sequence[_Place], *, same_texts: bool) -> set[str]:
    """The newest version of every run; two judges are compared on the same texts."""
    if not same_texts:
        return {keys[-1] for keys in place.runs.values()}
    other = next(p for p in places if p is not place).runs
    chosen = set()
    for run, keys in place.runs.items():
        shared = [k for k in keys if k in other.get(run, [])]
        if shared or run not in other:  # a run that both have, but in different texts, is no pair
            chosen.add((shared or keys)[-1])
    return chosen


def _load(place: _Place, criteria: set[str], runs: set[str]) -> ScoreTable:
    from agenteval.trust.scores import scores_from_store

    return scores_from_store(
        place.store, place.key, criteria=criteria, runs=runs, variants={"original"}
    )


def _without(table: ScoreTable, names: dict[str, Any]) -> ScoreTable:
    import numpy as np

    codes = [table.criterion.code(n) for n in names]
    return table.where(~np.isin(table.criterion.codes, codes))
