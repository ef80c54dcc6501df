"""The words of planning requests: phrase lists by kind, professions with their activities.

Kinds are those of arXiv 2404.17833, figure 4: verb phrases (VP), prepositions (P) and conjunctions
of two dependent clauses (SC), each with the subject before (prec) or after (succ) its object; VP
also without order (none). A tree refers to a word by its number in these lists. All activities of
one case come from one profession, its topic.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, ValidationError

from agenteval.errors import InputError
from agenteval.planning.case import Activity
from agenteval.readers.strict_json import read_json
from agenteval.records import Record

Kind = Literal["VP_prec", "VP_succ", "VP_none", "P_prec", "P_succ", "SC_prec", "SC_succ"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CONJUNCTIONS = (";", ", and", ", but", ", yet", ", while", ", whereas")
_JOINING = frozenset({"and", "but", "yet", "while", "whereas", "which", "or", "when", "that"})
_PREPOSITION = re.compile(
    r"about|across|against|along|among|around|as|at|between|by|for|from|in|into|near|of|on|onto|over|"
    r"per|through|towards?|to|under|upon|via|with|within|without"
)
_ACTIVITY = re.compile(r"[\w'’/&-]+(?: [\w'’/&-]+)*")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase in both numbers; only verb phrases differ. `time`: fits before a clock time."""

    singular: str
    plural: str
    time: bool = False


def _data(name: str) -> Any:
    return json.loads(files("agenteval.planning").joinpath(f"data/{name}.json").read_text("utf-8"))


@functools.cache
def words() -> Mapping[Kind, tuple[Phrase, ...]]:
    """Return the phrases of each kind, written and reviewed by the maintainers."""
    lists: dict[Kind, list[dict[str, Any]]] = _data("phrases")["words"]
    return {kind: tuple(map(_phrase, entries)) for kind, entries in lists.items()}


def _phrase(entry: dict[str, Any]) -> Phrase:
    if "text" in entry:
        return Phrase(entry["text"], entry["text"], entry.get("time", False))
    return Phrase(entry["singular"], entry["plural"])


@functools.cache
def allowed(kind: Kind, *, time: bool = False) -> tuple[int, ...]:
    """Return the numbers of the phrases of this kind; with `time`, those that fit a time."""
    return tuple(i for i, phrase in enumerate(words()[kind]) if phrase.time or not time)


@functools.cache
def _any_form() -> re.Pattern[str]:
    forms = {f for phrases in words().values() for p in phrases for f in (p.singular, p.plural)}
    return re.compile(rf"(?<!\S)(?:{'|'.join(map(re.escape, sorted(forms)))})(?!\S)")


def check_activities(phrases: Sequence[str]) -> None:
    """Raise InputError for an activity phrase that would make a text ambiguous.

    Activities differ (ignoring case), contain no punctuation but hyphen and apostrophe, no words
    that join clauses, and no phrase of the word lists.
    """
    seen: set[str] = set()
    for phrase in phrases:
        folded = phrase.casefold()
        if not _ACTIVITY.fullmatch(phrase):
            raise InputError(f"activity {phrase!r}: only words with single spaces are allowed")
        if folded in seen:
            raise InputError(f"activity {phrase!r} is there twice")
        seen.add(folded)
        if word := next((w for w in folded.split() if w in _JOINING), None):
            raise InputError(f"activity {phrase!r} holds {word!r}, which joins clauses")
        if form := _any_form().search(folded):
            raise InputError(f"activity {phrase!r} holds {form[0]!r}, a phrase of the word lists")


class Topic(Record):
    """A profession and activities that are independent of each other, as noun phrases."""

    role: str = Field(min_length=1)
    activities: tuple[str, ...] = Field(min_length=2)


@functools.cache
def built_in_topics() -> tuple[Topic, ...]:
    """Return 50 professions with 20 activities each, written and reviewed by the maintainers."""
    lists = (_data("topics_a"), _data("topics_b"))
    return tuple(Topic.model_validate(entry) for part in lists for entry in part["topics"])


def choose_topics(names: Sequence[str], topics: Sequence[Topic] | None = None) -> tuple[Topic, ...]:
    """Return the topics of these roles (any case), all for no name. Raises InputError for others.

    `topics` are the ones to choose from, by default the built-in ones.
    """
    topics = built_in_topics() if topics is None else tuple(topics)
    by_name = {topic.role.casefold(): topic for topic in topics}
    for name in names:
        if name.casefold() not in by_name:
            raise InputError(
                f"no topic {name!r}; there are {', '.join(t.role for t in topics)}", "--topic"
            )
    return tuple(by_name[n] for n in dict.fromkeys(n.casefold() for n in names)) or topics


def ends_in_phrase(activity: str) -> bool:
    """Return whether an activity ends in a prepositional phrase, as "lunch with a novelist" does.

    What follows it, ", which ..." or "and a workshop", may then be read as part of that phrase.
    """
    return any(map(_PREPOSITION.fullmatch, activity.lower().split()[1:-1]))


def action(phrase: str) -> Activity:
    """Return the action of an activity; its tool is the phrase in snake case."""
    return Activity(phrase=phrase, tool=re.sub(r"[^a-z0-9]+", "_", phrase.lower()).strip("_")[:60])


def read_topics(path: str | Path) -> tuple[Topic, ...]:
    """Read the topics of a file that `plan synth --invent` wrote.

    The file is {"schema": 1, "topics": [...]}; further keys are ignored. Raises InputError, naming
    the file and the key, for another form, for activities that cannot be used, for two topics of
    one role, and for two activities of a topic with one tool.
    """
    value = read_json(path := Path(path))
    if not isinstance(value, dict) or value.get("schema") != 1:
        raise InputError('must be an object with "schema": 1', str(path))
    if value.get("words") is not None:
        raise InputError("word lists are no longer read; remove the key", f"{path}, words")
    entries = value.get("topics")
    if not isinstance(entries, list) or not entries:
        raise InputError("must be a list of topics", f"{path}, topics")
    topics: dict[str, Topic] = {}
    for number, entry in enumerate(entries):
        where = f"{path}, topics[{number}]"
        topic = _topic(entry, where)
        if topics.setdefault(topic.role.casefold(), topic) is not topic:
            raise InputError(f"the role {topic.role!r} is there twice", where)
    return tuple(topics.values())


def _topic(entry: object, where: str) -> Topic:
    try:
        topic = Topic.model_validate(entry)
        check_activities(topic.activities)
        phrases: dict[str, str] = {}  # by tool
        for phrase in topic.activities:
            tool = action(phrase).tool
            if phrases.setdefault(tool, phrase) != phrase:
                raise InputError(f"{phrase!r} and {phrases[tool]!r} have one tool")
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(first["msg"], f"{where}.{place}" if place else where) from None
    except InputError as error:
        raise InputError(str(error), where) from None
    return topic
