"""The word lists and topics: those that are shipped, files of topics, and what is refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.planning.words import (
    KINDS,
    action,
    allowed,
    built_in_topics,
    check_activities,
    choose_topics,
    read_topics,
    words,
)
from tests.planning.inventing import KEEPER

TOPICS = built_in_topics()
_BREAKS = r"\b(?:of|for|with|to|in|on|from|at|about|by|through|after|under|between)\b"


def test_the_shipped_lists() -> None:
    lists = words()
    assert {kind: len(lists[kind]) for kind in KINDS} == dict.fromkeys(KINDS, 7)
    third = {"are": "is", "happen": "happens", "go": "goes"}
    for kind, phrases in lists.items():
        for phrase in phrases:
            parts = set(phrase.plural.split())
            assert not parts & {"until", "during", "or", "not", "while", "as"} or kind == "SC_succ"
            if kind.startswith("VP"):  # the plural with its first word in the third person
                first, *rest = phrase.plural.split()
                assert phrase.singular.split() == [third.get(first, f"{first}s"), *rest]
    assert 2 <= len(allowed("P_prec", time=True)) < 7
    assert allowed("VP_none") == tuple(range(7))


def test_no_phrase_holds_one_of_the_other_direction() -> None:
    forms = [(k, f) for k, some in words().items() for p in some for f in {p.singular, p.plural}]
    assert len({(kind[:2], form) for kind, form in forms}) == len(forms)
    for kind, form in forms:
        for other, inner in forms:
            if kind == "VP_none":  # a neutral verb contains no preposition
                conflict = not other.startswith("VP")
            else:
                conflict = other.endswith("succ" if kind.endswith("prec") else "prec")
            assert not (conflict and f" {inner} " in f" {form} "), (kind, form, inner)


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        (["bread and butter delivery"], "contains 'and', which joins clauses"),
        (["time when guests arrive"], "contains 'when', which joins clauses"),
        (["meeting after lunch"], "contains 'after' from the word lists"),
        (["Before school club"], "contains 'before' from"),
        (["call", "mail", "Call"], "duplicate activity 'Call'"),
        (["call, mail"], "only words with single spaces"),
        (["call  back"], "only words with single spaces"),
        (["call at 15:00"], "only words with single spaces"),
        (["Dr. Smith call"], "only words with single spaces"),
        ([" call"], "only words with single spaces"),
        ([""], "only words with single spaces"),
    ],
)
def test_activities_that_are_not(phrases: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_activities(phrases)


def test_there_are_fifty_topics_of_twenty_activities_that_differ() -> None:
    assert len({t.role for t in TOPICS}) == 50
    names = Counter(action(phrase).tool for t in TOPICS for phrase in t.activities)
    assert len(names) == 1000
    assert max(map(len, names)) <= 60
    for topic in TOPICS:
        check_activities(topic.activities)
        heads = {re.split(_BREAKS, phrase)[0].split()[-1] for phrase in topic.activities}
        assert len(heads) >= 15, topic.role


def test_topics_are_chosen_by_name() -> None:
    assert [t.role for t in choose_topics(["nurse", "Waiter", "NURSE"])] == ["Nurse", "Waiter"]
    assert len(choose_topics([])) == 50
    with pytest.raises(InputError, match="no topic 'Nursse'"):
        choose_topics(["Nursse"])


def file_with(tmp_path: Path, **value: Any) -> Path:
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"schema": 1, **value}))
    return path


def test_a_file_of_topics(tmp_path: Path) -> None:
    entry = {"role": "Lighthouse Keeper", "activities": KEEPER}
    (topic,) = read_topics(file_with(tmp_path, words=None, topics=[entry], note="x"))
    assert topic.activities == tuple(KEEPER)


BARE = {"role": "X", "activities": ["a nap", "a walk"]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, r"w.json, topics: must be a list"),
        ({"schema": 2}, r'w.json: must be an object with "schema": 1'),
        ({"topics": ["x"]}, r"w.json, topics\[0\]: .*"),
        ({"topics": [BARE, {"role": "Y"}]}, r"w.json, topics\[1\].activities: Field required"),
        ({"topics": [{"role": "X", "activities": ["a b", 3]}]}, r"topics\[0\].activities.1: "),
        ({"topics": [BARE, BARE | {"role": "x"}]}, r"topics\[1\]: duplicate role 'x'"),
        (
            {"topics": [BARE | {"activities": ["a walk", "a-walk"]}]},
            r"topics\[0\]: 'a-walk' and 'a walk' have the same tool",
        ),
        (
            {"topics": [BARE | {"activities": ["nap", "walk before tea"]}]},
            r"topics\[0\]: activity 'walk before tea' contains 'before'",
        ),
        ({"words": {}, "topics": [BARE]}, r"w.json, words: word lists are no longer read"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, value: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_topics(file_with(tmp_path, **value))
