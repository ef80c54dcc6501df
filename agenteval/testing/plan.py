"""When a fault strikes and how long a reply takes.

Nothing here draws from a clock or a global generator: a draw is a hash of (seed, identity of the
request, n-th time it is asked), so a plan hits the same requests in every run, in whatever order
they arrive.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from agenteval.errors import InputError
from agenteval.testing.faults import KINDS, MAX_SECONDS, Fault
from agenteval.testing.wire import RETRY_AFTER_FORMS


def draw(*parts: object) -> float:
    """A number in [0, 1) that depends on `parts` alone."""
    text = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return (int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 11) / 2**53


class Asked(NamedTuple):
    """What a rule may look at: the n-th time (from 0) that the request `key` is asked."""

    seed: int
    key: str
    n: int
    ordinal: int
    chat: bool
    text: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """When `fault` (of several one, drawn evenly) strikes; every condition given must hold.

    probability: drawn anew each time a request is asked. first: only the first N times that each
    request is asked. at: only the server's requests with these ordinals (from 0, in order of
    arrival, so it depends on timing when requests are concurrent). match: a regular expression
    found in the text of the request. Raises InputError for a value out of bounds.
    """

    fault: Fault | tuple[Fault, ...]
    probability: float = 1.0
    first: int | None = None
    at: tuple[int, ...] | None = None
    match: str | None = None

    def __post_init__(self) -> None:
        if not self._faults():
            raise InputError("a rule needs at least one fault")
        if not all(isinstance(k, int) for k in (self.first or 0, *(self.at or ()))):
            raise InputError("rule: first and at count requests, so they must be integers")
        if not 0 <= self.probability <= 1:
            raise InputError(f"rule: probability {self.probability} is not within 0 to 1")
        if self.match is not None:
            compiled(self.match)

    def _faults(self) -> tuple[Fault, ...]:
        return self.fault if isinstance(self.fault, tuple) else (self.fault,)

    def strikes(self, asked: Asked, index: int) -> Fault | None:
        """The fault for this request, or None. `index` keeps the draws of rules apart."""
        faults = [f for f in self._faults() if asked.chat or not KINDS[f.kind].chat_only]
        if not faults or (self.first is not None and asked.n >= self.first):
            return None
        if self.at is not None and asked.ordinal not in self.at:
            return None
        if self.match is not None and not re.search(self.match, asked.text()):
            return None
        chance = draw("fault", asked.seed, index, asked.key, asked.n)
        if chance >= self.probability:
            return None
        return faults[int(draw("which", asked.seed, index, asked.key, asked.n) * len(faults))]


def compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression. Raises InputError when it is none."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InputError(f"regular expression {pattern!r}: {error}") from None


def as_rules(faults: Sequence[Fault | Rule]) -> tuple[Rule, ...]:
    """Rules in order, the first that strikes wins; a bare Fault strikes always."""
    return tuple(Rule(f) if isinstance(f, Fault) else f for f in faults)


def rule_from_json(value: object, where: str) -> Rule:
    """A rule as a script writes it: {"fault": {"kind": …}, "probability": …, "first": …}.

    `fault` may be a list. Raises InputError naming `where` for anything else.
    """
    if not isinstance(value, dict) or not value.get("fault"):
        raise InputError("a rule must be an object with a fault", where)
    known = {f.name for f in fields(Rule)}
    if unknown := set(value) - known:
        raise InputError(f"unknown key {min(unknown)!r}; allowed: {sorted(known)}", where)
    rest = {k: v for k, v in value.items() if k != "fault"}
    raw = value["fault"] if isinstance(value["fault"], list) else [value["fault"]]
    try:
        if rest.get("at") is not None:
            rest["at"] = tuple(rest["at"])
        return Rule(tuple(Fault(**one) for one in raw), **rest)
    except (TypeError, InputError) as error:
        raise InputError(str(error), where) from None


def parse_fault(text: str) -> Rule:
    """A rule from KIND[=VALUE][:SHARE]: `reset`, `503:0.1`, `slow_drip=20:0.02`, `429=date`.

    Raises InputError for anything else.
    """
    rest, share = text, 1.0
    head, colon, tail = text.rpartition(":")
    try:
        if colon:
            rest, share = head, float(tail)
    except ValueError:
        rest = text  # a colon of the value
    name, given, value = rest.partition("=")
    try:
        return Rule(_fault(name, value if given else None), share)
    except ValueError:
        raise InputError(f"--fault {text}: {value!r} is no number") from None
    except InputError as error:
        raise InputError(f"--fault {text}: {error}") from None


def _fault(name: str, value: str | None) -> Fault:
    if name.isascii() and name.isdigit():
        if value is None:
            return Fault("status", int(name))
        forms = {form.replace(" ", "-"): headers for form, headers in RETRY_AFTER_FORMS.items()}
        if value not in forms:
            raise InputError(f"want a form of Retry-After: {', '.join(forms)}")
        return Fault("status", int(name), headers=forms[value])
    if value is None:
        return Fault(name)
    if name == "status":
        return Fault(name, int(value))
    if name in ("hang", "slow_drip"):
        return Fault(name, seconds=float(value))
    if name in ("content", "refusal", "html"):
        return Fault(name, body=value)
    raise InputError(f"{name} takes no value")


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds before the first byte: fixed(a), uniform(a, b), exponential(mean a),
    lognormal(median a, sigma b of the logarithm). Raises InputError for values out of bounds.
    """

    shape: str = "fixed"
    a: float = 0.0
    b: float = 0.0

    def __post_init__(self) -> None:
        if self.shape not in ("fixed", "uniform", "exponential", "lognormal"):
            raise InputError(f"unknown latency {self.shape!r}")
        if not (0 <= self.a <= MAX_SECONDS and 0 <= self.b <= MAX_SECONDS):
            raise InputError(f"latency must be 0 to {MAX_SECONDS:g} seconds")
        if self.shape == "uniform" and self.b < self.a:
            raise InputError("latency uniform:LOW:HIGH needs LOW <= HIGH")

    def at(self, u: float) -> float:
        """The quantile for u in [0, 1), in seconds, at most MAX_SECONDS."""
        if self.shape == "fixed":
            return self.a
        if self.shape == "uniform":
            return self.a + (self.b - self.a) * u
        if self.shape == "exponential":
            return min(-self.a * math.log1p(-u), MAX_SECONDS)
        from statistics import NormalDist

        return min(self.a * math.exp(self.b * NormalDist().inv_cdf(u or 2**-54)), MAX_SECONDS)


def parse_latency(text: str) -> Latency:
    """`0.1`, `uniform:0.05:0.2`, `exponential:0.1` or `lognormal:0.1:0.5`. Raises InputError."""
    shape, *numbers = text.split(":") if text[:1].isalpha() else ("fixed", text)
    try:
        return Latency(shape, *map(float, numbers))
    except (TypeError, ValueError):
        raise InputError(f"latency {text!r}: want SECONDS or SHAPE:NUMBER[:NUMBER]") from None
