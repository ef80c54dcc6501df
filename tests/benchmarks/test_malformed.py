"""The corpus of malformed replies gives what was decided, and the benchmark would see it if not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from agenteval.records import Criterion, Failure, Score
from benchmarks.malformed.__main__ import (
    corpus,
    differences,
    malformed_readers,
    read,
    read_corpus,
    read_generated,
    read_others,
    read_repaired,
    replies,
    serve_rows,
)
from tests.thorough import often

pytestmark = pytest.mark.slow

ROWS = corpus()
KINDS = {
    "fenced",
    "prose",
    "quotes",
    "python",
    "comma",
    "comment",
    "cut",
    "duplicate",
    "number",
    "deep",
    "unicode",
    "control",
    "boolean",
    "scale",
    "label",
    "two labels",
    "missing",
    "extra",
    "renamed",
    "list",
    "nested",
    "explanation only",
    "rubric",
    "several",
    "refusal",
    "empty",
    "loop",
    "thinking",
    "tool call",
    "xml",
    "lines",
    "table",
    "html",
    "csv",
    "string",
    "escape",
    "language",
    "bracket",
    "probabilities",
    "parts",
}
RUNGS = {"json", "fenced", "buried", "loose", "salvaged", "labelled", "prose", None}


def test_the_corpus_is_large_and_has_every_kind_and_rung() -> None:
    assert len({row.id for row in ROWS}) == len(ROWS) >= 300
    asked = {(row.reply, tuple(c.id for c in row.criteria), row.finish) for row in ROWS}
    assert len(asked) == len(ROWS)
    assert {row.kind for row in ROWS} >= KINDS
    assert {row.rung for row in ROWS} == RUNGS
    kinds = Counter(row.kind for row in ROWS)
    assert min(kinds.values()) >= 3
    statuses = {status for row in ROWS for status in row.expect.values()}
    assert statuses >= {
        "unscored:parse",
        "unscored:missing",
        "unscored:off_scale",
        "unscored:refusal",
        "not_applicable",
    }
    readers = Counter(one.reader for one in malformed_readers.readings())
    assert readers.keys() == malformed_readers.READERS.keys()
    assert min(readers.values()) >= 20


@pytest.mark.parametrize("kind", sorted({row.kind for row in ROWS}))
def test_every_reply_gives_what_was_decided(kind: str) -> None:
    rows = [row for row in ROWS if row.kind == kind]
    got = read_corpus(rows).all
    assert (got.crashes, got.invented, got.other) == ([], [], [])
    assert got.replies == len(rows)


def test_no_mutation_makes_another_label_or_a_crash() -> None:
    number = often(600, 20_000)
    got = read_generated(number, seed=1).all
    assert (got.crashes, got.invented, got.other) == ([], [], [])
    assert got.replies == number
    assert got.outcomes["read"] > number
    assert len(got.outcomes) == 5


def test_a_seed_always_gives_the_same_replies() -> None:
    assert list(replies(50, 3)) == list(replies(50, 3))
    assert list(replies(50, 3)) != list(replies(50, 4))
    assert {name for one in replies(600) for name in one.mutations} >= {
        "cut off",
        "draft before",
        "draft in thinking",
        "second answer after it",
        "NaN",
        "refusal",
        "rating against the label",
        "as a JSON string",
        "boolean for a label",
        "list of objects",
    }


def first_label(
    reply: str, asked: Sequence[Criterion], finish: str
) -> tuple[dict[str, str], str | None]:
    """A reader of the kind that the field abounds in: the first accepted value in the text."""
    found = {}
    for criterion in asked:
        values = criterion.accepted_values or ("0",)
        first = sorted((reply.find(v), v) for v in values if v in reply)
        found[criterion.id] = first[0][1] if first else values[0]
    return found, None


def test_a_reader_that_guesses_is_seen() -> None:
    rows = [row for row in ROWS if not any(c.sub_criteria for c in row.criteria)]
    got = read_corpus(rows, first_label).all
    assert len(got.invented) > 300

    def raises(reply: str, asked: Sequence[Criterion], finish: str) -> tuple[dict[str, str], None]:
        raise IndexError("list index out of range")

    assert len(read_corpus(rows, raises).all.crashes) == len(rows)


def test_the_other_readers_give_what_was_decided() -> None:
    for reader, got in read_others().items():
        assert (reader, got.crashes, got.invented, got.other) == (reader, [], [], [])


def test_statuses_and_rungs_stand_in_the_store(tmp_path: Path) -> None:
    rows = ROWS[:: often(24, 1)]
    said = [[(row.reply, row.finish)] for row in rows]
    stored, asked = serve_rows(said, [row.criteria for row in rows], tmp_path, repair=False)
    assert differences(rows, stored) == []
    assert set(asked.values()) == {1}
    assert len(stored) == sum(len(row.criteria) for row in rows)
    assert {one.result.rung for one in stored} >= {"json", "buried", None}
    assert len(differences([*rows, rows[0]], stored)) == len(rows[0].criteria)  # one row not served
    wrong = [one._replace(result=one.result.model_copy(update={"rung": "x"})) for one in stored]
    assert len(differences(rows, wrong)) == len(stored)


def test_bad_bad_good_is_unscored_with_two_calls() -> None:
    rows = ROWS[:: often(40, 1)]
    bad, requests, scores = read_repaired([*rows, *(r for r in ROWS if r.kind == "plain")])
    assert bad > 2
    assert (requests, scores) == ({2}, 0)


def test_bad_good_is_read_from_the_repair(tmp_path: Path) -> None:
    good = next(row for row in ROWS if row.id == "fenced-02")
    half = '{"clarity": "clear", "accuracy": "splendid"}'
    firsts = ("I would say that it is fine.", half)
    said = [[(first, "stop"), (good.reply, "stop")] for first in firsts]
    stored, asked = serve_rows(said, [good.criteria] * 2, tmp_path, repair=True)
    assert asked == {0: 2, 1: 2}
    found = {(s.row, s.criterion): s.result for s in stored}
    rungs = {key: r.rung for key, r in found.items()}
    assert rungs.pop((1, "clarity")) == "json"  # the repair brought the others
    assert set(rungs.values()) == {"repair:fenced"}
    labels = {key: r.label if isinstance(r, Score) else r.status for key, r in found.items()}
    assert labels[0, "clarity"] == good.expect["clarity"]
    assert labels[1, "clarity"] == "clear"  # what was readable at first is not changed
    assert labels[1, "accuracy"] == good.expect["accuracy"]
    assert not any(isinstance(r, Failure) for r in found.values())


def test_the_corpus_can_be_written_again() -> None:
    """The files are plain JSON lines in UTF-8, as they would be written again."""
    for path in sorted((malformed_readers.FOLDER).glob("*.jsonl")):
        for line in path.read_text("utf-8").rstrip("\n").split("\n"):
            assert json.dumps(json.loads(line), ensure_ascii=False) == line


def test_reading_takes_the_finish_reason_into_account() -> None:
    row = next(r for r in ROWS if r.rung == "labelled" and not r.reply.endswith("\n"))
    assert read(row.reply, row.criteria, "stop")[0] == row.expect
    assert set(read(row.reply, row.criteria, "length")[0].values()) == {"unscored:parse"}
