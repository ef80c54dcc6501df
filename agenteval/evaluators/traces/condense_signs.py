"""Signs in a line: of an error, a rule, a claim. What makes it worth keeping."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sign:
    """Words of which one must be there (lower case), and where that is not enough, a pattern.

    Looking for the words first is many times faster than the pattern alone.
    """

    words: tuple[str, ...]
    pattern: re.Pattern[str] | None = None

    def stands_in(self, text: str, low: str | None = None) -> bool:
        """Whether the text has the sign; `low` is its lower case where that is at hand."""
        low = text.lower() if low is None else low
        if not any(word in low for word in self.words):
            return False
        return self.pattern is None or self.pattern.search(text) is not None


_STRONG = re.compile(
    r"Traceback|(?:Error|Exception)\b|\b(?:FATAL|CRITICAL|OOM|Killed|panic)\b"
    r"|(?i:\b(?:http|status|code|error|returned)\W{1,4}[45]\d\d\b|\b[45]\d\d (?:too many|unauthor"
    r"|forbidden|not found|internal|bad gateway|service|gateway|client error|server error)"
    r"|out of memory|memory limit|errno|permission denied|access denied|timed? ?out\b"
    r"|rate.?limit|quota|api.?key|unauthori[sz]ed|segmentation fault|core dumped|no such file"
    r"|connection (?:refused|reset)|context.{0,12}(?:length|window)|no space left)"
)
# An error that happens, by the form of its line; and lines that only speak of errors, as code does.
_PLAIN = re.compile(
    r"^\W{0,20}[\w.]*(?:Error|Exception): \S|^Traceback \(|^Killed\b|\bHTTP\S* [45]\d\d\b"
    r"|\b[45]\d\d (?i:too many|unauthor|forbidden|not found|internal s|bad gateway|service un)"
    r"|(?i:timed out after \d|memory limit of \d|\blevel=(?:error|fatal)\b)|^.{0,40}\bERROR\b"
)
CODE = re.compile(
    r"^\s*(?:(?:raise|except|try|class|def|import|from|return|assert|if|elif|else|for|while|self)\b"
    r"|#|//|/?\*|\.\.)"
)
RULE = re.compile(
    r"(?i:\b(?:must|never|always|not|don't|exactly|required?|forbidden|important|only|without"
    r"|unless|at most|at least|no more than|every|each"
    r"|(?:end|start|begin|close|finish)s? (?:your|with|the))\b)"
    r"|</?[A-Za-z]\w*>|\b[A-Z]{3,}(?:[-_][A-Z]{2,})+\b|`[^`\n]+`"
)
MILD = re.compile(
    r"\b(?:should|format|before|after|instead|rules?|return|output|limit|maximum|answer|task|your?"
    r"|takes inputs|def \w+\(|arguments|question|goal|if|use|write|please|give|find|name)\b",
    re.IGNORECASE,
)
CLAIM = re.compile(
    r"\bI(?:'ve| have| already| just| then)* (?:verified|checked|confirmed|searched|looked|found"
    r"|tested|ran|read|visited|calculated|computed|called|used|will|know|remember|assume)"
    r"|final answer|the answer is|in conclusion|according to|</?[a-z]\w*>",
    re.IGNORECASE,
)
HEDGE = re.compile(
    r"assum|probably|likely|instead|therefore|based on|as (?:shown|stated|reported)|in fact"
    r"|well known|guess|believe|skip|ignore|give up|done|so far|next|plan",
    re.IGNORECASE,
)

STRONG = Sign(
    (
        *("error", "exception", "traceback", "fatal", "critical", "oom", "killed", "panic", "http"),
        *("status", "code", "returned", "too many", "unauthor", "forbidden", "not found"),
        *("internal", "bad gateway", "service", "gateway", "out of memory", "memory limit"),
        *("errno", "denied", "timed out", "timedout", "time out", "timeout", "rate", "quota"),
        *("api", "segmentation", "core dumped", "no such file", "refused", "reset", "context"),
        *("no space left",),
    ),
    _STRONG,
)
PLAIN = Sign(STRONG.words, _PLAIN)
WEAK = Sign(
    (
        *("error", "fail", "denied", "forbidden", "not found", "missing", "invalid", "unable"),
        *("cannot", "can't", "could not", "refused", "exceed", "truncat", "warning", "abort"),
        *("undefined", "unexpected", "no results", "not supported", "unsupported", "deprecated"),
        *("retry", "reject", "conflict", "mismatch", "unknown", "unavailable", "expired"),
        *("overflow", "malformed"),
    )
)
