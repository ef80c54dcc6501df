"""Rules on phrases under which every text of the language has exactly one reading.

Why they suffice: at the start of a verb phrase only one verb phrase of the lists can stand, since
none begins another (rule "begins"). Where it starts is settled too: an activity cannot swallow its
first words, since the rest would have to begin another verb phrase (rule "inside"), and cannot
swallow it whole, since activities hold no phrase of the lists. After a neutral verb phrase the
preposition or conjunction starts, and the longer of two goes on with a word that no activity may
hold (rule "goes on"). So the text falls into activities and phrases in one way only; commas,
"and" and "which" do the rest, because lists have no comma before "and", and clauses always do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from agenteval.errors import InputError

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
