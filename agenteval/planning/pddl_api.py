"""`plan check`: verdicts on plans in PDDL, from a file of one plan or from PlanBench's results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agenteval.errors import InputError
from agenteval.files import LARGE, read_text
from agenteval.planning.pddl import PlanVerdict, plan_steps, read_problem, verdict_of
from agenteval.readers.strict_json import read_json
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report


@dataclass(frozen=True)
class PlanRow:
    """One plan and its verdict."""

    plan: str = column("plan")
    verdict: str = column("verdict")
    step: int | None = column("step", "count")
    reason: str = column("reason")


def check_plans(plans: Path, *, domain: Path, problem: Path) -> Report:
    """Execute plans in PDDL; the report says which are valid, and which step of others fails.

    `plans` is a file of one plan, or the results of PlanBench for plan generation: JSON whose
    `instances` have an `extracted_llm_plan`. The problem of instance N is then the file
    `instance-N.pddl` of the folder `problem`, and an instance without a plan is invalid, as in
    PlanBench. The exit code is 1 if a plan is invalid. Raises InputError.
    """
    definition, rows = read_text(domain, LARGE), []
    for name, text, file in _plans(plans, problem):
        try:
            task = read_problem(definition, read_text(file, LARGE))
        except InputError as error:
            raise InputError(str(error), f"{domain}, {file}") from None
        try:
            verdict = verdict_of(task, plan_steps(text))
        except InputError as error:
            verdict = PlanVerdict(False, None, str(error))
        if not text.strip() and not verdict.valid:
            verdict = PlanVerdict(False, None, f"no plan; {verdict.reason}")
        word = "valid" if verdict.valid else "invalid"
        rows.append(PlanRow(name, word, verdict.step, verdict.reason))
    valid = sum(row.verdict == "valid" for row in rows)
    return Report(
        title=f"{valid:,} of {len(rows):,} plans are valid",
        tables=(table_of(PlanRow, "plans", "Plans", rows),),
        exit_code=int(valid < len(rows)),
    )


def _plans(plans: Path, problem: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield the name of each plan, its text, and the file of its problem."""
    if plans.suffix.lower() != ".json":
        yield plans.stem, read_text(plans, LARGE), problem
        return
    results = read_json(plans)
    instances = results.get("instances") if isinstance(results, dict) else None
    if not isinstance(instances, list) or not instances:
        raise InputError("no results of PlanBench: there is no list of `instances`", str(plans))
    for i, instance in enumerate(instances):
        number = instance.get("instance_id") if isinstance(instance, dict) else None
        if type(number) is not int:
            raise InputError(f"instances[{i}] has no whole number as instance_id", str(plans))
        text = instance.get("extracted_llm_plan")
        yield (
            str(number),
            text if isinstance(text, str) else "",
            problem / f"instance-{number}.pddl",
        )
