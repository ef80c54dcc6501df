"""Ratings made elsewhere: their verdicts, and what the file tells of the copies it rates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from agenteval.errors import InputError
from agenteval.readers.logs import is_log
from agenteval.readers.scores import score_rows
from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet
from agenteval.stats.scores import ORIGINAL, Column, ScoreTable
from agenteval.utility.verify import verify
from agenteval.utility.verify.effects import is_directed, named
from agenteval.utility.verify.options import VerifyOptions


def verify_ratings(
    path: Path,
    table: ScoreTable,
    criteria: Sequence[Criterion],
    options: VerifyOptions,
    labels: Sequence[ScoreTable] = (),
) -> VerifiedSet:
    """Verdicts on the ratings that `table` holds of the file at `path`.

    Copies whose text (column `text`) equals the original's are left out and counted. Where texts
    are not known and many copies that should have been noticed are rated exactly as their
    originals (label, value, status and explanation, on every criterion and repeat), a warning says
    so: whether they are the same text cannot be told from ratings.

    Repeats of a log are runs of the system: of a sample that was answered in several ways each is
    a run of its own, since they do not show whether the judge agrees with itself.

    Raises as `read_scores`, and InputError for a run with two texts under one variant.
    """
    if is_log(path) and table.repeat.any():
        table, differ = _other_answers_apart(path, table)
        result = verify(table, criteria, options, labels=labels)
        return _warned(result, differ) if differ else result
    if table.present("variant") in ([], [ORIGINAL]):
        return verify(table, criteria, options, labels=labels)
    texts: dict[tuple[str, str], str] = {}
    rated: dict[tuple[str, str], set[int]] = defaultdict(set)
    explained = False
    for where, row in score_rows(path):
        place = str(row["run"]), str(row.get("variant") or ORIGINAL)
        text = row.get("text")
        if isinstance(text, str) and texts.setdefault(place, text) != text:
            raise InputError(
                f"run {place[0]!r} ({place[1]}) has another text than in an earlier line", where
            )
        explained = explained or bool(row.get("explanation"))
        rating = (row.get(k) for k in ("criterion", "label", "value", "status", "explanation"))
        rated[place].add(hash((str(row.get("repeat", 0)), *map(str, rating))))
    unchanged: dict[str, list[str]] = defaultdict(list)
    alike: dict[str, list[bool]] = defaultdict(list)  # by variant, where texts are not known
    for run, variant in rated:
        place, original = (run, variant), (run, ORIGINAL)
        if variant == ORIGINAL or original not in rated:
            continue
        if place not in texts or original not in texts:
            alike[variant].append(rated[place] == rated[original])
        elif texts[place] == texts[original]:
            unchanged[variant].append(run)
    lengths = {place: len(text) for place, text in texts.items()}
    result = verify(table, criteria, options, lengths=lengths, unchanged=unchanged, labels=labels)
    effects = [
        e for verification in result.criteria for e in verification.effects if is_directed(e)
    ]
    names = {effect.variant: named(effect) for effect in effects}
    many = [
        f"{sum(equal)} of {len(equal)} by {names[variant]}"
        for variant, equal in alike.items()
        if variant in names and equal.count(False) < options.min_coverage * len(equal)
    ]
    if not many:
        return result
    how = "word for word" if explained else "exactly"
    why = (
        "they are probably the same text"
        if explained
        else "the same text, or a change that no rating shows"
    )
    text = f"copies rated {how} as their original: {', '.join(many)}: {why}; a column `text` tells"
    return _warned(result, text)


def _other_answers_apart(path: Path, table: ScoreTable) -> tuple[ScoreTable, str]:
    """The table with the repeats that rate different answers as runs, and a line that says so."""
    answers: dict[str, set[str]] = defaultdict(set)
    for _, row in score_rows(path):
        answers[row["run"]].add(row["text"])
    apart = np.array([len(answers[name]) > 1 for name in table.run.names])[table.run.codes]
    if not apart.any():
        return table, ""
    names: dict[str, int] = {}
    codes = [
        names.setdefault(
            f"{table.run.names[code]}:{repeat + 1}" if split else table.run.names[code], len(names)
        )
        for code, repeat, split in zip(table.run.codes, table.repeat, apart, strict=True)
    ]
    run = Column(np.array(codes, dtype=np.int32), tuple(names))
    several = sum(len(texts) > 1 for texts in answers.values())
    told = (
        f"{several} of {len(answers)} samples were answered in several ways: each answer is a run "
        "here, and nothing shows whether the judge agrees with itself on it"
    )
    return replace(table, run=run, repeat=np.where(apart, 0, table.repeat)), told


def _warned(result: VerifiedSet, text: str) -> VerifiedSet:
    judge = result.judge.model_copy(update={"warnings": (*result.judge.warnings, text)})
    return result.model_copy(update={"judge": judge})
