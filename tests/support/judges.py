"""Judges with known parameters, for the verdict each of them must get.

Through the client, as the function of a ScriptedTransport::

    transport = ScriptedTransport(Answers(noisy(), seed=1))

In simulations, without prompts::

    levels = noisy().rate(texts, problems, rng, repeats=3)     # (texts, 3, criteria), 0..4 or NaN

What is read from a text is remembered: for many simulations perturb a large pool of runs once and
draw the cases of each simulation from it.

Both ways ask the same `grade`; a reply's noise comes from (seed, run, text, repeat, criterion), so
it does not depend on the order of calls.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError
from agenteval.models.wire import Reply, Request
from tests.support.world import LABELS
from tests.support.world_truth import CRITERIA, truth_levels

TOP = 4  # levels run from 0 to 4
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be graded: texts with their problems, `repeats` times, on `criteria`.

    `places` is the position (from 0) of each criterion among the `shown` ones of its prompt, shape
    (texts, repeats, criteria).
    """

    texts: Sequence[str]
    problems: Sequence[str]
    criteria: tuple[str, ...]
    repeats: int
    places: NDArray[np.int64]
    shown: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """(texts, repeats, criteria)."""
        return len(self.texts), self.repeats, len(self.criteria)

    def spread(self, levels: NDArray[np.int64]) -> Floats:
        """Levels per text, or per text and criterion, for every repeat and criterion."""
        wide = levels.reshape(len(self.texts), 1, -1).astype(np.float64)
        return np.broadcast_to(wide, self.shape)


# Levels 0..4 of shape (texts, repeats, criteria), before noise and rounding.
Grade = Callable[[Asked, np.random.Generator], Floats]


@dataclass(frozen=True)
class SimulatedJudge:
    """A judge and its parameters; combine them with `dataclasses.replace`.

    Its level is `grade` + shift + normal noise of `noise` levels, rounded half up, within 0..4.
    refuse, malformed: shares of the calls refused, and unreadable even after the repair. drift:
    what is added in the second half of the calls, where `later_model` answers. by_slot: it chooses
    by the place of a label in the list shown, not by its meaning.
    """

    name: str
    grade: Grade
    noise: float = 0.0
    shift: float = 0.0
    refuse: float = 0.0
    malformed: float = 0.0
    drift: float = 0.0
    by_slot: bool = False
    model: str = "judge-2024-05"
    later_model: str | None = None

    def rate(
        self,
        texts: Sequence[str],
        problems: Sequence[str],
        rng: np.random.Generator,
        *,
        repeats: int = 1,
        late: NDArray[np.bool_] | None = None,
    ) -> Floats:
        """Levels 0..4, NaN where the reply cannot be used; shape (texts, repeats, 3).

        The criteria are those of `world_truth.CRITERIA`, all in one call in a random order. `late`
        (texts, repeats) marks the calls after the drift, by default the second half of the texts.
        """
        n, c = len(texts), len(CRITERIA)
        places = rng.permuted(np.tile(np.arange(c), (n, repeats, 1)), axis=-1)
        asked = Asked(texts, problems, CRITERIA, repeats, places, c)
        if late is None:
            late = np.broadcast_to((np.arange(n) >= n / 2)[:, None], (n, repeats))
        levels = self.levels(asked, late, rng)
        lost = rng.random((n, repeats)) < 1 - (1 - self.refuse) * (1 - self.malformed)
        levels[lost] = np.nan
        return levels

    def levels(self, asked: Asked, late: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
        """Levels 0..4 with noise, as if every reply were in form; shape of `asked`."""
        raw = self.grade(asked, rng) + self.shift + self.drift * late[:, :, None]
        if self.noise:
            raw = raw + rng.normal(0.0, self.noise, asked.shape)
        return np.asarray(np.clip(np.floor(raw + 0.5), 0, TOP), dtype=np.float64)


def by_truth(asked: Asked, rng: np.random.Generator) -> Floats:
    """The true level of the text. Raises InputError for a criterion of another world."""
    return asked.spread(truth_levels(asked.texts, asked.problems, asked.criteria))


def by_chance(asked: Asked, rng: np.random.Generator) -> Floats:
    """Every level equally often."""
    return rng.integers(0, TOP + 1, asked.shape).astype(np.float64)


def always(level: int) -> Grade:
    """The same level for everything."""
    return lambda asked, rng: np.full(asked.shape, float(level))


def by_place(asked: Asked, rng: np.random.Generator) -> Floats:
    """The first criterion of a prompt gets the worst level, the last the best."""
    return np.asarray(asked.places * (TOP / max(asked.shown - 1, 1)), dtype=np.float64)


def by_count(count: Callable[[str], float], originals: Sequence[str]) -> Grade:
    """The level of a quantity among the originals: 1 to 4 by their quartiles.

    Level 0 lies below 98 % of the smallest original, so that no original has it.
    """
    counted = lru_cache(maxsize=1 << 16)(count)
    counts = np.array([counted(text) for text in originals], dtype=np.float64)
    bounds = np.array([0.98 * counts.min(), *np.quantile(counts, [0.25, 0.5, 0.75])])

    def grade(asked: Asked, rng: np.random.Generator) -> Floats:
        found = np.array([counted(text) for text in asked.texts], dtype=np.float64)
        return asked.spread(np.searchsorted(bounds, found, side="right").astype(np.int64))

    return grade


_BLANK = re.compile(r"[\s*_#`]|^[ \t]*[-•][ \t]", re.M)


def length(text: str) -> float:
    """Visible characters of a text: white space and Markdown do not make it longer."""
    return float(len(_BLANK.sub("", text)))


_CLAIM = re.compile(
    r"\b(?:verif\w+|double-check\w*|checked|certain\w*|clear(?:ly)?|obvious\w*|confident\w*|"
    r"of course|careful\w*|great care|important\w*|worth|indeed|overall|guarantee\w*|thorough\w*|"
    r"undoubtedly|no doubt|without (?:any )?doubt|rest assured|in other words|as mentioned)\b",
    re.I,
)
_SENTENCE_END = re.compile(r"[.!?][*_\"')]*\s+")


def talk(text: str) -> float:
    """Sentences that hold no number, and claims of care and confidence: what takes in the gullible.

    Wrong or right, present or missing, no booking counts.
    """
    empty = sum(1 for s in _SENTENCE_END.split(text) if s.strip() and not re.search(r"\d", s))
    return float(empty + len(_CLAIM.findall(text)))


def perfect() -> SimulatedJudge:
    """Tells the true level."""
    return SimulatedJudge("perfect", by_truth)


def noisy(noise: float = 0.5) -> SimulatedJudge:
    """The true level with normal noise of `noise` levels."""
    return SimulatedJudge("noisy", by_truth, noise=noise)


def lenient(shift: float = 1.0, noise: float = 0.0) -> SimulatedJudge:
    """The true level and `shift` more, at most the best."""
    return SimulatedJudge("lenient", by_truth, shift=shift, noise=noise)


def random() -> SimulatedJudge:
    """Any level."""
    return SimulatedJudge("random", by_chance)


def constant(level: int = 3) -> SimulatedJudge:
    """One level for all."""
    return SimulatedJudge("constant", always(level))


def length_only(originals: Sequence[str], noise: float = 0.0) -> SimulatedJudge:
    """Grades length alone; falls in nearly every copy that lost a quarter of its sentences."""
    return SimulatedJudge("length_only", by_count(length, originals), noise=noise)


def position_only(slot: int | None = None) -> SimulatedJudge:
    """Grades the place of the criterion in the prompt, or always takes label number `slot`."""
    grade = by_place if slot is None else always(slot)
    return SimulatedJudge("position_only", grade, by_slot=True)


def gullible(originals: Sequence[str], noise: float = 0.0) -> SimulatedJudge:
    """Grades empty and confident talk alone."""
    return SimulatedJudge("gullible", by_count(talk, originals), noise=noise)


def refusing(share: float = 0.4) -> SimulatedJudge:
    """The perfect judge, where it answers."""
    return replace(perfect(), name="refusing", refuse=share)


def malformed(share: float = 0.05) -> SimulatedJudge:
    """The perfect judge, where its reply can be read."""
    return replace(perfect(), name="malformed", malformed=share)


def drifting(drift: float = -1.0, noise: float = 0.0) -> SimulatedJudge:
    """The perfect judge, and from the second half of the calls another model `drift` levels off."""
    return SimulatedJudge(
        "drifting", by_truth, noise=noise, drift=drift, later_model="judge-2024-11"
    )


def family(originals: Sequence[str]) -> dict[str, SimulatedJudge]:
    """Every judge above by its name; `originals` are the unperturbed texts."""
    judges = [
        perfect(),
        noisy(),
        lenient(),
        random(),
        constant(),
        length_only(originals),
        position_only(),
        gullible(originals),
        refusing(),
        malformed(),
        drifting(),
    ]
    return {judge.name: judge for judge in judges}


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the quantifier's prompt says: criterion id → labels as listed, in the order shown."""

    criteria: dict[str, tuple[str, ...]]
    problem: str
    work: str


_BLOCK = re.compile(r"^<<BEGIN problem (\S+)>>$", re.M)
_ENTRY = re.compile(r"^- id: (.+)$", re.M)
_VALUES = re.compile(r"^  accepted values(?:, worst to best)?: (.+)$", re.M)


def read_prompt(request: Request) -> Prompt:
    """Criteria, problem and work of a quantifier's request, or of its repair.

    Raises InputError when the prompt has another form.
    """
    text = str(request.messages[1]["content"])
    opening = _BLOCK.search(text)
    if opening is None:
        raise InputError("the prompt shows no problem between markers")
    nonce = opening.group(1)
    starts = [*_ENTRY.finditer(text, 0, opening.start())]
    ends = [*(m.start() for m in starts[1:]), opening.start()]
    criteria = {}
    for start, end in zip(starts, ends, strict=True):
        values = _VALUES.search(text, start.end(), end)
        if values is None:
            raise InputError(f"the prompt lists no accepted values for {start.group(1)}")
        criteria[start.group(1)] = tuple(json.loads(f"[{values.group(1)}]"))
    return Prompt(criteria, _between(text, "problem", nonce), _between(text, "work", nonce))


def _between(text: str, label: str, nonce: str) -> str:
    _, begun, rest = text.partition(f"<<BEGIN {label} {nonce}>>\n")
    inside, ended, _ = rest.partition(f"\n<<END {label} {nonce}>>")
    if not begun or not ended:
        raise InputError(f"the prompt shows no {label} between markers")
    return inside


class Answers:
    """A judge as the `answer` of a ScriptedTransport.

    `switch_after` is the number of calls (repairs not counted) after which a judge that drifts
    becomes `later_model`; such a judge needs it (InputError). A call asked again, and its repair,
    gets the same answer.
    """

    def __init__(
        self, judge: SimulatedJudge, *, seed: int = 0, switch_after: int | None = None
    ) -> None:
        if judge.later_model is not None and switch_after is None:
            raise InputError("a judge that drifts needs the number of calls after which it does")
        self.judge = judge
        self.seed = seed
        self.switch_after = switch_after
        self._late: dict[str, bool] = {}  # identity of a call → whether it came after the drift

    def __call__(self, request: Request) -> Reply:
        """The judge's reply. Raises InputError for a prompt it cannot read."""
        prompt = read_prompt(request)
        unit = [request.run_id, prompt.problem, prompt.work, request.repeat, request.attempt]
        call = [*unit, *sorted(prompt.criteria)]
        late = self._is_late(json.dumps(call))
        model = self.judge.later_model if late else None
        model = model or self.judge.model
        rng = self._rng("call", *call)
        if rng.random() < self.judge.refuse:
            return Reply(text="", refusal="I cannot help with grading this work.", model=model)
        if rng.random() < self.judge.malformed:
            return Reply(text="Grading such work takes more than a form allows.", model=model)
        labels = {c: self._label(prompt, c, late, unit) for c in prompt.criteria}
        reason = f"Graded by rule ({self.judge.name})."
        body = {c: {"explanation": reason, "label": label} for c, label in labels.items()}
        return Reply(text=json.dumps(body, ensure_ascii=False), model=model)

    def _is_late(self, call: str) -> bool:
        if self.switch_after is None:
            return False
        return self._late.setdefault(call, len(self._late) >= self.switch_after)

    def _rng(self, *words: object) -> np.random.Generator:
        digest = hashlib.sha256(json.dumps([self.seed, *words]).encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:16], "big"))

    def _label(self, prompt: Prompt, criterion: str, late: bool, unit: Sequence[object]) -> str:
        listed = prompt.criteria[criterion]
        place = np.array([[[list(prompt.criteria).index(criterion)]]])
        asked = Asked([prompt.work], [prompt.problem], (criterion,), 1, place, len(prompt.criteria))
        rng = self._rng("level", *unit, criterion)
        level = int(self.judge.levels(asked, np.array([[late]]), rng)[0, 0, 0])
        own = LABELS.get(criterion, ())
        if not self.judge.by_slot and set(own) == set(listed):
            return own[level]  # by its meaning, in whatever order the labels are listed
        return listed[round(level * (len(listed) - 1) / TOP)]
