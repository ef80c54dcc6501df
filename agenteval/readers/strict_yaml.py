"""YAML as far as two programs read it alike: no aliases, tags, doubled keys or surprises.

Words that YAML 1.1 makes something else of than what stands there (no, 0731, 12:30, 1_000) and
numbers that it takes for text (1e3) are refused with the line and the way out, since whoever
wrote them meant one of two things. Dates stay text: everything read here becomes JSON.

The value is built from the events of the parser, with a stack, in time in proportion to the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from agenteval.errors import InputError
from agenteval.files import SMALL, read_text
from agenteval.readers.limits import HAND_WRITTEN

_LONGEST_NUMBER = 400  # characters
_LONGEST_DOUBT = 100  # what is longer was meant as a text

_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?|\.[0-9]+)")
_Kinds = tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...]
_NUMBERS: _Kinds = ((_INTEGER, int), (_FLOAT, float))
_PLAIN_DIGITS = "some programs read it as another number than others; write it in plain digits"
_DOUBTFUL = (
    (
        re.compile(r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF"),
        "some programs read it as true or false; write true or false",
    ),
    (
        re.compile(r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?"),
        "some programs read it as a number of base 60; write that number",
    ),
    (
        re.compile(r"[-+]?0[0-7_]+|[-+]?0[bo][0-7_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?[0-9]+_[0-9_.]*"),
        _PLAIN_DIGITS,
    ),
    (
        re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+"),
        "some programs read it as a text; write it in plain digits",
    ),
    (re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"), "no number of JSON; leave it out"),
)
_SURROGATE = re.compile("[\ud800-\udfff]")


class _YamlError(Exception):
    """What is wrong, and in which line (from 1)."""

    def __init__(self, problem: str, event: yaml.Event) -> None:
        super().__init__(problem)
        self.line = _line(event)


def _line(event: yaml.Event) -> int:
    """The line of an event, from 1; parsers give every event a mark."""
    return event.start_mark.line + 1 if event.start_mark else 1


class _Level:
    """A mapping or a list that is not closed yet."""

    def __init__(self, made: dict[Any, Any] | list[Any], start: yaml.Event) -> None:
        self.made = made
        self.start = start
        self.key: Any = None
        self.has_key = False

    def take(self, value: Any, event: yaml.Event) -> None:
        """The next item, key or value of this level."""
        if isinstance(self.made, list):
            self.made.append(value)
        elif self.has_key:
            self.made[self.key] = value
            self.has_key = False
        else:
            self._take_key(value, event)

    def _take_key(self, key: Any, event: yaml.Event) -> None:
        if isinstance(key, (dict, list)):
            raise _YamlError("a list or a mapping is no key", event)
        if key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
            raise _YamlError("merge keys (<<) are not allowed", event)
        if key in self.made:
            line = _line(self.start)
            shown = repr(key)[:80]
            raise _YamlError(f"the key {shown} stands twice in the mapping at line {line}", event)
        self.key, self.has_key = key, True


class _Builder:
    """Makes the value of one document out of events."""

    def __init__(self) -> None:
        self.value: Any = None
        self._levels: list[_Level] = []
        self._values = self._documents = 0

    def take(self, event: yaml.Event) -> None:
        """The next event. Raises _YamlError."""
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _YamlError("a second document begins here; one is allowed", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            level = self._levels.pop()
            self._put(level.made, level.start)
        elif isinstance(event, yaml.NodeEvent):
            self._take_node(event)

    def _take_node(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise _YamlError("aliases are not allowed", event)
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise _YamlError(f"tags are not allowed: {tag[:80]}", event)
        self._values += 1
        if self._values > HAND_WRITTEN.max_values:
            raise _YamlError(f"more than {HAND_WRITTEN.max_values:,} values", event)
        if isinstance(event, yaml.ScalarEvent):
            self._put(_scalar(event), event)
            return
        if len(self._levels) >= HAND_WRITTEN.max_depth:
            raise _YamlError(f"nested deeper than {HAND_WRITTEN.max_depth} levels", event)
        made: dict[Any, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._levels.append(_Level(made, event))

    def _put(self, value: Any, event: yaml.Event) -> None:
        if self._levels:
            self._levels[-1].take(value, event)
        else:
            self.value = value


def _scalar(event: yaml.ScalarEvent) -> Any:
    word = event.value
    if _SURROGATE.search(word):
        raise _YamlError("half a character (a lone surrogate)", event)
    if not event.implicit[0]:
        return word
    if word in _WORDS:
        return _WORDS[word]
    return _number(word, event) if word[0] in "-+.0123456789" or len(word) < 4 else word


def _number(word: str, event: yaml.ScalarEvent) -> Any:
    """The number of a plain word, or the word itself. Raises _YamlError for a doubtful one."""
    for pattern, make in _NUMBERS:
        if pattern.fullmatch(word):
            if len(word) > _LONGEST_NUMBER or not math.isfinite(float(word)):
                raise _YamlError(f"{word[:20]}... is too large for a number", event)
            return make(word)
    for pattern, problem in _DOUBTFUL:
        if len(word) <= _LONGEST_DOUBT and pattern.fullmatch(word):
            shown = word if len(word) <= 40 else word[:37] + "..."
            raise _YamlError(f'{shown}: {problem}, or "{shown}" for the text', event)
    return word


def load_yaml(text: str, where: str) -> Any:
    """The value of one YAML document. Raises InputError naming `where` and the line."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same events, ten times faster
    builder = _Builder()
    try:
        for event in yaml.parse(text, loader):
            builder.take(event)
    except _YamlError as error:
        raise InputError(f"not valid YAML ({error})", f"{where}:{error.line}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        told = ", ".join(filter(None, (error.context, error.problem)))
        raise InputError(f"not valid YAML ({told})", place) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        told = " ".join(str(error).split())[:200]
        raise InputError(f"not valid YAML ({told})", where) from None
    return builder.value


def read_yaml(path: Path, most: int = SMALL) -> Any:
    """The value of a YAML file of at most `most` bytes. Raises InputError naming file and line."""
    return load_yaml(read_text(path, most), str(path))
