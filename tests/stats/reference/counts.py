"""Our values of the reference figures made from counts, outcomes and the eight recorded runs.

Figures as in ratings.py; names that begin with "spec" stand in spec.py.
"""

from __future__ import annotations

import gzip
import json
import math
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import false_discovery_control

from agenteval.stats import (
    adjust,
    cohen_kappa,
    corrected_rate,
    discrimination,
    gwet_ac2,
    krippendorff_alpha,
    mann_whitney,
    mean_interval,
    pass_rate,
    proportion_interval,
    sign_test,
    spearman,
)
from tests.stats.reference.ratings import Figure


def count_figures(folder: Path) -> Iterator[Figure]:
    """Every figure of the other sets."""
    stats = json.loads((folder / "stats/reference.json").read_text(encoding="utf-8"))
    yield from corrections(stats)
    yield from comparisons(stats)
    yield from proportions(stats)
    yield from gsm8k(folder)
    yield from prealgebra(folder)
    yield from counts_in_the_text()


def corrections(stats: dict[str, Any]) -> Iterator[Figure]:
    """Judge correction from the rates and sizes that stand in the file."""
    for name, given in stats["judge_bias_correction_planverif"].items():
        n, m0, m1 = given["n_test"], given["m0"], given["m1"]
        counts = [round(given["p_judged_valid"] * n), round(given["spec_q0"] * m0)]
        got = corrected_rate((counts[0], n), (counts[1], m0), (round(given["sens_q1"] * m1), m1))
        top = f"stats/judge_bias_correction_planverif/{name}/"
        yield top + "theta_corrected", got.rate.mean, "corrected_rate"
        yield top + "se_delta_method", got.rate.se, "corrected_rate"
        yield top + "p_judged_valid", got.apparent, "corrected_rate"
        yield top + "spec_q0", got.specificity, "corrected_rate"
        yield top + "sens_q1", got.sensitivity, "corrected_rate"


def comparisons(stats: dict[str, Any]) -> Iterator[Figure]:
    """McNemar from the discordant counts in the file, and the corrections of its p (by scipy that
    of Benjamini and Hochberg, which the package does not have)."""
    top = "stats/multiple_testing_llmbar_metrics_vs_vanilla"
    rows = stats[top.removeprefix("stats/")]
    p = [exact_p(row["only_metrics"], row["only_vanilla"]) for row in rows]
    for i, value in enumerate(p):
        yield f"{top}/{i}/p", value, "sign_test"
    yield "stats/multiple_testing_counts/raw", sum(v <= 0.05 for v in p), "sign_test"
    yield "stats/multiple_testing_counts/m", len(adjust(p)), "adjust"
    for method, adjusted, how in (
        ("holm", adjust(p, "holm"), "adjust"),
        ("by", adjust(p, "by"), "adjust"),
        ("bh", false_discovery_control(p), "numpy"),
    ):
        for i, new in enumerate(adjusted):
            yield f"{top}/{i}/{method}", new, how
        small = sum(v is not None and v <= 0.05 for v in adjusted)
        yield f"stats/multiple_testing_counts/{method}", small, how


def exact_p(only_first: int, only_second: int) -> float:
    """McNemar's exact test: the sign test on the pairs that differ."""
    p = sign_test([1.0] * only_first + [-1.0] * only_second + [0.0]).p
    assert p is not None
    return p


def proportions(stats: dict[str, Any]) -> Iterator[Figure]:
    """Intervals of k of n, and the 2 x 2 table of the kappa paradox."""
    for name in stats["binomial_CI95"]:
        k, n = (int(v) for v in name.split("/"))
        for key, method in (("wilson", "wilson"), ("beta", "clopper-pearson")):
            got = proportion_interval(k, n, method=method)  # type: ignore[arg-type]
            top = f"stats/binomial_CI95/{name}/{key}"
            yield f"{top}/0", got.low, "proportion_interval"
            yield f"{top}/1", got.high, "proportion_interval"
    # labels 42 / 58 with 94 of 100 equal: of the tables with these margins, the other side 44 / 56
    pairs = np.array([[1, 1]] * 40 + [[1, 2]] * 2 + [[2, 1]] * 4 + [[2, 2]] * 54)
    top = "stats/kappa_paradox_llmbar_natural_gpt4_swapcot/"
    kappa = cohen_kappa(pairs)
    yield top + "agreement", kappa.agreement.mean, "cohen_kappa"
    yield top + "cohen_kappa", kappa.coefficient.mean, "cohen_kappa"
    yield top + "gwet_ac1", gwet_ac2(pairs, weights="none").coefficient.mean, "gwet_ac1"


def gsm8k(folder: Path) -> Iterator[Figure]:
    """Four recorded models on 1,319 problems, two of them compared."""
    path = folder / "utility/gsm8k/example_model_solutions.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    models = ("175b_finetuning", "175b_verification", "6b_finetuning", "6b_verification")
    right = {m: [bool(r[m]["is_correct"]) for r in rows] for m in models}
    yield "gsm8k/n_problems", len(rows), "numpy"
    for model in models:
        share = proportion_interval(sum(right[model]), len(rows)).mean
        yield f"gsm8k/{model}/correct", sum(right[model]), "numpy"
        yield f"gsm8k/{model}/pct", 100 * (share or 0), "proportion_interval"
    mixed = sum(0 < sum(right[m][i] for m in models) < 4 for i in range(len(rows)))
    yield "gsm8k/discordant_problems(both a right and a wrong solution)", mixed, "numpy"
    first, second = right["175b_verification"], right["175b_finetuning"]
    apart = np.array(first, dtype=float) - np.array(second, dtype=float)
    only = sign_test(apart)
    top = "gsm8k/mcnemar_175b/"
    yield top + "only_verif", only.positive, "sign_test"
    yield top + "only_ft", only.negative, "sign_test"
    yield top + "exact_p", only.p, "sign_test"
    paired = mean_interval([float(a) - float(b) for a, b in zip(first, second, strict=True)])
    yield top + "diff", paired.mean, "mean_interval"
    yield top + "se_paired", paired.se, "mean_interval"
    apart = [mean_interval([float(v) for v in x]).se or 0 for x in (first, second)]
    yield top + "se_unpaired", math.hypot(*apart), "mean_interval"


def recorded(folder: Path) -> tuple[dict[str, dict[tuple[str, str], int]], dict[str, bool]]:
    """Ratings of the eight recorded runs by criterion and (run, case), and the labels."""
    scale = json.loads((folder / "utility/samples/sample_math_criteria.json").read_text())
    levels = {c["name"]: c["accepted_values"] for c in scale}
    ratings: dict[str, dict[tuple[str, str], int]] = {name: {} for name in levels}
    labels = {}
    path = folder / "utility/quantifier_runs/prealgebra_8runs.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        labels[row["problem_file"]] = bool(row["is_correct"])
        for name, label in row["values"].items():
            if name in levels and label in levels[name]:
                ratings[name][row["run"], row["problem_file"]] = levels[name].index(label)
    return ratings, labels


def prealgebra(folder: Path) -> Iterator[Figure]:
    """Six criteria, eight runs, 20 cases: means per run, agreement, discrimination, redundancy."""
    ratings, labels = recorded(folder)
    runs = sorted({run for run, _ in ratings["Explanation Clarity"]})
    cases = sorted(labels)
    for name, given in ratings.items():
        groups: dict[tuple[str, bool], list[float]] = defaultdict(list)
        for (run, case), value in given.items():
            groups[run, labels[case]].append(value)
            groups["pooled160", labels[case]].append(value)
        for (run, success), values in groups.items():
            group = "success" if success else "failed"
            tops = [f"prealgebra/runs/{run}/{name}/{group}/"]
            if run == "pooled160":
                tops.append(f"spec/4.3 {name}, {group}, ")
            alone = mean_interval(values)
            for top in tops:
                yield top + "mean", alone.mean, "mean_interval"
                yield top + "ci95", 1.959964 * (alone.se or 0), "mean_interval"
                yield top + "n", alone.n, "mean_interval"
        matrix = np.array([[given.get((run, case), np.nan) for run in runs] for case in cases])
        yield (
            f"spec/4.3 {name}, alpha",
            krippendorff_alpha(matrix, "ordinal").mean,
            ("krippendorff_alpha"),
        )
        means = np.nanmean(matrix, axis=1)
        right = np.array([labels[case] for case in cases])
        area = discrimination(means[right], means[~right]).auc
        yield f"spec/4.3 {name}, AUC", area.mean, "discrimination"
        p = mann_whitney(means[right], means[~right], method="asymptotic").p
        yield f"spec/4.3 {name}, p", p, "mann_whitney asymptotic"
    yield from redundancy(ratings)


def redundancy(ratings: dict[str, dict[tuple[str, str], int]]) -> Iterator[Figure]:
    """Spearman over the (run, case) pairs that both criteria rated."""
    names = list(ratings)
    others = []
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            both = sorted(set(ratings[a]) & set(ratings[b]))
            got = spearman([ratings[a][k] for k in both], [ratings[b][k] for k in both])
            yield f"spec/4.3 Spearman {a}, {b}", got.mean, "spearman"
            others.append(got.mean or 0)
    yield "spec/4.3 Spearman, fourth largest", sorted(others)[-4], "spearman"


def counts_in_the_text() -> Iterator[Figure]:
    """Figures whose inputs are counts printed beside them."""
    tasks = [(c, 4) for c, n in enumerate((14, 12, 10, 4, 10)) for _ in range(n)]
    for k in (1, 2, 3, 4):
        yield f"spec/S13 tau pass^{k}", pass_rate(tasks, k, kind="hat").rate.mean, "pass_rate"
        yield f"spec/S13 tau pass@{k}", pass_rate(tasks, k, kind="at").rate.mean, "pass_rate"
    trials = np.array([[float(i < c) for i in range(4)] for c, _ in tasks])
    yield (
        "spec/B3 tau airline alpha nominal",
        krippendorff_alpha(trials, "nominal").mean,
        ("krippendorff_alpha"),
    )
    for name, higher, lower in (
        ("GPT-4 Rating Natural", 87, 3),
        ("GPT-4 Rating Adversarial", 230, 30),
        ("GPT-4 Rating_Metrics Adversarial", 244, 34),
        ("ChatGPT Rating Natural", 45, 8),
        ("ChatGPT Rating Adversarial", 53, 100),
    ):
        signs = [1.0] * higher + [-1.0] * lower
        yield (
            f"spec/B3 LLMBar {name}, sign p",
            sign_test(signs, alternative="greater").p,
            ("sign_test"),
        )
    yield "spec/S1 0/10 Wilson high", proportion_interval(0, 10).high, "proportion_interval"
