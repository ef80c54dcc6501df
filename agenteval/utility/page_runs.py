"""The runs on the page of a judge: one line each, and an item to open for as many as fit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agenteval.analysis.flagged import Examined, Flags, flags_among
from agenteval.readers.injection import texts_signs
from agenteval.records.table import Table, column, shown, table_of
from agenteval.reporting.page import (
    Block,
    Card,
    Cards,
    Foldout,
    Fragment,
    Items,
    Text,
    Words,
    badge,
)
from agenteval.reporting.plots import run_means
from agenteval.reporting.text import cut, edits, variant_label
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store.browse import StoredWords
from agenteval.utility.page_data import JudgeMaterial, RunTexts

MOST_TEXT = 60_000  # characters of one problem, trajectory or copy
MOST_WORDS = 4_000  # characters of one explanation or raw reply
_AROUND = 400  # characters of the original shown beside a change
_OUTCOMES = {1: "success", 0: "failed", -1: "unknown"}


@dataclass(frozen=True)
class RunLine:
    """One run in the list.

    `case` numbers the cases from 1, `mean` is over all criteria and repeats, `spread` the largest
    difference between two repeats of one criterion, `gap` the distance of the mean from the label
    (1 success, 0 failed). All three are in [0, 1], None if unknown. `failed` counts judgements
    without a result.
    """

    run: str = column("run")
    system: str | None = column("system")
    case: int = column("case", "count", "runs with the same input have the same case")
    outcome: str = column("outcome")
    mean: float | None = column("mean", "number", "over all criteria and repeats")
    gap: float | None = column("gap", "number", "distance of the mean from the label")
    spread: float | None = column("spread", "number", "largest difference between repeats")
    failed: int = column("not rated", "count", "judgements without a result")


def run_lines(material: JudgeMaterial) -> list[RunLine]:
    """Return one line per original run, ordered by id."""
    table = material.originals
    codes, size = table.run.codes, len(table.run.names)
    means, spreads = run_means(table), np.full(size, np.nan)
    for criterion in table.present("criterion"):
        part = table.of(criterion=criterion)
        part = part.where(~np.isnan(part.value))
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, part.run.codes, part.value)
        np.maximum.at(high, part.run.codes, part.value)
        several = np.bincount(part.run.codes, minlength=size) > 1
        spreads[several] = np.fmax(spreads[several], (high - low)[several])
    failed = np.bincount(codes[table.failed], minlength=size)
    lines = []
    cases: dict[int, int] = {}
    for code, row in zip(*np.unique(codes, return_index=True), strict=True):
        mean, spread = (None if np.isnan(v) else float(v) for v in (means[code], spreads[code]))
        success, system = int(table.success[row]), table.system.codes[row]
        lines.append(
            RunLine(
                run=table.run.names[code],
                system=table.system.names[system] if system >= 0 else None,
                case=cases.setdefault(int(table.case.codes[row]), len(cases) + 1),
                outcome=_OUTCOMES[success],
                mean=mean,
                gap=None if mean is None or success < 0 else abs(mean - success),
                spread=spread,
                failed=int(failed[code]),
            )
        )
    return sorted(lines, key=lambda line: line.run)


def worth_reading(lines: list[RunLine], most: int) -> list[RunLine]:
    """Return at most `most` runs: farthest from their label first, then those with most failures,
    then those with the widest spread."""
    ranked = sorted(
        lines, key=lambda x: (-1 if x.gap is None else x.gap, x.failed, x.spread or 0), reverse=True
    )
    return sorted(ranked[:most], key=lambda line: line.run)


def runs_table(lines: Sequence[RunLine]) -> Table:
    """Return the list of runs that can be opened."""
    table = table_of(RunLine, "runs", "Runs", lines, drop_empty=["spread"])
    if any(line.outcome != _OUTCOMES[-1] for line in lines):
        return table
    columns = tuple(c for c in table.columns if c.key not in ("outcome", "gap"))
    rows = tuple({c.key: row[c.key] for c in columns} for row in table.rows)
    return replace(table, columns=columns, rows=rows)


def flags_of_runs(material: JudgeMaterial) -> Flags:
    """Return the flags of all runs that have texts, on the page or not."""
    rated = set(material.originals.present("run"))
    return flags_among(
        Examined(run, None, *texts, tuple(sign.name for sign in texts_signs(texts)))
        for run, texts in (material.judged.bodies() if material.judged else ())
        if run in rated
    )


def run_items(material: JudgeMaterial, lines: Sequence[RunLine], flags: Flags) -> list[Foldout]:
    """Return an item with the texts and ratings of each run of `lines`, in their order."""
    signs = {flag.run: flag.signs for flag in flags.found}
    all_texts = material.judged.texts([line.run for line in lines]) if material.judged else {}
    table = material.table
    order = np.argsort(table.run.codes, kind="stable")
    starts = np.searchsorted(table.run.codes[order], np.arange(len(table.run.names) + 1))
    items = []
    for number, line in enumerate(lines):
        code = table.run.code(line.run)
        ratings = table.where(np.sort(order[starts[code] : starts[code + 1]]))
        blocks = _blocks(material, all_texts.get(line.run), ratings)
        mean = "not rated" if line.mean is None else f"mean {line.mean:.2f}"
        about = " · ".join(p for p in (line.system, f"case {line.case}", mean) if p)
        labelled = line.outcome != _OUTCOMES[-1]
        badges = [badge(line.outcome, "keep" if line.outcome == "success" else "drop")] * labelled
        of_run = signs.get(line.run, ())
        items.append(Foldout(f"run-{number}", line.run, blocks, badges, about, signs=of_run))
    return items


def _blocks(material: JudgeMaterial, texts: RunTexts | None, ratings: ScoreTable) -> list[Block]:
    """Return texts of a run, the answers of the judge, and the perturbed copies."""
    blocks: list[Block] = []
    if texts is not None:
        problem, trajectory = cut(texts.problem, MOST_TEXT), cut(texts.trajectory, MOST_TEXT)
        blocks.append(Text(problem or "(empty)", "pre", "Problem"))
        blocks.append(Text(trajectory or "(empty)", "pre", "The judge's input"))
        if texts.reference_shown:
            blocks.append(Text("The judge also saw the reference answer.", "quiet"))
    answers = _answers(material, texts, ratings.of(variant=ORIGINAL))
    blocks.append(Cards(answers, "The judge's ratings"))
    variants = [v for v in ratings.present("variant") if v != ORIGINAL]
    if texts is not None and variants:
        copies = [_copy(material, texts, ratings, variant) for variant in variants]
        blocks += [Text([Fragment("Perturbed copies", "strong")]), Items(copies)]
    return blocks


@dataclass(frozen=True)
class _ChangeRow:
    criterion: str = column("criterion")
    original: float | None = column("original", "number")
    copy: float | None = column("copy", "number")
    change: float | None = column("original minus copy", "signed")


def _copy(material: JudgeMaterial, texts: RunTexts, ratings: ScoreTable, variant: str) -> Foldout:
    """Return the item of a copy: means of run and copy, the changed text, the answers."""
    rows = []
    for criterion in ratings.present("criterion"):
        before, after = (
            _mean(ratings.of(criterion=criterion, variant=name)) for name in (ORIGINAL, variant)
        )
        change = None if before is None or after is None else before - after
        name = material.names.get(criterion, criterion)
        rows.append(_ChangeRow(name, before, after, change))
    blocks: list[Block] = [table_of(_ChangeRow, "changes", "", rows)]
    if variant in texts.copies:
        changed = copy_diff(texts.trajectory, texts.copies[variant])
        blocks.append(Text(changed, "pre", "The copy and its changes"))
    answers = _answers(material, texts, ratings.of(variant=variant))
    blocks.append(Cards(answers, "The judge's ratings of the copy"))
    return Foldout("", variant_label(variant, material.table.variant.names), blocks)


def _mean(ratings: ScoreTable) -> float | None:
    values = ratings.value[~np.isnan(ratings.value)]
    return float(values.mean()) if len(values) else None


def _answers(material: JudgeMaterial, texts: RunTexts | None, ratings: ScoreTable) -> list[Card]:
    """Return a card for each criterion with the answer of every repeat."""
    cards = []
    for criterion in ratings.present("criterion"):
        answers = ratings.of(criterion=criterion)
        blocks: list[Block] = []
        for i, variant in enumerate(answers.variant.names[code] for code in answers.variant.codes):
            name = variant, criterion, int(answers.repeat[i])
            blocks += _answer(answers, i, texts.words.get(name) if texts else None)
        mean = _mean(answers)
        head: Words = [
            Fragment(material.names.get(criterion, criterion), "strong"),
            "" if mean is None else f" {shown(mean, 'number')}",
        ]
        cards.append(Card(head, blocks))
    return cards


def _answer(answers: ScoreTable, i: int, stored: StoredWords | None) -> list[Block]:
    """Return the answer in row `i`: status, label, value, and the words that were stored."""
    status = answers.status.names[answers.status.codes[i]]
    label = answers.label.names[answers.label.codes[i]] if answers.label.codes[i] >= 0 else ""
    value = float(answers.value[i])
    line: list[str | Fragment] = [Fragment(f"repeat {int(answers.repeat[i]) + 1} ", "quiet")]
    line.append(badge(status, "drop") if ":" in status else Fragment(label or status, "strong"))
    if not np.isnan(value):
        line.append(f" {shown(value, 'number')}")
    if ":" not in status and status != "scored" and label:
        line.append(Fragment(f" {status}", "quiet"))
    blocks: list[Block] = [Text(line)]
    if stored and stored.explanation:
        blocks.append(Text(cut(stored.explanation, MOST_WORDS)))
    if stored and stored.evidence:  # in one line: texts as they are, all else as JSON
        parts = [
            f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for key, value in stored.evidence.items()
        ]
        blocks.append(Text(cut("; ".join(parts), MOST_WORDS), "quote"))
    if stored and stored.raw:
        raw = Text(cut(stored.raw, MOST_WORDS), "pre")
        blocks.append(Items([Foldout("", "unusable reply", [raw])]))
    return blocks


def copy_diff(original: str, copy: str) -> Words:
    """Return a copy with its deletions and insertions; long unchanged passages are counted."""
    words: list[str | Fragment] = []
    changes = edits(original[:MOST_TEXT], copy[:MOST_TEXT])
    for i, (kind, text) in enumerate(changes):
        if kind:
            words.append(Fragment(text, kind))
            continue
        before = 0 if i == 0 else _AROUND
        after = 0 if i == len(changes) - 1 else _AROUND
        left_out = len(text) - before - after
        if left_out > _AROUND and len(changes) > 1:
            note = Fragment(f"[… {left_out:,} characters as before]", "quiet")
            words += [text[:before], note, text[len(text) - after :]]
        else:
            words.append(text)
    if max(len(original), len(copy)) > MOST_TEXT:
        words.append(Fragment(f" [… cut: {MOST_TEXT:,} of {len(copy):,} characters]", "quiet"))
    return words
