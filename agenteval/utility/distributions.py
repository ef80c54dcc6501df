"""Judges that return a probability for each level: a decisions endpoint, or a chat model's letters.

The value of a score is the expectation over the levels (G-Eval, arXiv 2303.16634, section 2); its
label is the most probable level. An answer that is not a distribution over the levels is a failure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from string import ascii_uppercase
from typing import Any, Literal, TypeGuard

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, cell_key
from agenteval.errors import ReplyError
from agenteval.models.client import Client
from agenteval.models.openai import MOST_QUESTIONS
from agenteval.models.prompts import load_prompt
from agenteval.models.wire import Reply, Request
from agenteval.records import CallRecord, Criterion, Source, Task, content_hash
from agenteval.utility.answers import (
    LevelAnswer,
    NoAnswer,
    from_probabilities,
    leaves_of,
    to_result,
)
from agenteval.utility.quantifier import (
    QuantifierOptions,
    call_record,
    gathered,
    prompt_values,
    refusal,
    request_about,
    sampling,
)

LEAST_MASS = 0.9  # of the letters; the remainder can change a value by at most .1 of the scale
TOLERANCE = 1e-3  # for sums of probabilities
_TOP = 20  # log-probabilities per token, the maximum of endpoints
_REPLY = 16  # tokens; one would be enough, but truncated replies are not stored
_MARKS = " \t\r\n\"'`*_().:[]▁Ġ"  # may surround or precede the letter
_SCORED = 10  # maximum levels of a score question; with more it is a choice

Kind = Literal["decisions", "letters"]
Leaf = tuple[str, Criterion]


class DistributionJudge:
    """Asks for the probability of every level.

    `decisions`: the criteria of a run are the questions of one request to a decisions endpoint. An
    ordered criterion is a score question. A criterion that is unordered, has too many levels for a
    score question, or may not apply is a choice question.

    `letters`: a chat model is asked for the letter of a level, one criterion per request, and the
    log-probabilities of the letter's token are read. The letters must have at least `LEAST_MASS` of
    the probability, which is then scaled to 1; the remainder is recorded as evidence.
    """

    def __init__(
        self, client: Client, task: Task, kind: Kind, options: QuantifierOptions | None = None
    ) -> None:
        self.client, self.task, self.kind = client, task, kind
        self.options = options or QuantifierOptions()
        names = "distribution_user", "distribution_criterion"
        self._user, self._entry = (load_prompt("agenteval.utility", n) for n in names)
        varied = "one_per_call" if kind == "decisions" else "temperature"
        self.source = Source(
            evaluator=f"utility.{kind}",
            version=1,
            model=client.model,
            prompt_sha256=content_hash([self._user.sha256, self._entry.sha256]),
            parameters={
                varied: getattr(self.options, varied),
                "task": content_hash([task.name, task.description]),
                "endpoint": client.address,
                **self.options.unusual,
            },
            seed=self.options.seed,
        )

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return one criterion per call for letters, as many as fit for decisions."""
        batches: list[list[Criterion]] = []
        room = 0
        for criterion in criteria:
            room -= len(criterion.leaves())
            if room < 0 or self.kind == "letters" or self.options.one_per_call:
                batches.append([])
                room = MOST_QUESTIONS - len(criterion.leaves())
            batches[-1].append(criterion)
        return [tuple(batch) for batch in batches]

    def requests(self, unit: JudgeUnit, leaves: list[Leaf]) -> list[tuple[list[Leaf], Request]]:
        """Return the requests about a unit, each with its leaves: one request with a question per
        leaf, named by its path (decisions), or one request per leaf (letters)."""
        values = prompt_values(self.task, unit)

        def request(about: Sequence[Leaf], text: str, **fields: Any) -> Request:
            messages = ({"role": "user", "content": text},)
            return request_about(unit, about, messages=messages, role=self.kind, **fields)

        if self.kind == "decisions":
            questions = tuple(
                {"name": path, "instructions": self._entry.render(c=leaf), **_scale(leaf)}
                for path, leaf in leaves
            )
            text = self._user.render(**values)
            return [(leaves, request(leaves, text, questions=questions))] if leaves else []
        parameters = sampling(self.options, unit) | {
            "max_tokens": _REPLY,
            "logprobs": True,
            "top_logprobs": _TOP,
        }
        requests = []
        for path, leaf in leaves:
            letters = list(zip(ascii_uppercase, _levels(leaf), strict=False))
            criterion = self._entry.render(c=leaf, letters=letters)
            text = self._user.render(**values, criterion=criterion)
            about = [(path, leaf)]
            requests.append((about, request(about, text, parameters=parameters)))
        return requests

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one Score or Failure per criterion; raises the first error of the requests."""
        leaves, most = leaves_of(unit.criteria), 255 if self.kind == "decisions" else _TOP
        why = f"only a criterion with 2 to {most} levels can have level probabilities"
        answers: dict[str, LevelAnswer | NoAnswer] = {
            path: NoAnswer("unscored:unsupported", why)
            for path, leaf in leaves
            if leaf.scale == "numeric" or len(_levels(leaf)) > most
        }
        requests = self.requests(unit, [leaf for leaf in leaves if leaf[0] not in answers])
        good = await gathered(
            [self.client.complete(request) for _, request in requests], lambda reply: [reply]
        )
        for (about, _), reply in zip(requests, good, strict=True):
            answers |= self._read(reply, about)
        results = tuple(
            to_result(c, cell_key(unit, c, self.source.sha256), answers, None)
            for c in unit.criteria
        )
        shown = tuple(path for about, _ in requests for path, _ in about)
        return Outcome(results, call_record(shown, good, None) if good else CallRecord())

    def _read(self, reply: Reply, about: Sequence[Leaf]) -> dict[str, LevelAnswer | NoAnswer]:
        if refused := refusal(reply):
            return {path: NoAnswer("unscored:refusal", refused) for path, _ in about}
        if self.kind == "decisions":
            try:
                value = json.loads(reply.text)
            except (ValueError, RecursionError) as error:
                raise ReplyError(f"the answers are not JSON ({error})") from None
            entries = [a for a in value if isinstance(a, dict)] if isinstance(value, list) else []
            return {p: _decided([a for a in entries if a.get("name") == p], c) for p, c in about}
        ((path, leaf),) = about
        if not reply.logprobs:
            where = self.client.transport.endpoint
            why = f"{where} gives no log-probabilities (logprobs, top_logprobs)"
            return {path: NoAnswer("unscored:missing", why)}
        tokens = (t for t in reply.logprobs if str(t.get("token") or "").strip(_MARKS))
        return {path: _lettered(next(tokens, {}), leaf, reply.text)}


def _levels(leaf: Criterion) -> tuple[str, ...]:
    """Return the labels that need a probability."""
    return leaf.accepted_values + (leaf.na_label,) * leaf.allow_na


def _scale(leaf: Criterion) -> dict[str, Any]:
    if leaf.ordered and not leaf.allow_na and len(leaf.accepted_values) <= _SCORED:
        return {"type": "score", "levels": [{"label": level} for level in leaf.accepted_values]}
    return {"type": "choice", "choices": [{"value": level} for level in _levels(leaf)]}


def _decided(answers: Sequence[dict[str, Any]], leaf: Criterion) -> LevelAnswer | NoAnswer:
    """Read the answers with one name. There must be exactly one, of the requested type, with a
    probability for each level and nothing else."""
    kind, kinds = _scale(leaf)["type"], [answer.get("type") for answer in answers]
    if not answers:
        return NoAnswer("unscored:missing", "the endpoint did not answer this question")
    if kinds == ["refusal"]:
        return NoAnswer("unscored:refusal", "the endpoint declined this question")
    levels, name = answers[0].get("probabilities"), "label" if kind == "score" else "value"
    if kinds != [kind] or not isinstance(levels, list):
        return NoAnswer("unscored:parse", f"one {kind} was asked for, not {kinds}"[:200])
    pairs = [(str(e.get(name)), e.get("probability")) for e in levels if isinstance(e, dict)]
    masses = {level: mass for level, mass in pairs if _is_number(mass) and 0 <= mass <= 1}
    total = math.fsum(masses.values())
    if sorted(level for level, _ in pairs) != sorted(_levels(leaf)) or len(masses) < len(pairs):
        listed = ", ".join(f"{level!r}: {mass!r}" for level, mass in pairs)
        return NoAnswer("unscored:parse", f"{listed}: no probabilities of the levels")
    if abs(total - 1) > TOLERANCE:
        return NoAnswer("unscored:parse", f"the probabilities sum to {total:.4f}, not 1")
    return _answer(masses, leaf, {})


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _lettered(token: Mapping[str, Any], leaf: Criterion, text: str) -> LevelAnswer | NoAnswer:
    """Read the answer from a token and its alternatives."""
    top = token.get("top_logprobs")
    entries = [e for e in top if isinstance(e, dict)] if isinstance(top, list) else []
    if all(entry.get("token") != token.get("token") for entry in entries):
        entries.append({**token})
    masses = dict.fromkeys(_levels(leaf), 0.0)
    level_of = dict(zip(ascii_uppercase, masses, strict=False))
    for entry in entries:
        level = level_of.get(str(entry.get("token") or "").strip(_MARKS))
        logprob = entry.get("logprob")
        if level is None:
            continue
        if not _is_number(logprob) or logprob > TOLERANCE:
            return NoAnswer("unscored:parse", f"{level!r}: {logprob!r} is not a log-probability")
        masses[level] += math.exp(logprob)
    mass = math.fsum(masses.values())
    if not LEAST_MASS <= mass <= 1 + TOLERANCE:
        why = f"the letters hold {mass:.3f} of the probability; at least {LEAST_MASS} is needed"
        return NoAnswer("unscored:parse", f"{why}; the reply is {text[:60]!r}")
    masses = {level: m / mass for level, m in masses.items()}
    return _answer(masses, leaf, {"outside": round(max(0.0, 1 - mass), 6)})


def _answer(
    masses: dict[str, float], leaf: Criterion, evidence: dict[str, Any]
) -> LevelAnswer | NoAnswer:
    """Return the answer for a distribution: "not applicable" if that is the most probable answer,
    else the distribution conditional on the criterion being applicable."""
    if leaf.allow_na:
        absent = masses.pop(leaf.na_label)
        evidence["not_applicable"] = round(absent, 6)
        if absent > max(masses.values()):
            return LevelAnswer(None, None, "exact", not_applicable=True, evidence=evidence)
        masses = {level: mass / (1 - absent) for level, mass in masses.items()}
    answer = from_probabilities(masses, leaf, None)
    return replace(answer, evidence=evidence) if isinstance(answer, LevelAnswer) else answer
