"""The rules that find errors in traces without a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from agenteval.records import Finding, Run
from agenteval.traces import failed_code
from agenteval.traces.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class Detector:
    """A rule that finds errors of one category.

    `find` yields the findings in a run under the given name of the category. `version` is raised
    when `find` finds something else: it is part of the key of stored findings.
    """

    name: str
    version: int
    category: str  # a leaf of the built-in taxonomy
    find: Callable[[Run, str], Iterable[Finding]]


DETECTORS = (Detector("failed-code", 2, "Formatting Errors", failed_code.find),)


def detect(
    run: Run, taxonomy: Taxonomy | None = None, detectors: Iterable[Detector] = DETECTORS
) -> tuple[Finding, ...]:
    """Return the findings of all detectors, in the order of their spans.

    With a taxonomy, findings have the name of its leaf; detectors whose category it lacks find
    nothing.
    """
    findings: list[Finding] = []
    for detector in detectors:
        leaf = None if taxonomy is None else taxonomy.find(detector.category)
        if taxonomy is not None and (leaf is None or not leaf.assigned):
            continue
        source = f"detector:{detector.name}"
        category = detector.category if leaf is None else leaf.name
        for finding in detector.find(run, category):
            findings.append(finding.model_copy(update={"source": source}))
    positions = {span.id: i for i, span in reversed(list(enumerate(run.spans)))}
    return tuple(sorted(findings, key=lambda finding: positions[finding.span]))


def detectors_key(detectors: Iterable[Detector] = DETECTORS) -> JsonValue:
    """Return the names and versions of the detectors, which are part of the key of findings."""
    return {detector.name: detector.version for detector in detectors}
