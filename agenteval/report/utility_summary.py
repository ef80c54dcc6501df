"""Sentences and numbers for the head of a judge's page: what was measured and what is missing."""

from __future__ import annotations

from collections import Counter

import numpy as np

from agenteval.records.table import shown
from agenteval.report.material import Material
from agenteval.report.runs import MOST_BYTES, MOST_TEXT, RunItems
from agenteval.report.text import variant_label
from agenteval.report.utility_tables import originals, rated_share
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.text import plural
from agenteval.trust.flagged import Flags

_MOST_MISSING = 0.2  # share without a result from which a criterion is named


def _present(codes: np.ndarray[tuple[int], np.dtype[np.int32]]) -> int:
    return int((np.unique(codes) >= 0).sum())


def tiles(material: Material, flags: Flags) -> list[tuple[str, str]]:
    """Numbers with their names."""
    table = originals(material)
    everything = material.table
    pairs = [
        ("runs", _present(table.run.codes)),
        ("cases", _present(table.case.codes)),
        ("systems", max(_present(table.system.codes), 1)),
        ("criteria", len(material.criteria)),
        ("repeats", int(table.repeat.max(initial=-1)) + 1),
        ("judgements", len(everything)),
    ]
    named = [(f"{n:,}", name[:-1] if n == 1 and name.endswith("s") else name) for name, n in pairs]
    rated = (shown(rated_share(everything), "share"), "rated")
    return [*named, rated, *([flags.tile] if flags.examined else [])]


def measured(material: Material) -> list[str]:
    table = originals(material)
    first = np.unique(table.run.codes, return_index=True)[1]
    sides = Counter(table.success[first].tolist())
    lines = []
    if sides[1] + sides[0]:
        lines.append(
            f"success is known for {sides[1] + sides[0]:,} of {len(first):,} runs: "
            f"{sides[1]:,} successful, {sides[0]:,} failed"
        )
    copies = [v for v in material.table.present("variant") if v != ORIGINAL]
    if copies:
        own = material.table.where(
            material.table.variant.codes != material.table.variant.code(ORIGINAL)
        )
        lines.append(
            f"{plural(len(copies), 'kind')} of perturbed copies, {len(own):,} judgements of them: "
            f"{', '.join(variant_label(c, copies) for c in copies)}"
        )
    findings = material.findings
    if findings is None:
        return lines
    lines.append(f"verdicts {findings.origin}" + _thresholds(findings.options))
    if findings.subset and len(findings.subset) < len(findings.criteria):
        chosen = ", ".join(material.names.get(i, i) for i in findings.subset)
        lines.append(f"smallest set that tells success from failure as well as all: {chosen}")
    if findings.first_component is not None:
        lines.append(
            f"one component holds {findings.first_component:.0%} of the variance of all criteria"
            + (": they hardly differ" if findings.first_component > 0.8 else "")
        )
    return lines


def _thresholds(options: object) -> str:
    if not isinstance(options, dict) or not options:
        return ""
    listed = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in options.items())
    return f" with {listed}"


def missing(material: Material) -> list[str]:
    table = originals(material)
    lines = list(material.notes)
    if not (table.success >= 0).any():
        lines.append("success is unknown for every run: nothing says which criteria tell it")
    elif (table.success < 0).any():
        unknown = len(np.unique(table.run.codes[table.success < 0]))
        lines.append(f"success is unknown for {unknown:,} runs: they count on neither side")
    if int(table.repeat.max(initial=0)) == 0:
        lines.append("every run was judged once: agreement of repeats is unknown")
    if _present(table.system.codes) < 2:
        lines.append("there is one system: nothing to compare it with")
    lines += _failures(material.table)
    lines += _low_coverage(material)
    lines += _without_copy(material)
    return lines


def _failures(table: ScoreTable) -> list[str]:
    counts = {n: c for n, c in table.statuses().items() if ":" in n}
    total = sum(counts.values())
    if not total:
        return []
    kinds = ", ".join(f"{c:,} {n}" for n, c in sorted(counts.items()))
    return [f"{total:,} of {len(table):,} judgements have no result: {kinds}"]


def _low_coverage(material: Material) -> list[str]:
    table = originals(material)
    lines = []
    for criterion in material.criteria:
        own = table.of(criterion=criterion.id)
        share = float(own.failed.mean()) if len(own) else 0.0
        empty = len(own.of(status="degenerate"))
        if len(own) and int(own.failed.sum()) + empty == len(own):
            told = f" ({plural(empty, 'empty reply')})" if empty else ""
            lines.append(f"{criterion.name}: never rated{told}")
        elif share > _MOST_MISSING:
            lines.append(f"{criterion.name}: {share:.0%} without a result")
        if not criterion.ordered:
            lines.append(f"{criterion.name}: its levels have no order, so it has no mean")
    return lines


def _without_copy(material: Material) -> list[str]:
    """Copies that equal their original are not judged; the others' share should be known."""
    table = material.table
    runs = _present(originals(material).run.codes)
    lines = []
    for variant in table.present("variant"):
        have = _present(table.of(variant=variant).run.codes)
        if variant != ORIGINAL and have < runs:
            lines.append(
                f"{variant_label(variant, table.variant.names)}: {runs - have:,} of {runs:,} runs "
                "have no judged copy (it equals the original, or was not judged)"
            )
    return lines


def not_shown(material: Material, made: RunItems) -> list[str]:
    """What of the details is not on the page."""
    runs = _present(originals(material).run.codes)
    lines = []
    if len(made.lines) < runs:
        lines.append(
            f"{len(made.lines):,} of {runs:,} runs can be opened here, those farthest from their "
            "label first; the others are named below the list"
            + (f" (texts on this page are limited to {MOST_BYTES // 1_000_000} million characters)"
               if made.without_room else "")
        )  # fmt: skip
    if made.shortened:
        lines.append(
            f"{made.shortened:,} runs have texts of more than {MOST_TEXT:,} characters, cut here"
        )
    return lines
