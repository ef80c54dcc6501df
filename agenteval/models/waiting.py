"""The waiting time that an endpoint requests, in all forms that endpoints use."""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone

# What is left and when it is full again, as OpenAI and those who follow it say it.
_LIMITS = ("requests", "tokens")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
# no digit can belong to two parts: an endpoint's header must not cost time in its number of digits
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,4})?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\s*,\s*{_NUMBER})*", re.ASCII | re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds the endpoint asks to wait; the largest of its hints, None when it gives none.

    Reads `retry-after-ms`, and `retry-after` as seconds (one number, or several with commas) or as
    an HTTP date (in UTC when it names no zone); negative, infinite and unreadable hints count as
    none. Only when these say nothing,
    `x-ratelimit-reset-requests` and `-tokens` ("1m2.5s", "250ms", seconds) of the limits of which
    nothing is known to be left: they tell when a limit is full again, which may be far later than
    when the next request would pass.
    """
    hints: list[float] = []
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = (headers.get(name) or "").strip()
        if _NUMBERS.fullmatch(text):  # several of one name come as one, with commas
            hints += [float(number) * scale for number in text.split(",")]
        else:
            date = _date(text)
            if date is not None:
                hints.append(date - (time.time() if now is None else now))
    usable = [h for h in hints if math.isfinite(h) and h >= 0] or _resets(headers)
    return max(usable) if usable else None


def _resets(headers: Mapping[str, str]) -> list[float]:
    hints = []
    for name in _LIMITS:
        remaining = (headers.get(f"x-ratelimit-remaining-{name}") or "0").strip()
        wait = _duration((headers.get(f"x-ratelimit-reset-{name}") or "").strip())
        if remaining == "0" and wait is not None:
            hints.append(wait)
    return hints


def _duration(text: str) -> float | None:
    """Seconds of "1h2m3.5s" or "250ms" or a bare number below a year, else None."""
    parts = _PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    elif re.fullmatch(r"\d{1,7}(\.\d{1,9})?", text):
        seconds = float(text)
    else:
        return None
    return seconds if math.isfinite(seconds) else None


def _date(text: str) -> float | None:
    """Seconds since 1970 of an HTTP date, or None."""
    parts = email.utils.parsedate_tz(text)
    if parts is None:
        return None
    try:
        zone = timezone(timedelta(seconds=parts[9] or 0))
        return datetime(*parts[:6], tzinfo=zone).timestamp()
    except (ValueError, OverflowError):
        return None


_IN_WORDS = re.compile(
    r"(?:retry ?delay\W+|estimated_time\W+|try again in |retry (?:after|in) )"
    r"((?:\d{1,9}(?:\.\d{1,9})?(?:ms|h|m|s)?){1,6})"
)


def wait_in_words(text: str) -> float | None:
    """Seconds that the lower-case words of a refusal ask to wait ("try again in 7m12s")."""
    match = _IN_WORDS.search(text)
    return _duration(match[1].rstrip(".")) if match else None


def may_retry(headers: Mapping[str, str]) -> bool | None:
    """Return the value of `x-should-retry` (OpenAI's header, which its SDKs obey): True to retry
    whatever the status, False not to retry, None without the header."""
    answer = (headers.get("x-should-retry") or "").strip().lower()
    return {"true": True, "false": False}.get(answer)
