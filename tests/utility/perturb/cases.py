"""Texts for the tests of the perturbations: made by hand, drawn by hypothesis, read from tasks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from agenteval.readers.view import make_view
from agenteval.records import Message, Run, ToolCall, View
from agenteval.utility.perturb import perturb, rng_for
from agenteval.utility.perturb.layout import Unchanged

TASKS = Path(__file__).parents[3] / "tasks"

PROSE = (
    "There are 12 boxes with 30 pens each. So we need 12·30 = 360 pens, of which 45 are blue.\n\n"
    "Then $x^2 + 4 = 20$ must hold. That gives `x = 4` at once.\n\n"
    "1. First we take 16 pens. They are red.\n"
    "2. Next we take 44 more. That makes 60.\n\n"
    "So there are 60 pens on the table.\n\n"
    "**Answer: 60**"
)


def plain(text: str) -> View:
    """A view of a run that is its output alone."""
    return make_view(Run(id="r", input="q", output=text))


def tools() -> View:
    """Prose, code, a tool, a call, a user turn, and a final answer that is said twice."""
    messages = (
        Message(role="user", content="How many of the 50 are even?"),
        Message(
            role="assistant",
            name="coder",
            content="I count the 50 numbers. A loop does it.\n\n"
            "```python\nn = 50\nprint(n // 2)\n```",
        ),
        Message(role="tool", name="python", content="25 numbers. No error."),
        Message(
            role="assistant",
            name="coder",
            content="Let me look once more.",
            tool_calls=(ToolCall(name="check", arguments={"upto": 50}),),
        ),
        Message(role="tool", name="check", content="25"),
        Message(
            role="assistant",
            name="coder",
            content="Every second number is even. That makes 25 of them. So the answer is 25.",
        ),
        Message(role="user", content="Are you sure? 25 it is?"),
        Message(role="assistant", name="checker", content="I agree with that. It is well done."),
    )
    run = Run(
        id="t",
        input="How many of the 50 are even?",
        messages=messages,
        output="So the answer is 25.",
    )
    return make_view(run)


@cache
def views(task: str) -> tuple[View, ...]:
    """All views of a task of the project."""
    lines = (TASKS / task / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(make_view(Run.model_validate(json.loads(line))) for line in lines)


def run_id(task: str, run: str) -> View:
    """The view of one run."""
    return next(v for v in views(task) if v.run_id == run)


@dataclass(frozen=True)
class Perturbed:
    """A copy, or the original with the reason why it stayed as it is."""

    view: View
    changed: bool
    reason: str = ""


def do(view: View, operator: str, share: float = 0.25, seed: int = 0) -> Perturbed:
    """One perturbation with the generator that belongs to it."""
    try:
        copy = perturb(view, operator, share=share, rng=rng_for(seed, operator, view))
    except Unchanged as why:
        return Perturbed(view, False, str(why))
    return Perturbed(copy, True)


def shown(text: str, operator: str, share: float = 0.25, seeds: int = 60) -> set[str]:
    """All texts that an operator makes of one text, over many seeds."""
    return {do(plain(text), operator, share, seed).view.trajectory for seed in range(seeds)}


_SENTENCES = st.sampled_from(
    [
        "The sum is 14.",
        "So x = 7 holds.",
        "We take every second one.",
        "Now 3 + 4 = 7.",
        "Then $a^2 + 1$ is odd.",
        "Read `f(x)` again!",
        "Really?",
        "Das ist schön – 20 %.",
        "**Answer: 42**",
        "1. Take 5 of them.",
        "- A point.",
        "Dear Ann,",
        "Die Größe ist 3,5 m.",
        "好。",
        "It isn't \\(n = 3\\) because of 12.",
        "See https://a.example/x?y=1 for 99.",
        "[assistant] said so.",
        "\\boxed{14}",
        "| a | b |",
        "## Title",
        "[tool: x]",
        "```",
        "~~~ 7",
        "\\[\nx = 1. Y\n\\]",
        "**Bold. Goes on.** End.",
        "So far so good.",
        "Ende ohne Punkt",
        "…",
        "🙂 ok.",
    ]
)
_GAPS = st.sampled_from([" ", " ", " ", "\n", "\n\n"])
BODIES = st.lists(st.tuples(_SENTENCES, _GAPS), min_size=0, max_size=9).map(
    lambda pairs: "".join(s + g for s, g in pairs).strip()
)
_CODE = st.sampled_from(
    ["", "\n\n```python\nx = [1, 2]\n\nprint(x)\n```", "\n~~~\n7\n~~~\nThen on."]
)
_TURNS = st.lists(
    st.tuples(
        st.sampled_from(["assistant", "assistant", "assistant", "tool", "user"]),
        st.sampled_from([None, "solver", "checker"]),
        BODIES,
        _CODE,
    ),
    min_size=1,
    max_size=5,
)


def _run(turns: list[tuple[str, str | None, str, str]], output: str) -> View:
    messages = tuple(
        Message.model_validate({"role": role, "name": name, "content": body + code})
        for role, name, body, code in turns
    )
    return make_view(Run(id="h", input="q", messages=messages, output=output))


VIEWS = st.builds(_run, _TURNS, BODIES)
TEXTS = st.one_of(BODIES.map(plain), VIEWS)
SHARES = st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.9, 1.0])
SEEDS = st.integers(0, 5)
