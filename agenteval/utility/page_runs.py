"""The runs: one number each, and what can be unfolded of those that have room on the page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from agenteval.analysis.flagged import Examined, Flags, flags_among
from agenteval.readers.injection import texts_signs
from agenteval.records.table import Cell, Column, Table, cells_of, shown
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
from agenteval.utility.page_data import JudgeMaterial, RunTexts, Said

MOST_TEXT = 60_000  # characters of one problem, trajectory or copy
MOST_WORDS = 4_000  # characters of one explanation or raw reply
MOST_BYTES = 32_000_000  # characters of all runs together
_BATCH = 50  # runs read from the store at a time
_AROUND = 400  # characters of the original shown beside a change
_OUTCOMES = {1: "success", 0: "failed", -1: "unknown"}


@dataclass(frozen=True)
class RunLine:
    """What the list says about a run.

    `case` numbers the cases from 1, `mean` is over all criteria and repeats, `spread` the largest
    difference between two repeats of one criterion, `gap` the distance of the mean from the label
    (1 success, 0 failed). All three are in [0, 1], None if unknown. `failed` counts judgements
    without a result.
    """

    run: str
    system: str | None
    case: int
    success: int
    mean: float | None
    spread: float | None
    gap: float | None
    failed: int

    @property
    def outcome(self) -> str:
        """The outcome of the run in one word."""
        return _OUTCOMES[self.success]


def run_lines(material: JudgeMaterial) -> list[RunLine]:
    """Return one line per original run, ordered by id."""
    table = material.originals
    codes = table.run.codes
    means, spreads = run_means(table), _spreads(table)
    failed = np.bincount(codes[table.failed], minlength=len(table.run.names))
    lines = []
    cases: dict[int, int] = {}
    for code, row in zip(*np.unique(codes, return_index=True), strict=True):
        mean, spread = (None if np.isnan(v) else float(v) for v in (means[code], spreads[code]))
        success, system = int(table.success[row]), table.system.codes[row]
        lines.append(
            RunLine(
                table.run.names[code],
                table.system.names[system] if system >= 0 else None,
                cases.setdefault(int(table.case.codes[row]), len(cases) + 1),
                success,
                mean,
                spread,
                None if mean is None or success < 0 else abs(mean - success),
                int(failed[code]),
            )
        )
    return sorted(lines, key=lambda line: line.run)


def _spreads(table: ScoreTable) -> NDArray[np.float64]:
    """Return the largest difference between repeats of one criterion by run code, or NaN."""
    size = len(table.run.names)
    widest = np.full(size, np.nan)
    for criterion in table.present("criterion"):
        part = table.of(criterion=criterion)
        part = part.where(~np.isnan(part.value))
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, part.run.codes, part.value)
        np.maximum.at(high, part.run.codes, part.value)
        several = np.bincount(part.run.codes, minlength=size) > 1
        widest[several] = np.fmax(widest[several], (high - low)[several])
    return widest


def worth_reading(lines: list[RunLine], most: int) -> list[RunLine]:
    """Return at most `most` runs: farthest from their label first, then those with most failures,
    then those with the widest spread."""
    ranked = sorted(
        lines, key=lambda x: (-1 if x.gap is None else x.gap, x.failed, x.spread or 0), reverse=True
    )
    return sorted(ranked[:most], key=lambda line: line.run)


def runs_table(lines: Sequence[RunLine]) -> Table:
    """Return the list of runs that can be opened."""
    columns = [
        Column("run", "run"),
        Column("system", "system"),
        Column("case", "case", "count", "runs on one input share it"),
        Column("outcome", "outcome"),
        Column("mean", "mean", "number", "over all criteria and repeats"),
        Column("gap", "gap", "number", "distance of the mean from the label"),
        Column("spread", "spread", "number", "largest difference between repeats"),
        Column("failed", "not rated", "count", "judgements without a result"),
    ]
    unknown = set()
    if not any(line.success >= 0 for line in lines):
        unknown |= {"outcome", "gap"}
    if not any(line.spread is not None for line in lines):
        unknown.add("spread")
    columns = [column for column in columns if column.key not in unknown]
    return Table("runs", "Runs", tuple(columns), tuple(cells_of(line, columns) for line in lines))


@dataclass
class RunItems:
    """What can be unfolded of the runs that have room on the page.

    `without_room` counts runs left out because the page would have grown beyond `MOST_BYTES`.
    `flags` are of all runs that have texts, on the page or not.
    """

    items: list[Foldout] = field(default_factory=list)
    lines: list[RunLine] = field(default_factory=list)
    without_room: int = 0
    shortened: int = 0  # runs with a text that was cut
    flags: Flags = Flags()  # noqa: RUF009  frozen


def run_items(material: JudgeMaterial, lines: Sequence[RunLine]) -> RunItems:
    """The runs of `lines`, in their order, as far as there is room."""
    rated = set(material.originals.present("run"))
    flags = flags_among(
        Examined(run, None, *texts, tuple(sign.name for sign in texts_signs(texts)))
        for run, texts in (material.texts.judged() if material.texts else ())
        if run in rated
    )
    made, size = RunItems(flags=flags), 0
    signs = {flag.run: flag.signs for flag in flags.found}
    for line, texts, ratings in _each(material, lines):
        blocks = _blocks(material, texts, ratings)
        size += len(repr(blocks))  # characters of all texts, about
        if made.without_room or size > MOST_BYTES:
            made.without_room += 1
            continue
        mean = "not rated" if line.mean is None else f"mean {line.mean:.2f}"
        about = " · ".join(p for p in (line.system, f"case {line.case}", mean) if p)
        outcome = badge(line.outcome, "keep" if line.success else "drop")
        badges, id = [outcome] * (line.success >= 0), f"run-{len(made.items)}"
        run_signs = signs.get(line.run, ())
        made.items.append(Foldout(id, line.run, blocks, badges, about, signs=run_signs))
        made.lines.append(line)
        made.shortened += texts is not None and any(
            len(t) > MOST_TEXT for t in (texts.problem, texts.trajectory, *texts.copies.values())
        )
    return made


def _each(
    material: JudgeMaterial, lines: Sequence[RunLine]
) -> Iterator[tuple[RunLine, RunTexts | None, ScoreTable]]:
    """A run with its texts and its ratings."""
    table = material.table
    order = np.argsort(table.run.codes, kind="stable")
    starts = np.searchsorted(table.run.codes[order], np.arange(len(table.run.names) + 1))
    for start in range(0, len(lines), _BATCH):
        part = lines[start : start + _BATCH]
        texts = material.texts.of([line.run for line in part]) if material.texts else {}
        for line in part:
            code = table.run.code(line.run)
            rows = order[starts[code] : starts[code + 1]]
            yield line, texts.get(line.run), table.where(np.sort(rows))


def _blocks(material: JudgeMaterial, texts: RunTexts | None, ratings: ScoreTable) -> list[Block]:
    blocks: list[Block] = []
    said: Mapping[tuple[str, str, int], Said] = texts.said if texts else {}
    if texts is not None:
        problem, trajectory = cut(texts.problem, MOST_TEXT), cut(texts.trajectory, MOST_TEXT)
        blocks.append(Text(problem or "(empty)", "pre", "Problem"))
        blocks.append(Text(trajectory or "(empty)", "pre", "What the judge saw of the run"))
        if texts.reference_shown:
            blocks.append(Text("The judge was shown the reference answer as well.", "quiet"))
    answers = _answers(material, ratings.of(variant=ORIGINAL), said)
    blocks.append(Cards(answers, "What the judge said"))
    variants = [v for v in ratings.present("variant") if v != ORIGINAL]
    if texts is not None and variants:
        copies = [_copy(material, texts, ratings, variant) for variant in variants]
        blocks += [Text([Fragment("Perturbed copies", "strong")]), Items(copies)]
    return blocks


def _copy(material: JudgeMaterial, texts: RunTexts, ratings: ScoreTable, variant: str) -> Foldout:
    blocks: list[Block] = [_changes(material, ratings, variant)]
    if variant in texts.copies:
        changed = _compared(texts.trajectory, texts.copies[variant])
        blocks.append(Text(changed, "pre", "The copy, and what it changes"))
    answers = _answers(material, ratings.of(variant=variant), texts.said)
    blocks.append(Cards(answers, "What the judge said of the copy"))
    return Foldout("", variant_label(variant, material.table.variant.names), blocks)


def _answers(
    material: JudgeMaterial, ratings: ScoreTable, said: Mapping[tuple[str, str, int], Said]
) -> list[Card]:
    """Return a card for each criterion with the answer of every repeat."""
    cards = []
    for criterion in ratings.present("criterion"):
        own = ratings.of(criterion=criterion)
        variants = [own.variant.names[code] for code in own.variant.codes]
        blocks: list[Block] = []
        for i, variant in enumerate(variants):
            blocks += _answer(own, i, said.get((variant, criterion, int(own.repeat[i])), Said()))
        mean = shown(_mean(own), "number") if _mean(own) is not None else ""
        head: Words = [
            Fragment(material.names.get(criterion, criterion), "strong"),
            f" {mean}".rstrip(),
        ]
        cards.append(Card(head, blocks))
    return cards


def _mean(ratings: ScoreTable) -> float | None:
    values = ratings.value[~np.isnan(ratings.value)]
    return float(values.mean()) if len(values) else None


def _answer(own: ScoreTable, i: int, said: Said) -> list[Block]:
    status = own.status.names[own.status.codes[i]]
    label = own.label.names[own.label.codes[i]] if own.label.codes[i] >= 0 else ""
    value = float(own.value[i])
    words: list[str | Fragment] = [Fragment(f"repeat {int(own.repeat[i]) + 1} ", "quiet")]
    words.append(badge(status, "drop") if ":" in status else Fragment(label or status, "strong"))
    if not np.isnan(value):
        words.append(f" {shown(value, 'number')}")
    if ":" not in status and status != "scored" and label:
        words.append(Fragment(f" {status}", "quiet"))
    blocks: list[Block] = [Text(words)]
    if said.explanation:
        blocks.append(Text(cut(said.explanation, MOST_WORDS)))
    if said.evidence:  # in one line: texts as they are, all else as JSON
        parts = [
            f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for key, value in said.evidence.items()
        ]
        blocks.append(Text(cut("; ".join(parts), MOST_WORDS), "quote"))
    if said.raw:
        raw = Text(cut(said.raw, MOST_WORDS), "pre")
        blocks.append(Items([Foldout("", "reply that could not be used", [raw])]))
    return blocks


def _changes(material: JudgeMaterial, ratings: ScoreTable, variant: str) -> Table:
    """Return the means of a run and of its copy on every criterion."""
    columns = (
        Column("criterion", "criterion"),
        Column("original", "original", "number"),
        Column("copy", "copy", "number"),
        Column("change", "original minus copy", "signed"),
    )
    rows: list[dict[str, Cell]] = []
    for criterion in ratings.present("criterion"):
        before, after = (
            _mean(ratings.of(criterion=criterion, variant=name)) for name in (ORIGINAL, variant)
        )
        change = None if before is None or after is None else before - after
        name = material.names.get(criterion, criterion)
        rows.append({"criterion": name, "original": before, "copy": after, "change": change})
    return Table("changes", "", columns, tuple(rows))


def _compared(original: str, copy: str) -> Words:
    """The copy with what was taken out and put in; long passages without a change are counted."""
    made: list[str | Fragment] = []
    changes = edits(original[:MOST_TEXT], copy[:MOST_TEXT])
    for i, (kind, text) in enumerate(changes):
        if kind:
            made.append(Fragment(text, kind))
            continue
        before = 0 if i == 0 else _AROUND
        after = 0 if i == len(changes) - 1 else _AROUND
        left_out = len(text) - before - after
        if left_out > _AROUND and len(changes) > 1:
            note = Fragment(f"[… {left_out:,} characters as before]", "quiet")
            made += [text[:before], note, text[len(text) - after :]]
        else:
            made.append(text)
    if max(len(original), len(copy)) > MOST_TEXT:
        made.append(Fragment(f" [… cut: {MOST_TEXT:,} of {len(copy):,} characters]", "quiet"))
    return made
