"""The embedded judge with a scripted model, and with the real one where it is installed."""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from agenteval.errors import InputError, ModelUnavailable
from agenteval.evaluators.base import Outcome, Unit, judge
from agenteval.evaluators.utility.calibration import Calibration, Kind
from agenteval.evaluators.utility.likelihood import (
    LikelihoodQuantifier,
    load_likelihood_quantifier,
)
from agenteval.evaluators.utility.likelihood_features import INSTRUCTIONS, PROMPT_SHA256
from agenteval.readers import make_view
from agenteval.records import Criterion, Failure, Provenance, Run, Score

DEVSET = Path(__file__).parents[3] / "benchmarks" / "devset" / "problems.jsonl"
LEVELS = ("bad", "fair", "good", "best")
SHA = "ab" * 32
TEXT = "We add the numbers first. That makes 12 in all. Then we halve it. So it is 6."
CALIBRATION = Calibration(
    sha256="cd" * 32,
    model="scripted",
    model_sha256=SHA,
    prompt_sha256=PROMPT_SHA256,
    kinds={
        "completeness": Kind("completeness", True, "", "start", center=-2, offsets=(0, 0, 0, 0)),
        "clarity": Kind("clarity", True, "", "mean", center=-2, offsets=(0, 0.5, 0, 0)),
        "conciseness": Kind("conciseness", True, "", "tokens", center=-2, slope=0.5),
        "calculation": Kind("calculation", True, "", "numbers", relative=True),
        "coherence": Kind("coherence", False, "no likelihood grades coherence"),
    },
    concepts={
        "completeness": "completeness",
        "clarity": "clarity",
        "conciseness": "conciseness",
        "calculation-accuracy": "calculation",
        "coherence": "coherence",
    },
)


@dataclass
class Values:
    logprobs: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


class WordModel:
    """A token is a word; its log-probability is minus its length, more with a longer prefix."""

    def __init__(self) -> None:
        self.sha256 = SHA
        self.calls: list[tuple[str, str]] = []
        self.threads: set[int] = set()

    def token_logprobs(self, prefix: str, text: str) -> Values:
        if "\ud800" in text:
            raise InputError("half of a surrogate pair")
        self.calls.append((prefix, text))
        self.threads.add(threading.get_ident())
        spans = [m.span() for m in re.finditer(r"\s?\S+|\s", text)]
        starts, ends = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        return Values(-(ends - starts) / 2.0 - len(prefix) / 1000, starts, ends)

    def count_tokens(self, text: str) -> int:
        return len(text.split())


def criterion(concept: str, **more: object) -> Criterion:
    fields = {"accepted_values": LEVELS, "provenance": Provenance(concept=concept), **more}
    return Criterion.model_validate({"name": concept, **fields})


ALL = tuple(map(criterion, ("completeness", "clarity", "conciseness", "calculation-accuracy")))


def unit(
    text: str = TEXT, repeat: int = 0, run_id: str = "r", criteria: tuple[Criterion, ...] = ALL
) -> Unit:
    run = Run(id=run_id, input="Add and halve.", output=text)
    return Unit(run=run, view=make_view(run), criteria=criteria, repeat=repeat)


def quantifier(seed: int = 0) -> LikelihoodQuantifier:
    return LikelihoodQuantifier(WordModel(), CALIBRATION, seed=seed)


def evaluate(asked: Unit, seed: int = 0) -> Outcome:
    return asyncio.run(quantifier(seed).evaluate(asked))


def values(outcome: Outcome) -> list[float]:
    return [r.value for r in outcome.results if isinstance(r, Score) and r.value is not None]


def test_scores_and_evidence() -> None:
    judged = quantifier()
    outcome = asyncio.run(judged.evaluate(unit()))
    scores = [r for r in outcome.results if isinstance(r, Score)]
    assert [s.status for s in scores] == ["scored", "scored", "scored", "relative"]
    assert outcome.call.shown == tuple(c.id for c in ALL)
    for score, asked in zip(scores, ALL, strict=True):
        assert score.criterion_id == asked.id
        assert score.key.source == judged.source.sha256
        assert score.key.criterion == asked.sha256
        assert score.explanation is None
        assert score.rung is None
        json.dumps(score.evidence, allow_nan=False)
    for score in scores[:3]:
        assert score.value is not None
        assert 0 < score.value < 1
        ranks = [abs(score.value - i / 3) for i in range(4)]
        assert score.label == LEVELS[int(np.argmin(ranks))]


def test_a_text_of_equal_sentences_has_a_known_value() -> None:
    """Resampling equal sentences changes nothing, so the value follows from the constants."""
    text = "Aa bbb cc. " * 4
    first, clear, short = (
        r for r in evaluate(unit(text)).results[:3] if isinstance(r, Score) and r.value is not None
    )
    model = WordModel()
    asyncio.run(LikelihoodQuantifier(model, CALIBRATION).evaluate(unit(text)))
    prefix = len(model.calls[0][0]) / 1000
    # 12 words: the first has 2 characters, 3 more at sentence starts have 3, then 4 and 4
    mean = -(2 + 3 * 3 + 4 * 4 + 4 * 4) / 2 / 12 - prefix
    assert first.evidence["raw_all_sentences"] == pytest.approx(mean, abs=1e-6)
    assert clear.evidence["raw_all_sentences"] == pytest.approx(mean, abs=1e-6)
    raw = 0.5 * math.log(3 + 1) - math.log(12)
    assert short.value == pytest.approx(1 / (1 + math.exp(-1.702 * (raw + 2))), abs=1e-6)


def test_repeats_differ_and_can_be_reproduced() -> None:
    once = [values(evaluate(unit(repeat=r))) for r in range(8)]
    again = [values(evaluate(unit(repeat=r))) for r in range(8)]
    assert once == again
    assert len({tuple(v) for v in once}) > 4
    # the same paraphrase comes back, with another draw of sentences
    assert once[0] != once[len(INSTRUCTIONS)]
    assert [values(evaluate(unit(repeat=r), seed=1)) for r in range(8)] != once


def test_a_score_does_not_depend_on_other_runs() -> None:
    async def both() -> tuple[Outcome, Outcome]:
        shared = quantifier()
        await shared.evaluate(unit("Another run. It says 99 things. And more.", run_id="other"))
        after = await shared.evaluate(unit())
        return after, await quantifier().evaluate(unit())

    after, alone = asyncio.run(both())
    assert after.results == alone.results


def test_a_score_does_not_depend_on_the_other_criteria() -> None:
    together = evaluate(unit()).results
    alone = tuple(evaluate(unit(criteria=(c,))).results[0] for c in ALL)
    assert together == alone


def test_criteria_and_repeats_share_passes_in_one_thread() -> None:
    model = WordModel()
    judged = LikelihoodQuantifier(model, CALIBRATION)

    async def work() -> list[Outcome]:
        asked = [unit(repeat=r, criteria=(c,)) for r in range(8) for c in ALL]
        return list(await asyncio.gather(*map(judged.evaluate, asked)))

    outcomes = asyncio.run(work())
    assert len(model.calls) == len(INSTRUCTIONS)
    assert len(set(model.calls)) == len(INSTRUCTIONS)
    assert sum(not o.call.cache_hit for o in outcomes) == len(INSTRUCTIONS)
    assert len(model.threads) == 1
    assert threading.get_ident() not in model.threads


def test_calculation_is_evidence_without_a_value() -> None:
    (score,) = evaluate(unit("It is 7 * 6 = 43. So we have 43.", criteria=ALL[3:])).results
    assert isinstance(score, Score)
    assert (score.status, score.value, score.label) == ("relative", None, None)
    assert score.evidence["arithmetic_checked"] == 1
    assert score.evidence["arithmetic_wrong"] == [{"excerpt": "7 * 6 = 43", "expected": "42"}]
    assert isinstance(score.evidence["number_loglik"], float)


@pytest.mark.parametrize(
    ("asked", "text", "why"),
    [
        (criterion("empathy"), TEXT, "no likelihood has been shown"),
        (criterion("coherence"), TEXT, "no likelihood grades coherence"),
        (criterion("clarity", scale="nominal"), TEXT, "ordered accepted values"),
        (criterion("clarity", order="unclear"), TEXT, "ordered accepted values"),
        (criterion("clarity", scale="numeric", numeric_range=(0, 9)), TEXT, "ordered accepted"),
        (criterion("clarity"), "", "0 sentence"),
        (criterion("clarity"), "Only one.", "1 sentence"),
        (criterion("clarity"), "```\na = 1\nb = 2\n```", "0 sentence"),
        (criterion("calculation-accuracy"), "No digit. None at all.", "no number"),
        (criterion("clarity"), "Half a pair \ud800. Not text.", "surrogate"),
        (
            criterion("x", sub_criteria=(criterion("clarity"), criterion("empathy"))),
            TEXT,
            "empathy: no likelihood",
        ),
        (criterion("x", sub_criteria=(ALL[1], ALL[3])), TEXT, "no value of its own"),
    ],
)
def test_unsupported_never_has_a_value(asked: Criterion, text: str, why: str) -> None:
    (result,) = asyncio.run(judge(quantifier(), unit(text, criteria=(asked,)))).results
    assert isinstance(result, Failure)
    assert result.status == "unscored:unsupported"
    assert result.message.startswith("unsupported by this judge: ")
    assert why in result.message


def test_unsupported_criteria_need_no_pass() -> None:
    model = WordModel()
    judged = LikelihoodQuantifier(model, CALIBRATION)
    asyncio.run(judged.evaluate(unit(criteria=(criterion("empathy"),))))
    assert model.calls == []


@pytest.mark.parametrize("rule", ["mean", "min"])
def test_sub_criteria_are_aggregated(rule: str) -> None:
    whole = criterion("x", sub_criteria=ALL[:3], aggregation=rule)
    (result,) = evaluate(unit(criteria=(whole,))).results
    parts = values(evaluate(unit(criteria=ALL[:3])))
    assert isinstance(result, Score)
    expected = min(parts) if rule == "min" else sum(parts) / 3
    assert result.value == pytest.approx(expected, abs=1e-6)
    assert result.label is None


def test_constants_of_another_model_are_refused() -> None:
    model = WordModel()
    model.sha256 = "ef" * 32
    with pytest.raises(ModelUnavailable, match="scripted only"):
        LikelihoodQuantifier(model, CALIBRATION)


def test_source_and_batches() -> None:
    judged = quantifier(seed=3)
    assert judged.source.evaluator == "utility.likelihood"
    assert judged.source.seed == 3
    assert judged.source.model == "scripted@" + SHA[:12]
    assert judged.source.parameters["calibration"] == "cd" * 32
    assert judged.source.sha256 != quantifier(seed=4).source.sha256
    resolved = LikelihoodQuantifier(
        WordModel(), CALIBRATION, seed=3, resolver=lambda c: "clarity", resolver_name="minilm"
    )
    assert resolved.source.sha256 != judged.source.sha256
    assert judged.batches(ALL) == [ALL]
    assert judged.batches(()) == []
    (score,) = asyncio.run(resolved.evaluate(unit(criteria=(criterion("other"),)))).results
    assert isinstance(score, Failure)  # a concept that is known to be another is not resolved
    plain = Criterion(name="Plain words", accepted_values=LEVELS)
    (score,) = asyncio.run(resolved.evaluate(unit(criteria=(plain,)))).results
    assert isinstance(score, Score)


def test_without_weights_the_message_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTEVAL_CACHE", str(tmp_path))
    with pytest.raises(ModelUnavailable, match="agenteval models pull"):
        load_likelihood_quantifier()


@cache
def the_real_one() -> LikelihoodQuantifier:
    return load_likelihood_quantifier()


@pytest.mark.local
@pytest.mark.parametrize("index", [0, 12])
def test_the_real_model_prefers_the_right_order(index: int) -> None:
    """Reversed order, the whole texts compared, so that no draw decides."""
    item = json.loads(DEVSET.read_text("utf-8").splitlines()[index])
    judged = the_real_one()
    supported = [n for n, k in judged.calibration.kinds.items() if k.supported and not k.relative]
    graded = [n for n in ("completeness", "coherence", "clarity") if n in supported]
    assert graded
    asked = tuple(map(criterion, graded))
    texts = (item["good"], " ".join(reversed(re.split(r"(?<=[.!?])\s+", item["good"]))))
    rows = []
    for text in texts:
        run = Run(id="r", input=item["problem"], output=text)
        view = make_view(run)
        outcome = asyncio.run(judged.evaluate(Unit(run=run, view=view, criteria=asked)))
        rows.append(
            [r.evidence["raw_all_sentences"] for r in outcome.results if isinstance(r, Score)]
        )
    assert len(rows[0]) == len(rows[1]) == len(graded)
    assert all(a > b for a, b in zip(*rows, strict=True))
