"""Finders of errors in traces: what one is, and the two of this package, rules and a judge."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from pydantic import JsonValue

from agenteval.engine import RequestBounds, Requests
from agenteval.engine.judging import classify
from agenteval.errors import Unauthorized
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.windows import LARGEST
from agenteval.records import Finding, Findings, Run, Usage, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.traces import detectors
from agenteval.traces.condense import CONDENSE_VERSION, Options, condense
from agenteval.traces.detectors import detect
from agenteval.traces.locator import Located, Locator, LocatorPlan
from agenteval.traces.pieces import Condensed
from agenteval.traces.taxonomy import Taxonomy


class TraceFinder(Protocol):
    """Anything that finds errors in traces.

    `parameters` is everything that can change what it finds (model, prompts, taxonomy, options):
    its hash with the name is the key under which findings are stored.
    """

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, JsonValue]: ...
    def requests(self, run: Run) -> Requests:
        """How many requests a trace takes, for the dry run."""
        ...

    async def find(self, run: Run, attempt: int = 0) -> Located:
        """The findings; of a trace it could not examine, with a status, or an exception.

        `attempt` counts earlier tries that ended in a failure of content: it is asked afresh.
        """
        ...


def finder_key(finder: TraceFinder) -> str:
    """Content hash (hex) of name and parameters."""
    return content_hash({"name": finder.name, "parameters": dict(finder.parameters)})


async def find(finder: TraceFinder, run: Run, attempt: int = 0) -> Located:
    """What the finder says of one trace; an exception becomes Findings with its status.

    Raises Unauthorized, which concerns every further trace alike.
    """
    try:
        return await finder.find(run, attempt)
    except Unauthorized:
        raise
    except Exception as error:  # noqa: BLE001  a finder that crashes has found nothing out
        status, message = classify(error)
        spent = getattr(error, "spent", None)
        failed = Findings(trace=run.id, status=status, message=message[:500])
        return Located(failed, spent if isinstance(spent, Usage) else Usage())


@dataclass(frozen=True)
class DetectorsFinder:
    """The rule that needs no model (`detectors.detect`)."""

    taxonomy: Taxonomy

    @property
    def name(self) -> str:
        return "detectors"

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return {"rules": detectors.VERSION, "taxonomy": self.taxonomy.sha256}

    def requests(self, run: Run) -> Requests:
        """Rules ask nobody."""
        return {}

    async def find(self, run: Run, attempt: int = 0) -> Located:
        """Return the findings; none when the taxonomy lacks the rule's category."""
        findings = await asyncio.to_thread(detect, run, self.taxonomy)
        return Located(Findings(trace=run.id, findings=tuple(findings)))


@dataclass(frozen=True)
class LocatorFinder:
    """The judge over the condensed trace, with the rules' findings as hints where asked for."""

    locator: Locator
    condensing: Options
    hints: bool = True
    with_reference: bool = False  # whether gold in spans is shown, so that runs must be read so

    @property
    def name(self) -> str:
        return f"locator ({self.locator.client.model})"

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return {
            "source": self.locator.source.model_dump(mode="json"),
            "condensing": asdict(self.condensing),
            "condense": CONDENSE_VERSION,
            "hints": detectors.VERSION if self.hints else None,
            **({"with_reference": True} if self.with_reference else {}),
        }

    def planned(self, run: Run) -> tuple[Condensed, LocatorPlan]:
        """The trace as the judge is shown it, and what it takes to ask about all of it."""
        condensed = condense(run, self.condensing)
        hints = detect(run, self.locator.taxonomy) if self.hints else ()
        return condensed, self.locator.plan(run, condensed, hints)

    def requests(self, run: Run) -> Requests:
        """One request for each part, question and repeat, and one for the grades; one more for each
        reply that is malformed. Parts that the endpoint calls too long are halved: not counted."""
        _, plan = self.planned(run)
        prompt = plan.prompt_tokens - plan.grades_tokens
        return {"judge": RequestBounds(plan.requests, MOST_REQUESTS * plan.requests, prompt)}

    def size_lines(self, runs: Iterable[Run]) -> list[str]:
        """Return lines about how much of the traces is shown, and what a larger context saves."""
        before = after = requests = tokens = least = 0
        large = self.locator.with_context(LARGEST)
        for run in runs:
            condensed, parts = self.planned(run)
            whole = large.plan(run, condensed)
            before += condensed.source_tokens
            after += condensed.tokens
            least += parts.requests
            requests += whole.requests
            tokens += whole.prompt_tokens - whole.grades_tokens
        share = f" ({after / before:.1%})" if before else ""
        lines = [f"condensed: {before:,} tokens to {after:,}{share}"]
        if self.locator.options.context < LARGEST and requests < least:
            lines.append(
                f"context: {self.locator.options.context:,} tokens; for a model that takes more, "
                f"--context {LARGEST} would need {requests:,} requests and at least {tokens:,} "
                "tokens of prompt"
            )
        return lines

    async def find(self, run: Run, attempt: int = 0) -> Located:
        """What the judge said; with another `attempt` no reply comes from an earlier one's cache.

        Where the infrastructure has kept it from judging a part, nothing counts as known: on
        resume the parts that were answered come from the cache, and the others are asked.
        """
        condensed = await asyncio.to_thread(condense, run, self.condensing)
        hints: Sequence[Finding] = ()
        if self.hints:
            hints = await asyncio.to_thread(detect, run, self.locator.taxonomy)
        located = await self.locator.examine(run, condensed, hints, attempt)
        return replace(located, findings=_whole(located))


def _whole(located: Located) -> Findings:
    """The findings; a failure where the infrastructure has kept the judge from a part of it."""
    findings = located.findings
    status = next((s for s in located.failures if s in INFRASTRUCTURE), None)
    if findings.status is not None or status is None:
        return findings
    grades = [r.why for r in findings.rejected if r.why.startswith("no grades: ")]
    why = findings.message or grades[0]
    return Findings(trace=findings.trace, status=status, message=why[:500])
