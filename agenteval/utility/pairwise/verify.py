"""Verification of a judge of pairs: identical, swapped, damaged and labelled pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from agenteval.cli.running import Watch
from agenteval.readers import degenerate
from agenteval.records import Score
from agenteval.records.table import column, table_of
from agenteval.records.verification import JudgeEvidence, JudgeVerdict, Standing, VerifiedSet
from agenteval.stats.interval import Interval
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store
from agenteval.store.rows import case_key
from agenteval.utility.evaluator import Item, JudgeEvaluator
from agenteval.utility.pairwise.pairs import PairOutcome, ResponsePair, mirrored, win_rate
from agenteval.utility.pairwise.tables import PreferenceReport
from agenteval.utility.perturb import CONTROLS
from agenteval.utility.perturbed_runs import make_copies
from agenteval.utility.tables import JUDGE, evidence_table
from agenteval.utility.verify import VerifyOptions
from agenteval.utility.verify.claims import NO_LABELS, claim
from agenteval.utility.verify.verdict import MORE_CASES, WHY_MISSING

PERTURBATIONS = ("drop_sentences", "pad", "whitespace", "formatting")
IDENTICAL = "identical"
TIES = "identical responses tie"
MIRRORS = "swapped pairs mirror"
DAMAGE = "originals beat damaged copies"
CONTROL = "controls tie or split evenly"
LENGTH = "padding does not win"
SUCCESS = "success beats failure"
EVEN = 0.1  # distance from 1/2 up to which a win rate counts as even
_FEWEST = 5  # labelled pairs, as of runs on either side in `verify`
_OTHER_JUDGE = "do not use its preferences; try another judge"


@dataclass(frozen=True)
class _PairwiseVerdictRow:
    criterion: str = column("criterion")
    verdict: str = column("verdict")


def pairs_to_verify(
    pairs: Sequence[ResponsePair],
    perturbations: Sequence[str],
    share: float,
    seed: int,
    watch: Watch,
) -> dict[str, list[ResponsePair]]:
    """Return pairs that examine a judge, by variant: every run in `pairs` against itself, and
    against copies by each perturbation. Raises InputError for an unknown perturbation."""
    runs: dict[str, Item] = {
        item[1].sha256: item
        for pair in pairs
        for item in (pair.a, pair.b)
        if degenerate(item[0]) is None
    }
    copies = make_copies(
        list(runs.values()), perturbations or PERTURBATIONS, share=share, seed=seed, watch=watch
    )
    itself = {IDENTICAL: [ResponsePair(item, item, key) for key, item in runs.items()]}
    return itself | {
        part.variant: [
            ResponsePair(runs[v.origin], (r, v), v.origin) for r, v in part.items if v.origin
        ]
        for part in copies
    }


def with_verdict(
    report: PreferenceReport,
    pairs: Mapping[str, Sequence[ResponsePair]],
    rated: JudgeEvaluator,
    store: Store,
    task: str,
) -> PreferenceReport:
    """Return the report with the verdict on the judge from `pairs` by variant, which is stored."""
    with store.snapshot():
        values = {
            (r.key.run, r.key.variant, r.criterion_id, r.key.repeat): r.value
            for r in store.results(rated.source_key)
            if isinstance(r, Score)
        }
    outcomes: dict[str, list[PairOutcome]] = {}
    labels: dict[str, tuple[bool | None, bool | None]] = {}
    for variant, pair in ((variant, pair) for variant, of in pairs.items() for pair in of):
        keys = [pair.shown(swapped=swapped)[1].sha256 for swapped in pair.orders]
        a, b = pair.a[0], pair.b[0]
        if variant == ORIGINAL:
            labels[keys[0]] = a.success, b.success
        for criterion, repeat in product(rated.criteria, range(rated.repeats)):
            first, *further = (values.get((k, variant, criterion.id, repeat)) for k in keys)
            second = further[0] if further else None
            outcome = PairOutcome(
                case=case_key(a),
                run=keys[0],
                a=a.system,
                b=b.system,
                criterion=criterion.id,
                shown_first=first,
                shown_second=None if second is None else 1 - second,
                repeat=repeat,
                one_order=not further,
            )
            outcomes.setdefault(variant, []).append(outcome)
    judge = judge_verdict(outcomes, labels, VerifyOptions())
    store.save_verdict(rated.source_key, task, VerifiedSet(judge=judge, criteria=()))
    why = f"{'; '.join(judge.reasons)} → {judge.next_step}"
    rows = [{"criterion": JUDGE, "verdict": judge.verdict}]
    verdict = table_of(_PairwiseVerdictRow, "verdicts", "", rows, notes=[why])
    return replace(report, judge=judge, tables=(verdict, evidence_table(judge), *report.tables))


def judge_verdict(
    outcomes: dict[str, list[PairOutcome]],
    labels: dict[str, tuple[bool | None, bool | None]],
    options: VerifyOptions,
) -> JudgeVerdict:
    """Return the verdict on a judge from comparisons by variant and the success of the runs.

    Not trustworthy where a claim is refuted, not enough data where one is not shown or fewer than
    `min_cases` cases were judged. If nothing is known about success, a trustworthy judge is so "for
    differences within a case".
    """
    by_operator = {variant.partition(":")[0]: of for variant, of in outcomes.items()}
    originals = by_operator.get(ORIGINAL, [])
    undamaged = (ORIGINAL, IDENTICAL, "pad", *CONTROLS)
    damaged = [o for name, of in by_operator.items() if name not in undamaged for o in of]
    controls = [o for name in CONTROLS for o in by_operator.get(name, ())]
    identical = [o for o in by_operator.get(IDENTICAL, []) if o.score is not None]
    ties = win_rate([_with_score(o, float(o.outcome == "tie")) for o in identical])
    padded = win_rate(by_operator.get("pad", []))
    claims = [
        _within(TIES, ties, (options.agreement, 1.0), "share of ties"),
        _within(MIRRORS, mirrored([*originals, *damaged]), (options.agreement, 1.0), "share"),
        _within(DAMAGE, win_rate(damaged), (options.auc, 1.0)),
        _within(CONTROL, win_rate(controls), (0.5 - EVEN, 0.5 + EVEN)),
        _within(LENGTH, padded, (0.5 - EVEN, 1.0)),
        _success(originals, labels, options),
    ]
    cases = len({o.case for o in damaged if o.score is not None})
    judged = [o.score is not None for of in outcomes.values() for o in of]
    against = [c for c in claims if c.standing == "refuted"]
    lacking = [c for c in claims if c.standing == "not shown"]
    within_case = claims[-1].standing == "not checked"
    verdict = "not enough data"
    if cases < options.min_cases:
        reasons = [f"{cases} cases with damaged copies: {options.min_cases} are needed"]
        step = MORE_CASES
    elif sum(judged) < options.min_coverage * len(judged):
        reasons = [f"{judged.count(False)} of {len(judged)} comparisons have no result"]
        step = WHY_MISSING
    elif against:
        verdict, reasons, step = "not trustworthy", [c.reason for c in against], _OTHER_JUDGE
    elif lacking:
        reasons, step = [c.reason for c in lacking], lacking[0].next_step
    else:
        verdict, reasons = "trustworthy", [c.reason for c in claims]
        step = "use it on runs like these"
        if within_case:
            verdict, step = "trustworthy for differences within a case", NO_LABELS
    return JudgeVerdict(
        verdict=verdict,
        reasons=tuple(reasons),
        next_step=step,
        evidence=tuple(claims),
        within_case=within_case,
    )


def _with_score(outcome: PairOutcome, score: float) -> PairOutcome:
    """Return a comparison in one order with another preference."""
    return replace(outcome, shown_first=score, shown_second=None, one_order=True)


def _within(
    name: str, figure: Interval, limits: tuple[float, float], what: str = "win rate"
) -> JudgeEvidence:
    """Shown where the whole interval is within the limits, refuted where it is outside."""
    low, high = figure.low, figure.high
    if figure.mean is None or low is None or high is None:
        return claim(name, "not shown", f"{name}: {figure.reason}", MORE_CASES)
    standing: Standing = "not shown"
    if low >= limits[0] and high <= limits[1]:
        standing = "shown"
    elif high < limits[0] or low > limits[1]:
        standing = "refuted"
    word = {"shown": "", "refuted": "not so: ", "not shown": "not sure: "}[standing]
    reason = f"{word}{name} ({what} {figure.mean:.2f} [{low:.2f}, {high:.2f}])"
    return claim(name, standing, reason, MORE_CASES, what, figure)


def _success(
    outcomes: Sequence[PairOutcome],
    labels: dict[str, tuple[bool | None, bool | None]],
    options: VerifyOptions,
) -> JudgeEvidence:
    """Win rate of success in pairs of a success and a failure."""
    mixed = []
    for o in outcomes:
        a, b = labels[o.run]
        if o.score is not None and None not in (a, b) and a != b:
            mixed.append(_with_score(o, o.score if a else 1 - o.score))
    if all(None in pair for pair in labels.values()):
        return claim(SUCCESS, "not checked", NO_LABELS, NO_LABELS)
    if len({o.run for o in mixed}) < _FEWEST:
        reason = f"{len({o.run for o in mixed})} pairs of a success and a failure; {_FEWEST} needed"
        return claim(SUCCESS, "not shown", reason, "compare systems that differ in success")
    return _within(SUCCESS, win_rate(mixed), (options.auc, 1.0))
