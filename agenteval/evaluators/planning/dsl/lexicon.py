"""The words of the language: phrase lists per terminal kind, and the checks that keep it unique.

Kinds are those of arXiv 2404.17833, figure 4: verb phrases (VP), prepositions (P) and conjunctions
of two dependent clauses (SC), each with the subject before (prec) or after (succ) its object; VP
also without order (none). A tree cites a word by its number in these lists.

Under its rules every text has exactly one reading. At the start of a verb phrase only one
verb phrase of the lists can stand, since none begins another (rule "begins"). Where it starts is
settled too: an activity cannot swallow its first words, since the rest would have to begin another
verb phrase (rule "inside"), and cannot swallow it whole, since activities hold no phrase of the
lists. After a neutral verb phrase the preposition or conjunction starts, and the longer of two goes
on with a word that no activity may hold (rule "goes on"). So the text falls into activities and
phrases in one way only; commas, "and" and "which" do the rest, because lists have no comma before
"and", and clauses always do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any, Literal, get_args

from agenteval.errors import InputError
from agenteval.records import content_hash

Kind = Literal["VP_prec", "VP_succ", "VP_none", "P_prec", "P_succ", "SC_prec", "SC_succ"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CONJUNCTIONS = (";", ", and", ", but", ", yet", ", while", ", whereas")
SCHEMA = 1
JOINING = frozenset({"and", "but", "yet", "while", "whereas", "which", "or"})
SUBORDINATE = frozenset({"when", "that"})  # only inside an SC phrase, after a noun: "the time when"
NOT_STRICT = frozenset(
    {"until", "till", "unless", "if", "not", "never", "no", "during", "simultaneously", "meanwhile"}
    | {"immediately", "directly"}  # would ask for more than the order
)
RESERVED = JOINING | SUBORDINATE
_PHRASE = re.compile(r"[a-z]+(?:[ '-][a-z]+)*")
_ACTIVITY = re.compile(r"[\w'’/&-]+(?: [\w'’/&-]+)*")
_OPPOSITE = {"prec": "succ", "succ": "prec"}
Lists = Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase in both numbers; only verb phrases differ. `time`: fits before a clock time."""

    singular: str
    plural: str
    time: bool = False


@dataclass(frozen=True)
class Lexicon:
    """Phrase lists per kind and the clause conjunctions.

    Raises InputError when the lists would make a text ambiguous or change its meaning; the line
    names the kind, the phrase and the rule.
    """

    words: Mapping[Kind, tuple[Phrase, ...]] = field(hash=False)
    conjunctions: tuple[str, ...] = CONJUNCTIONS

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", dict(self.words))
        for kind in KINDS:
            if len(self.words.get(kind, ())) < 2:
                raise InputError("at least two phrases are needed", kind)
        if extra := set(self.words) - set(KINDS):
            raise InputError(f"unknown kind; there are {', '.join(KINDS)}", min(extra))
        for kind in ("P_prec", "P_succ"):
            if not self.allowed(kind, time=True):
                raise InputError("at least one preposition must fit a clock time", kind)
        odd = [c for c in self.conjunctions if c not in CONJUNCTIONS]
        if odd or not self.conjunctions or len(set(self.conjunctions)) < len(self.conjunctions):
            raise InputError(f"must be different ones of {CONJUNCTIONS}", "conjunctions")
        check_words(
            {kind: [(p.singular, p.plural) for p in self.words[kind]] for kind in self.words}
        )

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex) of the lists, in their order."""
        return content_hash(self.to_json())

    def allowed(self, kind: Kind, *, time: bool = False) -> tuple[int, ...]:
        """Numbers of the phrases of this kind; with `time`, of those that fit a clock time."""
        return self._allowed[kind, time]

    @cached_property
    def _allowed(self) -> dict[tuple[Kind, bool], tuple[int, ...]]:
        return {
            (kind, time): tuple(i for i, p in enumerate(phrases) if p.time or not time)
            for kind, phrases in self.words.items()
            for time in (False, True)
        }

    @cached_property
    def forms(self) -> frozenset[str]:
        """Every phrase of every kind, singular and plural."""
        return frozenset(
            form for ps in self.words.values() for p in ps for form in (p.singular, p.plural)
        )

    def check_activities(self, phrases: Sequence[str]) -> None:
        """Raise InputError for an activity phrase that would make a text ambiguous.

        Activities are different (whatever their case), hold no punctuation but hyphen and
        apostrophe, none of the words that join clauses, and no phrase of this lexicon.
        """
        check_activities(tuple(phrases), self.forms)

    def to_json(self) -> dict[str, Any]:
        """The lists as plain JSON values, which `from_json` reads."""

        def entry(kind: Kind, phrase: Phrase) -> dict[str, Any]:
            if kind.startswith("VP"):
                return {"singular": phrase.singular, "plural": phrase.plural}
            if kind.startswith("P_"):
                return {"text": phrase.singular, "time": phrase.time}
            return {"text": phrase.singular}

        return {
            "schema": SCHEMA,
            "conjunctions": list(self.conjunctions),
            "words": {kind: [entry(kind, p) for p in self.words[kind]] for kind in KINDS},
        }

    @classmethod
    def from_json(cls, value: object, where: str = "phrases") -> Lexicon:
        """Read what `to_json` writes; further keys of the outer object are ignored.

        Raises InputError for another form, and for lists that are ambiguous.
        """
        if not isinstance(value, dict) or value.get("schema") != SCHEMA:
            raise InputError(f'must be an object with "schema": {SCHEMA}', where)
        lists, conjunctions = value.get("words"), value.get("conjunctions", list(CONJUNCTIONS))
        if not isinstance(lists, dict):
            raise InputError('"words" must hold a list of phrases for each kind', where)
        if not isinstance(conjunctions, list):
            raise InputError('"conjunctions" must be a list', where)
        try:
            return cls(
                {
                    kind: tuple(_phrase(kind, entry) for entry in entries)
                    for kind, entries in lists.items()
                },
                tuple(conjunctions),
            )
        except InputError as error:
            raise InputError(str(error), where) from error
        except TypeError as error:
            raise InputError("every kind must have a list of phrases", where) from error


def _phrase(kind: str, entry: object) -> Phrase:
    """One entry of a list: {"singular", "plural"} for verbs, {"text", "time"} for the others."""
    keys = ("singular", "plural") if kind.startswith("VP") else ("text", "text")
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in keys):
        raise InputError(f"an entry must have the text {' and '.join(dict.fromkeys(keys))}", kind)
    time = entry.get("time", False)
    if not isinstance(time, bool) or (time and not kind.startswith("P_")):
        raise InputError('"time" is true or false, and for prepositions only', kind)
    return Phrase(entry[keys[0]], entry[keys[1]], time)


@cache
def built_in() -> Lexicon:
    """The lexicon that travels with the package, written by the maintainers."""
    text = files("agenteval.data").joinpath("planning/phrases.json").read_text("utf-8")
    return Lexicon.from_json(json.loads(text), "planning/phrases.json")


def check_words(lists: Lists) -> None:
    """Raise InputError, naming the kind and the phrase, for the first rule that is broken.

    `lists` has (singular, plural) pairs by kind.
    """
    for kind, form in _forms(lists):
        _check_form(kind, form)
    for kind, pairs in lists.items():
        for singular, plural in pairs:
            if (singular != plural) != kind.startswith("VP"):
                raise InputError(
                    f"{singular!r}, {plural!r}: verb phrases differ in singular and plural, "
                    "others do not",
                    kind,
                )
    _check_duplicates(lists)
    _check_directions(lists)
    _check_verbs(lists)
    _check_openings(lists)


def check_activities(phrases: tuple[str, ...], forms: frozenset[str]) -> None:
    """Raise InputError for the first activity phrase that could be misread; see `Lexicon`."""
    seen: set[str] = set()
    pattern = _any_of(forms)
    for phrase in phrases:
        folded = phrase.casefold()
        if not _ACTIVITY.fullmatch(phrase):
            raise InputError(f"activity {phrase!r}: only words with single spaces are allowed")
        if folded in seen:
            raise InputError(f"activity {phrase!r} is there twice")
        seen.add(folded)
        if word := next((w for w in folded.split() if w in RESERVED), None):
            raise InputError(f"activity {phrase!r} holds {word!r}, which joins clauses")
        if found := pattern.search(folded):
            raise InputError(f"activity {phrase!r} holds {found[0]!r}, a phrase of the word lists")


@lru_cache(maxsize=16)
def _any_of(forms: frozenset[str]) -> re.Pattern[str]:
    """Any of the phrases as whole words."""
    options = "|".join(map(re.escape, sorted(forms)))
    return re.compile(rf"(?<!\S)(?:{options})(?!\S)")


def _forms(lists: Lists, group: str = "") -> Iterator[tuple[str, str]]:
    """(kind, form) of every phrase, each form once, of the kinds that start with `group`."""
    for kind, pairs in lists.items():
        if kind.startswith(group):
            for pair in pairs:
                for form in dict.fromkeys(pair):
                    yield kind, form


def _check_form(kind: str, form: str) -> None:
    """One phrase by itself."""
    if not _PHRASE.fullmatch(form):
        raise InputError(f"{form!r}: only small letters a to z and single spaces", kind)
    words = form.split()
    forbidden = JOINING | NOT_STRICT
    if not kind.startswith("SC") or words[0] in SUBORDINATE:
        forbidden = forbidden | SUBORDINATE
    if word := next((w for w in words if w in forbidden), None):
        raise InputError(f"{form!r}: the word {word!r} is not allowed here", kind)
    if _holds(form, "by the time") or _holds(form, "as long as"):
        raise InputError(f"{form!r}: does not mean strictly before or after", kind)


def _check_duplicates(lists: Lists) -> None:
    """A form stands once among verbs, once among prepositions, once among conjunctions."""
    for group in ("VP", "P_", "SC"):
        seen: dict[str, str] = {}
        for kind, form in _forms(lists, group):
            if form in seen:
                raise InputError(f"{form!r} stands twice (also in {seen[form]})", kind)
            seen[form] = kind


def _check_directions(lists: Lists) -> None:
    """No phrase holds one of the other direction, and a neutral verb holds no preposition."""
    for kind, form in _forms(lists):
        direction = kind.split("_")[1]
        if direction == "none":
            others = [other for other in lists if not other.startswith("VP")]
        else:
            others = [other for other in lists if other.endswith(_OPPOSITE[direction])]
        for other in others:
            for _, inner in _forms(lists, other):
                if _holds(form, inner):
                    raise InputError(f"{form!r} holds {inner!r} of {other}", kind)


def _check_verbs(lists: Lists) -> None:
    """Rules "begins" and "inside" of the module's text."""
    verbs = list(_forms(lists, "VP"))
    neutral = {form for kind, form in verbs if kind == "VP_none"}
    prepositions = [form for _, form in _forms(lists, "P_")]
    sums = {f"{verb} {p}": (verb, p) for verb in neutral for p in prepositions}
    starts = {form.split()[0]: form for _, form in verbs}
    for kind, form in verbs:
        if form in sums:
            verb, preposition = sums[form]
            raise InputError(
                f"{form!r} is {verb!r} of VP_none and the preposition {preposition!r}", kind
            )
        for _, other in verbs:
            if form.startswith(other + " "):
                raise InputError(f"{other!r} begins {form!r}: a text could be read twice", kind)
        for word in form.split()[1:]:
            if word in starts:
                raise InputError(
                    f"{word!r} inside {form!r} begins {starts[word]!r}: a text could be read twice",
                    kind,
                )


def _check_openings(lists: Lists) -> None:
    """Rule "goes on" of the module's text, over prepositions and conjunctions."""
    openings = [*_forms(lists, "P_"), *_forms(lists, "SC")]
    for kind, form in openings:
        for _, other in openings:
            if form.startswith(other + " "):
                rest = form[len(other) :].split()
                if not RESERVED.intersection(rest):
                    raise InputError(
                        f"{other!r} begins {form!r}: a text could be read twice; {' '.join(rest)!r}"
                        " may begin an activity",
                        kind,
                    )


def _holds(text: str, run: str) -> bool:
    """Is `run` in `text` as whole words?"""
    return f" {run} " in f" {text} "
