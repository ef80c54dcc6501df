"""The words of planning requests: phrases by kind, and professions with activities.

Kinds are those of arXiv 2404.17833, figure 4: verb phrases (VP), prepositions (P) and conjunctions
of two dependent clauses (SC), each with the subject before (prec) or after (succ) its object; VP
also without an order (none). A tree refers to a word by its number in these lists. All activities
of a case come from one profession, its topic.
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
    """A phrase in singular and plural (different only for verbs). `time`: fits before a time."""

    singular: str
    plural: str
    time: bool = False


def _data(name: str) -> Any:
    return json.loads(files("agenteval.planning").joinpath(f"data/{name}.json").read_text("utf-8"))


@functools.cache
def words() -> Mapping[Kind, tuple[Phrase, ...]]:
    """Return the built-in phrases of each kind, reviewed by the maintainers."""
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

    Activities must be distinct (ignoring case) and contain no punctuation except hyphen and
    apostrophe, no words that join clauses, and no phrase from the word lists.
    """
    seen: set[str] = set()
    for phrase in phrases:
        folded = phrase.casefold()
        if not _ACTIVITY.fullmatch(phrase):
            raise InputError(f"activity {phrase!r}: only words with single spaces are allowed")
        if folded in seen:
            raise InputError(f"duplicate activity {phrase!r}")
        seen.add(folded)
        if word := next((w for w in folded.split() if w in _JOINING), None):
            raise InputError(f"activity {phrase!r} contains {word!r}, which joins clauses")
        if form := _any_form().search(folded):
            raise InputError(f"activity {phrase!r} contains {form[0]!r} from the word lists")


class Topic(Record):
    """A profession with independent activities, as noun phrases."""

    role: str = Field(min_length=1)
    activities: tuple[str, ...] = Field(min_length=2)


@functools.cache
def built_in_topics() -> tuple[Topic, ...]:
    """Return 50 professions with 20 activities each, reviewed by the maintainers."""
    lists = (_data("topics_a"), _data("topics_b"))
    return tuple(Topic.model_validate(entry) for part in lists for entry in part["topics"])


def choose_topics(names: Sequence[str], topics: Sequence[Topic] | None = None) -> tuple[Topic, ...]:
    """Return the topics with these roles (ignoring case), or all without names.

    Raises InputError for unknown names. `topics` are the choices, by default the built-in ones.
    """
    topics = built_in_topics() if topics is None else tuple(topics)
    by_name = {topic.role.casefold(): topic for topic in topics}
    for name in names:
        if name.casefold() not in by_name:
            raise InputError(
                f"no topic {name!r}; topics are {', '.join(t.role for t in topics)}", "--topic"
            )
    return tuple(by_name[n] for n in dict.fromkeys(n.casefold() for n in names)) or topics


def ends_in_phrase(activity: str) -> bool:
    """Return whether an activity ends in a prepositional phrase, as "lunch with a novelist" does.

    Words after it, such as ", which ..." or "and a workshop", may be read as part of that phrase.
    """
    return any(map(_PREPOSITION.fullmatch, activity.lower().split()[1:-1]))


def action(phrase: str) -> Activity:
    """Return the action for an activity; its tool is the phrase in snake case."""
    return Activity(phrase=phrase, tool=re.sub(r"[^a-z0-9]+", "_", phrase.lower()).strip("_")[:60])


def read_topics(path: str | Path) -> tuple[Topic, ...]:
    """Read topics from a file written by `plan synth --invent`.

    The file is {"schema": 1, "topics": [...]}; other keys are ignored. Raises InputError, with file
    and key, for another format, for unusable activities, for duplicate roles, and for activities of
    a topic with the same tool.
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
            raise InputError(f"duplicate role {topic.role!r}", where)
    return tuple(topics.values())


def _topic(entry: object, where: str) -> Topic:
    try:
        topic = Topic.model_validate(entry)
        check_activities(topic.activities)
        phrases: dict[str, str] = {}  # by tool
        for phrase in topic.activities:
            tool = action(phrase).tool
            if phrases.setdefault(tool, phrase) != phrase:
                raise InputError(f"{phrase!r} and {phrases[tool]!r} have the same tool")
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(first["msg"], f"{where}.{place}" if place else where) from None
    except InputError as error:
        raise InputError(str(error), where) from None
    return topic
