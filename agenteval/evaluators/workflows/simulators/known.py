"""Which names and numbers in what a user says are known from nowhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from agenteval.evaluators.workflows.simulators.nouns import Heard

_TOKEN = re.compile(r"[\w@](?:[\w@.:/+\-]|,(?=\d{3}))*(?!%)")
_LETTERS_AND_DIGITS = re.compile(r"^[^\W\d_]{1,12}[-/]?\d[\w\-/]*$|^\d+[-/]?[^\W\d_]{1,12}\d*$")
_COUNTED = re.compile(r"^\d+(?:am|pm|st|nd|rd|th|h|min|kg|km|m|cm|eur|usd|x)$", re.I)
_CLOCK = re.compile(r"^(\d{1,2})[:.h](\d\d)(am|pm)?$")
_TIME = re.compile(r"(?<!\d)(\d{1,2})[:.h](\d\d)(?!\d)")
_SHORT_DATE = re.compile(r"^(\d{1,2}[./-]\d{1,2}[./-])(\d\d)$")
_NUMBER = re.compile(r"\d{1,18}(?:\.\d{1,6})?(?![\d.])")
_IDIOMS = ("24/7",)
_LONG = 3  # digits: shorter numbers are counted, longer ones name something


def invented(text: str, heard: Heard) -> tuple[str, ...]:
    """Tokens of the text that name something (R-20, 4711, a@b.org) and are known from nowhere:
    neither from the profile nor from what was said before.

    A name or number may be written in another way (R20, LH 2031, 1,200); a date, a time or a price
    is known when all its numbers are. Percentages name nothing.
    """
    known = _known(heard)
    numbers = {int(n) for n in re.findall(r"\d{1,18}", known)}
    found = []
    for match in _TOKEN.finditer(text):
        token = match.group().rstrip(".:/-")
        if _names_something(token) and not _is_known(token.casefold(), known, numbers):
            found.append(token)
    return tuple(dict.fromkeys(found))


def _names_something(token: str) -> bool:
    if "@" in token[1:]:
        return True
    if _COUNTED.match(token) or token in _IDIOMS or not any(c.isdigit() for c in token):
        return False
    if _LETTERS_AND_DIGITS.match(token):
        return True
    return len(re.sub(r"\D", "", token)) >= _LONG


def _is_known(token: str, known: str, numbers: set[int]) -> bool:
    if re.search(rf"(?<!\w){re.escape(token)}(?!\w)", known):
        return True
    if "@" in token:
        return False
    if any(_stands(word, known) for word in _respelled(token)):
        return True
    if _is_known_time(token, known, numbers):
        return True
    if re.fullmatch(r"\d{1,18}[.,]\d{1,2}", token):
        price = float(token.replace(",", "."))
        return any(float(n) == price for n in _NUMBER.findall(known))
    short = _SHORT_DATE.match(token)
    if short:
        token = f"{short[1]}20{short[2]}"
    if any(c.isalpha() for c in token):
        return False
    return all(int(n) in numbers for n in re.findall(r"\d{1,18}", token))


def _is_known_time(token: str, known: str, numbers: set[int]) -> bool:
    clock = _CLOCK.match(token)
    if clock is None:
        return False
    hour, minute = int(clock[1]), int(clock[2])
    hours = {"am": {hour % 12}, "pm": {hour % 12 + 12}}.get(clock[3], {hour, hour + 12})
    if minute == 0 and hours & numbers:
        return True
    return any(int(h) in hours and int(m) == minute for h, m in _TIME.findall(known))


def _respelled(token: str) -> Iterator[str]:
    word = re.sub(r"[^\w]|_", "", token)
    yield word
    if word.startswith("00"):  # of a telephone number
        yield word[2:]


def _stands(word: str, known: str) -> bool:
    """Whether these letters and digits stand there one after the other, maybe parted by signs."""
    if not word:
        return False
    return bool(re.search(rf"(?<!\w){'[-/. ]?'.join(map(re.escape, word))}(?!\w)", known))


def _known(heard: Heard) -> str:
    profile = heard.profile
    parts = [
        profile.opening,
        profile.persona,
        *profile.choices,
        *profile.asides,
        *profile.behaviours,
        *(goal.text for goal in profile.goals),
        json.dumps(profile.facts, ensure_ascii=False),
        json.dumps([a.arguments for a in profile.actions], ensure_ascii=False),
        heard.now,
        *(m.content for m in heard.messages),
    ]
    return "\n".join(parts).casefold()
