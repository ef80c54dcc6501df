"""What can be unfolded of a run, as JSON that the page reads when somebody asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agenteval.readers.injection import texts_signs
from agenteval.report.diff import edits
from agenteval.report.material import Material, RunTexts, Said
from agenteval.report.numbers import originals
from agenteval.report.runs import OUTCOMES, RunLine
from agenteval.report.text import cut, json_block, shown, variant_label
from agenteval.stats.scores import ScoreTable
from agenteval.trust.flagged import Examined, Flags, flags_among

MOST_TEXT = 60_000  # characters of one problem, trajectory or copy
MOST_WORDS = 4_000  # characters of one explanation or raw reply
MOST_BYTES = 32_000_000  # characters of all blocks together
_BATCH = 50  # runs read from the store at a time

# What a block says of a rating, in the order of its list.
RATING = ("variant", "criterion", "repeat", "status", "label", "value", "explanation", "evidence",
          "raw")  # fmt: skip


@dataclass
class Details:
    """JSON texts of the runs that are on the page, and of the names that their codes mean.

    `without_room` counts runs left out because the page would have grown beyond `MOST_BYTES`.
    `flags` are of all runs that have texts, on the page or not.
    """

    names: str
    blocks: list[str] = field(default_factory=list)
    lines: list[RunLine] = field(default_factory=list)
    without_room: int = 0
    shortened: int = 0  # runs with a text that was cut
    flags: Flags = Flags()  # noqa: RUF009  frozen


def details(material: Material, lines: Sequence[RunLine]) -> Details:
    """Blocks of the runs of `lines`, in their order, as far as there is room."""
    table = material.table
    names = {
        "criteria": [shown(material.names.get(n, n)) for n in table.criterion.names],
        "variants": [variant_label(n, table.variant.names) for n in table.variant.names],
        "statuses": [shown(n) for n in table.status.names],
        "rating": RATING,
    }
    made = Details(json_block(names), flags=_flags(material))
    signs = {flag.run: flag.signs for flag in made.flags.found}
    size = 0
    for line, texts, rows in _each(material, lines):
        block = json_block(_block(table, line, texts, rows, signs.get(line.run, ())))
        if made.without_room or size + len(block) > MOST_BYTES:
            made.without_room += 1
            continue
        size += len(block)
        made.blocks.append(block)
        made.lines.append(line)
        made.shortened += texts is not None and _too_long(texts)
    return made


def _flags(material: Material) -> Flags:
    """The runs of the report that seem to talk to the judge."""
    rated = set(originals(material).present("run"))
    return flags_among(
        Examined(run, None, *texts, tuple(sign.name for sign in texts_signs(texts)))
        for run, texts in material.texts.judged()
        if run in rated
    )


def _each(
    material: Material, lines: Sequence[RunLine]
) -> Iterator[tuple[RunLine, RunTexts | None, Sequence[int]]]:
    """A run with its texts and the rows of its ratings in the table."""
    table = material.table
    order = np.argsort(table.run.codes, kind="stable")
    starts = np.searchsorted(table.run.codes[order], np.arange(len(table.run.names) + 1))
    for start in range(0, len(lines), _BATCH):
        part = lines[start : start + _BATCH]
        texts = material.texts.of([line.run for line in part])
        for line in part:
            code = table.run.code(line.run)
            yield line, texts.get(line.run), order[starts[code] : starts[code + 1]].tolist()


def _too_long(texts: RunTexts) -> bool:
    return any(
        len(t) > MOST_TEXT for t in (texts.problem, texts.trajectory, *texts.copies.values())
    )


def _block(
    table: ScoreTable, line: RunLine, texts: RunTexts | None, rows: Sequence[int],
    signs: Sequence[str],
) -> dict[str, Any]:  # fmt: skip
    said = texts.said if texts else {}
    block: dict[str, Any] = {
        "id": shown(line.run),
        "system": shown(line.system),
        "case": line.case + 1,
        "outcome": OUTCOMES[line.success],
        "ratings": [_rating(table, i, said) for i in rows],
    }
    if texts is None:
        return block
    original = cut(texts.trajectory, MOST_TEXT)
    block |= {
        "problem": cut(texts.problem, MOST_TEXT),
        "trajectory": original,
        "reference": texts.reference_shown,
        "signs": list(signs),
        "copies": [
            [table.variant.code(variant), edits(original, cut(text, MOST_TEXT))]
            for variant, text in sorted(texts.copies.items())
            if table.variant.code(variant) >= 0
        ],
    }
    return block


def _rating(table: ScoreTable, i: int, said: Mapping[tuple[str, str, int], Said]) -> list[Any]:
    """A rating as a list in the order of `RATING`; empty texts at its end are left out."""
    value = float(table.value[i])
    label = int(table.label.codes[i])
    variant, criterion = int(table.variant.codes[i]), int(table.criterion.codes[i])
    repeat = int(table.repeat[i])
    words = said.get((table.variant.names[variant], table.criterion.names[criterion], repeat))
    words = words or Said()
    rating: list[Any] = [
        variant,
        criterion,
        repeat,
        int(table.status.codes[i]),
        shown(table.label.names[label]) if label >= 0 else "",
        None if value != value else round(value, 4),
        cut(words.explanation, MOST_WORDS),
        _evidence(words.evidence),
        cut(words.raw, MOST_WORDS),
    ]
    while rating[-1] == "":
        rating.pop()
    return rating


def _evidence(evidence: Mapping[str, object]) -> str:
    """Evidence in one line: texts as they are, all else as JSON."""
    parts = [
        f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in evidence.items()
    ]
    return cut("; ".join(parts), MOST_WORDS)
