"""Perturbed copies of runs, and the data for verification."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from agenteval.analysis.rubrics import DROP_ITEM, pooled
from agenteval.analysis.scores import scores_from_store
from agenteval.cli.running import Watch
from agenteval.engine.judging import RunJudge
from agenteval.errors import InputError, ModelUnavailable
from agenteval.models.embeddings import make_embedder
from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store
from agenteval.utility.evaluator import Item, JudgeEvaluator, rubrics_of
from agenteval.utility.perturb import perturb, rng_for, variant_name
from agenteval.utility.perturb.items import Similarity, common_words, cosines, without_item
from agenteval.utility.perturb.layout import Unchanged
from agenteval.utility.verify import CopyFacts, with_warning

# By default one operator that shortens, two that keep the length, one that lengthens, and one that
# changes nothing a judge should see.
DEFAULT_OPERATORS = ("drop_sentences", "shuffle_sentences", "swap_numbers", "pad", "whitespace")


@dataclass(frozen=True)
class PerturbedRuns:
    """Perturbed copies of the runs by one operator.

    `items` has the copies that differ from their original; `unchanged` has the reasons why others
    do not, by run id; `targets` has the rubric item that a copy lacks.
    """

    variant: str
    items: tuple[Item, ...]
    unchanged: Mapping[str, str]
    targets: Mapping[str, str] = field(default_factory=dict)

    def of(self, runs: Collection[str]) -> PerturbedRuns:
        """Return the copies of the runs with these ids."""
        return replace(
            self,
            items=tuple(item for item in self.items if item[0].id in runs),
            unchanged={run: why for run, why in self.unchanged.items() if run in runs},
        )


def _similarity(variant: str, watch: Watch | None) -> Similarity:
    """Return how sentences for an item are found: by an embedder if one is installed."""
    similarity: Similarity = common_words
    how = "common words (agenteval[local] has an embedder)"
    with suppress(ModelUnavailable):
        embedder = make_embedder(None)
        similarity, how = cosines(embedder), f"the embedder {embedder.name}"
    if watch is not None:
        watch.note(f"{variant}: sentences for an item are found by {how}")
    return similarity


def make_copies(
    items: Sequence[Item],
    operators: Sequence[str],
    *,
    share: float,
    seed: int,
    watch: Watch | None = None,
) -> list[PerturbedRuns]:
    """Return copies of every run by every operator; the same seed makes the same copies.

    `drop_item` makes copies of the runs with rubrics, without what one of their items asks for.
    `watch` is warned of operators that leave runs unchanged. Raises InputError for an operator that
    does not exist, and for `drop_item` where no run has a rubric.
    """
    copies = []
    for operator in dict.fromkeys(operators or DEFAULT_OPERATORS):
        changed: list[Item] = []
        unchanged: dict[str, str] = {}
        targets: dict[str, str] = {}
        if operator == DROP_ITEM:
            variant = f"{DROP_ITEM}:-:{seed}"
            similarity = _similarity(variant, watch)
        else:
            variant = variant_name(operator, share, seed)
        for run, view in items:
            try:
                if operator != DROP_ITEM:
                    copy = perturb(view, operator, share=share, rng=rng_for(seed, operator, view))
                elif run.rubric is not None:
                    copy, targets[run.id] = without_item(view, run.rubric, similarity)
                else:
                    continue
            except Unchanged as why:
                unchanged[run.id] = str(why)
            else:
                changed.append((run, copy.model_copy(update={"origin": view.sha256})))
        count = len(changed) + len(unchanged)
        if operator == DROP_ITEM and not count:
            raise InputError(f"{DROP_ITEM} needs runs with rubrics", "--perturb")
        if unchanged and watch is not None:
            watch.warn(
                f"{variant}: {len(unchanged)} of {count} copies equal their original and are "
                f"omitted (e.g. {next(iter(unchanged.values()))})"
            )
        copies.append(PerturbedRuns(variant, tuple(changed), unchanged, targets))
    return copies


@dataclass(frozen=True)
class VerificationData:
    """Data to verify: runs, their copies, the criteria, and the number of repeats."""

    items: tuple[Item, ...]
    copies: tuple[PerturbedRuns, ...]
    criteria: tuple[Criterion, ...]
    repeats: int

    @property
    def variants(self) -> Iterator[tuple[str, Sequence[Item]]]:
        """Yield the originals and then the copies by variant."""
        yield ORIGINAL, self.items
        yield from ((copies.variant, copies.items) for copies in self.copies)

    @property
    def texts(self) -> int:
        """Number of originals and copies."""
        return sum(len(items) for _, items in self.variants)

    @property
    def cells(self) -> int:
        """Number of texts × their criteria × repeats."""
        texts = [run for _, items in self.variants for run, _ in items]
        rubrics = sum(run.rubric is not None for run in texts)
        return (len(texts) * len(self.criteria) + rubrics) * self.repeats

    def of(self, runs: Collection[str]) -> VerificationData:
        """Return the data restricted to these run ids."""
        return replace(
            self,
            items=tuple(item for item in self.items if item[0].id in runs),
            copies=tuple(copies.of(runs) for copies in self.copies),
        )

    def rated_by(self, judge: RunJudge) -> JudgeEvaluator:
        """Return the judge on originals and copies; originals first."""
        return JudgeEvaluator(judge, tuple(self.variants), self.criteria, self.repeats)

    @property
    def facts(self) -> CopyFacts:
        """Lengths of all texts, and which copies equal their original."""
        return CopyFacts(
            {
                (run.id, variant): len(view.trajectory)
                for variant, items in self.variants
                for run, view in items
            },
            {copies.variant: tuple(copies.unchanged) for copies in self.copies},
        )

    def ratings(self, store: Store, source_key: str) -> ScoreTable:
        """Return the stored ratings of exactly these runs and copies."""
        return scores_from_store(
            store,
            source_key,
            criteria={c.sha256 for c in (*self.criteria, *rubrics_of(self.items))},
            runs={view.sha256 for _, view in self.items},
            repeats=self.repeats,
            copies={(view.sha256, c.variant) for c in self.copies for _, view in c.items},
            targets={
                view.sha256: copies.targets[run.id]
                for copies in self.copies
                if copies.targets
                for run, view in copies.items
            },
        )

    @property
    def shown(self) -> tuple[Criterion, ...]:
        """The criteria as they are verified: rubrics as their total and their items."""
        return tuple(pooled((*self.criteria, *rubrics_of(self.items))))


def with_drift_warning(result: VerifiedSet, models: Mapping[str, int]) -> VerifiedSet:
    """Return the result with a warning where the judge's replies came from several models.

    `models` counts the calls by model.
    """
    if len(models) < 2:
        return result
    names = " and ".join(f"{name} ({n} calls)" for name, n in models.items())
    warning = (
        f"the model behind this judge changed; the scores mix replies of {names}; their scores mix"
    )
    return with_warning(result, warning, first=True)
