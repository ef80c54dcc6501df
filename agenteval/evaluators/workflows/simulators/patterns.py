"""Texts that match a simple regular expression, as schemas use them for identifiers.

The subset: characters, `.`, classes ([A-Z0-9_], [^a-z], \\d, \\w, \\s), groups with alternatives,
`?`, `*`, `+`, `{n}`, `{n,}`, `{n,m}` and the anchors `^`, `$`. A schema's pattern may match
anywhere in a text; here the whole text is made of it.
"""

from __future__ import annotations

import random
import re
import string
from dataclasses import dataclass
from typing import NoReturn

_MORE = 3  # repeats beyond the least, where there is no limit
_MOST = 200  # repeats in all
_DEEPEST = 20
_LONGEST = 5000  # characters and groups in all
_CLASSES = {
    "d": string.digits,
    "w": string.ascii_letters + string.digits,
    "s": " ",
    "D": string.ascii_uppercase,
    "W": "-",
    "S": string.ascii_letters + string.digits,
}
_PLAIN = string.ascii_letters + string.digits + " -_./:#"
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
_COUNT = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}")


class NoPatternError(ValueError):
    """The pattern is outside the subset."""


def matching(pattern: str, draw: random.Random) -> str:
    """A text that the pattern matches. Raises NoPatternError outside the subset."""
    maker = _Maker(pattern, draw)
    text = maker.alternatives(0)
    if maker.at < len(pattern):
        maker.fail()
    try:
        fits = re.search(pattern, text) is not None
    except re.error as error:
        raise NoPatternError(f"the pattern {pattern!r} cannot be read: {error}") from error
    if not fits:
        maker.fail()
    return text


@dataclass
class _Maker:
    """Draws while it reads; what a repeat repeats is read again for each time."""

    pattern: str
    draw: random.Random
    at: int = 0
    atoms: int = 0

    def fail(self) -> NoReturn:
        raise NoPatternError(f"the pattern {self.pattern!r} is none of the simple ones")

    def alternatives(self, depth: int) -> str:
        if depth > _DEEPEST:
            self.fail()
        made = [self.sequence(depth)]
        while self.next("|"):
            made.append(self.sequence(depth))
        return self.draw.choice(made)

    def next(self, sign: str) -> bool:
        found = self.pattern.startswith(sign, self.at)
        self.at += len(sign) if found else 0
        return found

    def sequence(self, depth: int) -> str:
        parts: list[str] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            begin = self.at
            first = self.atom(depth)
            least, most = self.count()
            end = self.at
            for _ in range(self.draw.randint(least, most)):
                parts.append(first)
                self.at = begin
                first = self.atom(depth)
            self.at = end
        return "".join(parts)

    def count(self) -> tuple[int, int]:
        if self.next("?"):
            least, most = 0, 1
        elif self.next("*"):
            least, most = 0, _MORE
        elif self.next("+"):
            least, most = 1, 1 + _MORE
        else:
            match = _COUNT.match(self.pattern, self.at)
            if match is None:
                return 1, 1
            self.at = match.end()
            least = int(match[1])
            most = least if not match[2] else int(match[3]) if match[3] else least + _MORE
        if least > most or most > _MOST or self.pattern[self.at : self.at + 1] in ("?", "+", "*"):
            self.fail()
        return least, most

    def atom(self, depth: int) -> str:
        self.atoms += 1
        if self.atoms > _LONGEST:
            self.fail()
        sign = self.pattern[self.at]
        self.at += 1
        if sign in "^$":
            return ""
        if sign == ".":
            return self.draw.choice(string.ascii_letters)
        if sign == "[":
            return self.draw.choice(self.members())
        if sign == "(":
            if self.next("?") and not self.next(":"):
                self.fail()
            text = self.alternatives(depth + 1)
            if not self.next(")"):
                self.fail()
            return text
        if sign == "\\":
            return self.draw.choice(self.escaped())
        if sign in "?*+{":
            self.fail()
        return sign

    def escaped(self) -> str:
        """The characters that stand for the escape at hand."""
        sign = self.pattern[self.at : self.at + 1]
        self.at += 1
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if not sign or sign.isalnum():
            self.fail()
        return sign

    def members(self) -> str:
        """The characters of a class, those that are not of an excluding one."""
        excluding, found = self.next("^"), ""
        first = True
        while first or not self.pattern.startswith("]", self.at):
            if self.at >= len(self.pattern):
                self.fail()
            sign = self.pattern[self.at]
            self.at += 1
            first = False
            if sign == "\\":
                found += self.escaped()
            elif self.pattern[self.at : self.at + 1] == "-" and self.at + 1 < len(self.pattern):
                last = self.pattern[self.at + 1]
                if last == "]":
                    found += sign
                    continue
                if last == "\\" or ord(last) < ord(sign) or ord(last) - ord(sign) > 500:
                    self.fail()
                found += "".join(map(chr, range(ord(sign), ord(last) + 1)))
                self.at += 2
            else:
                found += sign
        self.at += 1
        if excluding:
            found = "".join(c for c in _PLAIN if c not in found)
        if not found:
            self.fail()
        return found
