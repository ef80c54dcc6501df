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
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, ValidationError

from agenteval.errors import InputError
from agenteval.planning.case import Activity
from agenteval.readers.strict_json import read_json
from agenteval.records import Record, content_hash

Kind = Literal["VP_prec", "VP_succ", "VP_none", "P_prec", "P_succ", "SC_prec", "SC_succ"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CONJUNCTIONS = (";", ", and", ", but", ", yet", ", while", ", whereas")
_JOINING = frozenset({"and", "but", "yet", "while", "whereas", "which", "or"})
_SUBORDINATE = frozenset(
    {"when", "that"}
)  # only inside an SC phrase, after a noun: "the time when"
_NOT_STRICT = frozenset(
    {"until", "till", "unless", "if", "not", "never", "no", "during", "simultaneously", "meanwhile"}
    | {"immediately", "directly"}  # would ask for more than the order
)
_PREPOSITION = re.compile(
    r"about|across|against|along|among|around|as|at|between|by|for|from|in|into|near|of|on|onto|over|"
    r"per|through|towards?|to|under|upon|via|with|within|without"
)
_PHRASE = re.compile(r"[a-z]+(?:[ '-][a-z]+)*")
_ACTIVITY = re.compile(r"[\w'’/&-]+(?: [\w'’/&-]+)*")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase in both numbers; only verb phrases differ. `time`: fits before a clock time."""

    singular: str
    plural: str
    time: bool = False

    @property
    def forms(self) -> tuple[str, ...]:
        """The different forms."""
        return tuple(dict.fromkeys((self.singular, self.plural)))


@dataclass(frozen=True)
class Lexicon:
    """Phrase lists per kind and the clause conjunctions.

    Raises InputError, naming the kind and the phrase, for phrases that join clauses, do not mean
    strictly before or after, occur twice, or contain a phrase of the other direction.
    """

    words: Mapping[Kind, tuple[Phrase, ...]] = field(hash=False)
    conjunctions: tuple[str, ...] = CONJUNCTIONS

    def __post_init__(self) -> None:
        for kind in KINDS:
            if len(self.words.get(kind, ())) < 2:
                raise InputError("at least two phrases are needed", kind)
        if extra := set(self.words) - set(KINDS):
            raise InputError(f"unknown kind; there are {', '.join(KINDS)}", min(extra))
        for kind in ("P_prec", "P_succ"):
            if not self.allowed(kind, time=True):
                raise InputError("at least one preposition must fit a clock time", kind)
        different = set(self.conjunctions) & set(CONJUNCTIONS)
        if not different or len(different) < len(self.conjunctions):
            raise InputError(f"must be different ones of {CONJUNCTIONS}", "conjunctions")
        self._check_forms()

    def _check_forms(self) -> None:
        seen: dict[tuple[str, str], Kind] = {}
        for kind, form in self._forms:
            _check_form(kind, form)
        for kind, form in self._forms:
            if other := seen.get((kind[:2], form)):
                raise InputError(f"{form!r} stands twice (also in {other})", kind)
            seen[kind[:2], form] = kind
            for against, inner in self._forms:
                if _conflict(kind, against) and f" {inner} " in f" {form} ":
                    raise InputError(f"{form!r} holds {inner!r} of {against}", kind)

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex) of the lists, in their order."""
        return content_hash(self.to_json())

    def allowed(self, kind: Kind, *, time: bool = False) -> tuple[int, ...]:
        """Return the numbers of the phrases of this kind; with `time`, those that fit a time."""
        return self._allowed[kind, time]

    @cached_property
    def _allowed(self) -> dict[tuple[Kind, bool], tuple[int, ...]]:
        return {
            (kind, time): tuple(i for i, p in enumerate(phrases) if p.time or not time)
            for kind, phrases in self.words.items()
            for time in (False, True)
        }

    @cached_property
    def _forms(self) -> list[tuple[Kind, str]]:
        return [(kind, form) for kind in self.words for p in self.words[kind] for form in p.forms]

    @cached_property
    def _any_form(self) -> re.Pattern[str]:
        options = "|".join(re.escape(form) for form in sorted({f for _, f in self._forms}))
        return re.compile(rf"(?<!\S)(?:{options})(?!\S)")

    def check_activities(self, phrases: Sequence[str]) -> None:
        """Raise InputError for an activity phrase that would make a text ambiguous.

        Activities differ (ignoring case), contain no punctuation but hyphen and apostrophe, no
        words that join clauses, and no phrase of this lexicon.
        """
        seen: set[str] = set()
        for phrase in phrases:
            folded = phrase.casefold()
            if not _ACTIVITY.fullmatch(phrase):
                raise InputError(f"activity {phrase!r}: only words with single spaces are allowed")
            if folded in seen:
                raise InputError(f"activity {phrase!r} is there twice")
            seen.add(folded)
            if word := next((w for w in folded.split() if w in _JOINING | _SUBORDINATE), None):
                raise InputError(f"activity {phrase!r} holds {word!r}, which joins clauses")
            if form := self._any_form.search(folded):
                raise InputError(
                    f"activity {phrase!r} holds {form[0]!r}, a phrase of the word lists"
                )

    def to_json(self) -> dict[str, Any]:
        """Return the lists as plain JSON values, which `from_json` reads."""

        def entry(kind: Kind, phrase: Phrase) -> dict[str, Any]:
            if kind.startswith("VP"):
                return {"singular": phrase.singular, "plural": phrase.plural}
            more = {"time": phrase.time} if kind.startswith("P_") else {}
            return {"text": phrase.singular, **more}

        words = {kind: [entry(kind, p) for p in self.words[kind]] for kind in KINDS}
        return {"schema": 1, "conjunctions": list(self.conjunctions), "words": words}

    @classmethod
    def from_json(cls, value: object, where: str = "phrases") -> Lexicon:
        """Read the output of `to_json`; further keys of the outer object are ignored.

        Raises InputError for another form, and for lists that cannot be used.
        """
        if not isinstance(value, dict) or value.get("schema") != 1:
            raise InputError('must be an object with "schema": 1', where)
        lists, conjunctions = value.get("words"), value.get("conjunctions", list(CONJUNCTIONS))
        if not isinstance(lists, dict) or not all(isinstance(v, list) for v in lists.values()):
            raise InputError('"words" must hold a list of phrases for each kind', where)
        if not isinstance(conjunctions, list):
            raise InputError('"conjunctions" must be a list', where)
        try:
            words = {kind: tuple(_phrase(kind, e) for e in lists[kind]) for kind in lists}
            return cls(words, tuple(map(str, conjunctions)))
        except InputError as error:
            raise InputError(str(error), where) from error


def _phrase(kind: str, entry: object) -> Phrase:
    """Read an entry of a list: {"singular", "plural"} for verbs, {"text", "time"} for others."""
    keys = ("singular", "plural") if kind.startswith("VP") else ("text", "text")
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in keys):
        raise InputError(f"an entry must have the text {' and '.join(dict.fromkeys(keys))}", kind)
    time = entry.get("time", False)
    if not isinstance(time, bool) or (time and not kind.startswith("P_")):
        raise InputError('"time" is true or false, and for prepositions only', kind)
    if keys[0] != keys[1] and entry["singular"] == entry["plural"]:
        raise InputError(f"{entry['singular']!r}: verb phrases differ in singular and plural", kind)
    return Phrase(entry[keys[0]], entry[keys[1]], time)


def _check_form(kind: Kind, form: str) -> None:
    if not _PHRASE.fullmatch(form):
        raise InputError(f"{form!r}: only small letters a to z and single spaces", kind)
    words = form.split()
    conjunction = kind.startswith("SC") and words[0] not in _SUBORDINATE
    forbidden = _JOINING | _NOT_STRICT | (frozenset() if conjunction else _SUBORDINATE)
    if word := next((w for w in words if w in forbidden), None):
        raise InputError(f"{form!r}: the word {word!r} is not allowed here", kind)
    if any(f" {loose} " in f" {form} " for loose in ("by the time", "as long as")):
        raise InputError(f"{form!r}: does not mean strictly before or after", kind)


def _conflict(kind: Kind, other: Kind) -> bool:
    """Whether a phrase of `kind` must not contain one of `other`."""
    if kind == "VP_none":  # a neutral verb contains no preposition
        return not other.startswith("VP")
    return other.endswith("succ" if kind.endswith("prec") else "prec")


@functools.cache
def built_in() -> Lexicon:
    """Return the lexicon of the package."""
    return Lexicon.from_json(_data("phrases"), "planning/phrases.json")


def _data(name: str) -> Any:
    return json.loads(files("agenteval.planning").joinpath(f"data/{name}.json").read_text("utf-8"))


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


def read_words(path: str | Path | None) -> tuple[Lexicon | None, tuple[Topic, ...] | None]:
    """Read words and topics from a file; None for what it lacks, to be replaced by the built-in.

    The file is {"schema": 1, "note", "model", "words": a lexicon or null, "topics": [...]}; further
    keys are ignored. Raises InputError, naming the file and the key, for another form, word lists
    and activities that cannot be used, and a file that holds neither.
    """
    if path is None:
        return None, None
    value = read_json(path := Path(path))
    if not isinstance(value, dict) or value.get("schema") != 1:
        raise InputError('must be an object with "schema": 1', str(path))
    for key in ("note", "model"):
        if not isinstance(value.get(key, ""), str):
            raise InputError("must be a text", f"{path}, {key}")
    words, entries = value.get("words"), value.get("topics")
    lexicon = None if words is None else Lexicon.from_json(words, f"{path}, words")
    if not isinstance(entries, list | None):
        raise InputError("must be a list", f"{path}, topics")
    topics = tuple(_topic(entry, f"{path}, topics[{i}]") for i, entry in enumerate(entries or ()))
    if lexicon is None and not topics:
        raise InputError("holds neither words nor topics", str(path))
    _check_topics(topics or built_in_topics(), lexicon or built_in(), path)
    return lexicon, topics or None


def _check_topics(topics: Sequence[Topic], lexicon: Lexicon, path: Path) -> None:
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
        phrases: dict[str, str] = {}  # by tool
        for phrase in topic.activities:
            tool = action(phrase).tool
            if phrases.setdefault(tool, phrase) != phrase:
                raise InputError(f"{phrase!r} and {phrases[tool]!r} have one tool", where)


def _topic(entry: object, where: str) -> Topic:
    try:
        topic = Topic.model_validate(entry)
        for phrase in topic.activities:
            action(phrase)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(first["msg"], f"{where}.{place}" if place else where) from None
    return topic
