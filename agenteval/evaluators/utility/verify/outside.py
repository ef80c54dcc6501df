"""Ratings made elsewhere: their verdicts, and what the file tells of the copies it rates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.errors import InputError
from agenteval.evaluators.utility.verify.effects import named
from agenteval.evaluators.utility.verify.evidence import Lengths
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.evaluators.utility.verify.verifier import verify
from agenteval.readers.scores import score_rows
from agenteval.records import Criterion
from agenteval.records.verification import VerifiedSet
from agenteval.stats.scores import ORIGINAL, ScoreTable


@dataclass(frozen=True)
class RatedCopies:
    """What the rows of a file say of its copies.

    `unchanged` names, by variant, the runs whose copy has the text of its original. Where rows
    have no text, `alike` counts by variant the copies whose ratings all equal those of the original
    (label, value, status and explanation, on every criterion and repeat), of how many. `explained`
    says whether rows carry explanations.
    """

    lengths: Lengths | None
    unchanged: Mapping[str, tuple[str, ...]]
    alike: Mapping[str, tuple[int, int]]
    explained: bool


def rated_copies(path: Path) -> RatedCopies:
    """Read the columns `text` and `explanation` of a file of ratings.

    Raises as `read_scores`, and InputError for a run with two texts under one variant.
    """
    texts: dict[tuple[str, str], str] = {}
    rated: dict[tuple[str, str], set[int]] = defaultdict(set)
    explained = False
    for number, row in score_rows(path):
        place = str(row["run"]), str(row.get("variant") or ORIGINAL)
        text = row.get("text")
        if isinstance(text, str) and texts.setdefault(place, text) != text:
            raise InputError(
                f"run {place[0]!r} ({place[1]}) has another text than in an earlier line",
                f"{path}:{number}",
            )
        explained = explained or bool(row.get("explanation"))
        said = (row.get(k) for k in ("criterion", "label", "value", "status", "explanation"))
        rated[place].add(hash((str(row.get("repeat", 0)), *map(str, said))))
    unchanged: dict[str, list[str]] = defaultdict(list)
    alike: dict[str, list[bool]] = defaultdict(list)
    for run, variant in rated:
        place, original = (run, variant), (run, ORIGINAL)
        if variant == ORIGINAL or original not in rated:
            continue
        if place not in texts or original not in texts:
            alike[variant].append(rated[place] == rated[original])
        elif texts[place] == texts[original]:
            unchanged[variant].append(run)
    return RatedCopies(
        Lengths({place: len(text) for place, text in texts.items()}) if texts else None,
        {variant: tuple(runs) for variant, runs in unchanged.items()},
        {variant: (sum(equal), len(equal)) for variant, equal in alike.items()},
        explained,
    )


def verify_ratings(
    path: Path, table: ScoreTable, criteria: Sequence[Criterion], options: VerifyOptions
) -> VerifiedSet:
    """Verdicts on the ratings that `table` holds of the file at `path`.

    Copies whose text equals the original's are left out and counted. Where texts are not known
    and many copies that should have been noticed are rated exactly as their originals, a warning
    says so: whether they are the same text cannot be told from ratings.
    """
    if table.present("variant") in ([], [ORIGINAL]):
        return verify(table, criteria, options)
    copies = rated_copies(path)
    result = verify(table, criteria, options, lengths=copies.lengths, unchanged=copies.unchanged)
    names = {
        effect.variant: named(effect)
        for one in result.criteria
        for effect in one.effects
        if effect.expected in ("lower", "higher")
    }
    many = [
        f"{equal} of {total} by {names[variant]}"
        for variant, (equal, total) in copies.alike.items()
        if variant in names and total - equal < options.min_coverage * total
    ]
    if not many:
        return result
    how = "word for word" if copies.explained else "exactly"
    why = (
        "they are probably the same text" if copies.explained
        else "the same text, or a change that no rating shows"
    )  # fmt: skip
    text = f"copies rated {how} as their original: {', '.join(many)}: {why}; a column `text` tells"
    judge = result.judge.model_copy(update={"warnings": (*result.judge.warnings, text)})
    return result.model_copy(update={"judge": judge})
