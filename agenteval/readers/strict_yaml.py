"""Read YAML that all programs interpret alike: no aliases, tags, duplicate keys or surprises.

Words that YAML 1.1 converts (no, 0731, 12:30, 1_000) and numbers that it reads as text (1e3) are
ambiguous, so they are refused with the line and a fix. Dates stay text, because everything read
here becomes JSON.

The value is built from the parser's events with a stack, in linear time.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from agenteval.errors import InputError
from agenteval.files import SMALL, read_text
from agenteval.readers.strict_json import MOST_DEPTH

_LONGEST_NUMBER = 400  # characters
_LONGEST_DOUBT = 100  # anything longer is clearly text

_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?|\.[0-9]+)")
_DOUBTFUL = {
    r"yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF": (
        "some programs read it as true or false; write true or false"
    ),
    r"[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?": (
        "some programs read it as a number of base 60; write that number"
    ),
    r"[-+]?0[0-7_]+|[-+]?0[bo][0-7_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?[0-9]+_[0-9_.]*": (
        "some programs read it as another number than others; write it in plain digits"
    ),
    r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+": (
        "some programs read it as a text; write it in plain digits"
    ),
    r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)": "not a JSON number; remove it",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class _YamlError(Exception):
    def __init__(self, problem: str, event: yaml.Event) -> None:
        super().__init__(problem)
        self.line = _line(event)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


@dataclass
class _Level:
    """An open level: the document, a mapping or a list."""

    value: dict[Any, Any] | list[Any]
    start: yaml.Event | None = None
    key: Any = None
    has_key: bool = False

    def add(self, value: Any, event: yaml.Event) -> None:
        """Add the next item, key or value to this level."""
        if isinstance(self.value, list):
            self.value.append(value)
            return
        if self.has_key:
            self.value[self.key] = value
            self.has_key = False
            return
        if isinstance(value, (dict, list)):
            raise _YamlError("a list or a mapping cannot be a key", event)
        if value == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
            raise _YamlError("merge keys (<<) are not allowed", event)
        if value in self.value and self.start is not None:
            where = f"in the mapping at line {_line(self.start)}"
            raise _YamlError(f"the key {repr(value)[:80]} occurs twice {where}", event)
        self.key, self.has_key = value, True


def _build(text: str) -> Any:
    levels, documents = [_Level([])], 0
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same events, ten times as fast
    for event in yaml.parse(text, loader):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _YamlError("a second document begins here; one is allowed", event)
        elif isinstance(event, yaml.CollectionEndEvent):
            level = levels.pop()
            if level.start is not None:
                levels[-1].add(level.value, level.start)
        elif isinstance(event, yaml.NodeEvent):
            _add_node(event, levels)
    return next(iter(levels[0].value), None)


def _add_node(event: yaml.NodeEvent, levels: list[_Level]) -> None:
    if isinstance(event, yaml.AliasEvent):
        raise _YamlError("aliases are not allowed", event)
    tag = getattr(event, "tag", None)
    if tag is not None:
        raise _YamlError(f"tags are not allowed: {tag[:80]}", event)
    if isinstance(event, yaml.ScalarEvent):
        levels[-1].add(_scalar(event), event)
    elif len(levels) > MOST_DEPTH:
        raise _YamlError(f"nested deeper than {MOST_DEPTH} levels", event)
    else:
        levels.append(_Level({} if isinstance(event, yaml.MappingStartEvent) else [], event))


def _scalar(event: yaml.ScalarEvent) -> Any:
    word = event.value
    if _SURROGATE.search(word):
        raise _YamlError("a lone surrogate", event)
    if not event.implicit[0]:
        return word
    if word in _WORDS:
        return _WORDS[word]
    if not (word[0] in "-+.0123456789" or len(word) < 4):
        return word
    is_integer = _INTEGER.fullmatch(word)
    if is_integer or _FLOAT.fullmatch(word):
        if len(word) > _LONGEST_NUMBER or not math.isfinite(float(word)):
            raise _YamlError(f"{word[:20]}... is too large for a number", event)
        return int(word) if is_integer else float(word)
    for pattern, problem in _DOUBTFUL.items():
        if len(word) <= _LONGEST_DOUBT and re.fullmatch(pattern, word):
            shown = word if len(word) <= 40 else word[:37] + "..."
            raise _YamlError(f'{shown}: {problem}, or "{shown}" for the text', event)
    return word


def load_yaml(text: str, where: str) -> Any:
    """Return the value of one YAML document. Raises InputError with `where` and the line."""
    try:
        return _build(text)
    except _YamlError as error:
        problem, place = str(error), f"{where}:{error.line}"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{where}:{mark.line + 1}:{mark.column + 1}" if mark else where
        problem = ", ".join(filter(None, (error.context, error.problem)))
        if "maximum nesting depth" in problem:  # PyYAML 6.0.4 and later, before our own limit
            problem = f"nested deeper than {MOST_DEPTH} levels"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem, place = " ".join(str(error).split())[:200], where
    raise InputError(f"not valid YAML ({problem})", place)


def read_yaml(path: Path, most: int = SMALL) -> Any:
    """Return the value of a YAML file of at most `most` bytes.

    Raises InputError with file and line.
    """
    return load_yaml(read_text(path, most), str(path))
