"""Professions and their activities, the actions of one case come from one profession."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pydantic import Field, ValidationError

from agenteval.errors import InputError
from agenteval.evaluators.planning.case import Action
from agenteval.evaluators.planning.dsl.lexicon import Lexicon, built_in
from agenteval.readers.strict_json import read_json
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


def read_words(path: Path) -> tuple[Lexicon | None, tuple[Topic, ...] | None]:
    """Words and topics of a file; None for what it does not hold, where the built-in ones serve.

    The file is {"schema": 1, "note", "model", "words": a lexicon or null, "topics": [...]}; further
    keys are ignored. Raises InputError, naming the file and the key, for another form, word lists
    that are ambiguous, activities that do not go with them, and a file that holds neither.
    """
    value = read_json(path)
    if not isinstance(value, dict) or value.get("schema") != 1:
        raise InputError('must be an object with "schema": 1', str(path))
    for key in ("note", "model"):
        if not isinstance(value.get(key, ""), str):
            raise InputError("must be a text", f"{path}, {key}")
    words = value.get("words")
    lexicon = None if words is None else Lexicon.from_json(words, f"{path}, words")
    entries = value.get("topics")
    if not isinstance(entries, list | None):
        raise InputError("must be a list", f"{path}, topics")
    topics = tuple(_topic(entry, f"{path}, topics[{i}]") for i, entry in enumerate(entries or ()))
    if lexicon is None and not topics:
        raise InputError("holds neither words nor topics", str(path))
    _check_together(path, lexicon or built_in(), topics or built_in_topics())
    return lexicon, topics or None


def _topic(entry: object, where: str) -> Topic:
    try:
        return Topic.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(first["msg"], f"{where}.{place}" if place else where) from None


def _check_together(path: Path, lexicon: Lexicon, topics: Sequence[Topic]) -> None:
    """Roles differ, and so do the tools of one topic; no activity holds a phrase of the lists."""
    roles: set[str] = set()
    for number, topic in enumerate(topics):
        where = f"{path}, topics[{number}] {topic.role!r}"
        if topic.role.casefold() in roles:
            raise InputError("the role is there twice", where)
        roles.add(topic.role.casefold())
        try:
            lexicon.check_activities(topic.activities)
        except InputError as error:
            raise InputError(str(error), where) from None
        owners: dict[str, str] = {}
        for phrase in topic.activities:
            tool = action(phrase).tool
            if not tool or owners.setdefault(tool, phrase) != phrase:
                raise InputError(f"{phrase!r} and {owners.get(tool, '')!r} have one tool", where)


def action(phrase: str) -> Action:
    """The action of an activity; its tool is the phrase in snake case."""
    return Action(phrase=phrase, tool=re.sub(r"[^a-z0-9]+", "_", phrase.lower()).strip("_")[:60])
