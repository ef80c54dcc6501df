"""The world around one agent: the state of its service and model, and what is wrong with them.

A change alters the state kept here (a key is revoked, a quota used up, a file removed); service,
tools and model then do what such a world makes them do, and note where it first showed. That note
is the gold: nothing is written into a trace.
"""

from __future__ import annotations

import hashlib
import threading
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from agenteval.records.finding import Impact

T = TypeVar("T")

KEY = "key-3f9a1c"
STYLES = ("problem", "page", "plain", "grpc", "cloud", "typed", "detail", "boot")
IN_TOOLS = frozenset({
    "Rate Limiting", "Authentication Errors", "Service Errors", "Resource Not Found",
    "Timeout Issues", "Environment Setup Errors", "Resource Exhaustion", "Tool Definition Issues",
})  # fmt: skip


class Dice:
    """Seeded choices, the same for the same `words` on every machine (sha256 is the seed)."""

    def __init__(self, *words: object) -> None:
        digest = hashlib.sha256("\x1f".join(map(str, words)).encode()).digest()
        self._rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return int(self._rng.integers(low, high + 1))

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.between(0, len(items) - 1)]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """`count` different items in a random order."""
        return [items[int(i)] for i in self._rng.permutation(len(items))[:count]]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return bool(self._rng.random() < probability)


@dataclass(frozen=True, slots=True)
class Act:
    """Where a change showed: in the n-th request to the model, or in the n-th call of a tool.

    The other of the two numbers is -1.
    """

    category: str
    description: str
    impact: Impact
    evidence: str = ""
    request: int = -1
    call: int = -1


@dataclass(slots=True)
class ToolCallMade:
    """One call that was carried out; `span` is "" where it had none of its own at that time.

    `asked` is the number of the request to the model whose answer asked for it.
    """

    name: str
    span: str
    asked: int
    answer: str = ""


@dataclass(slots=True)
class Health:
    """State of one side, the service or the model. All healthy at first."""

    key_good: bool = True
    forbidden: bool = False
    quota: int | None = None  # requests left; None: no limit
    defect: bool = False  # its code raises
    down: bool = False
    healthy_after: int | None = None  # failures that are left before it works again
    slow: float = 0.0  # seconds before it answers
    gone: bool = False  # what is asked for is no longer there
    spared: int = 0  # requests that are served as ever before anything is wrong


@dataclass(slots=True)
class Mouth:
    """How the model errs: what category of mistakes, and how its text is damaged."""

    errs: str | None = None
    break_call: int | None = None  # the turn whose arguments are broken
    break_final: str | None = None
    no_step: int | None = None  # the turn whose call is said in prose
    window: Literal["oldest", "middle"] | None = None  # which messages it no longer sees
    spare_tokens: int | None = None  # room behind the first request; what needs more is refused
    drop_system: bool = False  # its chat template has no place for instructions
    cut_request: int | None = None  # characters of the request that it reads


@dataclass(slots=True)
class ToolRules:
    """How tools are offered, and how they tell of failures."""

    patience: float = 5.0  # seconds a tool waits
    rename: dict[str, dict[str, str]] = field(default_factory=dict)  # tool: right → offered
    swap: dict[str, str] = field(default_factory=dict)  # tool: whose code stands behind it
    client: str = "urllib"
    raises: bool = True  # or: returns the refusal as text
    words: str = "{kind}: {error}"  # what the agent is told of an exception
    recorded: bool = True  # the span carries the exception and the status "error"


class World:
    """All that one run depends on. Used by one run at a time."""

    def __init__(self, folder: Path, dice: Dice) -> None:
        self.folder = folder
        self.dice = dice
        self.service = Health()
        self.model = Health()
        self.mouth = Mouth()
        self.tools = ToolRules()
        self.style = dice.pick(STYLES)  # how the service words refusals
        self.data: dict[str, Any] = {}
        self.environment: dict[str, str] = {}
        self.base_url = ""
        self.acts: list[Act] = []
        self.request = ""
        self.demand = ""  # all that the user asks for, whatever the model is shown of it
        self.requests = 0
        self.window: int | None = None  # tokens of the model's context, once it is known
        self.calls: list[ToolCallMade] = []
        self.why: dict[str, tuple[str, Impact]] = {}  # category: description and impact
        self.excused: frozenset[str] = frozenset()
        self.surprises: list[str] = []
        self._calling = False
        self._lock = threading.Lock()

    def entered(self, name: str, span: str) -> None:
        """A tool call begins, in this span."""
        self.calls.append(ToolCallMade(name, span, self.requests - 1))
        self._calling = True

    def left(self) -> None:
        """The tool call is over."""
        self._calling = False

    def note(self, category: str, evidence: str = "") -> None:
        """A change showed, in the call or the request under way. Only the first time counts.

        What nobody has announced is kept as a surprise: then nothing is known of the run.
        """
        with self._lock:
            if category in self.excused:
                return
            if category not in self.why:
                self.surprises.append(f"{category} {evidence}")
                return
            if any(act.category == category for act in self.acts):
                return
            description, impact = self.why[category]
            act = Act(
                category, description, impact, evidence,
                request=-1 if self._calling else self.requests - 1,
                call=len(self.calls) - 1 if self._calling else -1,
            )  # fmt: skip
            self.acts.append(act)

    def failed(self, error: Exception | str) -> None:
        """A tool failed: that is what was to be shown, or a surprise."""
        shown = [category for category in self.why if category in IN_TOOLS]
        for category in shown or ("failed",):
            self.note(category, str(error)[:200])

    def handled(self, error: Exception) -> None:
        """A tool caught this by design; some tracers keep the exception all the same."""
        from opentelemetry.trace import get_current_span

        if self.tools.recorded:
            told = "".join(traceback.format_exception_only(error)).strip()
            get_current_span().record_exception(error, {"exception.stacktrace": told})

    def erred(self, act: Act, *, last: bool = False) -> None:
        """The model made a mistake; with `last` a later one takes the place of an earlier."""
        with self._lock:
            old = [a for a in self.acts if a.category == act.category]
            if old and last:
                self.acts.remove(old[0])
            if not old or last:
                self.acts.append(act)

    def is_wrong(self, category: str, description: str, impact: Impact = "HIGH") -> None:
        """Say what will be stated in the gold if this kind of error shows."""
        self.why[category] = (description, impact)
