"""Rules for professions and activities that nobody has read yet: what a program can check.

They are those the built-in lists were checked with. Whether two activities overlap or have a
natural order, only a reader can tell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.planning.dsl.lexicon import Lexicon
from agenteval.evaluators.planning.synthesis.topics import Topic, action
from agenteval.models.embeddings import Embedder

ACTIVITIES = 20  # asked for and kept at most, per profession
FEWEST = 12  # a profession that keeps fewer is refused
LENGTH = (2, 5)  # words of an activity; a hyphenated word is one
MOST_USES = 3  # activities of a profession that may share a content word
MAX_COSINE = 0.70  # exclusive
MAX_NAME = 60  # characters of a tool name
FIRST_HEADS = 3  # so many activities with a head noun of their own allow one that repeats a head


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ROLE = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*(?: [A-Za-z]+(?:['-][A-Za-z]+)*){0,3}")
_PHRASE = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*(?: [A-Za-z]+(?:-[A-Za-z]+)*)*")
_ACRONYM = re.compile(r"[A-Z]{2,5}")
_ARTICLES = frozenset({"a", "an", "the"})
# The head noun is the last word in front of one of these.
_PREPOSITIONS = _words("of for with to in on from at about by through under between into over")

# Words of the clause forms and of order: inside an activity they would speak of the plan.
_ORDER_WORDS = re.compile(
    r"\b(?:and|or|but|yet|while|whereas|which|when|that|tim(?:e|es|ed|ing)"
    r"|before(?:hand)?|after(?:wards?)?|prior|follow\w*|preced\w*|subsequent\w*|posterior\w*"
    r"|ahead|earl(?:y|ier|iest)|late(?:r|st)?|advanc\w*|front\w*|behind|wak(?:e[sn]?|ing)|woken?"
    r"|once|soon(?:er|est)?|then|next|first(?:ly)?|last(?:s|ed|ing|ly)?|start\w*|finish\w*"
    r"|begin\w*|began|begun|end(?:s|ed|ings?)?|happen\w*|occur\w*|execut\w*|perform\w*"
    r"|carr(?:y|ies|ied|ying)|done|(?:tak\w+|took) place|complet\w*|com(?:e|es|ing)|came"
    r"|schedul\w*|succe(?:ed|ss)\w*)\b",
    re.IGNORECASE,
)
_SINGULAR_IN_S = _words(
    "bus gas lens canvas atlas census status bonus virus campus chorus syllabus prospectus "
    "apparatus corpus cactus citrus hummus couscous asparagus iris tennis"
)
_PLURAL_WITHOUT_S = _words(
    "people children men women feet teeth mice geese oxen data media criteria phenomena dice "
    "staff police cattle alumni fungi bacteria curricula personnel"
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A proposal that was not kept: its kind (profession, activity, or a kind of wording), the
    profession it belongs to ("" for none), its text and the reason."""

    kind: str
    role: str
    text: str
    reason: str

    def __str__(self) -> str:
        where = f"{self.role}: " if self.role and self.role != self.text else ""
        return f"{self.kind}: {where}{self.text!r}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Proposed:
    """A profession as a model proposed it. `odd` are members of its list that are no text."""

    role: str
    activities: tuple[str, ...]
    odd: tuple[str, ...] = ()


@dataclass(slots=True)
class Sieve:
    """Takes professions one after another and keeps what every rule allows.

    `roles` and `tools` are those in use already: names, and tool name to profession; both grow.
    Without an embedder closeness in meaning is not checked.
    """

    lexicon: Lexicon
    embedder: Embedder | None
    roles: list[str]
    tools: dict[str, str]
    refused: list[Refused] = field(default_factory=list)

    def take(self, proposed: Proposed) -> Topic | None:
        """The profession with the activities that are kept, in their order; None if refused.

        What is refused is added to `refused`, each with the first rule it breaks.
        """
        role = proposed.role
        if fault := self._role_fault(role):
            self.refused.append(Refused("profession", role, role, fault))
            return None
        for text in proposed.odd:
            self._refuse(role, text, "is no text")
        kept = self._kept(role, proposed.activities)
        if len(kept) < FEWEST:
            reason = f"only {len(kept)} of {len(proposed.activities)} activities were kept, " \
                f"at least {FEWEST} are needed"  # fmt: skip
            self.refused.append(Refused("profession", role, role, reason))
            return None
        self.roles.append(role)
        self.tools.update({action(phrase).tool: role for phrase in kept})
        return Topic(role=role, activities=tuple(kept))

    def _role_fault(self, role: str) -> str | None:
        if not _ROLE.fullmatch(role) or len(role) > 40:
            return "must be a name of one to four words"
        same = next((known for known in self.roles if _folded(known) == _folded(role)), None)
        return f"is there already, as {same!r}" if same else None

    def _refuse(self, role: str, text: str, reason: str) -> None:
        self.refused.append(Refused("activity", role, text, reason))

    def _kept(self, role: str, phrases: Sequence[str]) -> list[str]:
        """Phrase by phrase, each against those kept before it; then the rule on head nouns."""
        kept: list[str] = []
        names = dict(self.tools)
        uses: Counter[str] = Counter()
        cosine = _cosines(self.embedder, phrases)
        for phrase in phrases:
            reason = next(phrase_faults(phrase), None) or self._clash(phrase, kept, names, uses)
            reason = reason or _too_close(phrase, kept, cosine)
            if reason is None and len(kept) == ACTIVITIES:
                reason = f"is beyond the {ACTIVITIES} asked for"
            if reason:
                self._refuse(role, phrase, reason)
                continue
            kept.append(phrase)
            names[action(phrase).tool] = role
            uses.update(content_words(phrase))
        return self._with_enough_heads(role, kept)

    def _clash(
        self, phrase: str, kept: Sequence[str], names: Mapping[str, str], uses: Counter[str]
    ) -> str | None:
        """What is wrong with a phrase beside the others."""
        try:
            self.lexicon.check_activities([*kept, phrase])
        except InputError as error:
            return str(error)
        if owner := names.get(action(phrase).tool):
            return f"its tool {action(phrase).tool!r} is there already, of {owner}"
        common = sorted(word for word in content_words(phrase) if uses[word] >= MOST_USES)
        return f"{common[0]!r} stands in {MOST_USES} activities already" if common else None

    def _with_enough_heads(self, role: str, kept: Sequence[str]) -> list[str]:
        """Without the last of the repeated heads, until three in four heads are different.

        15 heads in 20 activities is the rule of the built-in lists.
        """
        seen: set[str] = set()
        repeats: list[str] = []
        for phrase in kept:
            if head_noun(phrase) in seen:
                repeats.append(phrase)
            seen.add(head_noun(phrase))
        surplus = repeats[len(seen) // FIRST_HEADS :]
        for phrase in surplus:
            self._refuse(role, phrase, f"repeats the head noun {head_noun(phrase)!r}")
        return [phrase for phrase in kept if phrase not in surplus]


def phrase_faults(phrase: str) -> Iterator[str]:
    """What is wrong with an activity by itself, one line each."""
    if not _PHRASE.fullmatch(phrase):
        yield "only letters, hyphens inside words and single spaces are allowed"
        return
    words = phrase.split()
    if not LENGTH[0] <= len(words) <= LENGTH[1]:
        yield f"has {len(words)} words, {LENGTH[0]} to {LENGTH[1]} are wanted"
    if words[0].casefold() in _ARTICLES:
        yield "begins with an article"
    for word in re.split(r"[ -]", phrase):
        if word != word.lower() and not _ACRONYM.fullmatch(word):
            yield f"{word!r} is neither in small letters nor an acronym"
    if found := _ORDER_WORDS.search(phrase):
        yield f"{found[0]!r} is a word of order or of the clause forms"
    if _is_plural(head_noun(phrase)):
        yield f"its head noun {head_noun(phrase)!r} is a plural"
    if len(re.sub(r"[^a-z0-9]+", "_", phrase.lower())) > MAX_NAME:
        yield f"its tool name would have more than {MAX_NAME} characters"


def head_noun(phrase: str) -> str:
    """The last word in front of the first preposition, else the last word; in lower case."""
    words = phrase.casefold().split()
    cut = next((i for i, word in enumerate(words) if i and word in _PREPOSITIONS), len(words))
    return words[cut - 1]


def content_words(phrase: str) -> set[str]:
    """Words that carry meaning, in lower case and without a plural's ending, hyphens split."""
    words = re.split(r"[ -]", phrase.casefold())
    return {_singular(word) for word in words if word not in _ARTICLES | _PREPOSITIONS}


def _is_plural(word: str) -> bool:
    if word in _PLURAL_WITHOUT_S:
        return True
    return word.endswith("s") and not word.endswith(("ss", "sis")) and word not in _SINGULAR_IN_S


def _singular(word: str) -> str:
    """Crude: it only has to bring equal words together."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1]
    return word


def _folded(role: str) -> tuple[str, ...]:
    """A role for comparison: case, hyphens and a plural do not count."""
    return tuple(_singular(word) for word in re.split(r"[ -]", role.casefold()))


def _cosines(embedder: Embedder | None, phrases: Sequence[str]) -> dict[tuple[str, str], float]:
    """Cosine of every ordered pair of different phrases that are well formed."""
    fit = list(dict.fromkeys(phrase for phrase in phrases if not any(phrase_faults(phrase))))
    if embedder is None or len(fit) < 2:
        return {}
    vectors = np.asarray(embedder.embed(fit), dtype=np.float64)
    table = vectors @ vectors.T
    return {(a, b): float(table[i, j]) for i, a in enumerate(fit) for j, b in enumerate(fit)}


def _too_close(
    phrase: str, kept: Sequence[str], cosine: Mapping[tuple[str, str], float]
) -> str | None:
    if not cosine or not kept:
        return None
    near = max(kept, key=lambda other: cosine[phrase, other])
    value = cosine[phrase, near]
    if value < MAX_COSINE:
        return None
    return f"is close to {near!r}: cosine {value:.2f}, below {MAX_COSINE:.2f} is wanted"
