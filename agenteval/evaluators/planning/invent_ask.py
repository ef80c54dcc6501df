"""One request for proposals, with one repair round, and what a reply may look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from agenteval.evaluators.planning.dsl.lexicon import KINDS
from agenteval.evaluators.planning.invent_activities import Proposed, Refused
from agenteval.evaluators.planning.invent_words import Wording
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.reply import parse_reply
from agenteval.models.wire import Request

PACKAGE = "agenteval.evaluators.planning"
T = TypeVar("T")
_MOST_SHOWN = 80  # characters of something that is no text, in a reason
_TEXT = {"type": "string"}


async def ask(client: Client, request: Request, read: Callable[[str], T]) -> T:
    """What is read from the reply, or from the one repair. Raises as `asking.ask`."""
    repair = load_prompt(PACKAGE, "invent_repair")
    found = await asking.ask(client, request, read, lambda problem: repair.render(problem=problem))
    return found.value


def professions_schema() -> dict[str, Any]:
    """JSON schema of a reply with professions."""
    entry = _object({"role": _TEXT, "activities": {"type": "array", "items": _TEXT}})
    return _object({"professions": {"type": "array", "items": entry}})


def words_schema() -> dict[str, Any]:
    """JSON schema of a reply with wordings."""
    pair = _object({"singular": _TEXT, "plural": _TEXT})
    return _object({
        kind: {"type": "array", "items": pair if kind.startswith("VP") else _TEXT}
        for kind in KINDS
    })  # fmt: skip


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def read_professions(text: str) -> tuple[list[Proposed], list[Refused]]:
    """The professions of a reply, and its entries that are none.

    Read are {"professions": [...]}, the bare list, and a single profession. Raises ReplyError
    when there is not one profession with a list of activities.
    """
    parsed = parse_reply(text, lambda v: any(_is_profession(e) for e in _entries(v)))
    found: list[Proposed] = []
    refused = _broken_off(text, parsed.rung)
    for entry in _entries(parsed.value):
        if _is_profession(entry):
            items = entry["activities"]
            texts = tuple(item for item in items if isinstance(item, str))
            odd = tuple(_shown(item) for item in items if not isinstance(item, str))
            found.append(Proposed(entry["role"], texts, odd))
        else:
            refused.append(Refused("profession", "", _shown(entry), "has no role and activities"))
    return found, refused


def _entries(value: Any) -> list[Any]:
    if isinstance(value, dict) and isinstance(value.get("professions"), list):
        return list(value["professions"])
    return value if isinstance(value, list) else [value]


def _is_profession(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("role"), str)
        and isinstance(entry.get("activities"), list)
    )


def read_wordings(text: str) -> tuple[list[Wording], list[Refused]]:
    """The wordings of a reply by kind, and its entries that are none.

    Raises ReplyError when there is no object with a list for at least one kind.
    """
    parsed = parse_reply(text, _has_kind)
    found: list[Wording] = []
    refused = _broken_off(text, parsed.rung)
    for kind, entries in parsed.value.items():
        for entry in entries if isinstance(entries, list) else [entries]:
            wording = _wording(str(kind), entry)
            if wording is None:
                wanted = "singular and plural" if str(kind).startswith("VP") else "one text"
                refused.append(Refused(str(kind), "", _shown(entry), f"is not {wanted}"))
            else:
                found.append(wording)
    return found, refused


def _has_kind(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(kind), list) for kind in KINDS)


def _wording(kind: str, entry: Any) -> Wording | None:
    if kind.startswith("VP") and isinstance(entry, dict):
        one, many = entry.get("singular"), entry.get("plural")
        return (kind, one, many) if isinstance(one, str) and isinstance(many, str) else None
    return (kind, entry, entry) if isinstance(entry, str) and not kind.startswith("VP") else None


def _broken_off(text: str, rung: str) -> list[Refused]:
    """An entry for the end of a reply that was cut; what was complete in front of it counts."""
    if rung != "salvaged":
        return []
    return [Refused("reply", "", text.rstrip()[-40:], "the reply broke off here")]


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"
