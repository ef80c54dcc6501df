"""The embedded judge: grades a text by its likelihood under a small local language model.

Asked for a label, such a model answers at random; how probable a text is under it does tell
complete and ordered texts from damaged ones (GPTScore, arXiv 2302.04166, is the idea). Which
statistic serves which kind of criterion is measured by `benchmarks/embedded` and frozen in
`data/embedded_judge.json`; a kind without signal is a Failure, never a number. It judges structure,
not truth.

Usage::

    judge = load_likelihood_quantifier(seed=1)     # ModelUnavailable names `agenteval models pull`
    outcome = await judge.evaluate(Unit(run=run, view=make_view(run), criteria=criteria))
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from agenteval.errors import InputError, ModelUnavailable
from agenteval.evaluators.base import Outcome, Unit, cell_key, fail_all
from agenteval.evaluators.utility.arithmetic import ArithmeticReport, check_arithmetic
from agenteval.evaluators.utility.calibration import (
    Calibration,
    Kind,
    Resolver,
    level_of,
    load_calibration,
)
from agenteval.evaluators.utility.likelihood_features import (
    INSTRUCTIONS,
    PROMPT_SHA256,
    Features,
    TokenValues,
    conciseness,
    features,
    prompt,
    rounded,
)
from agenteval.records import (
    CallRecord,
    CellKey,
    Criterion,
    Failure,
    Result,
    Score,
    Source,
    View,
)

MIN_SENTENCES = 2
_VERSION = 1
_REMEMBERED = 64  # passes kept, so that criteria and repeats of a run share them
_NO = "unsupported by this judge: "


class TokenLikelihood(Protocol):
    """What the judge needs of a language model; `LikelihoodModel` has it."""

    sha256: str

    def token_logprobs(self, prefix: str, text: str) -> TokenValues:
        """Log-probabilities of the tokens of `text` after `prefix`."""
        ...

    def count_tokens(self, text: str) -> int:
        """Number of tokens of a text."""
        ...


@dataclass(frozen=True)
class _Pass:
    """What one forward pass and one look at the text gave."""

    features: Features
    arithmetic: ArithmeticReport
    problem_tokens: int
    seconds: float


@dataclass(frozen=True)
class _Drawn:
    """The statistics of one repeat: all sentences, and those that this repeat drew."""

    paraphrase: int
    full: dict[str, float]
    drawn: dict[str, float]
    seen: _Pass


class LikelihoodQuantifier:
    """Scores runs by token likelihood, without asking the model anything.

    Every repeat, the first included, weighs the run's sentences anew (a bootstrap) and uses the
    next paraphrase of the prompt: the pass itself is deterministic, and what is uncertain is which
    sentences the run happened to have. The weight of a sentence is a function of seed, repeat and
    its wording. The reference of a view is never used.
    """

    def __init__(
        self,
        model: TokenLikelihood,
        calibration: Calibration,
        *,
        seed: int = 0,
        resolver: Resolver | None = None,
        resolver_name: str = "resolver",
    ) -> None:
        """`resolver` names the bank concept of criteria that match none exactly; `resolver_name`
        says in every score's source which one it was.

        Raises ModelUnavailable when the constants were measured with another model or prompt.
        """
        if calibration.model_sha256 != model.sha256 or calibration.prompt_sha256 != PROMPT_SHA256:
            raise ModelUnavailable(
                f"the likelihood judge was measured with {calibration.model} only; for another"
                " model its constants say nothing (benchmarks/embedded --write measures them)"
            )
        self.model = model
        self.calibration = calibration
        self.seed = seed
        self.resolver = resolver
        self.resolver_name = resolver_name if resolver else None
        self._passes: OrderedDict[tuple[str, str, int], _Pass] = OrderedDict()

    @cached_property
    def _worker(self) -> ThreadPoolExecutor:
        """One thread: passes wait for each other here, without holding up the event loop."""
        return ThreadPoolExecutor(max_workers=1, thread_name_prefix="likelihood")

    @cached_property
    def source(self) -> Source:
        """Model, prompts, constants and seed of this judge."""
        return Source(
            evaluator="utility.likelihood",
            version=_VERSION,
            model=f"{self.calibration.model}@{self.model.sha256[:12]}",
            prompt_sha256=PROMPT_SHA256,
            parameters={
                "calibration": self.calibration.sha256,
                "paraphrases": len(INSTRUCTIONS),
                "resolver": self.resolver_name,
            },
            seed=self.seed,
        )

    @cached_property
    def _source_key(self) -> str:
        return self.source.sha256

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """All criteria at once: one pass serves them all."""
        return [tuple(criteria)] if criteria else []

    async def evaluate(self, unit: Unit) -> Outcome:
        """One result per criterion. No pass is made when no criterion needs one."""
        shown = tuple(c.id for c in unit.criteria)
        if not any(self._needs_pass(c) for c in unit.criteria):
            results = tuple(self._result(unit, c, None) for c in unit.criteria)
            return Outcome(results, CallRecord(shown=shown))
        paraphrase = unit.repeat % len(INSTRUCTIONS)
        loop = asyncio.get_running_loop()
        try:
            seen, known = await loop.run_in_executor(
                self._worker, self._pass, unit.view, paraphrase
            )
        except InputError as error:
            return fail_all(unit, self._source_key, "unscored:unsupported", f"{_NO}{error}")
        drawn = self._draw(unit, paraphrase, seen)
        results = tuple(self._result(unit, c, drawn) for c in unit.criteria)
        latency = None if known else seen.seconds
        return Outcome(results, CallRecord(shown=shown, cache_hit=known, latency=latency))

    def _needs_pass(self, criterion: Criterion) -> bool:
        if criterion.sub_criteria:
            return any(self._needs_pass(c) for c in criterion.sub_criteria)
        return isinstance(self._kind(criterion), Kind)

    def _pass(self, view: View, paraphrase: int) -> tuple[_Pass, bool]:
        """The pass for a view, and whether it was known. Runs in the worker thread only."""
        key = (view.problem, view.trajectory, paraphrase)
        if known := self._passes.get(key):
            self._passes.move_to_end(key)
            return known, True
        began = time.perf_counter()
        values = self.model.token_logprobs(prompt(view.problem, paraphrase), view.trajectory)
        made = _Pass(
            features=features(values, view.trajectory),
            arithmetic=check_arithmetic(view.trajectory),
            problem_tokens=self.model.count_tokens(view.problem),
            seconds=time.perf_counter() - began,
        )
        self._passes[key] = made
        if len(self._passes) > _REMEMBERED:
            self._passes.popitem(last=False)
        return made, False

    def _draw(self, unit: Unit, paraphrase: int, seen: _Pass) -> _Drawn:
        if not seen.features.sentences:
            return _Drawn(paraphrase, {}, {}, seen)
        full = seen.features.statistics()
        drawn = seen.features.statistics(seen.features.draw(self.seed, unit.repeat))
        return _Drawn(paraphrase, full, drawn, seen)

    def _kind(self, criterion: Criterion) -> Kind | str:
        """The kind that serves a criterion, or why there is none."""
        if criterion.scale not in ("ordinal", "binary") or criterion.order != "worst_to_best":
            return "it grades on ordered accepted values only"
        kind = self.calibration.kind_of(criterion, self.resolver)
        if kind is None:
            return "no likelihood has been shown to grade this criterion"
        return kind if kind.supported else kind.reason

    def _result(self, unit: Unit, criterion: Criterion, drawn: _Drawn | None) -> Result:
        key = cell_key(unit, criterion, self._source_key)
        if criterion.sub_criteria:
            parts = [self._result(unit, c, drawn) for c in criterion.sub_criteria]
            return _aggregate(criterion, key, parts)
        kind = self._kind(criterion)
        if isinstance(kind, str):
            return _unsupported(criterion, key, kind)
        assert drawn is not None  # a supported leaf has asked for the pass
        found = drawn.seen.features.sentences
        if found < MIN_SENTENCES:
            return _unsupported(criterion, key, f"the run holds {found} sentence(s) of prose")
        if kind.relative:
            return _relative(criterion, key, drawn)
        return _scored(criterion, key, kind, drawn)


def _unsupported(criterion: Criterion, key: CellKey, reason: str) -> Failure:
    return Failure(
        key=key,
        criterion_id=criterion.id,
        status="unscored:unsupported",
        message=f"{_NO}{reason}",
    )


def _scored(criterion: Criterion, key: CellKey, kind: Kind, drawn: _Drawn) -> Result:
    raw, full = (_raw(kind, s, drawn.seen) for s in (drawn.drawn, drawn.full))
    if raw is None or full is None:
        return _unsupported(criterion, key, f"the run gives no {kind.statistic} statistic")
    value = round(kind.value(raw, drawn.paraphrase), 6)
    evidence: dict[str, JsonValue] = {
        "kind": kind.name,
        "statistic": kind.statistic,
        **rounded({"raw": raw, "raw_all_sentences": full}),
        "paraphrase": drawn.paraphrase,
        "sentences": drawn.seen.features.sentences,
        "tokens": len(drawn.seen.features.logprobs),
    }
    return Score(
        key=key,
        criterion_id=criterion.id,
        label=level_of(value, criterion.accepted_values),
        value=value,
        evidence=evidence,
    )


def _raw(kind: Kind, statistics: dict[str, float], seen: _Pass) -> float | None:
    found = statistics.get(kind.statistic)
    if kind.statistic != "tokens" or found is None:
        return found
    return conciseness(found, seen.problem_tokens, kind.slope)


def _relative(criterion: Criterion, key: CellKey, drawn: _Drawn) -> Result:
    number = drawn.drawn.get("numbers", drawn.full.get("numbers"))
    if number is None:
        return _unsupported(criterion, key, "the run's prose holds no number")
    report = drawn.seen.arithmetic
    return Score(
        key=key,
        criterion_id=criterion.id,
        status="relative",
        evidence={
            "number_loglik": round(number, 6),
            "arithmetic_checked": report.checked,
            "arithmetic_wrong": [
                {"excerpt": w.excerpt, "expected": w.expected} for w in report.wrong
            ],
        },
    )


def _aggregate(criterion: Criterion, key: CellKey, parts: Sequence[Result]) -> Result:
    """By the criterion's rule, if every part has a value; a part without one decides the whole."""
    values: list[float] = []
    for part in parts:
        if not isinstance(part, Score) or part.value is None:
            why = "no value of its own" if isinstance(part, Score) else part.message
            return _unsupported(criterion, key, f"{part.criterion_id}: {why.removeprefix(_NO)}")
        values.append(part.value)
    value = min(values) if criterion.aggregation == "min" else fsum(values) / len(values)
    evidence: dict[str, JsonValue] = {
        part.criterion_id: part.evidence for part in parts if isinstance(part, Score)
    }
    return Score(key=key, criterion_id=criterion.id, value=round(value, 6), evidence=evidence)


def load_likelihood_quantifier(
    path: Path | str | None = None,
    *,
    seed: int = 0,
    threads: int | None = None,
    resolver: Resolver | None = None,
    resolver_name: str = "resolver",
) -> LikelihoodQuantifier:
    """The judge with the downloaded model, or with the GGUF file at `path`.

    `threads` sets torch's threads for the whole process. Raises ModelUnavailable when the weights
    or the extra `local` are missing (the message names `agenteval models pull`) or when the judge
    was not measured with this model, InputError when its constants cannot be read.
    """
    from agenteval.models import weights
    from agenteval.models.embedded.likelihood import LikelihoodModel

    calibration = load_calibration()
    found = weights.require() if path is None else Path(path)
    model = LikelihoodModel.load(found, threads=threads)
    return LikelihoodQuantifier(
        model, calibration, seed=seed, resolver=resolver, resolver_name=resolver_name
    )
