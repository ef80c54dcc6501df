"""Finders of errors in traces: the protocol, and the finder that needs no model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from agenteval.engine import Requests
from agenteval.engine.judging import classify
from agenteval.errors import Unauthorized
from agenteval.records import Findings, Run, Usage, content_hash
from agenteval.traces import detectors
from agenteval.traces.taxonomy import Taxonomy


@dataclass(frozen=True, slots=True)
class FinderResult:
    """The findings of one trace, and the usage that was paid for them."""

    findings: Findings
    usage: Usage = Usage()  # noqa: RUF009  frozen


class TraceFinder(Protocol):
    """Anything that finds errors in traces.

    `parameters` is everything that can change the findings (model, prompts, taxonomy, options):
    its hash with the name is the key under which findings are stored.
    """

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, JsonValue]: ...
    def requests(self, run: Run) -> Requests:
        """Return the number of requests for a trace, for the dry run."""
        ...

    async def find(self, run: Run, attempt: int = 0) -> FinderResult:
        """Return the findings; with a status, or an exception, if the trace was not examined.

        `attempt` counts earlier tries that ended in a failure of content; it is part of the
        requests, so that no stored reply to an earlier try is used.
        """
        ...


def finder_key(finder: TraceFinder) -> str:
    """Return the content hash (hex) of name and parameters."""
    return content_hash({"name": finder.name, "parameters": dict(finder.parameters)})


async def find(finder: TraceFinder, run: Run, attempt: int = 0) -> FinderResult:
    """Return the findings of one trace; an exception becomes Findings with its status.

    Raises Unauthorized, which concerns all further traces.
    """
    try:
        return await finder.find(run, attempt)
    except Unauthorized:
        raise
    except Exception as error:  # noqa: BLE001  a crash of a finder is a failure of this trace
        status, message = classify(error)
        spent = getattr(error, "spent", None)
        failed = Findings(trace=run.id, status=status, message=message[:500])
        return FinderResult(failed, spent if isinstance(spent, Usage) else Usage())


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
        """Rules send no requests."""
        return {}

    async def find(self, run: Run, attempt: int = 0) -> FinderResult:
        """Return the findings; none if the taxonomy lacks the rule's category."""
        findings = await asyncio.to_thread(detectors.detect, run, self.taxonomy)
        return FinderResult(Findings(trace=run.id, findings=tuple(findings)))
