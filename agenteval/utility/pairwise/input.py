"""Reads the input of `prefer`: files of runs, names of systems, or recorded pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from agenteval.cli.running import Watch
from agenteval.errors import InputError
from agenteval.files import same_file
from agenteval.readers.tasks import TASK_FILE
from agenteval.records import Run, Task
from agenteval.text import did_you_mean
from agenteval.utility.judging import Criteria, Runs, read_judging, read_run_list
from agenteval.utility.pairwise.judge import PairJudging
from agenteval.utility.pairwise.options import PreferOptions
from agenteval.utility.pairwise.pairs import (
    OVERALL,
    PairedRuns,
    ResponsePair,
    pair_runs,
    preference_on,
)
from agenteval.utility.pairwise.readers import RecordedPairs

NO_TASK = Task(name="pairs", description="The system answers the request of a user.")


def pairs_of_systems(
    sides: Sequence[Runs],
    runs: Runs | None,
    criteria: Criteria | None,
    how: PreferOptions,
    watch: Watch,
) -> tuple[PairJudging, PairedRuns]:
    """Return the pairs of several files of runs, or of systems in `runs`. Raises InputError."""
    systems = [str(side) for side in sides]
    if runs is None:
        runs, systems = _sides(sides, how, watch)
        if how.task is None and (Path(str(sides[0])).parent / TASK_FILE).is_file():
            how = replace(how, task=str(Path(str(sides[0])).parent))
    judging = _judging(runs, criteria, how, watch)
    present = list(dict.fromkeys(run.system for run, _ in judging.items))
    for name in systems:
        if name not in present:
            hint = did_you_mean(name, present) or f"there are {', '.join(present)}"
            raise InputError(f"there is no system {name!r}; {hint}", "--runs")
        if systems.count(name) > 1:
            raise InputError(f"{name!r} is compared with itself", "prefer")
    return judging, pair_runs(judging.items, systems or present, how.limit)


def pairs_of_file(
    recorded: RecordedPairs, criteria: Criteria | None, how: PreferOptions, watch: Watch
) -> tuple[PairJudging, PairedRuns]:
    """Return the pairs of a file of comparisons. Raises InputError for pairs without texts."""
    pairs = recorded.pairs[: how.limit]
    if without := [p.id for p in pairs if p.text_a is None or p.text_b is None]:
        what = f"{len(without)} pairs have no texts (first: {without[0]})"
        raise InputError(f"{what}; --verdicts counts the recorded verdicts", "--pairs")
    runs = [
        Run(id=p.id, system=system, input=p.problem or "", output=text or "")
        for p in pairs
        for system, text in ((p.a, p.text_a), (p.b, p.text_b))
    ]
    judging = _judging(runs, criteria, replace(how, task=how.task or NO_TASK), watch)
    sides = zip(judging.items[::2], judging.items[1::2], strict=True)
    systems = tuple(dict.fromkeys(run.system for run in runs))
    return judging, PairedRuns(systems, tuple(ResponsePair(*side) for side in sides), {})


def _sides(sides: Sequence[Runs], how: PreferOptions, watch: Watch) -> tuple[list[Run], list[str]]:
    """Return all runs and the systems. A system is called by its file where its name is missing or
    taken."""
    if len(sides) < 2:
        what = "two systems are needed: two files of runs, or names of systems with --runs FILE"
        raise InputError(what, "prefer")
    files = [str(s) if isinstance(s, str | Path) else f"side {i}" for i, s in enumerate(sides, 1)]
    task = how.task.name if isinstance(how.task, Task) else how.task or ""
    runs, systems = list[Run](), list[str]()
    for i, (side, file) in enumerate(zip(sides, files, strict=True)):
        if any(Path(f).exists() and same_file(Path(f), Path(file)) for f in files[:i]):
            raise InputError(f"{file} is compared with itself", "prefer")
        read = read_run_list(side, task, watch, how.mapping)
        names = {run.system for run in read}
        if len(names) > 1:
            listed = ", ".join(sorted(names))
            what = f"it has several systems ({listed}); name those to compare, with --runs {file}"
            raise InputError(what, file)
        name = next(iter(names), "unnamed")
        for other in (Path(file).stem, file):
            name = other if name == "unnamed" or name in systems else name
        systems.append(name)
        runs += [run.model_copy(update={"system": name}) for run in read]
    watch.note(f"systems: {', '.join(systems)}")
    return runs, systems


def _judging(
    runs: Runs, criteria: Criteria | None, how: PreferOptions, watch: Watch
) -> PairJudging:
    by = [OVERALL] if criteria is None else criteria
    judging = read_judging(runs, by, replace(how, limit=None), watch, use_rubrics=False)
    if criteria is None:
        return PairJudging.of(judging)
    if computed := [c.name for c in judging.criteria if c.judge]:
        watch.warn(f"left out, because they are computed for single runs: {', '.join(computed)}")
    usable = preference_on([c for c in judging.criteria if not c.judge])
    if not usable:
        raise InputError("no criterion is left to compare by", "--criteria")
    return PairJudging.of(judging, criteria=usable)
