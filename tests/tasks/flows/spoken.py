"""Was a value said? People write `two nights`, `the 6th of June`, `tomorrow`, `the wrong dish`."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta

from pydantic import JsonValue

MONTHS = [name.casefold() for name in calendar.month_name[1:]]
DAYS = [name.casefold() for name in calendar.day_name]
_TO_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)
NUMBERS = _TO_TWENTY.split()
RELATIVE = {"today": 0, "tonight": 0, "tomorrow": 1}


class Spoken:
    """`aliases` adds phrases that stand for a value, by the value's text: {"True": ("yes",)}."""

    def __init__(self, now: str, aliases: Mapping[str, Sequence[str]] | None = None) -> None:
        self.today = date.fromisoformat(now[:10])
        self.aliases = {k: [_bare(p) for p in v] for k, v in (aliases or {}).items()}

    def told(self, value: JsonValue, said: Sequence[str]) -> bool:
        """Whether one of these messages holds the value (of a list or mapping: every part)."""
        if isinstance(value, list):
            return all(self.told(part, said) for part in value)
        if isinstance(value, dict):
            return all(self.told(part, said) for part in value.values())
        return any(self._in(value, text) for text in said) or (
            isinstance(value, str) and value in self._bare_days(said)
        )

    def _in(self, value: JsonValue, text: str) -> bool:
        if any(phrase in _bare(text) for phrase in self.aliases.get(str(value), ())):
            return True
        if isinstance(value, bool) or value is None:
            return False
        if isinstance(value, int | float):
            return value in _numbers(text)
        text_value = str(value)
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text_value):
            return date.fromisoformat(text_value) in self._dates(text)
        if re.fullmatch(r"\d\d:\d\d", text_value):
            return text_value in _times(text)
        return _bare(text_value) in _bare(text)

    def _dates(self, text: str) -> set[date]:
        """Days that a text can mean; a day without its year is the next one of that name."""
        low = text.casefold()
        found = {date.fromisoformat(m) for m in re.findall(r"\b\d{4}-\d\d-\d\d\b", low)}
        found |= {self.today + timedelta(n) for word, n in RELATIVE.items() if word in low}
        for i, name in enumerate(DAYS):
            if re.search(rf"\b{name[:3]}({name[3:]})?\b", low):
                first = self.today + timedelta((i - self.today.weekday()) % 7 or 7)
                found |= {first, first + timedelta(7)}
        days = [int(n) for n in re.findall(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", low)]
        for month in _months(low):
            found |= set(self._next(month, days))
        for first_number, second in re.findall(r"\b(\d{1,2})[./](\d{1,2})\b", low):
            found |= set(self._next(int(second), [int(first_number)]))
        return found

    def _bare_days(self, said: Sequence[str]) -> set[str]:
        """Days without a month, `the 14th`, in the month that was named last."""
        found: set[str] = set()
        months: list[int] = []
        for text in said:
            low = text.casefold()
            months = _months(low) or months
            days = [int(n) for n in re.findall(r"\b(\d{1,2})(?:st|nd|rd|th)\b", low)]
            found |= {d.isoformat() for month in months for d in self._next(month, days)}
        return found

    def _next(self, month: int, days: list[int]) -> Iterator[date]:
        for day in days:
            for year in (self.today.year, self.today.year + 1):
                try:
                    found = date(year, month, day)
                except ValueError:
                    continue
                if found >= self.today:
                    yield found
                    break


def _months(low: str) -> list[int]:
    """Months named in a text in lower case; the verb in `may I` is none."""
    bare = re.sub(r"\bmay (?=(i|you|he|she|we|they|be|have)\b)", "", low)
    names = [rf"\b({name[:3]}|{name}{'|sept' * (name == 'september')})\b" for name in MONTHS]
    return [i for i, pattern in enumerate(names, 1) if re.search(pattern, bare)]


def _numbers(text: str) -> set[float]:
    low = text.casefold()
    found = {float(n) for n in re.findall(r"\d+(?:\.\d+)?", low)}
    words = set(re.findall(r"[a-z]+", low))
    return found | {float(i) for i, word in enumerate(NUMBERS) if word in words}


def _times(text: str) -> set[str]:
    """Times of day as HH:MM: `7:30`, `19:30`, `7 pm`, `noon`."""
    found = set()
    low = text.casefold()
    for hour, minute, half in re.findall(r"\b(\d{1,2})(?:[:.](\d\d))?\s*([ap]\.?m\b)?", low):
        if not (minute or half):
            continue
        n = int(hour) % 12 + 12 * half.startswith("p") if half else int(hour)
        found.add(f"{n:02d}:{minute or '00'}")
    return found | ({"12:00"} if "noon" in low else set())


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.casefold())
