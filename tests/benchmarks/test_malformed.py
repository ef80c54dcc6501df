"""The corpus of malformed replies gives what was decided, and the benchmark would see it if not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agenteval.records import Criterion
from benchmarks.malformed.__main__ import read_generated, read_others, read_replies
from benchmarks.malformed.corpus import corpus, read
from tests.thorough import often

pytestmark = pytest.mark.slow

ROWS = corpus()


@pytest.mark.parametrize("kind", sorted({row.kind for row in ROWS}))
def test_every_reply_gives_what_was_decided(kind: str) -> None:
    rows = [row for row in ROWS if row.kind == kind]
    got = read_replies(rows).all
    assert (got.crashes, got.invented, got.other) == ([], [], [])
    assert got.replies == len(rows)


def test_no_mutation_makes_another_label_or_a_crash() -> None:
    number = often(600, 20_000)
    got = read_generated(number, seed=1).all
    assert (got.crashes, got.invented, got.other) == ([], [], [])
    assert got.replies == number
    assert got.outcomes["read"] > number
    assert len(got.outcomes) == 5


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
    got = read_replies(rows, first_label).all
    assert len(got.invented) > 300

    def raises(reply: str, asked: Sequence[Criterion], finish: str) -> tuple[dict[str, str], None]:
        raise IndexError("list index out of range")

    assert len(read_replies(rows, raises).all.crashes) == len(rows)


def test_the_other_readers_give_what_was_decided() -> None:
    for reader, got in read_others().kinds.items():
        assert (reader, got.crashes, got.invented, got.other) == (reader, [], [], [])


def test_reading_takes_the_finish_reason_into_account() -> None:
    row = next(r for r in ROWS if r.rung == "labelled" and not r.reply.endswith("\n"))
    assert read(row.reply, row.criteria, "stop")[0] == row.expect
    assert set(read(row.reply, row.criteria, "length")[0].values()) == {"unscored:parse"}
