"""What shows in plain ratings: length that pays, levels that are not used, kinship by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from pydantic import JsonValue

from agenteval.evaluators.utility.probes.result import Finding, Measured, ProbeOptions
from agenteval.evaluators.utility.verify.evidence import Lengths
from agenteval.records import Criterion, Run
from agenteval.records.verification import Check, Outcome
from agenteval.stats.bootstrap import Bootstrap, bootstrap_interval
from agenteval.stats.correlation import spearman
from agenteval.stats.interval import mean_interval
from agenteval.stats.paired import sign_flip_test
from agenteval.stats.scores import ORIGINAL, ScoreTable, split_variant

VERBOSITY, SCALE_USE, SELF_PREFERENCE = "verbosity", "scale use", "self-preference"
_PAD = "pad"
_Run = tuple[str, str, bool | None]  # run id, case, success
# Family: how its models' names begin. Short or common words must be the whole word.
_BEGIN = {
    "GPT": ("gpt", "chatgpt", "davinci", "codex"),
    "Claude": ("claude",),
    "Gemini": ("gemini", "gemma", "palm"),
    "Llama": ("llama", "codellama", "vicuna"),
    "Mistral": ("mistral", "mixtral", "codestral", "ministral", "magistral"),
    "Qwen": ("qwen", "qwq"),
    "DeepSeek": ("deepseek",),
    "Grok": ("grok",),
    "Falcon": ("falcon",),
    "SmolLM": ("smollm",),
    "GLM": ("glm", "chatglm"),
    "Kimi": ("kimi",),
    "Granite": ("granite",),
    "OLMo": ("olmo",),
}
_WHOLE = {"o1": "GPT", "o3": "GPT", "o4": "GPT", "phi": "Phi", "yi": "Yi"}
_MODEL_KEYS = ("model", "model_name", "llm", "llm.model_name", "gen_ai.request.model")


def verbosity(
    table: ScoreTable, criteria: Sequence[Criterion], lengths: Lengths, options: ProbeOptions
) -> Finding:
    """Do longer texts score higher for their length alone? Correlation of length and score over
    originals, and the effect of padding.

    length: Spearman's rho of characters and the run's mean score over ordered criteria, interval by
    resampling cases. High, it is no proof of bias, since better work may be longer; it stays
    unknown then, and beside it stands the rho of length and success. padding: padded copy minus
    original, mean over cases, one-sided: content was not added, so a rise is earned by length. The
    criteria expected to rise with padding are left out.
    """
    rng = np.random.default_rng(options.seed)
    ordered = [c for c in criteria if c.ordered]
    scored = [
        (float(lengths[run, ORIGINAL]), float(np.mean([*scores.values()])), case, success)
        for (run, case, success), scores in _run_means(table, ordered, ORIGINAL).items()
        if (run, ORIGINAL) in lengths
    ]
    known = [(size, float(success)) for size, _, _, success in scored if success is not None]
    with_success = spearman([k[0] for k in known], [k[1] for k in known]).mean
    length = Check(name="length", outcome="unknown", reason="no length is known")
    if scored:
        how = Bootstrap(rng, resamples=options.resamples)
        size, score = (np.array([row[k] for row in scored]) for k in (0, 1))
        cases = [row[2] for row in scored]
        rho = bootstrap_interval(lambda a, b: spearman(a, b).mean, [size, score], cases, how=how)
        length = Check(
            name="length", outcome="unknown", unit="Spearman rho",
            reason="no correlation: all lengths or all scores are equal",
            estimate=rho.mean, low=rho.low, high=rho.high, n=len(set(cases)),
        )  # fmt: skip
        if rho.mean is not None:
            outcome, why = _judge_length(length, rho.reason, with_success, options)
            reason = f"length and score go together by rho {rho.mean:+.2f}: {why}"
            length = length.model_copy(update={"outcome": outcome, "reason": reason})
    padding = _padding(table, ordered, options, rng)
    return Finding(VERBOSITY, (padding,), (length,), detail={"rho_success": with_success})


def _run_means(
    table: ScoreTable, criteria: Sequence[Criterion], variant: str
) -> dict[_Run, dict[str, float]]:
    """Mean over repeats by criterion, of every run that was scored."""
    means: dict[_Run, dict[str, float]] = {}
    for criterion in criteria:
        own = table.of(criterion=criterion.id, variant=variant, status="scored")
        matrix = own.matrix()
        for run, case, success, mean in zip(
            matrix.run, matrix.case, matrix.success, matrix.mean, strict=True
        ):
            if not np.isnan(mean):
                known = None if success < 0 else bool(success)
                key = (own.run.names[run], own.case.names[case], known)
                means.setdefault(key, {})[criterion.id] = float(mean)
    return means


def _judge_length(
    check: Check, no_interval: str | None, with_success: float | None, options: ProbeOptions
) -> tuple[Outcome, str]:
    if check.n < options.min_cases:
        return "unknown", f"{check.n} cases; {options.min_cases} are needed"
    if check.low is None or check.high is None:
        return "unknown", no_interval or "there is no interval"
    if max(check.high, -check.low) < options.length:
        return "pass", f"less than {options.length:g}"
    beside = "success is unknown"
    if with_success is not None:
        beside = f"length and success by {with_success:+.2f}"
    if max(check.low, -check.high) < options.length:
        return "unknown", f"neither surely small nor surely large ({beside})"
    return "unknown", f"by itself no proof of bias ({beside})"


def _padding(
    table: ScoreTable,
    criteria: Sequence[Criterion],
    options: ProbeOptions,
    rng: np.random.Generator,
) -> Measured:
    says, unit = "empty padding changes scores by", "share of the scale"
    asked = [c for c in criteria if c.expect.get(_PAD) != "higher"]
    before = _run_means(table, asked, ORIGINAL)
    changes: dict[str, list[float]] = {}  # by case
    for variant in table.present("variant"):
        if split_variant(variant)[0] != _PAD:
            continue
        for key, scores in _run_means(table, asked, variant).items():
            both = [scores[c] - before[key][c] for c in scores if c in before.get(key, {})]
            if both:
                changes.setdefault(key[1], []).append(float(np.mean(both)))
    if not changes:
        missing = "no padded copies were judged; ask for --perturb pad"
        return Measured("padding", unit, says, options.margin, missing=missing)
    rise = np.array([np.mean(c) for c in changes.values()])
    test = sign_flip_test(rise, alternative="greater", draws=options.draws, rng=rng)
    interval = mean_interval(rise.tolist(), bounds=(-1.0, 1.0))
    return Measured(
        "padding", unit, says, options.margin, interval, test.p, len(rise), one_sided=True
    )


def scale_use(table: ScoreTable, criteria: Sequence[Criterion], options: ProbeOptions) -> Finding:
    """How many of the accepted values does the judge use? Distinct values over originals and the
    share of the commonest, per criterion with levels.

    The check is on the criterion that uses the fewest: of `options.levels` levels or more, at most
    `options.few` used is a warning (outcome fail). It is a count over these runs, so it has no
    interval and no test; runs that are all alike cannot be told from a judge that sees them so.
    A criterion with values between its levels (ranks, means of parts) is left out.
    """
    used: dict[str, JsonValue] = {}
    rows: list[tuple[int, float, int, int, str]] = []
    for criterion in criteria:
        levels = len(criterion.accepted_values)
        own = table.of(criterion=criterion.id, variant=ORIGINAL, status="scored")
        steps = own.value[~np.isnan(own.value)] * (levels - 1)
        if not criterion.ordered or not levels or not len(steps):
            continue
        if not np.allclose(steps, steps.round(), atol=1e-6):
            used[criterion.id] = {"used": None, "levels": levels, "commonest": None}
            continue  # graded between the levels: there is nothing to count
        _, counts = np.unique(steps.round(), return_counts=True)
        share = float(counts.max() / counts.sum())
        used[criterion.id] = {"used": len(counts), "levels": levels, "commonest": share}
        if levels >= options.levels:
            cases = len(np.unique(own.case.codes))
            rows.append((len(counts), share, cases, levels, criterion.id))
    if not rows:
        why = f"no criterion of {options.levels} levels or more is graded in its levels"
        return Finding(SCALE_USE, absent=why, detail=used)
    least, share, cases, levels, name = min(rows, key=lambda row: (row[0], -row[1]))
    reason = (
        f"{name}: {least} of {levels} levels are used, {share:.0%} of the ratings at one of them"
    )
    outcome: Outcome = "fail" if least <= options.few else "pass"
    if cases < options.min_cases:
        outcome, reason = "unknown", f"{reason}; {cases} cases, {options.min_cases} are needed"
    check = Check(
        name="fewest used", outcome=outcome, reason=reason, unit="levels", estimate=least, n=cases
    )
    return Finding(SCALE_USE, settled=(check,), detail=used)


def families(name: str) -> frozenset[str]:
    """Families that a model's or system's name tells of; a distilled model may have two."""
    families = set()
    for word in re.findall(r"[a-z]+\d*", name.lower()):
        families |= {family for family, begins in _BEGIN.items() if word.startswith(begins)}
        plain = word if word in _WHOLE else word.rstrip("0123456789")
        families |= {_WHOLE[plain]} if plain in _WHOLE else set()
    return frozenset(families)


def kinship(judges: Iterable[str], runs: Sequence[Run]) -> Finding:
    """Does the judge grade its own kin? A warning (outcome fail) when a judge's name shares a
    family with a system or its model.

    Looked at are the systems' names and the models named in the runs' metadata and spans. Judges
    tend to favour their own family (Zheng et al., arXiv 2306.05685, section 3.3). Unknown where a
    side names no family that is known here. No test and no interval: it is a check of names.
    """
    names = sorted({name for name in judges if name})
    graded = sorted(
        {run.system for run in runs}
        | {
            value
            for run in runs
            for source in (run.metadata, *(span.attributes for span in run.spans))
            for key in _MODEL_KEYS
            if isinstance(value := source.get(key), str) and value
        }
    )
    own, seen = ({f for n in side for f in families(n)} for side in (names, graded))
    same = {name.casefold() for name in names}
    shared = [n for n in graded if families(n) & own or n.casefold() in same]
    listed = ", ".join(names)
    outcome: Outcome = "pass"
    reason = f"the judge is {', '.join(sorted(own))}, graded are {', '.join(sorted(seen))}"
    if shared:
        outcome, kin = "fail", ", ".join(sorted(seen & own)) or "the same name"
        reason = f"the judge ({listed}) and {', '.join(shared[:5])} are kin: {kin}"
    elif not own or not seen:
        side = f"the judge ({listed})" if not own else "the systems"
        outcome, reason = "unknown", f"no known family of models in the name of {side}"
    check = Check(name="family", outcome=outcome, reason=reason)
    detail: dict[str, JsonValue] = {"judges": [*names], "graded": [*graded[:100]]}
    return Finding(SELF_PREFERENCE, settled=(check,), detail=detail)
