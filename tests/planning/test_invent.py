"""Professions of a model: what is accepted, what is refused, and the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import Filtered, ReplyError
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.openai import OpenAITransport
from agenteval.planning.invent import Invention, checked, invent
from agenteval.planning.words import Topic, built_in_topics, read_topics
from agenteval.testing import serve
from tests.planning.inventing import KEEPER, RANGER, professions, replies

GOOD = professions(("Lighthouse Keeper", KEEPER))
BOTH = professions(("Lighthouse Keeper", KEEPER), ("Park Ranger", RANGER))


async def invented(answer: Any, count: int) -> tuple[Invention, int]:
    with serve(answer=answer) as server:
        transport = OpenAITransport("parrot", base_url=server.base_url, api_key="none")
        client = Client(transport, retry=RetryPolicy(attempts=1))
        try:
            return await invent(client, count), server.count
        finally:
            await client.close()


async def test_good_replies_become_a_file_of_topics(tmp_path: Path) -> None:
    invention, requests = await invented(replies(BOTH), 2)
    assert (requests, invention.refused) == (1, ())
    invention.save(tmp_path / "words.json")
    value = json.loads((tmp_path / "words.json").read_text("utf-8"))
    assert (value["model"], value["reviewed"]) == ("parrot", False)
    assert read_topics(tmp_path / "words.json") == invention.topics
    assert [topic.activities for topic in invention.topics] == [tuple(KEEPER), tuple(RANGER)]


async def test_an_unreadable_reply_is_repaired_or_listed() -> None:
    repaired, requests = await invented(replies("A keeper.", f"```json\n{GOOD}\n```"), 1)
    assert (requests, len(repaired.topics), repaired.refused) == (2, 1, ())
    listed, _ = await invented(replies("no", "no again", GOOD), 5)
    assert [topic.role for topic in listed.topics] == ["Lighthouse Keeper"]
    assert len(listed.refused) == 1
    with pytest.raises(ReplyError):
        await invented(replies("{}", "{}"), 1)
    with pytest.raises(Filtered):
        await invented(lambda body, n: {"refusal": "not that", "content": None}, 1)


def test_every_built_in_profession_can_be_used() -> None:
    for i, topic in enumerate(built_in_topics()):
        assert checked(topic.model_dump(mode="json"), built_in_topics()[:i]) == (topic, [])


@pytest.mark.parametrize(
    "phrase",
    [
        "gull nest survey",
        "lamp lighting before dusk",
        "early bird feed",
        "a door lamp repair",
        "light & lamp",
        "lamp  oil",
        "lamps",
        "door lamp repair at the quiet harbour",
        "tea tasting",
        "b" * 30 + " " + "c" * 30,
        "rope which hangs",
        7,
    ],
)
def test_an_unusable_activity_is_refused(phrase: Any) -> None:
    waiter = Topic(role="Waiter", activities=("wasp removal", "tea tasting"))
    entry = {"role": "Lighthouse Keeper", "activities": [*KEEPER[:15], phrase]}
    topic, (line,) = checked(entry, [waiter])
    assert topic == Topic(role="Lighthouse Keeper", activities=tuple(KEEPER[:15]))
    assert repr(str(phrase)) in line


def test_an_unusable_profession_is_refused() -> None:
    nurse = [Topic(role="Nurse", activities=("tea tasting", "nap taking"))]
    for role, activities in (("nurse", KEEPER), ("1st Mate", KEEPER), ("Keeper", KEEPER[:11])):
        topic, (line,) = checked({"role": role, "activities": activities}, nurse)
        assert topic is None
        assert role in line
    assert checked({"job": "x"}, nurse)[0] is None
    assert checked({"role": "Keeper", "activities": KEEPER[:12]}, nurse)[0] is not None
