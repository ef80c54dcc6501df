"""Build the requests of a locator: options, prompts, and the room they leave for spans."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.models.prompts import load_prompt, neutralise
from agenteval.models.wire import NONCE, Request
from agenteval.readers.assignment import Passage, assignment
from agenteval.records import Run, content_hash
from agenteval.traces.locator_reply import QuoteCheck, grades_schema, reply_schema
from agenteval.traces.locator_text import SliceRow, prompt_tokens, shorten, tokens
from agenteval.traces.taxonomy import Leaf, Taxonomy

SUMMARY = 300  # tokens of the notes carried from part to part
# Tokens at a context of 8,192, and the maximum at larger ones: for the task and the ending of a
# run, and for the agent's instructions.
_TASK, _RULES = (400, 2000), (150, 1500)
_NO_RULES = 6000  # smaller contexts have no room for the agent's instructions
_GUIDED = 24  # the guidance is shown if the context is at least this many times as large
_MIN_ROOM = 200  # tokens for spans; less would be one sentence at a time
_SHOWN_AGAIN = 120  # tokens of the faulty reply that a repair request shows
_PROBLEM = 300  # characters
_PROMPTS = {
    name: load_prompt("agenteval.traces", name)
    for name in ["locator_system", "locator_user", "locator_repair", "grades_system", "grades_user"]
}
PROMPTS_SHA256 = content_hash([prompt.sha256 for prompt in _PROMPTS.values()])


# One question about all kinds of errors, one per area, or one request with the whole trace.
FinderMode = Literal["broad", "areas", "whole"]


@dataclass(frozen=True)
class LocatorOptions:
    """Options for prompting a model; part of the source of every finding. Raises InputError for
    invalid values."""

    mode: FinderMode = "broad"
    context: int = 8192  # tokens of prompt and reply together
    reply_tokens: int = 1536
    repeats: int = 1
    temperature: float | None = 1.0  # None: the endpoint's default
    seed: int = 0
    grades: bool = True
    quotes: QuoteCheck = "step"  # where quoted words must occur

    def __post_init__(self) -> None:
        for name, least in {"context": 512, "reply_tokens": 64, "repeats": 1}.items():
            if getattr(self, name) < least:
                raise InputError(f"must be at least {least}", name)

    def parameters(self) -> dict[str, JsonValue]:
        """Return everything but the seed, for a Source."""
        return {k: v for k, v in asdict(self).items() if k != "seed"}


@dataclass(frozen=True, slots=True)
class RunningNotes:
    """The judge's notes on the earlier parts, and lines on the errors found in them."""

    notes: str = ""
    errors: str = ""


LONGEST_NOTES = RunningNotes("x" * 3 * SUMMARY, "x" * 3 * SUMMARY)


@dataclass(frozen=True, slots=True)
class LocatorQuestion:
    """One question about a trace: an area or all of them, and its leaves.

    `room` is the number of tokens that the fixed text leaves for spans. `rules` extracts the
    agent's instructions, for parts without their source, the span `rules_at`.
    """

    area: str | None
    leaves: tuple[Leaf, ...]
    system: str
    task: str
    task_from: str
    rules: str
    rules_at: str
    run_id: str
    room: int


class PromptBuilder:
    """Builds the requests of one locator. All texts from the trace go into data blocks."""

    def __init__(self, taxonomy: Taxonomy, options: LocatorOptions, legend: str) -> None:
        self.taxonomy = taxonomy
        self.options = options
        self._legend = legend

    def questions(self, run: Run, indices: Mapping[str, str] = {}) -> list[LocatorQuestion]:
        """Return one question, or one per area with leaves; `indices` maps ids of spans to indices.

        Raises InputError if the context leaves no room for spans.
        """
        leaves = self.taxonomy.assigned
        if self.options.mode == "broad":
            return [self._question(run, None, leaves, indices)]
        by_area = {a: tuple(x for x in leaves if x.area == a) for a in self.taxonomy.areas}
        return [self._question(run, area, some, indices) for area, some in by_area.items() if some]

    def _question(
        self, run: Run, area: str | None, leaves: tuple[Leaf, ...], indices: Mapping[str, str]
    ) -> LocatorQuestion:
        names = {leaf.name for leaf in leaves}
        guidance = [g.text for g in self.taxonomy.guidance if names.intersection(g.kinds)]
        if _GUIDED * tokens("\n".join(guidance)) > self.options.context:
            guidance = []
        system = _PROMPTS["locator_system"].render(
            area=area,
            legend=self._legend,
            groups=by_group(leaves),
            guidance=guidance,
            any_last=any(leaf.locate == "last" for leaf in leaves),
            summary_words=SUMMARY // 2,
            nonce=NONCE,
        )
        assigned = assignment(run)
        question = LocatorQuestion(
            area=area,
            leaves=leaves,
            system=system,
            task=self._short(assigned.task.text, _TASK),
            task_from=_origin(run, assigned.task),
            rules=self._rules(assigned.instructions.text),
            rules_at=indices.get(assigned.instructions.span or "", ""),
            run_id=run.id,
            room=0,
        )
        longest = self.part(question, SliceRow((), again=9_999), LONGEST_NOTES, hints=["x"])
        room = self._room(longest)
        if room < _MIN_ROOM:
            raise InputError(
                f"a context of {self.options.context} tokens leaves {max(room, 0)} for spans "
                f"after the instructions and a reply of {self.options.reply_tokens}; "
                f"at least {_MIN_ROOM} are needed (or use --mode areas)",
                "context",
            )
        return replace(question, room=room)

    def _short(self, text: str, bounds: tuple[int, int]) -> str:
        """Cut a text to the first bound, which grows with contexts above 8,192 up to the second."""
        least, most = bounds
        room = max(least, min(most, least * self.options.context // 8192))
        return shorten(neutralise(text), room)

    def _rules(self, instructions: str) -> str:
        if self.options.context < _NO_RULES:
            return ""
        return self._short(rules_of(instructions), _RULES)

    def _room(self, request: Request) -> int:
        """Return the tokens left after a request, its repair and their replies."""
        repair = (
            {"role": "assistant", "content": "x" * 3 * _SHOWN_AGAIN},
            {"role": "user", "content": repair_text("x" * _PROBLEM)},
        )
        largest = replace(request, messages=(*request.messages, *repair))
        return self.options.context - self.options.reply_tokens - prompt_tokens(largest) - 1

    def part(
        self,
        question: LocatorQuestion,
        row: SliceRow,
        notes: RunningNotes,
        repeat: int = 0,
        hints: Sequence[str] = (),
    ) -> Request:
        """Return the request for one part, with the hints of its slices and `hints`."""
        hints = [*hints, *(line for part in row.slices for line in part.hints)]
        shown = any(part.index == question.rules_at and part.is_complete for part in row.slices)
        user = _PROMPTS["locator_user"].render(
            task=question.task,
            task_from=question.task_from,
            rules="" if shown else question.rules,
            notes=notes.notes,
            found=notes.errors,
            parts=row.slices,
            again=row.again,
            hints="\n".join(hints) if hints else None,
        )
        schema = reply_schema(question.leaves)
        return request_of(
            self.options, "locator", question.run_id, (question.system, user), schema, repeat
        )

    def grades(
        self,
        run: Run,
        notes: Sequence[tuple[str, str]],
        errors: Sequence[str],
        ending: Passage,
        unread: str,
    ) -> Request:
        """Return the request for grades, with the lines of `errors` that fit, gravest first."""
        assigned = assignment(run)
        texts = {
            "task": self._short(assigned.task.text, _TASK),
            "rules": self._rules(assigned.instructions.text),
            "task_from": _origin(run, assigned.task),
            "notes": [(name, shorten(neutralise(text), SUMMARY)) for name, text in notes],
            "ending": self._short(ending.text, _TASK),
            "ending_from": _origin(run, ending),
            "unread": unread,
        }

        def with_errors(lines: str) -> Request:
            system = _PROMPTS["grades_system"].render(nonce=NONCE)
            user = _PROMPTS["grades_user"].render(**texts, found=lines)
            return request_of(
                self.options, "locator:grades", run.id, (system, user), grades_schema()
            )

        return with_errors(_listed(errors, self._room(with_errors(""))))


def by_group(leaves: Sequence[Leaf]) -> list[tuple[str, list[Leaf]]]:
    """Group the leaves for a prompt."""
    return [(name, list(group)) for name, group in groupby(leaves, key=lambda leaf: leaf.group)]


def request_of(
    options: LocatorOptions,
    role: str,
    run_id: str,
    texts: tuple[str, str],
    schema: dict[str, Any] | None = None,
    repeat: int = 0,
) -> Request:
    """Return a request with a system and a user message."""
    parameters: dict[str, Any] = {
        "seed": (options.seed * 100_003 + repeat) % 2**31,
        "max_tokens": options.reply_tokens,
    }
    if options.temperature is not None:
        parameters["temperature"] = options.temperature
    system, user = texts
    messages = ({"role": "system", "content": system}, {"role": "user", "content": user})
    return Request(
        messages, schema=schema, parameters=parameters, repeat=repeat, role=role, run_id=run_id
    )


def repair_text(problem: str) -> str:
    """Return the message that asks for another reply."""
    return _PROMPTS["locator_repair"].render(problem=problem[:_PROBLEM])


def shown_again(text: str) -> str:
    """Return the part of a faulty reply that the judge sees when asked for a repair."""
    return shorten(neutralise(text), _SHOWN_AGAIN)


def _listed(lines: Sequence[str], room: int) -> str:
    """Return the lines that fit, and the number of omitted ones."""
    listed: list[str] = []
    used = 8  # the last line
    for line in map(neutralise, lines):
        used += tokens(line) + 1
        if used > room:
            return "\n".join([*listed, f"... and {len(lines) - len(listed)} more"])
        listed.append(line)
    return "\n".join(listed) or "(none)"


_RULE = re.compile(
    r"^\s*(?:[-*•]|\d{1,2}[.)])\s"
    r"|\b(?:must|never|always|only|do not|don't|should|required|forbidden)\b",
    re.IGNORECASE,
)
_RULE_LINE = 160  # characters per line of instructions
_CODE = re.compile(r"^\s*(```|~~~)")


def rules_of(instructions: str) -> str:
    """Return the lines of an agent's instructions that allow or forbid something.

    These are list items outside of code and sentences with words like "must"; if there are none,
    all lines. A mark replaces omitted lines.
    """
    lines: list[str] = []
    code = False
    for line in instructions.splitlines():
        code ^= _CODE.match(line) is not None
        if not code and _RULE.search(line):
            lines.append(line if len(line) <= _RULE_LINE else f"{line[:_RULE_LINE]} [...]")
        elif line.strip() and (not lines or lines[-1] != "[...]"):
            lines.append("[...]")
    return "\n".join(lines) if any(line != "[...]" for line in lines) else instructions


def _origin(run: Run, passage: Passage) -> str:
    """Return kind and name of the span that a passage comes from, for its heading, or ""."""
    spans = (f"{s.kind} {s.name}" for s in run.spans if s.id == passage.span)
    name = " ".join(neutralise(next(spans, "")).split())
    return f", from {name[:80]}" if name else ""
