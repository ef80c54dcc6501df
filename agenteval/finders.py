"""The finders of this package as `locating` runs them: exact rules, and the judge."""

from __future__ import annotations

import asyncio
import functools
import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.resources import files

from pydantic import JsonValue

from agenteval.evaluators.traces.condense import Options, condense
from agenteval.evaluators.traces.detectors import detect
from agenteval.evaluators.traces.locator import Located, Locator
from agenteval.evaluators.traces.locator_prompt import Plan
from agenteval.evaluators.traces.pieces import Condensed
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.locating import Found
from agenteval.models.client import Client
from agenteval.models.wire import Reply, Request
from agenteval.records import FailureStatus, Finding, Findings, Run

_PACKAGE = "agenteval.evaluators.traces"
_STATUSES: dict[str, FailureStatus] = {
    "error:budget": "error:budget",
    "error:timeout": "error:timeout",
    "error:infrastructure": "error:infrastructure",
}


@functools.cache
def code_sha256(start: str) -> str:
    """Hash (hex) of the modules of the traces package whose name begins so, and of the files in a
    folder of this name: other rules are another finder."""
    package = files(_PACKAGE)
    parts = [p for p in package.iterdir() if p.name.startswith(start) and p.name.endswith(".py")]
    folder = package.joinpath(start)
    if folder.is_dir():
        parts += [p for p in folder.iterdir() if p.name.endswith(".py")]
    whole = hashlib.sha256()
    for part in sorted(parts, key=lambda p: p.name):
        whole.update(part.name.encode() + b"\0" + part.read_bytes())
    return whole.hexdigest()


@dataclass(frozen=True)
class DetectorsFinder:
    """The rules without a model."""

    taxonomy: Taxonomy

    @property
    def name(self) -> str:
        return "detectors"

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return {"rules": code_sha256("detectors"), "taxonomy": self.taxonomy.sha256}

    async def find(self, run: Run, attempt: int = 0) -> Found:
        """Findings of all rules whose categories the taxonomy has."""
        found = await asyncio.to_thread(detect, run, self.taxonomy)
        return Found(Findings(trace=run.id, findings=tuple(found)))


@dataclass(frozen=True)
class LocatorFinder:
    """The judge over the condensed trace, with the rules' findings as hints where asked for."""

    locator: Locator
    condensing: Options
    hints: bool = True

    @property
    def name(self) -> str:
        return f"locator ({self.locator.client.model})"

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return {
            "source": self.locator.source.model_dump(mode="json"),
            "condensing": asdict(self.condensing),
            "condense": code_sha256("condense"),
            "hints": code_sha256("detectors") if self.hints else None,
        }

    def planned(self, run: Run) -> tuple[Condensed, Plan]:
        """The trace as the judge is shown it, and what it takes to ask about all of it."""
        condensed = condense(run, self.condensing)
        hints = detect(run, self.locator.taxonomy) if self.hints else ()
        return condensed, self.locator.plan(run, condensed, hints)

    async def find(self, run: Run, attempt: int = 0) -> Found:
        """What the judge said; with another `attempt` no reply comes from an earlier one's cache.

        Where the infrastructure has kept it from judging a part, nothing counts as known: on
        resume the parts that were answered come from the cache, and the others are asked.
        """
        condensed = await asyncio.to_thread(condense, run, self.condensing)
        locator = self.locator
        if attempt:
            again = _Again(locator.client, attempt)
            locator = Locator(again, locator.taxonomy, locator.options, legend=locator.legend)
        located = await locator.examine(run, condensed, await self._rules(run))
        return Found(_whole(located), located.usage)

    async def _rules(self, run: Run) -> tuple[Finding, ...]:
        if not self.hints:
            return ()
        return tuple(await asyncio.to_thread(detect, run, self.locator.taxonomy))


class _Again(Client):
    """The same client, whose requests are asked afresh: the replies to them were not in form."""

    def __init__(self, client: Client, attempt: int) -> None:
        super().__init__(
            client.transport, cache=client.cache, budget=client.budget, limiter=client.limiter,
            retry=client.retry, timeout=client.timeout, secret=client.secret,
            recorder=client.recorder,
        )  # fmt: skip
        self._number = attempt

    async def complete(self, request: Request) -> Reply:
        """Answer the request under a key of its own."""
        return await super().complete(replace(request, attempt=request.attempt + self._number))


def _whole(located: Located) -> Findings:
    found = located.findings
    if found.status is not None:
        return found
    # As in "2 of 9 parts were not judged (error:timeout 2): S4 to S9" and "no grades: error:...".
    kinds = found.message.partition("(")[2].partition(")")[0].replace(",", " ").split()
    grades = [r.why for r in found.rejected if r.why.startswith("no grades: ")]
    kinds += [why.split(": ")[1] for why in grades]
    for kind in kinds:
        if kind in _STATUSES:
            why = found.message or grades[0]
            return Findings(trace=found.trace, status=_STATUSES[kind], message=why[:500])
    return found
