"""The words of the language: phrase lists per terminal kind, and the checks that keep it unique.

Kinds are those of arXiv 2404.17833, figure 4: verb phrases (VP), prepositions (P) and conjunctions
of two dependent clauses (SC), each with the subject before (prec) or after (succ) its object; VP
also without order (none). A tree cites a word by its number in these lists.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal, get_args

from agenteval.errors import InputError
from agenteval.evaluators.planning.dsl.wording import check_activities, check_words
from agenteval.records import content_hash

Kind = Literal["VP_prec", "VP_succ", "VP_none", "P_prec", "P_succ", "SC_prec", "SC_succ"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CONJUNCTIONS = (";", ", and", ", but", ", yet", ", while", ", whereas")
SCHEMA = 1


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
    names the kind, the phrase and the rule. The rules stand in `wording`.
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
