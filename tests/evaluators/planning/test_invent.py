"""Professions of a model: what is kept, what is refused and why, and the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenteval.api.suites import aplan_suite
from agenteval.errors import Filtered, ReplyError
from agenteval.evaluators.planning.grammar import constraints_of
from agenteval.evaluators.planning.invent import (
    Invention,
    checked,
    invent,
    phrase_fault,
    requests_for,
)
from agenteval.evaluators.planning.suite import paragraph_of
from agenteval.evaluators.planning.words import Topic, built_in, built_in_topics, read_words
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.openai import OpenAITransport
from agenteval.store import Store
from agenteval.testing import serve
from tests.evaluators.planning.inventing import KEEPER, RANGER, professions, replies

GOOD = professions(("Lighthouse Keeper", KEEPER))
BOTH = professions(("Lighthouse Keeper", KEEPER), ("Park Ranger", RANGER))


async def invented(base_url: str, count: int, store: Store | None = None) -> Invention:
    transport = OpenAITransport("parrot", base_url=base_url, api_key="none")
    client = Client(transport, cache=store, retry=RetryPolicy(attempts=1))
    try:
        return await invent(client, None, count)
    finally:
        await client.close()


# ------------------------------------------------------------------ with a model


async def test_good_replies_become_a_file_whose_cases_parse(tmp_path: Path) -> None:
    with serve(answer=replies(BOTH)) as server:
        invention = await invented(server.base_url, 2)
        assert server.count == 1 == requests_for(2)
    assert invention.refused == ()
    file = tmp_path / "words.json"
    invention.save(file)
    text = json.loads(file.read_text("utf-8"))
    assert text["model"] == "parrot"
    assert text["reviewed"] is False
    assert "no person has reviewed" in text["note"]
    assert "not checked" in text["meaning"]
    words, topics = read_words(file)
    assert words is None
    assert topics == invention.topics
    assert [t.activities for t in topics or ()] == [tuple(KEEPER), tuple(RANGER)]

    cases = (await aplan_suite(60, seed=4, lexicon=file)).cases
    assert {case.topic for case in cases} == {"Lighthouse Keeper", "Park Ranger"}
    for case in cases:
        assert constraints_of(paragraph_of(case, built_in())) == case.stated


async def test_prose_fences_and_a_repaired_reply() -> None:
    fenced = f"Here you are!\n```json\n{GOOD}\n```\nAnything else?"
    with serve(answer=replies("I would say a lighthouse keeper.", fenced)) as server:
        invention = await invented(server.base_url, 1)
        assert server.count == 2
        body = server.requests[-1].body
        assert body is not None
        repair = body["messages"]
        assert repair[1] == {"role": "assistant", "content": "I would say a lighthouse keeper."}
        assert "could not be used: no object or list in the reply" in repair[2]["content"]
    assert [topic.activities for topic in invention.topics] == [tuple(KEEPER)]
    assert invention.refused == ()


async def test_a_reply_that_stays_unreadable_is_told_and_the_rest_is_kept() -> None:
    with serve(answer=replies("no", "no again", GOOD)) as server:
        invention = await invented(server.base_url, 5)
        assert server.count == 3
    (line,) = invention.refused
    assert line.startswith("professions, request 1: unscored:parse: ")
    assert [topic.role for topic in invention.topics] == ["Lighthouse Keeper"]


@pytest.mark.parametrize(
    ("answer", "error", "requests"),
    [("{}", ReplyError, 2), ({"refusal": "not that", "content": None}, Filtered, 1)],
)
async def test_nothing_usable_at_all_is_an_error(
    answer: Any, error: type[Exception], requests: int
) -> None:
    """A refusal is not repaired."""
    with serve(answer=lambda body, n: answer) as server:
        url = server.base_url
        with pytest.raises(error):
            await invented(url, 1)
        assert server.count == requests


async def test_a_cut_reply_says_so_and_keeps_what_was_complete() -> None:
    cut = BOTH[: BOTH.index("poacher interview")]  # behind its opening quote
    with serve(answer=replies(cut)) as server:
        invention = await invented(server.base_url, 2)
    assert [len(t.activities) for t in invention.topics] == [20, 17]
    (line,) = invention.refused
    assert line.endswith("broke off here")


async def test_what_is_beyond_or_of_another_form_is_listed() -> None:
    jobs = json.dumps([
        {"role": "Lighthouse Keeper", "activities": [*KEEPER, 7, "seal pup feeding"]},
        {"job": "x"},
        {"role": "Park Ranger", "activities": RANGER},
    ])  # fmt: skip
    with serve(answer=replies(jobs)) as server:
        invention = await invented(server.base_url, 1)
    assert invention.refused == (
        "Lighthouse Keeper: activity '7': is no text",
        "profession \"{'job': 'x'}\": has no role and activities",
        "Lighthouse Keeper: activity 'seal pup feeding': is beyond the 20 asked for",
        "profession 'Park Ranger': is beyond the 1 asked for",
    )
    assert [topic.activities for topic in invention.topics] == [tuple(KEEPER)]


# ------------------------------------------------------------------ the rules


def test_every_built_in_profession_passes_whole() -> None:
    known: list[Topic] = []
    for topic in built_in_topics():
        assert checked(topic.role, topic.activities, known, None) == (topic, [])
        known.append(topic)


@pytest.mark.parametrize(
    ("phrase", "reason"),
    [
        ("gull nest survey", "is there twice"),
        ("lamp lighting before dusk", "'before' is a word of order"),
        ("early bird feed", "'early' is a word of order"),
        ("Lamp lighting", "must be small letters or acronyms"),
        ("a door lamp repair", "without an article"),
        ("light & lamp", "must be small letters or acronyms"),
        ("lamp  oil", "must be small letters or acronyms"),
        ("lamps", "has 1 words"),
        ("door lamp repair at the quiet harbour", "has 7 words"),
        ("door lamps", "head noun 'lamps' is a plural"),
        ("oil lamps for a boat", "head noun 'lamps' is a plural"),
        ("fishermen of the bay", "head noun 'fishermen' is a plural"),
        ("wasp removal from the terrace", "its tool 'wasp_removal_from_the_terrace' is there"),
        ("b" * 30 + " " + "c" * 30, "more than 60 characters"),
    ],
)
def test_an_activity_too_many(phrase: str, reason: str) -> None:
    waiter = Topic(role="Waiter", activities=("wasp removal from the terrace", "tea tasting"))
    topic, refused = checked("Lighthouse Keeper", (*KEEPER[:15], phrase), [waiter], None)
    assert topic == Topic(role="Lighthouse Keeper", activities=tuple(KEEPER[:15]))
    (line,) = refused
    assert repr(phrase) in line
    assert reason in line


@pytest.mark.parametrize("phrase", ["HR meeting", "box repair for kids", "bus wash", "chess game"])
def test_an_activity_that_is_fit(phrase: str) -> None:
    assert phrase_fault(phrase) is None


def test_professions_there_already_under_another_spelling() -> None:
    known = [Topic(role="Flight Attendant", activities=("tea tasting", "nap taking"))]
    for role, reason in (
        ("flight attendant", "is there already, as 'Flight Attendant'"),
        ("Flight-Attendant", "is there already, as 'Flight Attendant'"),
        ("Nurse / Carer", "must be a name of one to four words"),
        ("1st Mate", "must be a name of one to four words"),
        ("", "must be a name of one to four words"),
    ):
        assert checked(role, KEEPER, known, None) == (None, [f"profession {role!r}: {reason}"])


def test_eleven_activities_are_too_few_and_twelve_are_enough() -> None:
    topic, refused = checked("Lighthouse Keeper", KEEPER[:12], [], None)
    assert topic is not None
    assert refused == []
    topic, refused = checked("Lighthouse Keeper", [*KEEPER[:11], "tea"], [], None)
    assert topic is None
    assert refused[-1] == (
        "profession 'Lighthouse Keeper': only 11 of 12 activities were kept, at least 12 are needed"
    )


class Angles:
    """An embedder in the plane: each text has the angle (degrees) given for it, else its own axis.

    Texts without an angle are orthogonal to all others.
    """

    name, default_tau = "angles", 0.7

    def __init__(self, **angles: float) -> None:
        self.angles = {text.replace("_", " "): angle for text, angle in angles.items()}

    def embed(self, texts: Sequence[str]) -> Any:
        table = np.zeros((len(texts), len(texts) + 2), dtype=np.float32)
        for row, text in enumerate(texts):
            if text in self.angles:
                turn = np.deg2rad(self.angles[text])
                table[row, :2] = np.cos(turn), np.sin(turn)
            else:
                table[row, row + 2] = 1
        return table


def test_activities_close_in_meaning() -> None:
    """cos 45° = .707 is too close, cos 46° = .695 is not."""
    angles = Angles(lens_polish_with_chamois=0, fog_horn_greasing=45, flag_folding=46)
    topic, refused = checked("Lighthouse Keeper", KEEPER, [], angles)
    assert topic is not None
    assert len(topic.activities) == 19
    assert refused == [
        "Lighthouse Keeper: activity 'fog horn greasing': is close to 'lens polish with chamois': "
        "cosine 0.71, below 0.70 is wanted"
    ]
