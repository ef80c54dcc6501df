"""verify from end to end: perturbed copies, their ratings by the same judge, and the verdicts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from agenteval.analysis.scores import scores_from_store
from agenteval.engine.judging import RunJudge
from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store
from agenteval.utility.evaluator import Item, JudgeEvaluator
from agenteval.utility.perturb import perturb, rng_for, variant_name
from agenteval.utility.verify import verify
from agenteval.utility.verify.evidence import Lengths
from agenteval.utility.verify.options import VerifyOptions

# What is done to every run unless the user chooses: one that shortens, two that keep the length,
# one that lengthens, and one that changes nothing a judge should see.
DEFAULT_OPERATORS = (
    "drop_sentences",
    "shuffle_sentences",
    "swap_numbers",
    "pad",
    "whitespace",
)


@dataclass(frozen=True)
class PerturbedRuns:
    """Perturbed copies of the runs by one operator.

    `items` holds only copies that differ from their original; `unchanged` says by run id why the
    others do not.
    """

    variant: str
    items: tuple[Item, ...]
    unchanged: dict[str, str]


def make_copies(
    items: Sequence[Item], operators: Sequence[str], *, share: float, seed: int
) -> list[PerturbedRuns]:
    """Copies of every run by every operator; the same seed makes the same copies.

    Raises InputError for an operator that does not exist.
    """
    made = []
    for operator in dict.fromkeys(operators):
        changed: list[Item] = []
        unchanged: dict[str, str] = {}
        for run, view in items:
            copy = perturb(view, operator, share=share, rng=rng_for(seed, operator, view))
            if copy.changed:
                changed.append((run, copy.view.model_copy(update={"origin": view.sha256})))
            else:
                unchanged[run.id] = copy.reason
        made.append(PerturbedRuns(variant_name(operator, share, seed), tuple(changed), unchanged))
    return made


@dataclass(frozen=True)
class VerificationData:
    """What is verified: runs, their copies, the criteria, and how often each text is judged."""

    items: tuple[Item, ...]
    copies: tuple[PerturbedRuns, ...]
    criteria: tuple[Criterion, ...]
    repeats: int

    @property
    def texts(self) -> int:
        """Originals and copies."""
        return len(self.items) + sum(len(c.items) for c in self.copies)

    def rated_by(self, judge: RunJudge) -> JudgeEvaluator:
        """Return the judge on originals and copies; originals first."""
        variants = ((ORIGINAL, self.items), *((c.variant, c.items) for c in self.copies))
        return JudgeEvaluator(judge, variants, self.criteria, self.repeats)


def lengths_of(material: VerificationData) -> Lengths:
    """Characters of every trajectory that is judged."""
    lengths = {(run.id, ORIGINAL): len(view.trajectory) for run, view in material.items}
    for copy in material.copies:
        lengths |= {(run.id, copy.variant): len(view.trajectory) for run, view in copy.items}
    return lengths


def stored_table(store: Store, source_key: str, material: VerificationData) -> ScoreTable:
    """What the store holds of exactly these runs and copies."""
    return scores_from_store(
        store,
        source_key,
        criteria={c.sha256 for c in material.criteria},
        runs={view.sha256 for _, view in material.items},
        repeats=material.repeats,
        copies={(view.sha256, c.variant) for c in material.copies for _, view in c.items},
    )


def verify_stored(
    store: Store,
    source_key: str,
    material: VerificationData,
    options: VerifyOptions,
    labels: Sequence[ScoreTable] = (),
) -> VerifiedSet:
    """Verdicts from what the store holds of these runs and copies, and from `labels` of people."""
    return verify_keys(
        store,
        source_key,
        material.criteria,
        options,
        runs={view.sha256 for _, view in material.items},
        copies={(view.sha256, c.variant) for c in material.copies for _, view in c.items},
        repeats=material.repeats,
        lengths=lengths_of(material),
        unchanged={c.variant: tuple(c.unchanged) for c in material.copies},
        labels=labels,
    )


def verify_keys(  # noqa: PLR0913  each narrows what is looked at
    store: Store,
    source_key: str,
    criteria: Sequence[Criterion],
    options: VerifyOptions,
    *,
    runs: Collection[str],
    copies: Collection[tuple[str, str]],
    repeats: int,
    lengths: Lengths,
    unchanged: Mapping[str, Sequence[str]] | None = None,
    labels: Sequence[ScoreTable] = (),
) -> VerifiedSet:
    """Verdicts on these criteria from exactly these originals (run keys), copies (run key, variant)
    and the first `repeats` of each, and from `labels` of people; `verify` and the page both get
    theirs here."""
    table = scores_from_store(
        store,
        source_key,
        criteria={c.sha256 for c in criteria},
        runs=runs,
        repeats=repeats,
        copies=copies,
    )
    result = verify(table, criteria, options, lengths=lengths, unchanged=unchanged, labels=labels)
    changed = drift_warning(store.models(source_key))
    if changed is None:
        return result
    judge = result.judge.model_copy(update={"warnings": (changed, *result.judge.warnings)})
    return result.model_copy(update={"judge": judge})


def drift_warning(models: Mapping[str, int]) -> str | None:
    """One line when a judge's replies came from several models; None otherwise."""
    if len(models) < 2:
        return None
    named = " and ".join(f"{name} ({n} calls)" for name, n in models.items())
    return f"the model behind this judge changed: replies of {named}; their scores mix"
