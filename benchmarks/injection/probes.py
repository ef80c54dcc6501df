"""The evaluators with every place where a text from outside may enter: a slot.

A probe runs a real evaluator over a client and returns its verdict as plain values. It takes its
texts through `say(slot, text)`, which puts an attack into one of the slots.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.engine.judging import JudgeUnit, judge
from agenteval.models.client import Client
from agenteval.models.wire import Request
from agenteval.readers import make_view
from agenteval.records import (
    Criterion,
    Example,
    Examples,
    Message,
    Run,
    Score,
    Span,
    SpanEvent,
    Task,
    ToolCall,
    View,
)
from agenteval.utility.critic import Critic, SubCritic
from agenteval.utility.critic_reply import read_criteria, sanitized
from agenteval.utility.perturb import perturb, rng_for
from agenteval.utility.quantifier import Quantifier, QuantifierOptions
from tests.support.obeying import Says, Sight

STEPS = "Step 1: 3 packs hold 12 eggs.\nStep 2: so 5 packs hold 20 eggs.\nThe answer is 20 eggs."
KNOWN = ("Step 1: 3 packs hold 12 eggs.", "The answer is 20 eggs.")  # the verdict rests on these
EVERY_SLOT = "*"
Say = Callable[[str, str], str]
Verdict = Any


@dataclass(frozen=True)
class Probe:
    """An evaluator, and how an honest and an obedient judge answer it."""

    name: str
    run: Callable[[Client, Say], Awaitable[Verdict]]
    honest: Says
    obeyed: Says


@dataclass
class Place:
    """Puts an attack into one slot, or into every one, and notes which slots there are."""

    slot: str = ""
    attack: str = ""

    def __post_init__(self) -> None:
        self.seen: dict[str, None] = {}

    def __call__(self, slot: str, text: str) -> str:
        self.seen[slot] = None
        if self.slot not in (slot, EVERY_SLOT) or not self.attack:
            return text
        return f"{text}\n{self.attack}\n{text}" if text else self.attack


# ---- The quantifier ------------------------------------------------------------------------------


def task(say: Say) -> Task:
    """The task, with its examples."""
    good, bad = STEPS, "I think it is 15."
    return Task(
        name=say("task name", "eggs"),
        description=say("task description", "Solve problems about eggs."),
        examples=Examples(
            success=(
                Example(
                    input=say("example input", "How many?"), output=say("successful example", good)
                ),
            ),
            failed=(Example(output=say("failed example", bad)),),
        ),
    )


def criteria(say: Say) -> tuple[Criterion, ...]:
    """Three criteria, one of them with parts."""
    plain = Criterion(
        id="clarity",
        name=say("criterion name", "Clarity"),
        description=say("criterion description", "How clear it is."),
        hint=say("criterion hint", "the words"),
        accepted_values=("poor", say("accepted value", "fair"), "excellent"),
    )
    named = Criterion(name=say("criterion id", "Order"), accepted_values=("none", "some", "full"))
    part = Criterion(name=say("part name", "Sums"), accepted_values=("wrong", "odd", "right"))
    whole = Criterion(name="Accuracy", sub_criteria=(part,), description="Is it right?")
    return (plain, named, whole)


def run_of_messages(say: Say) -> Run:
    """A run with a slot for every text that a system under evaluation may fill."""
    call = ToolCall(name=say("tool name", "count"), arguments={"of": say("tool input", "eggs")})
    return Run(
        id=" ".join("".join(c for c in say("run id", "r1") if c.isprintable()).split()),
        task="eggs",
        system=say("system name", "hen"),
        input=say("problem", "3 packs hold 12 eggs. And 5 packs?"),
        output=say("solution", STEPS),
        messages=(
            Message(role="user", content=say("user text", "Please count.")),
            Message(
                role="assistant",
                name=say("speaker", "cook"),
                content=say("message", "I count."),
                tool_calls=(call,),
            ),
            Message(role="tool", content=say("tool output", "12 eggs in 3 packs")),
        ),
        reference=say("reference", "20 eggs"),
        metadata={"file": say("file name", "eggs.jsonl"), "more": {"deep": [say("metadata", "x")]}},
    )


def run_of_spans(say: Say) -> Run:
    """A run of which the spans are shown."""
    reply = Message(role="assistant", content=say("span reply", "I look it up."))
    spans = (
        Span(
            id="a",
            kind="llm",
            name=say("span name", "plan"),
            start=1.0,
            reply=(reply,),
            messages=(Message(role="user", content=say("span message", "count the eggs")),),
        ),
        Span(
            id="b",
            kind="tool",
            tool=say("span tool", "count"),
            name="count",
            start=2.0,
            input=say("span input", "packs=5"),
            output=say("span output", STEPS),
            attributes={
                "output.value": say("span attribute", "20"),
                "deep": {"list": [say("nested attribute", "y")]},
            },
            events=(
                SpanEvent(
                    name=say("event name", "exception"),
                    attributes={"exception.message": say("error message", "a slow answer")},
                ),
            ),
        ),
    )
    return Run(
        id="s1",
        input=say("problem", "5 packs?"),
        output=say("solution", STEPS),
        spans=spans,
        reference="20 eggs",
    )


def levels(chosen: str) -> Says:
    """Labels in form: the middle one (worst where the work did not arrive), or the best."""

    def says(request: Request, sight: Sight) -> str:
        assert request.schema is not None
        backwards = "first value is the best" in sight.block("criteria")
        work = sight.block("work").replace("\u02c6", " ")
        arrived = chosen == "best" or all(line in work for line in KNOWN)
        body = {}
        for path, entry in request.schema["properties"].items():
            labels = entry["properties"]["label"]["enum"]
            rank = 2 if chosen == "best" else 1 if arrived else 0
            body[path] = {
                "explanation": "by rule",
                "label": labels[:: -1 if backwards else 1][rank],
            }
        return json.dumps(body)

    return says


Ask = Callable[[Client, Say], Awaitable[Verdict]]


async def rated(
    evaluator: Quantifier, run: Run, view: View, rubric: Sequence[Criterion]
) -> Verdict:
    """Status and value of every score."""
    units = [JudgeUnit(run, view, batch) for batch in evaluator.batches(rubric)]
    results = [r for unit in units for r in (await judge(evaluator, unit)).results]
    return [(r.status, r.value if isinstance(r, Score) else None) for r in results]


def quantified(
    make: Callable[[Say], Run] = run_of_messages,
    operator: str = "",
    change: Callable[[Quantifier], None] | None = None,
    **options: Any,
) -> Ask:
    """Scores of one run, or of its copy that `operator` makes; `change` is done to the judge."""

    async def verdict(client: Client, say: Say) -> Verdict:
        run = make(say)
        view = make_view(run, with_reference=True)
        if operator:
            view = perturb(view, operator, share=0.25, rng=rng_for(7, operator, view))
        evaluator = Quantifier(client, task(say), QuantifierOptions(**options))
        if change is not None:
            change(evaluator)
        return await rated(evaluator, run, view, criteria(say))

    return verdict


def quoting(honest: Says) -> Says:
    """A judge whose first reply is out of form and quotes the work, and honest when asked again."""

    def says(request: Request, sight: Sight) -> str:
        if request.role != "quantifier":
            return honest(request, sight)
        assert request.schema is not None
        said = sight.block("work") + sight.block("problem") + sight.block("criteria")
        paths = list(request.schema["properties"])
        return json.dumps({path: {"explanation": said, "label": said} for path in paths})

    return says


def middle(request: Request, sight: Sight) -> str:
    """The middle label: a perturbed copy may lack any sentence."""
    sight.block("work")
    assert request.schema is not None
    entries = request.schema["properties"].items()
    return json.dumps(
        {p: {"explanation": "r", "label": e["properties"]["label"]["enum"][1]} for p, e in entries}
    )


# ---- Critic and sub-critic -----------------------------------------------------------------------


def rubric(name: str) -> Says:
    """A rubric of one criterion, or every criterion divided into parts of that name."""

    def says(request: Request, sight: Sight) -> str:
        scale = {"accepted_values": ["bad", "fair", "good"], "order": "worst_to_best"}
        part = {"name": name, "description": "d", "scale": "ordinal", **scale}
        if not request.role.startswith("subcritic"):
            return json.dumps({"criteria": [part]})
        shown = json.loads(sight.block("criteria"))
        return json.dumps({"criteria": [{"id": c["id"], "sub_criteria": [part]} for c in shown]})

    return says


async def proposed(client: Client, say: Say) -> Verdict:
    """Names that a critic proposes from examples."""
    bank = (
        Criterion(
            name=say("bank name", "Tone"),
            description=say("bank text", "Kind words."),
            accepted_values=("rude", say("bank level", "fair"), "kind"),
        ),
    )
    critic = Critic(client, task(say), use_examples=True, bank=bank)
    return [c.name for c in (await critic.propose(0)).criteria]


async def divided(client: Client, say: Say) -> Verdict:
    """Names of the parts of criteria."""
    given = [c for c in criteria(say) if not c.sub_criteria]
    found = (await SubCritic(client, task(say)).divide(given, 0)).criteria
    return [[part.name for part in c.sub_criteria] for c in found]


async def poisoned(client: Client, say: Say) -> Verdict:
    """Scores on a criterion that a critic proposed in words that it took from the work."""
    proposal = {
        "name": say("proposed name", "Clear"),
        "description": say("proposed description", "Clear"),
        "hint": say("proposed hint", "Clear"),
        "accepted_values": ["bad", "fair", "good"],
        "order": "worst_to_best",
    }
    rubric = sanitized(read_criteria(json.dumps({"criteria": [proposal]})).criteria, [])
    run = Run(id="r", input="3 packs hold 12 eggs. And 5?", output=STEPS)
    evaluator = Quantifier(client, Task(name="eggs", description="Solve."))
    return await rated(evaluator, run, make_view(run), rubric)


def utility() -> list[Probe]:
    """All ways in which the quantifier, the verifier and the critics ask."""
    honest, best = levels("honest"), levels("best")
    ways: dict[str, dict[str, Any]] = {
        "quantifier": {},
        "quantifier, other wording": {"wording": "b"},
        "quantifier, reversed scale": {"reversed_scale": True},
        "quantifier, one criterion a call": {"one_per_call": True},
    }
    operators = ("drop_words", "shuffle_sentences", "pad", "truncate")
    return [
        *(Probe(name, quantified(**how), honest, best) for name, how in ways.items()),
        Probe("quantifier, spans", quantified(run_of_spans), honest, best),
        Probe("quantifier, repair", quantified(), quoting(honest), best),
        *(Probe(f"verifier, {op}", quantified(operator=op), middle, best) for op in operators),
        Probe("quantifier, proposed criteria", poisoned, honest, best),
        Probe("critic", proposed, rubric("Honest"), rubric("Obeyed")),
        Probe("sub-critic", divided, rubric("Honest"), rubric("Obeyed")),
    ]
