"""How a scripted user and a scripted agent understand each other, without a model.

The agent asks for facts by the names of parameters, in backticks or brackets, and offers options
as lines that begin with "- "; a reply without either that says goodbye is the end:

    Please tell me: `title`, [reader_id].
    Which of these do you want?
    - Another book will do
    - No other book

The user answers with one line for each fact, with the words of the option, or with "None of these,
thank you.". A value that is no text stands as JSON:

    title: Dune
    seats: 2
    Another book will do
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

UNKNOWN = "I do not know"
NONE_OF_THESE = "None of these, thank you."
_ASKED = re.compile(r"`([A-Za-z]\w*)`|\[([A-Za-z]\w*)\]")
_OPTION = re.compile(r"^- (.+?)\s*$", re.M)
_TOLD = re.compile(r"^([A-Za-z]\w*): (.*)$")
_GOODBYE = re.compile(r"\b(?:good[- ]?bye|bye|farewell|have a (?:nice|good|great) day)\b", re.I)
_MARKS = re.compile(r"[`\[\]\n]+|^- +")


def ask_for(names: Iterable[str]) -> str:
    """A request for the values of these parameters."""
    return f"Please tell me: {', '.join(f'`{name}`' for name in names)}."


def offer(question: str, labels: Iterable[str]) -> str:
    """A question with options."""
    return "\n".join([question, *(f"- {plain(label)}" for label in labels)])


def plain(text: str) -> str:
    """A text on one line, without what would be read as a question or an option."""
    return " ".join(_MARKS.sub(" ", text).split())


def asked_for(text: str) -> tuple[str, ...]:
    """The names of parameters that are asked for, each once, in their order."""
    return tuple(dict.fromkeys(a or b for a, b in _ASKED.findall(text)))


def offered(text: str) -> tuple[str, ...]:
    """The options, in their order."""
    return tuple(_OPTION.findall(text))


def says_goodbye(text: str) -> bool:
    """Whether the reply ends the conversation as far as its words go."""
    return bool(_GOODBYE.search(text)) and not (asked_for(text) or offered(text))


def tell(facts: Mapping[str, JsonValue]) -> str:
    """One line for each fact."""
    return "\n".join(f"{name}: {_written(value)}" for name, value in facts.items())


def _written(value: JsonValue) -> str:
    if isinstance(value, str) and value and not re.search(r'[\r\n]|^[\s"]|\s$', value):
        return value
    return json.dumps(value, ensure_ascii=False)


def told(text: str, names: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The values of these parameters as they are written, and all other lines."""
    values, rest = {}, []
    for line in text.split("\n"):
        match = _TOLD.match(line)
        if match and match[1] in names:
            values[match[1]] = match[2].strip()
        elif line.strip():
            rest.append(line.strip())
    return values, tuple(rest)


def read_value(written: str, schema: object) -> JsonValue:
    """A told value, by the JSON schema of its parameter: text stays as it is, the rest is JSON."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "string" and not written.startswith('"'):
        return written
    try:
        value: JsonValue = json.loads(written)
    except ValueError:
        return written
    return value


def chosen(text: str, labels: Sequence[str]) -> str | None:
    """The option that a reply names: as a line of its own, else the longest that occurs in it; None
    where none does."""
    lines = {plain(line).casefold() for line in text.split("\n")}
    exact = next((label for label in labels if plain(label).casefold() in lines), None)
    if exact is not None:
        return exact
    said = plain(text).casefold()
    found = [label for label in labels if plain(label).casefold() in said]
    return max(found, key=len, default=None)
