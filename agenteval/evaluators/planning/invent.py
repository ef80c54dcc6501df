"""Professions and activities from a chat model, as in arXiv 2404.17833, section 4.2; checked.

A program checks form, words of order, tools and phrases that are there already, and closeness in
meaning; what breaks a rule is listed with its reason. It cannot see that two activities overlap or
have a natural order, so the file says that nobody has read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.errors import Filtered, InputError, ReplyError, TooLong
from agenteval.evaluators.base import classify
from agenteval.evaluators.planning.words import Topic, action, built_in, built_in_topics
from agenteval.files import write_atomically
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.embeddings import Embedder
from agenteval.models.prompts import load_prompt
from agenteval.models.reply import parse_reply
from agenteval.models.wire import Request
from agenteval.records import content_hash

PER_REQUEST = 4  # professions
ACTIVITIES = 20  # asked for and kept at most, per profession
FEWEST = 12  # a profession that keeps fewer is refused
MAX_COSINE = 0.70  # exclusive
_PROMPTS = [load_prompt("agenteval.evaluators.planning", n) for n in ("invent", "invent_repair")]
_ENTRY = {
    "type": "object",
    "properties": {
        "role": {"type": "string"},
        "activities": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["role", "activities"],
    "additionalProperties": False,
}
_SCHEMA = {
    "type": "object",
    "properties": {"professions": {"type": "array", "items": _ENTRY}},
    "required": ["professions"],
    "additionalProperties": False,
}
_ROLE = re.compile(r"(?=.{1,40}\Z)[A-Za-z'-]+(?: [A-Za-z'-]+){0,3}")
_ACTIVITY = re.compile(r"(?!(?:a|an|the) )(?:[a-z]+|[A-Z]{2,5})(?:[ -](?:[a-z]+|[A-Z]{2,5}))*")
# Words of the clause forms and of order: inside an activity they would speak of the plan.
_ORDER_WORDS = re.compile(
    r"\b(?:and|or|but|yet|while|whereas|which|when|that|tim(?:e|es|ed|ing)"
    r"|before(?:hand)?|after(?:wards?)?|prior|follow\w*|preced\w*|subsequent\w*|posterior\w*"
    r"|ahead|earl(?:y|ier|iest)|late(?:r|st)?|advanc\w*|front\w*|behind|wak(?:e[sn]?|ing)|woken?"
    r"|once|soon(?:er|est)?|then|next|first(?:ly)?|last(?:s|ed|ing|ly)?|start\w*|finish\w*"
    r"|begin\w*|began|begun|end(?:s|ed|ings?)?|happen\w*|occur\w*|execut\w*|perform\w*"
    r"|carr(?:y|ies|ied|ying)|done|(?:tak\w+|took) place|complet\w*|com(?:e|es|ing)|came"
    r"|schedul\w*|succe(?:ed|ss)\w*)\b",
    re.IGNORECASE,
)
# The head noun stands before the first of these; the verbs of a text are in the singular.
_PREPOSITION = re.compile(r" (?:of|for|with|to|in|on|from|at|about|by|through|under|between|into) ")
_PLURAL = re.compile(
    r"\w*[^sui]s|people|\w*children|\w*men|feet|teeth|mice|geese|data|media|staff|police|cattle"
)


@dataclass(frozen=True, slots=True)
class Invention:
    """Professions of a model that were kept; a line with the reason for each entry or request that
    was not; and how closeness in meaning was checked, or that it was not."""

    model: str
    topics: tuple[Topic, ...]
    refused: tuple[str, ...]
    meaning: str

    def save(self, path: Path) -> None:
        """Write the file that `read_words` reads, in one step. InputError when that fails."""
        value = {
            "schema": 1,
            "note": (
                f"Invented by the model {self.model}. A program has checked form and ambiguity; no "
                "person has reviewed whether activities of a profession overlap or have a natural "
                "order."
            ),
            "model": self.model,
            "reviewed": False,
            "prompts_sha256": content_hash([prompt.sha256 for prompt in _PROMPTS]),
            "meaning": self.meaning,
            "topics": [topic.model_dump(mode="json") for topic in self.topics],
            "refused": self.refused,
        }
        write_atomically(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def requests_for(professions: int) -> int:
    """Number of requests without repairs; each can need one more."""
    return -(-professions // PER_REQUEST)


async def invent(
    client: Client,
    embedder: Embedder | None,
    professions: int,
    tell: Callable[[str], None] = lambda _: None,
) -> Invention:
    """So many professions, a few with each request, one request after another.

    Each request names the professions that are there by then, so the same model, asked again, is
    sent the same requests, and a cache answers those that were answered before. Without an embedder
    closeness in meaning is not checked. A request whose reply cannot be used is listed among the
    refused; if that happens to every one, the last error is raised. Raises at once what would fail
    further requests alike: an endpoint that cannot be reached or refuses, a cap that is reached.
    """
    known = list(built_in_topics())
    refused: list[str] = []
    unusable: list[Exception] = []
    for number in range(requests_for(professions)):
        wanted = min(PER_REQUEST, professions - number * PER_REQUEST)
        what = f"professions, request {number + 1}"
        tell(what)
        text = _PROMPTS[0].render(
            count=wanted, activities=ACTIVITIES, known=[topic.role for topic in known]
        )
        request = Request(
            messages=({"role": "user", "content": text},),
            schema=_SCHEMA,
            parameters={"seed": number, "max_tokens": 4000, "temperature": 1.0},
            repeat=number,
            role="plan:invent:professions",
        )
        try:
            answer = await asking.ask(
                client, request, read_professions, lambda wrong: _PROMPTS[1].render(problem=wrong)
            )
        except (ReplyError, Filtered, TooLong) as error:
            unusable.append(error)
            refused.append(f"{what}: {': '.join(classify(error))}")
            continue
        entries, odd = answer.value
        refused += odd
        before = len(known)
        for role, phrases in entries:
            if len(known) - before == wanted:
                refused.append(f"profession {role!r}: is beyond the {wanted} asked for")
                continue
            topic, faults = checked(role, phrases, known, embedder)
            refused += faults
            if topic is not None:
                known.append(topic)
    if unusable and len(unusable) == requests_for(professions):
        raise unusable[-1]
    meaning = "closeness in meaning was not checked: no embedder"
    if embedder is not None:
        meaning = f"cosine below {MAX_COSINE:.2f} for every pair of a profession ({embedder.name})"
    kept = tuple(known[len(built_in_topics()) :])
    return Invention(client.model, kept, tuple(refused), meaning)


def read_professions(text: str) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """The professions of a reply with their activities, and its entries that are none.

    Read are {"professions": [...]}, the bare list, and a single profession. Raises ReplyError
    when there is not one profession with a list of activities.
    """

    def entries(value: Any) -> list[Any]:
        if isinstance(value, dict) and isinstance(value.get("professions"), list):
            return list(value["professions"])
        return value if isinstance(value, list) else [value]

    def is_profession(entry: Any) -> bool:
        return (
            isinstance(entry, dict)
            and isinstance(entry.get("role"), str)
            and isinstance(entry.get("activities"), list)
        )

    parsed = parse_reply(text, lambda value: any(map(is_profession, entries(value))))
    professions: list[tuple[str, list[str]]] = []
    refused: list[str] = []
    if parsed.rung == "salvaged":  # what was complete in front of the break counts
        refused.append(f"reply {text.rstrip()[-40:]!r}: broke off here")
    for entry in entries(parsed.value):
        if not is_profession(entry):
            refused.append(f"profession {str(entry)[:80]!r}: has no role and activities")
            continue
        role, phrases = entry["role"], entry["activities"]
        professions.append((role, [phrase for phrase in phrases if isinstance(phrase, str)]))
        refused += [
            f"{role}: activity {str(phrase)[:80]!r}: is no text"
            for phrase in phrases
            if not isinstance(phrase, str)
        ]
    return professions, refused


def checked(
    role: str, phrases: Sequence[str], known: Sequence[Topic], embedder: Embedder | None
) -> tuple[Topic | None, list[str]]:
    """The profession with the activities that hold every rule beside the `known` ones, in their
    order, or None; and a line with the first rule that is broken for whatever is refused."""
    roles = {topic.role.casefold().replace("-", " "): topic.role for topic in known}
    if not _ROLE.fullmatch(role):
        return None, [f"profession {role!r}: must be a name of one to four words"]
    if same := roles.get(role.casefold().replace("-", " ")):
        return None, [f"profession {role!r}: is there already, as {same!r}"]
    owners = {action(p).tool: topic.role for topic in known for p in topic.activities}
    fit = [phrase for phrase in phrases if phrase_fault(phrase) is None]
    vectors = dict(zip(fit, embedder.embed(fit), strict=True)) if embedder and fit else {}
    kept: list[str] = []
    refused: list[str] = []
    for phrase in phrases:
        reason = phrase_fault(phrase) or _clash(phrase, kept, owners, vectors)
        if reason is None and len(kept) == ACTIVITIES:
            reason = f"is beyond the {ACTIVITIES} asked for"
        if reason is None:
            kept.append(phrase)
            owners[action(phrase).tool] = role
        else:
            refused.append(f"{role}: activity {phrase!r}: {reason}")
    if len(kept) < FEWEST:
        reason = f"{len(kept)} of {len(phrases)} activities were kept, at least {FEWEST} are needed"
        return None, [*refused, f"profession {role!r}: only {reason}"]
    return Topic(role=role, activities=tuple(kept)), refused


def phrase_fault(phrase: str) -> str | None:
    """What is wrong with an activity by itself."""
    if not _ACTIVITY.fullmatch(phrase):
        return "must be small letters or acronyms with single spaces or hyphens, without an article"
    if not 2 <= len(phrase.split()) <= 5:
        return f"has {len(phrase.split())} words, 2 to 5 are wanted"
    if order := _ORDER_WORDS.search(phrase):
        return f"{order[0]!r} is a word of order or of the clause forms"
    head = _PREPOSITION.split(phrase)[0].split()[-1].rpartition("-")[2]
    if _PLURAL.fullmatch(head):
        return f"its head noun {head!r} is a plural"
    if len(phrase) > 60:  # so long is the longest name of a tool
        return "its tool name would have more than 60 characters"
    return None


def _clash(
    phrase: str, kept: Sequence[str], owners: Mapping[str, str], vectors: Mapping[str, Any]
) -> str | None:
    """What is wrong with an activity beside the others."""
    try:
        built_in().check_activities([*kept, phrase])
    except InputError as error:
        return str(error)
    if owner := owners.get(action(phrase).tool):
        return f"its tool {action(phrase).tool!r} is there already, of {owner}"
    if not vectors or not kept:
        return None
    near, cosine = max(
        ((other, float(vectors[phrase] @ vectors[other])) for other in kept), key=lambda p: p[1]
    )
    if cosine < MAX_COSINE:
        return None
    return f"is close to {near!r}: cosine {cosine:.2f}, below {MAX_COSINE:.2f} is wanted"
