"""Our values of the reference figures of two sets of ratings: prometheus and pandalm.

A figure is (name, our value, function of the package that made it, or numpy). The name is the
path in the reference file, joined by "/".
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from agenteval.stats import (
    Bootstrap,
    alt_test,
    cases_for_difference,
    cohen_kappa,
    discrimination,
    gwet_ac2,
    icc,
    krippendorff_alpha,
    mean_interval,
    proportion_interval,
    sign_flip_test,
    sign_test,
    variance_components,
)

Floats = NDArray[np.float64]
Figure = tuple[str, float | None, str]
PAIRS = {
    "mt_bench_eval": ("chatgpt", "llama2_chat_13b"),
    "vicuna_eval": ("chat_gpt", "llama-2-chat"),
}


class Ratings:
    """The three scores per item of one prometheus set (n, 3), with question and system."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self.scores = np.array([[float(r[f"s{i}"]) for i in (1, 2, 3)] for r in rows])
        self.question = [f"{r['bench']} {r['idx']}" for r in rows]
        self.item = [f"{r['bench']} {r['item']}" for r in rows]
        self.system = np.array([r["response_source"] for r in rows])
        self.means = self.scores.mean(axis=1)

    def of(self, system: str) -> Floats:
        """Item means of one system in the order of its questions."""
        rows = sorted(
            (q, m)
            for q, s, m in zip(self.question, self.system, self.means, strict=True)
            if s == system
        )
        return np.array([m for _, m in rows])


def rating_figures(folder: Path) -> Iterator[Figure]:
    """Every figure of the two sets."""
    yield from prometheus(folder)
    yield from pandalm(folder)


def prometheus(folder: Path) -> Iterator[Figure]:
    """Agreement, reliability, clustered errors, paired tests and sample sizes."""
    with (folder / "stats/prometheus/scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for name in ("mt_bench_eval", "vicuna_eval", "both"):
        data = Ratings([r for r in rows if name in ("both", r["bench"])])
        top = f"prometheus/{name}/"
        yield from ((top + key, value, how) for key, value, how in agreement(data))
        if name == "both":
            continue
        top = f"prometheus/{name}_systems/"
        yield from ((top + key, value, how) for key, value, how in systems(data, PAIRS[name]))
        top = f"stats/prometheus_{name}/"
        yield from ((top + key, value, how) for key, value, how in planning(data, PAIRS[name]))


def agreement(data: Ratings) -> Iterator[Figure]:
    """Three scores of one item as three raters."""
    scores = data.scores
    yield "alpha_nominal", krippendorff_alpha(scores, "nominal").mean, "krippendorff_alpha"
    yield "alpha_ordinal", krippendorff_alpha(scores, "ordinal").mean, "krippendorff_alpha"
    yield "alpha_interval", krippendorff_alpha(scores, "interval").mean, "krippendorff_alpha"
    yield "pairwise_exact_agreement", gwet_ac2(scores).agreement.mean, "gwet_ac2"
    yield "ICC(1,1)", icc(scores).mean, "icc"
    deviation = scores.std(axis=1, ddof=1)
    yield "mean_item_sd", float(deviation.mean()), "numpy"
    yield "mean_item_cv", float((deviation / data.means).mean()), "numpy"
    spread = scores.max(axis=1) - scores.min(axis=1)
    yield "share_all_equal", float((spread == 0).mean()), "numpy"
    yield "share_range_ge2", float((spread >= 2).mean()), "numpy"
    parts = variance_components(scores.ravel(), np.repeat(data.item, 3).tolist())
    yield "within_var", parts.repeat, "variance_components"
    case, repeat = parts.case or 0.0, parts.repeat or 0.0
    yield "between_var_of_means", case + repeat / 3, "variance_components"


def systems(data: Ratings, names: tuple[str, str]) -> Iterator[Figure]:
    """Means with errors, and two systems compared on the same questions."""
    grand = mean_interval(data.means.tolist())
    clustered = mean_interval(data.means.tolist(), data.question)
    yield "grand_mean", grand.mean, "mean_interval"
    yield "se_clt", grand.se, "mean_interval"
    yield "se_clustered_by_question", math.sqrt(79 / 80) * (clustered.se or 0), "mean_interval"
    for system in np.unique(data.system):
        alone = mean_interval(data.of(str(system)).tolist())
        yield f"mean_{system}", alone.mean, "mean_interval"
        yield f"se_{system}", alone.se, "mean_interval"
    first, second = (data.of(name) for name in names)
    change = first - second
    paired = mean_interval(change.tolist())
    yield "diff", paired.mean, "mean_interval"
    yield "se_paired", paired.se, "mean_interval"
    errors = [mean_interval(x.tolist()).se or 0 for x in (first, second)]
    yield "se_unpaired", math.hypot(*errors), "mean_interval"
    yield "corr", float(np.corrcoef(first, second)[0, 1]), "numpy"
    t = abs((paired.mean or 0) / (paired.se or 1))
    yield "ttest_rel_p", 2 * float(stdtr(len(change) - 1, -t)), "mean_interval"
    sign = sign_test(change)
    yield "sign_pos", sign.positive, "sign_test"
    yield "sign_neg", sign.negative, "sign_test"
    yield "sign_ties", sign.ties, "sign_test"
    yield "sign_p_two_sided", sign.p, "sign_test"
    apart = discrimination(first, second)
    yield "auc_unpaired", apart.auc.mean, "discrimination"
    yield "cliffs_delta", 2 * (apart.auc.mean or 0) - 1, "discrimination"


def planning(data: Ratings, names: tuple[str, str]) -> Iterator[Figure]:
    """Bootstrap of alpha, sign flips, and the numbers of questions."""
    seeded = Bootstrap(rng=np.random.default_rng(1))
    item = krippendorff_alpha(data.scores, "interval", bootstrap=seeded)
    question = krippendorff_alpha(data.scores, "interval", clusters=data.question, bootstrap=seeded)
    for key, found in (("itemboot", item), ("clusterboot_by_question", question)):
        yield f"alpha_interval_CI95_{key}/0", found.low, "krippendorff_alpha"
        yield f"alpha_interval_CI95_{key}/1", found.high, "krippendorff_alpha"
    change = data.of(names[0]) - data.of(names[1])
    flips = sign_flip_test(change, draws=200_000, rng=np.random.default_rng(1))
    yield "signflip_perm_p_two_sided_200k", flips.p, "sign_flip_test"
    parts = variance_components(data.scores.ravel(), np.repeat(data.item, 3).tolist())
    within = parts.repeat or 0.0
    yield "within_var", within, "variance_components"
    spread = float(change.var(ddof=1))
    yield "var_diff_of_mean3", spread, "numpy"
    between = max(spread - 2 * within / 3, 0.0)
    yield "omega2_between_question_var_of_diff", between, "numpy"
    for delta in (0.1, 0.25, 0.5):
        for k in (1, 3, 10):
            size = cases_for_difference(between, within, k, delta)
            yield f"n_questions_80pct_power_delta{delta}_K{k}", size, "cases_for_difference"
    single = np.corrcoef(data.scores[:, 0], data.means)[0, 1]
    yield "single_run_vs_mean3_corr", float(single), "numpy"


def pandalm(folder: Path) -> Iterator[Figure]:
    """Three people and two judges on 999 pairs; an unreadable reply is a label of its own."""
    with (folder / "stats/pandalm/labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    codes = {"0": 0, "1": 1, "2": 2, "Tie": 0, "garbage": 3}
    people = np.array([[int(r[f"a{i}"]) for i in (1, 2, 3)] for r in rows])
    for label in (0, 1, 2):
        yield f"pandalm/labels/{label}", int((people == label).sum()), "numpy"
    yield "pandalm/alpha_nominal", krippendorff_alpha(people, "nominal").mean, "krippendorff_alpha"
    for a, b in ((0, 1), (0, 2), (1, 2)):
        kappa = cohen_kappa(people[:, [a, b]]).coefficient.mean
        yield f"pandalm/cohen_kappa_pairs/a{a + 1}a{b + 1}", kappa, "cohen_kappa"
    yield "pandalm/unanimous", float((np.ptp(people, axis=1) == 0).mean()), "numpy"
    votes = np.stack([(people == label).sum(axis=1) for label in (0, 1, 2)], axis=1)
    yield "pandalm/no_majority", int((votes.max(axis=1) < 2).sum()), "numpy"
    majority = votes.argmax(axis=1)
    longer = np.array([1 if int(r["len1"]) > int(r["len2"]) else 2 for r in rows])
    even = np.array([r["len1"] == r["len2"] for r in rows])
    for name, column, test in (
        ("gpt35", "gpt35_raw", "gpt35"),
        ("pandalm7b", "pandalm7b_raw", "pandalm7b"),
        ("human_majority", "", ""),
    ):
        said = np.array([codes[r[column]] for r in rows]) if column else majority
        top = f"pandalm/{name}/"
        lead = float(((said == 1).sum() - (said == 2).sum()) / len(said))
        yield top + ("prefers_first_minus_second" if test else "first_minus_second"), lead, "numpy"
        untied = np.isin(said, (1, 2)) & ~even
        share = float((said == longer)[untied].mean())
        yield top + "prefers_longer_when_nontie", share, "numpy"
        if test:
            yield from ((top + k, v, how) for k, v, how in judge_scores(said, majority))
            yield from alternative(f"stats/alt_test_pandalm_{test}/", said, people)


def judge_scores(said: NDArray[np.int_], truth: NDArray[np.int_]) -> Iterator[Figure]:
    """A judge against the majority."""
    from sklearn.metrics import precision_recall_fscore_support

    yield "unparsed", int((said == 3).sum()), "numpy"
    yield "n_majority", len(truth), "numpy"
    right = proportion_interval(int((said == truth).sum()), len(truth)).mean
    yield "acc_all_mode", right, "proportion_interval"
    yield "acc_items_with_majority", right, "proportion_interval"
    both = np.column_stack([said, truth])
    yield "kappa_vs_majority", cohen_kappa(both).coefficient.mean, "cohen_kappa"
    scores = precision_recall_fscore_support(
        truth, said, labels=[0, 1, 2], average="macro", zero_division=0
    )
    for key, value in zip(("macro_P", "macro_R", "macro_F1"), scores[:3], strict=True):
        yield key, float(value), "scikit-learn"


def alternative(top: str, said: NDArray[np.int_], people: NDArray[np.int_]) -> Iterator[Figure]:
    """Alternative annotator test; unreadable replies are left out."""
    judge = [None if v == 3 else int(v) for v in said]
    for epsilon in (0.1, 0.2, 0.3):
        got = alt_test(judge, [column.tolist() for column in people.T], epsilon=epsilon)
        yield f"{top}{epsilon}/winning_rate", got.winning_rate, "alt_test"
        yield f"{top}{epsilon}/avg_advantage_prob", got.mean_advantage, "alt_test"
        for j, p in enumerate(got.p):
            yield f"{top}{epsilon}/p/{j}", p, "alt_test"
