"""Hand-made traces, a small taxonomy, and judges that read the prompt they are given."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Reply, Request
from agenteval.records import Finding, Run, Span
from agenteval.testing.scripted import ScriptedTransport
from agenteval.traces.condense import Condensed, TracePiece, estimate_tokens
from agenteval.traces.locator import Locator
from agenteval.traces.locator_prompt import LocatorOptions
from agenteval.traces.taxonomy import Leaf, Taxonomy

Answer = Callable[[Request], str | Reply | Exception]

TAXONOMY = Taxonomy(
    name="small",
    leaves=(
        Leaf(
            name="Invention",
            area="Thought",
            group="Claims",
            definition="Says what is not so.",
            aliases=("made up",),
        ),
        Leaf(name="Bad Form", area="Thought", group="Output", definition="Breaks the form."),
        Leaf(name="Rate Limiting", area="System", group="API", definition="Asked too often (429)."),
        Leaf(
            name="Waste",
            area="System",
            group="Means",
            definition="Does the same over and over.",
            locate="last",
        ),
        Leaf(
            name="Old Label", area="System", group="Means", definition="Not used.", assigned=False
        ),
    ),
)

GRADES = json.dumps(
    {
        "reliability": {"reason": "detours", "score": 3},
        "security": {"reason": "harmless", "score": 5},
        "instruction_adherence": {"reason": "kept", "score": 4},
        "plan_opt": {"reason": "no plan", "score": 2},
        "overall": 3.5,
    }
)

_BLOCK = re.compile(r"<<BEGIN (S\d+) ([^\n]*?)(?: )?([0-9a-f]{24})>>\n(.*?)\n<<END \1", re.S)
_PLANT = re.compile(r"PLANT\((.+?)\) (.+)")


def made(texts: Sequence[str], *, task: str = "Count the birds.") -> tuple[Run, Condensed]:
    """A run of as many LLM spans, and one piece for each: S1 is span-1."""
    spans = tuple(Span(id=f"span-{i}", kind="llm") for i in range(1, len(texts) + 1))
    pieces = tuple(
        TracePiece(f"S{i}", span.id, "llm", text, estimate_tokens(text))
        for i, (span, text) in enumerate(zip(spans, texts, strict=True), 1)
    )
    run = Run(id="trace-1", input=task, output="There are nine birds.", spans=spans)
    return run, Condensed("trace-1", pieces, sum(p.tokens for p in pieces))


def filler(words: int, seed: int = 0) -> str:
    """Text that says nothing wrong."""
    return " ".join(f"word{(seed * 7919 + i * 31) % 997}" for i in range(words))


def locator(
    answer: Answer, *, attempts: int = 1, **options: Any
) -> tuple[Locator, ScriptedTransport]:
    """A locator over a scripted model, which asks without grades unless told to."""
    transport = ScriptedTransport(answer)
    client = Client(transport, retry=RetryPolicy(attempts=attempts, first=0.0))
    options = {"grades": False, **options}
    return Locator(client, TAXONOMY, LocatorOptions(**options)), transport


def blocks(text: str) -> list[tuple[str, str]]:
    """(index, text) of the spans that a prompt shows between true markers."""
    return [(found[1], found[4]) for found in _BLOCK.finditer(text)]


def user_text(request: Request) -> str:
    """What the first user message of a request says."""
    return str(request.messages[1]["content"])


def shown(request: Request) -> list[str]:
    """Indices of the spans that a request shows."""
    return [index for index, _ in blocks(user_text(request))]


def entry(span: str, category: str, evidence: str, **more: Any) -> dict[str, Any]:
    """A finding as a judge states it."""
    return {
        "span": span,
        "evidence": evidence,
        "description": f"{category} in {evidence[:60]}",
        "category": category,
        "impact": "HIGH",
        "confidence": 0.9,
        **more,
    }


def reply(*entries: dict[str, Any], summary: str = "so far so good") -> str:
    """A reply in form."""
    return json.dumps({"findings": list(entries), "summary": summary})


def honest_text(system: str, user: str) -> str:
    """The reply of a judge that reports the planted lines it sees, of the kinds asked for."""
    found = [
        entry(index, line[1], line[2])
        for index, text in blocks(user)
        for line in _PLANT.finditer(text)
        if f'- "{line[1]}":' in system
    ]
    return reply(*found, summary=f"seen up to {blocks(user)[-1][0]}")


def honest(request: Request) -> str:
    """`honest_text` of a request; good grades."""
    if request.role.startswith("locator:grades"):
        return GRADES
    return honest_text(str(request.messages[0]["content"]), user_text(request))


def pairs(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """(span, category) of each finding, in order."""
    return [(f.span, f.category) for f in findings]
