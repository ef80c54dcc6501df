"""Professions and their activities, the actions of one case come from one profession."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from importlib.resources import files

from pydantic import Field

from agenteval.errors import InputError
from agenteval.evaluators.planning.case import Action
from agenteval.records import Record

_FILES = ("topics_a.json", "topics_b.json")


class Topic(Record):
    """A profession and activities that are independent of each other, as noun phrases."""

    role: str = Field(min_length=1)
    activities: tuple[str, ...] = Field(min_length=2)


@functools.cache
def built_in_topics() -> tuple[Topic, ...]:
    """50 professions with 20 activities each, written and reviewed by the maintainers."""
    found: list[Topic] = []
    for name in _FILES:
        text = files("agenteval.data").joinpath("planning").joinpath(name).read_text("utf-8")
        found += [Topic.model_validate(entry) for entry in json.loads(text)["topics"]]
    return tuple(found)


def choose_topics(names: Sequence[str], known: Sequence[Topic] | None = None) -> tuple[Topic, ...]:
    """The topics of these roles (any case); all of them for no name. InputError for others."""
    known = built_in_topics() if known is None else tuple(known)
    if not names:
        return tuple(known)
    by_name = {topic.role.casefold(): topic for topic in known}
    for name in names:
        if name.casefold() not in by_name:
            raise InputError(
                f"no topic {name!r}; there are {', '.join(t.role for t in known)}", "--topic"
            )
    return tuple(by_name[name] for name in dict.fromkeys(n.casefold() for n in names))


def action(phrase: str) -> Action:
    """The action of an activity; its tool is the phrase in snake case."""
    return Action(phrase=phrase, tool=re.sub(r"[^a-z0-9]+", "_", phrase.lower()).strip("_")[:60])
