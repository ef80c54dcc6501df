"""Ask a chat model for professions and activities, as in arXiv 2404.17833, section 4.2.

Activities that would make a text ambiguous are rejected, with the reason. Overlaps and natural
orders are not detected, so the file states that no person has reviewed it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.engine.judging import classify
from agenteval.errors import Filtered, InputError, ReplyError, TooLong
from agenteval.files import write_atomically
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.reply import parse_reply
from agenteval.models.wire import Request
from agenteval.planning.words import Topic, action, built_in_topics, check_activities
from agenteval.records import content_hash

PER_REQUEST = 4  # professions
ACTIVITIES = 20  # requested per profession
FEWEST = 12  # a profession with fewer usable activities is refused
_PROMPT = load_prompt("agenteval.planning", "invent")
_REPAIR = load_prompt("agenteval.planning", "invent_repair")
_SCHEMA = json.loads("""{
 "type": "object", "required": ["professions"], "additionalProperties": false,
 "properties": {"professions": {"type": "array", "items": {
  "type": "object", "required": ["role", "activities"], "additionalProperties": false,
  "properties": {"role": {"type": "string"},
                 "activities": {"type": "array", "items": {"type": "string"}}}}}}}""")
_ROLE = re.compile(r"[A-Za-z'-]+(?: [A-Za-z'-]+){0,3}")
_ACTIVITY = re.compile(r"(?!(?:a|an|the) )(?=.{,60}\Z)[A-Za-z-]+(?: [A-Za-z-]+){1,4}")
_ORDER = re.compile(  # words about order, in addition to those of the word lists
    r"(?i)\b(?:then|next|first|last|once|earl(?:y|ier)|later?|end(?:s|ed|ing)?"
    r"|(?:before|after|follow|preced|prior|start|begin|finish|complet|schedul)\w*)\b"
)
_NOTE = (
    "Invented by the model {}. A program has checked form and ambiguity; no person has reviewed "
    "whether activities of a profession overlap or have a natural order."
)


@dataclass(frozen=True, slots=True)
class Invention:
    """The usable professions, and a line with the reason for each rejection."""

    model: str
    topics: tuple[Topic, ...]
    refused: tuple[str, ...]

    def save(self, path: Path) -> None:
        """Write a file for `read_topics`. Raises InputError if it cannot be written."""
        value = {
            "schema": 1,
            "note": _NOTE.format(self.model),
            "model": self.model,
            "reviewed": False,
            "prompts_sha256": content_hash([_PROMPT.sha256, _REPAIR.sha256]),
            "topics": [topic.model_dump(mode="json") for topic in self.topics],
            "refused": self.refused,
        }
        write_atomically(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def requests_for(professions: int) -> int:
    """Return the number of requests without repairs; each may need one repair."""
    return -(-professions // PER_REQUEST)


async def invent(
    client: Client, professions: int, notify: Callable[[str], None] = lambda _: None
) -> Invention:
    """Ask for new professions, a few per request; each request names those accepted so far.

    A request without a usable reply is listed as a rejection; if no request succeeds, its error is
    raised. Other errors of the client are raised immediately.
    """
    new: list[Topic] = []
    refused: list[str] = []
    failures: list[Exception] = []
    for number in range(requests_for(professions)):
        name = f"professions, request {number + 1}"
        notify(name)
        roles = [topic.role for topic in (*built_in_topics(), *new)]
        count = min(PER_REQUEST, professions - number * PER_REQUEST)
        text = _PROMPT.render(count=count, activities=ACTIVITIES, known=roles)
        request = Request(
            messages=({"role": "user", "content": text},),
            schema=_SCHEMA,
            parameters={"seed": number, "max_tokens": 4000, "temperature": 1.0},
            repeat=number,
            role="plan:invent:professions",
        )
        try:
            answer = await asking.ask(
                client, request, read_professions, lambda problem: _REPAIR.render(problem=problem)
            )
        except (ReplyError, Filtered, TooLong) as error:
            failures.append(error)
            refused.append(f"{name}: {': '.join(classify(error))}")
            continue
        for entry in answer.value:
            topic, reasons = checked(entry, [*built_in_topics(), *new])
            refused += reasons
            new += [topic] if topic else []
    if len(failures) == requests_for(professions):
        raise failures[-1]
    refused += [f"{topic.role}: more than were requested" for topic in new[professions:]]
    return Invention(client.model, tuple(new[:professions]), tuple(refused))


def read_professions(text: str) -> list[Any]:
    """Return the entries of {"professions": [...]}; only complete ones if the reply is cut off.

    Raises ReplyError if no entry has a role and activities.
    """

    def entries(value: Any) -> list[Any]:
        value = value.get("professions", value) if isinstance(value, dict) else value
        return value if isinstance(value, list) else [value]

    return entries(parse_reply(text, lambda value: any(map(_is_profession, entries(value)))).value)


def _is_profession(entry: Any) -> bool:
    keys = {"role": str, "activities": list}
    return isinstance(entry, dict) and all(isinstance(entry.get(k), t) for k, t in keys.items())


def checked(entry: Any, topics: Sequence[Topic]) -> tuple[Topic | None, list[str]]:
    """Return the profession with its usable activities, or None; and the reasons for rejections.

    Its role and tools must differ from those of `topics`.
    """
    role = entry["role"] if _is_profession(entry) else ""
    if not _ROLE.fullmatch(role):
        return None, [f"{str(entry)[:80]!r}: must have a role of 1 to 4 words, and activities"]
    if role.casefold() in {topic.role.casefold() for topic in topics}:
        return None, [f"{role}: this profession exists already"]
    tools = {action(phrase).tool for topic in topics for phrase in topic.activities}
    usable: list[str] = []
    refused: list[str] = []
    for phrase in map(str, entry["activities"]):
        if reason := _fault(phrase, usable, tools):
            refused.append(f"{role}: activity {phrase[:80]!r}: {reason}")
        else:
            usable.append(phrase)
            tools.add(action(phrase).tool)
    if len(usable) < FEWEST:
        few = f"{len(usable)} activities can be used, at least {FEWEST} are needed"
        return None, [*refused, f"{role}: {few}"]
    return Topic(role=role, activities=tuple(usable)), refused


def _fault(phrase: str, others: Sequence[str], tools: set[str]) -> str | None:
    """Return the first rule that an activity breaks, or None."""
    if not _ACTIVITY.fullmatch(phrase):
        return "must be 2 to 5 words without an article, at most 60 characters"
    if order := _ORDER.search(phrase):
        return f"{order[0]!r} is a word of order"
    try:
        check_activities([*others, phrase])
    except InputError as error:
        return str(error)
    return f"its tool {tool!r} exists" if (tool := action(phrase).tool) in tools else None
