"""Material of every kind of page, with a swap of its texts: what would be judged, tried or traced
by somebody hostile. Made by the project's own tests, so the shapes are real ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.pages.payloads import Swap, swapped

RUNS, CRITERIA = 9, 4


def utility_store(path: Path, swap: Swap) -> None:
    """A store of judged runs and copies, failures among them, filled as `quantify` fills it."""
    from agenteval.evaluators.base import Outcome, Unit, cell_key
    from agenteval.evaluators.utility.plan import joined, make_plan
    from agenteval.experiment import Experiment
    from agenteval.records import CallRecord, Criterion, Message, Run, Score, Usage, View
    from agenteval.store import Store
    from tests.store.making import ScriptedJudge, failures

    levels = tuple(swap(f"level {i}") for i in range(5))
    criteria = [
        Criterion(
            id=f"quality-{i}", name=swap(f"quality {i}"), description=swap(f"how good {i}"),
            accepted_values=levels, order="worst_to_best",
            expect={"drop_sentences": "lower", "whitespace": "none"},
        )
        for i in range(CRITERIA)
    ]  # fmt: skip
    task = swap("the task")
    items = []
    for i in range(RUNS):
        run = Run(
            id=f"run {i}", task=task, system=swap(f"system {i % 3}"),
            input=swap(f"input {i // 3}"), output=swap(f"output {i}"), success=i % 2 == 0,
            messages=(Message(role="assistant", content=swap(f"message {i}")),),
            reference=swap("reference"), metadata={swap("meta"): swap(f"meta {i}")},
        )  # fmt: skip
        # Readers refuse ids with control characters; a store of other hands may hold them.
        run = run.model_copy(update={"id": swap(run.id)})
        items.append((run, View(run_id=run.id, problem=run.input, trajectory=run.output)))

    numbers = {run.id: i for i, (run, _) in enumerate(items)}

    def script(unit: Unit) -> Outcome:
        if unit.run.id == items[-1][0].id:
            return failures(unit, judge.source, "unscored:parse", swap("no reply"))
        # a function of numbers alone: the same verdicts whatever the texts are
        number = numbers[unit.run.id] + 2 * unit.repeat + len(unit.variant)
        said = {"quote": swap(f"quote {unit.run.id}"), swap("part"): 1}
        results = tuple(
            Score(
                key=cell_key(unit, c, judge.source.sha256), criterion_id=c.id, evidence=said,
                label=levels[(number + i) % 5], value=(number + i) % 5 / 4,
                explanation=swap(f"why {unit.run.id} {c.id}"),
            )
            for i, c in enumerate(unit.criteria)
        )  # fmt: skip
        call = CallRecord(raw=swap(f"raw {unit.run.id}"), usage=Usage(requests=1))
        return Outcome(results, call)

    judge = ScriptedJudge(script=script, model=swap("model"), prompt=swap("prompt"))
    judge._source = judge.source.model_copy(
        update={"parameters": {swap("parameter"): swap("value")}, "evaluator": swap("evaluator")}
    )
    with Store(path) as store:
        plans = [make_plan(judge, items, criteria, store, repeats=2)]
        changes: dict[str, Callable[[str], str]] = {
            "drop_sentences:0.25:0": lambda t: t[: len(t) // 2],
            "whitespace:-:0": lambda t: t.replace(" ", "  ") + " ",
        }
        for variant, change in changes.items():
            copies = [
                (run, view.model_copy(update={"trajectory": change(view.trajectory),
                                              "origin": view.sha256}))
                for run, view in items
            ]  # fmt: skip
            plans.append(make_plan(judge, copies, criteria, store, repeats=2, variant=variant))
        asyncio.run(Experiment(joined(plans), store, workers=1).run())


def utility(swap: Swap, folder: Path) -> str:
    """The page of `agenteval report`."""
    from agenteval.evaluators.utility.verify.options import VerifyOptions
    from agenteval.report.material import Wanted, from_store
    from agenteval.report.utility import utility_page
    from agenteval.store import Store

    path = folder / f"utility-{id(swap)}.db"
    utility_store(path, swap)
    with Store(path) as store:
        ((key, source),) = store.sources()
        wanted = Wanted(criteria_file=swap("criteria file"))
        return utility_page(from_store(store, key, source, wanted, VerifyOptions()))


def planning(swap: Swap, folder: Path) -> str:
    """The page of `agenteval plan report`."""
    from agenteval.report.planning import planning_page

    attempts, causes = planning_material(swap)
    return planning_page(
        attempts, causes, title=swap("title"), facts=[(swap("a fact"), swap("its text"))]
    )


def planning_material(swap: Swap) -> tuple[list[Any], list[Any]]:
    """Trials of two systems, wrong ones and failures among them, and causes."""
    from agenteval.evaluators.planning.tallies import CaseLabel
    from tests.evaluators.planning.campaigns import attempt, campaign, case, failure

    made = [
        *campaign({2: 3, 3: 3}, {"one": 0.8, "two": 0.3}),
        attempt(case("wrong"), "ba", output="It is done."),
        attempt(case("unknown"), "aX"),
        failure(case("lost"), system="two"),
    ]
    first = next(a for a in made if a.outcome != "pass" and a.verdict is not None)
    causes = [
        CaseLabel(swap(first.case.id), swap(first.system), "Topic"),
        CaseLabel(swap("wrong"), swap("s"), swap("odd label")),
    ]
    return [swapped(a, swap) for a in made], causes


def traces(swap: Swap, folder: Path) -> str:
    """The page of `agenteval trace report`."""
    from agenteval.report.traces import traces_page

    title, fact = swap("title"), (swap("a fact"), swap("its text"))
    return traces_page(traces_material(swap), title=title, facts=[fact])


def traces_material(swap: Swap) -> Any:
    """Three traces, two finders and a person; a failure, a rejected finding, an unknown span."""
    import dataclasses

    from agenteval.records import Finding
    from tests.report.test_traces import outline, said, small, span

    made = small()
    spans = (
        span("s1", kind="agent", input="asked", output="told"),
        span("s2", "s1", kind="tool", status="error", note="it broke", input="given"),
        span("s3", "s1", kind="llm", seconds=2.0, tokens=9),
    )
    finding = Finding(span="s2", category="Rate Limiting", evidence="429", description="too many",
                      impact="HIGH", confidence=0.5, source="detector:x")  # fmt: skip
    last = said("t9").model_copy(update={"findings": (finding,), "message": "some parts skipped"})
    rules = made.finders[0]
    rules = dataclasses.replace(rules, findings={**rules.findings, "t9": last})
    finders = [rules, *made.finders[1:]]
    outlines = {**made.outlines, "t9": outline("t9", *spans).model_copy(update={"task": "a task"})}
    return dataclasses.replace(
        made, outlines={swap(t): swapped(o, swap) for t, o in outlines.items()},
        finders=[swapped(f, swap) for f in finders],
    )  # fmt: skip


def flows(swap: Swap, folder: Path) -> str:
    """The page of `agenteval flow report`."""
    from agenteval.report.workflows import workflows_page

    sessions, turns = flows_material(swap)
    return workflows_page(
        sessions, turns, title=swap("title"), facts=[(swap("a fact"), swap("its text"))]
    )


def flows_material(swap: Swap) -> tuple[list[Any], list[Any]]:
    """Sessions with every kind of mark, failures, and turns."""
    from tests.report import test_workflows as made

    session: Any = made.session
    lost: Any = made.lost

    sessions = [
        session(False, "r/s/ann", verdict=made.FULL),
        session(True, "r/s/bob"),
        session(None, "r/s/eve", system="b · code"),
        lost(),
    ]
    return [swapped(s, swap) for s in sessions], [swapped(made.WRONG, swap)]


PAGES: dict[str, Callable[[Swap, Path], str]] = {
    "utility": utility, "planning": planning, "traces": traces, "flows": flows,
}  # fmt: skip
