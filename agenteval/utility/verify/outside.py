"""Verdicts on existing ratings, with the facts about copies in their file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from agenteval.errors import InputError
from agenteval.readers.logs import is_log
from agenteval.readers.scores import score_rows
from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet
from agenteval.stats.scores import ORIGINAL, CodedColumn, ScoreTable
from agenteval.utility.verify import CopyFacts, VerifyOptions, verify_table, with_warning
from agenteval.utility.verify.effects import is_directed, named


def number_criteria(table: ScoreTable) -> tuple[Criterion, ...]:
    """Return the criteria of ratings without a criteria file: numbers from 0 to 1."""
    return tuple(
        Criterion(id=name, name=name, scale="numeric", numeric_range=(0.0, 1.0))
        for name in table.present("criterion")
    )


def verify_ratings(
    path: Path,
    table: ScoreTable,
    criteria: Sequence[Criterion],
    options: VerifyOptions,
    labels: Sequence[ScoreTable] = (),
) -> VerifiedSet:
    """Return verdicts on the ratings that `table` holds of the file at `path`.

    Copies whose text (column `text`) equals the original's are left out and counted. Without texts,
    a warning is given when many copies that should have been noticed are rated exactly as their
    originals (label, value, status and explanation, on every criterion and repeat).

    Repeats in a log are runs of the system: each answer to a sample that was answered in several
    ways is a run of its own, because they do not show whether the judge agrees with itself.

    Raises as `read_scores`, and InputError for a run with two texts under one variant.
    """
    if is_log(path) and table.repeat.any():
        table, warning = _answers_apart(path, table)
        return with_warning(verify_table(table, criteria, options, labels=labels), warning)
    if table.present("variant") in ([], [ORIGINAL]):
        return verify_table(table, criteria, options, labels=labels)
    texts: dict[tuple[str, str], str] = {}
    ratings: dict[tuple[str, str], set[int]] = defaultdict(set)
    explained = False
    for where, row in score_rows(path):
        copy = str(row["run"]), str(row.get("variant") or ORIGINAL)
        text = row.get("text")
        if isinstance(text, str) and texts.setdefault(copy, text) != text:
            raise InputError(
                f"run {copy[0]!r} ({copy[1]}) has another text than in an earlier line", where
            )
        explained = explained or bool(row.get("explanation"))
        rating = (row.get(k) for k in ("criterion", "label", "value", "status", "explanation"))
        ratings[copy].add(hash((str(row.get("repeat", 0)), *map(str, rating))))
    unchanged: dict[str, list[str]] = defaultdict(list)
    same_ratings: dict[str, list[bool]] = defaultdict(list)  # by variant, without texts
    for run, variant in ratings:
        copy, original = (run, variant), (run, ORIGINAL)
        if variant == ORIGINAL or original not in ratings:
            continue
        if copy not in texts or original not in texts:
            same_ratings[variant].append(ratings[copy] == ratings[original])
        elif texts[copy] == texts[original]:
            unchanged[variant].append(run)
    facts = CopyFacts({copy: len(text) for copy, text in texts.items()}, unchanged)
    result = verify_table(table, criteria, options, copies=facts, labels=labels)
    return with_warning(result, _suspicion(result, same_ratings, options, explained=explained))


def _suspicion(
    result: VerifiedSet,
    same_ratings: Mapping[str, list[bool]],
    options: VerifyOptions,
    *,
    explained: bool,
) -> str:
    """Return a warning where copies are rated as their originals, which `same_ratings` says."""
    names = {e.variant: named(e) for v in result.criteria for e in v.effects if is_directed(e)}
    suspicious = ", ".join(
        f"{sum(same)} of {len(same)} by {names[variant]}"
        for variant, same in same_ratings.items()
        if variant in names and same.count(False) < options.min_coverage * len(same)
    )
    how, why = "exactly", "the same text, or a change that no rating shows"
    if explained:
        how, why = "word for word", "they are probably the same text"
    text = f"copies rated {how} as their original: {suspicious}: {why}; a column `text` tells"
    return text if suspicious else ""


def _answers_apart(path: Path, table: ScoreTable) -> tuple[ScoreTable, str]:
    """Return the table with repeats that rate different answers as runs, and a warning."""
    answers: dict[str, set[str]] = defaultdict(set)
    for _, row in score_rows(path):
        answers[row["run"]].add(row["text"])
    has_several = np.array([len(answers[name]) > 1 for name in table.run.names])[table.run.codes]
    if not has_several.any():
        return table, ""
    names: dict[str, int] = {}
    codes = []
    for code, repeat, split in zip(table.run.codes, table.repeat, has_several, strict=True):
        name = table.run.names[code]
        codes.append(names.setdefault(f"{name}:{repeat + 1}" if split else name, len(names)))
    run = CodedColumn(np.array(codes, dtype=np.int32), tuple(names))
    several = sum(len(texts) > 1 for texts in answers.values())
    warning = (
        f"{several} of {len(answers)} samples were answered in several ways: each answer is a run "
        "here, and nothing shows whether the judge agrees with itself on it"
    )
    return replace(table, run=run, repeat=np.where(has_several, 0, table.repeat)), warning
