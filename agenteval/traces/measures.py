"""What a finder's work on a trace says of the trace."""

from __future__ import annotations

from agenteval.engine.measures import failed, level, levels, number, place
from agenteval.records import GRADES, Criterion, Findings, Result
from agenteval.records.trial import Trial
from agenteval.traces.annotations import OVERALL

CLEAN = levels("clean", "Whether nothing was found in the trace.", "no", "yes")
NO_HIGH_IMPACT = levels(
    "no_high_impact", "Whether no error of high impact was found in the trace.", "no", "yes"
)
MEASURES: tuple[Criterion, ...] = (CLEAN, NO_HIGH_IMPACT)
GRADE_MEASURES = {
    name: number(name, "A grade of the whole trace.", 1, 5) for name in (*GRADES, OVERALL)
}


def of_findings(trial: Trial, findings: Findings) -> tuple[Result, ...]:
    """The results of a trace: what was found, and the grades that were given."""
    if findings.status is not None:
        return failed(trial, MEASURES, findings.status, findings.message)
    high = any(finding.impact == "HIGH" for finding in findings.findings)
    grades = [
        place(trial, GRADE_MEASURES[name], grade.value)
        for name, grade in findings.grades.items()
        if name in GRADE_MEASURES and grade.value is not None
    ]
    return (
        level(trial, CLEAN, not findings.findings),
        level(trial, NO_HIGH_IMPACT, not high),
        *grades,
    )
