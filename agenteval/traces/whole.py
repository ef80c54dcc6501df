"""A judge that reads a whole trace in one request, as the judges of TRAIL do (arXiv 2505.08638).

The prompt is our own; the kinds of errors and the format of the reply follow the paper. The content
of spans is sent unchanged, and quotes are not checked. A trace that does not fit into the context
is not examined.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from agenteval.engine import RequestBounds, Requests
from agenteval.errors import ReplyError
from agenteval.models.asking import MOST_REQUESTS, ask
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.wire import NONCE, Request
from agenteval.records import Finding, Findings, Rejected, Run, Source, content_hash
from agenteval.traces.annotations import read_annotation
from agenteval.traces.evaluator import FinderResult
from agenteval.traces.locator_prompt import LocatorOptions, by_group, repair_text, request_of
from agenteval.traces.locator_text import prompt_tokens
from agenteval.traces.taxonomy import Taxonomy

_VERSION = 1
_SYSTEM, _USER = (load_prompt("agenteval.traces", name) for name in ("whole_system", "whole_user"))
_UNFILLED = "<"  # start of the placeholders in the prompt's template


@dataclass(frozen=True)
class WholeTraceFinder:
    """A finder that asks a chat model once; see the module."""

    client: Client
    taxonomy: Taxonomy
    options: LocatorOptions
    with_reference: bool = False

    @property
    def name(self) -> str:
        """The name of the finder in tables."""
        return f"whole trace ({self.client.model})"

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        """Everything that can change the findings."""
        options = self.options
        source = Source(
            evaluator="traces.whole",
            version=_VERSION,
            model=self.client.model,
            prompt_sha256=content_hash([_SYSTEM.sha256, _USER.sha256]),
            parameters={
                "context": options.context,
                "reply_tokens": options.reply_tokens,
                "temperature": options.temperature,
                "taxonomy": self.taxonomy.sha256,
                "endpoint": self.client.address,
            },
            seed=options.seed,
        )
        more: dict[str, JsonValue] = {"with_reference": True} if self.with_reference else {}
        return {"source": source.model_dump(mode="json"), **more}

    def requests(self, run: Run) -> Requests:
        """Count one request, plus one to repair its reply; none for a trace that is too long."""
        request = self._request(run)
        if self._too_long(request):
            return {}
        return {"judge": RequestBounds(1, MOST_REQUESTS, prompt_tokens(request))}

    def size_lines(self, runs: Iterable[Run]) -> list[str]:
        """Return a line on the number of traces that do not fit into the context, if any."""
        lengths = [prompt_tokens(self._request(run)) for run in runs]
        room = self.options.context - self.options.reply_tokens
        longer = sum(length > room for length in lengths)
        if not longer:
            return []
        return [f"too long: {longer} of {len(lengths)} traces do not fit into {room:,} tokens"]

    async def find(self, run: Run, attempt: int = 0) -> FinderResult:
        """Return the errors and grades of a trace, or `unscored:too_long`. Raises what `ask` does.

        An entry on an unknown span, or of an unknown kind, is rejected.
        """
        request = replace(self._request(run), attempt=attempt)
        if why := self._too_long(request):
            findings = Findings(trace=run.id, status="unscored:too_long", message=why)
            return FinderResult(findings)
        answer = await ask(self.client, request, lambda text: self._read(text, run), repair_text)
        return FinderResult(answer.value, answer.usage)

    def _too_long(self, request: Request) -> str:
        needed = prompt_tokens(request) + self.options.reply_tokens
        if needed <= self.options.context:
            return ""
        return (
            f"the whole trace and a reply need about {needed:,} tokens, but the context has "
            f"{self.options.context:,}; --mode broad reads it in parts"
        )

    def _request(self, run: Run) -> Request:
        leaves = self.taxonomy.assigned
        system = _SYSTEM.render(
            groups=by_group(leaves),
            any_last=any(leaf.locate == "last" for leaf in leaves),
            nonce=NONCE,
        )
        spans = [span.model_dump(mode="json", exclude_defaults=True) for span in run.spans]
        user = _USER.render(record=json.dumps(spans, ensure_ascii=False))
        return request_of(self.options, "whole trace", run.id, (system, user))

    def _read(self, text: str, run: Run) -> Findings:
        """Return the findings of a reply. Raises ReplyError if it is unreadable or incomplete."""
        annotation = read_annotation(text, run.id, self.taxonomy)
        read = annotation.findings
        if read.status is not None:
            raise ReplyError(read.message)
        if any("salvaged" in warning for warning in annotation.warnings):
            raise ReplyError("the reply was cut off; the rest is unknown")
        spans, accepted = {span.id for span in run.spans}, list[Finding]()
        rejected = list(read.rejected)
        for finding in read.findings:
            leaf = self.taxonomy.find(finding.category)
            if finding.span.startswith(_UNFILLED):
                raise ReplyError("the reply repeats the form instead of filling it in")
            if leaf is not None and leaf.assigned and finding.span in spans:
                accepted.append(finding.model_copy(update={"source": "whole trace"}))
                continue
            what = f"there is no span {finding.span!r:.60}"
            what = what if finding.span not in spans else f"unknown kind {finding.category!r:.80}"
            rejected.append(Rejected(why=what, said=finding.model_dump(mode="json")))
        dropped = len(rejected)
        message = f"{dropped} of {dropped + len(accepted)} entries of the judge were rejected"
        return Findings(
            trace=run.id,
            findings=tuple(accepted),
            grades=read.grades,
            rejected=tuple(rejected),
            message=message if dropped else "",
        )
