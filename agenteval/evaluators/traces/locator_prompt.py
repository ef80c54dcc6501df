"""How a locator asks: its options, its requests, and how much of the window is left for spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.evaluators.traces.locator_reply import reply_schema
from agenteval.evaluators.traces.locator_rows import Row, prompt_tokens, shorten, tokens
from agenteval.evaluators.traces.taxonomy import Leaf, Taxonomy
from agenteval.models.prompts import Prompt, load_prompt, neutralise
from agenteval.models.wire import NONCE, Request
from agenteval.records import GRADES, Run, content_hash

Mode = Literal["broad", "areas"]


@dataclass(frozen=True)
class LocatorOptions:
    """How a model is asked. All of it is part of the source of every finding.

    Raises InputError for values that cannot work.
    """

    mode: Mode = "broad"  # one question over all kinds of errors, or one for each area
    context: int = 8192  # tokens of prompt and reply together
    reply_tokens: int = 1536
    repeats: int = 1
    min_votes: int = 1  # of the repeats: findings named less often are left out
    overlap: int = 1  # spans shown again at the start of the next part, where they fit
    temperature: float | None = 1.0  # None leaves it to the endpoint
    seed: int = 0
    summary: bool = True  # carried from part to part; without it parts are asked at the same time
    summary_tokens: int = 300
    task_tokens: int = 400
    longest: int = 4  # windows that one span may fill; of more, the middle is left out, visibly
    grades: bool = True
    repair: bool = True
    unverified: Literal["reject", "keep"] = "reject"  # findings whose quote is not in the span
    add_hints: bool = True  # the findings of rules stand among the findings
    same: float | None = 90.0  # likeness (to 100) from which two errors of a kind are one, again
    give_up: int = 3  # parts that fail in a row, for other reasons than their reply

    def __post_init__(self) -> None:
        at_least = {
            "context": 512, "reply_tokens": 64, "repeats": 1, "min_votes": 1, "overlap": 0,
            "summary_tokens": 16, "task_tokens": 16, "longest": 1, "give_up": 1,
        }  # fmt: skip
        for name, least in at_least.items():
            if getattr(self, name) < least:
                raise InputError(f"must be at least {least}", name)
        if self.min_votes > self.repeats:
            raise InputError(f"{self.min_votes} of {self.repeats} repeats cannot be", "min_votes")
        if self.same is not None and not 0 <= self.same <= 100:
            raise InputError("must lie between 0 and 100", "same")

    def parameters(self) -> dict[str, JsonValue]:
        """Everything but the seed, for a Source."""
        return {k: v for k, v in asdict(self).items() if k != "seed"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What reading a trace takes when nothing has to be asked twice.

    `prompt_tokens` is estimated (UTF-8 bytes / 3) with summaries of full length, `reply_tokens`
    the most that the replies may have. `parts` is the number of parts for each question.
    `grades_tokens` are those of the prompt for the grades, told as many as the context takes.
    """

    requests: int
    prompt_tokens: int
    reply_tokens: int
    parts: tuple[int, ...]
    grades_tokens: int = 0


_PACKAGE = "agenteval.evaluators.traces"
_NAMES = ("locator_system", "locator_user", "locator_repair", "grades_system", "grades_user")
_LEAST_ROOM = 200  # tokens for spans; less would be one sentence at a time
_SHOWN_AGAIN = 120  # tokens of a reply that is to be repaired
_PROBLEM = 300  # characters


def prompts() -> dict[str, Prompt]:
    """The templates by name."""
    return {name: load_prompt(_PACKAGE, name) for name in _NAMES}


def prompts_sha256() -> str:
    """One hash over all templates."""
    return content_hash([prompt.sha256 for prompt in prompts().values()])


@dataclass(frozen=True, slots=True)
class Carry:
    """What is known of the earlier parts: the judge's notes, and lines of what was found."""

    notes: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One question over a trace: an area or all, its leaves, its fixed text, and the room that
    it leaves for spans, in tokens."""

    area: str | None
    leaves: tuple[Leaf, ...]
    system: str
    task: str
    run_id: str
    room: int


class Asking:
    """Makes the requests of one locator. All texts of a trace go in through data blocks."""

    def __init__(self, taxonomy: Taxonomy, options: LocatorOptions, legend: str = "") -> None:
        self.taxonomy = taxonomy
        self.legend = legend
        self.options = options
        self._prompts = prompts()

    def questions(self, run: Run) -> list[Question]:
        """One question, or one for each area that has leaves to find.

        Raises InputError when the context leaves no room for spans.
        """
        leaves = self.taxonomy.assigned
        if self.options.mode == "broad":
            return [self._question(run, None, leaves)]
        mine = {area: tuple(x for x in leaves if x.area == area) for area in self.taxonomy.areas}
        return [self._question(run, area, found) for area, found in mine.items() if found]

    def _question(self, run: Run, area: str | None, leaves: tuple[Leaf, ...]) -> Question:
        groups = [(name, list(g)) for name, g in groupby(leaves, key=lambda leaf: leaf.group)]
        system = self._prompts["locator_system"].render(
            area=area,
            legend=self.legend,
            groups=groups,
            any_last=any(leaf.locate == "last" for leaf in leaves),
            summary=self.options.summary,
            summary_words=self.options.summary_tokens // 2,
            nonce=NONCE,
        )
        task = shorten(neutralise(task_of(run)), self.options.task_tokens)
        bare = Question(area, leaves, system, task, run.id, 0)
        full = "x" * (3 * self.options.summary_tokens) if self.options.summary else ""
        largest = self.part(bare, Row((), again=9_999), Carry(full, full), 0, ("x",))
        largest = self.repair(largest, "x" * _PROBLEM, "x" * 3 * _SHOWN_AGAIN)
        room = self.options.context - self.options.reply_tokens - prompt_tokens(largest) - 1
        if room < _LEAST_ROOM:
            raise InputError(
                f"a context of {self.options.context} tokens leaves {max(room, 0)} for the spans "
                f"beside the instructions and a reply of {self.options.reply_tokens}; "
                f"at least {_LEAST_ROOM} are needed (or ask by areas)",
                "context",
            )
        return replace(bare, room=room)

    def part(
        self,
        question: Question,
        row: Row,
        carry: Carry,
        repeat: int,
        hints: Sequence[str] | None = None,
    ) -> Request:
        """The request on one part; `hints` default to those of its slices."""
        if hints is None:
            hints = [line for one in row.slices for line in one.hints]
        user = self._prompts["locator_user"].render(
            task=question.task,
            notes=carry.notes,
            found=carry.found,
            parts=row.slices,
            again=row.again,
            hints="\n".join(hints) if hints else None,
            summary=self.options.summary,
        )
        return Request(
            messages=(
                {"role": "system", "content": question.system},
                {"role": "user", "content": user},
            ),
            schema=reply_schema(question.leaves, summary=self.options.summary),
            parameters=self.parameters(repeat),
            repeat=repeat,
            role="locator",
            run_id=question.run_id,
        )

    def parameters(self, repeat: int) -> dict[str, Any]:
        """Seed, length and temperature of a request."""
        found: dict[str, Any] = {
            "seed": (self.options.seed * 100_003 + repeat) % 2**31,
            "max_tokens": self.options.reply_tokens,
        }
        if self.options.temperature is not None:
            found["temperature"] = self.options.temperature
        return found

    def repair(self, request: Request, problem: str, text: str) -> Request:
        """The request again, with the beginning of its reply and what was wrong with it."""
        said = shorten(neutralise(text), _SHOWN_AGAIN) or "(empty)"
        words = self._prompts["locator_repair"].render(problem=problem[:_PROBLEM])
        return replace(
            request,
            messages=(
                *request.messages,
                {"role": "assistant", "content": said},
                {"role": "user", "content": words},
            ),
        )

    def grades(self, run: Run, notes: Sequence[tuple[str, str]], shown: Shown) -> Request:
        """The request for the grades. Notes and errors are cut to what the context leaves."""
        schema = grades_schema()
        task = shorten(neutralise(task_of(run)), self.options.task_tokens)

        def make(found: str) -> Request:
            user = self._prompts["grades_user"].render(
                task=task,
                notes=[(name, shorten(neutralise(t), self.options.summary_tokens))
                       for name, t in notes],
                found=found,
                ending=shorten(neutralise(shown.ending), self.options.task_tokens),
                unread=shown.unread,
            )  # fmt: skip
            system = self._prompts["grades_system"].render(nonce=NONCE)
            return Request(
                messages=(
                    {"role": "system", "content": system},
                    {"role": "user", "content": user},
                ),
                schema=schema,
                parameters=self.parameters(0),
                role="locator:grades",
                run_id=run.id,
            )

        largest = self.repair(make(""), "x" * _PROBLEM, "x" * 3 * _SHOWN_AGAIN)
        room = self.options.context - self.options.reply_tokens - prompt_tokens(largest) - 1
        return make(_listed(shown.lines, room))


@dataclass(frozen=True, slots=True)
class Shown:
    """What the grades are based on beside the notes. `lines` stand with the gravest first."""

    lines: tuple[str, ...]
    ending: str
    unread: str = ""


def _listed(lines: Sequence[str], room: int) -> str:
    """As many lines as fit, and how many more there are."""
    if not lines:
        return "(none)"
    kept: list[str] = []
    used = 8  # the last line
    for line in lines:
        text = neutralise(line)
        used += tokens(text) + 1
        if used > room:
            break
        kept.append(text)
    more = len(lines) - len(kept)
    return "\n".join([*kept, f"... and {more} more"] if more else kept)


def grades_schema() -> dict[str, Any]:
    """JSON schema of the grades: a reason before each score, and the overall score."""
    grade = _object({"reason": {"type": "string"}, "score": {"type": "number"}})
    return _object({**dict.fromkeys(GRADES, grade), "overall": {"type": "number"}})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def task_of(run: Run) -> str:
    """What the agent was told first: the system message, if any, and the first of the user."""
    rows = [run.messages, *(span.messages for span in run.spans)]
    first = next((row for row in rows if row), ())
    rules = next((m.content for m in first if m.role == "system"), "")
    asked = run.input or next((m.content for m in first if m.role == "user"), "")
    if not asked:
        asked = next((span.input for span in run.spans if span.input), "")
    return "\n\n".join(text for text in (asked, rules and f"Its instructions:\n{rules}") if text)
