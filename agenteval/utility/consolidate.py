"""Consolidation: a chat model says which differently named criteria are the same idea.

Embeddings of names and descriptions do not tell paraphrases from neighbours well enough: on real
critics no threshold has both precision and recall (`benchmarks/merge_quality`). So the chat critic
is shown the folded names, one representative wording of each, as a numbered list, and sorts them
into ideas. What it says holds for the entries that it placed; where it cannot be asked or read,
merging by embedding alone stands. Nothing is dropped.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.errors import BudgetExceeded, ModelError, ReplyError
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.reply import parse_reply
from agenteval.models.wire import NONCE, Request
from agenteval.records import Criterion, Task, Usage, content_hash
from agenteval.utility.critic import sampling, strict_object
from agenteval.utility.merge import Names
from agenteval.utility.names import fold_name

ENTRIES = 80  # criteria shown in one request
_PACKAGE = "agenteval.utility"
_IDEAS = ("ideas", "groups", "clusters", "same", "criteria")
_ENTRIES = ("entries", "numbers", "members", "criteria", "ids", "items", "group")
_WHY = ("question", "idea", "why", "reason", "name", "title")


@dataclass(frozen=True)
class Sorted:
    """What one reply says of a numbered list (numbers from 0).

    `ideas` are disjoint; an entry that stands in none was not placed, or in two ideas. `part_of`
    holds (part, whole). `problems`: one line for each kind of thing that was left out.
    """

    ideas: tuple[tuple[str, tuple[int, ...]], ...]
    part_of: tuple[tuple[int, int], ...]
    problems: tuple[str, ...]


def read_ideas(text: str, criteria: Sequence[Criterion]) -> Sorted:
    """The ideas in a reply about these entries.

    Entries may be numbers, numbers as text, or names. One that does not exist is left out; one that
    is put into two ideas stands in neither, since ideas would be joined through it. Raises
    ReplyError when no entry is placed, and when all of more than three are one idea.
    """
    value = parse_reply(text, lambda v: any(_listed(v))).value
    by_name = {fold_name(c.name): n for n, c in enumerate(criteria)}

    def number(entry: Any) -> int | None:
        """The entry's number from 0; None when there is no such entry."""
        if isinstance(entry, dict):
            entry = entry.get("number", entry.get("id", entry.get("name")))
        if isinstance(entry, str):
            if (named := by_name.get(fold_name(entry))) is not None:
                return named
            digits = re.match(r"\s*#?(\d{1,6})\b", entry)
            entry = int(digits[1]) if digits else None
        known = type(entry) is int and 1 <= entry <= len(criteria)
        return entry - 1 if known else None

    listed = [(why, list(map(number, entries))) for why, entries in _listed(value)]
    unknown = sum(n is None for _, entries in listed for n in entries)
    ideas = [(why, sorted({n for n in entries if n is not None})) for why, entries in listed]
    placed = Counter(n for _, entries in ideas for n in entries)
    alone = [(why, tuple(n for n in entries if placed[n] == 1)) for why, entries in ideas]
    kept = tuple(idea for idea in alone if idea[1])
    if not kept:
        raise ReplyError("the reply places none of the entries in an idea")
    if len(criteria) > 3 and len(kept[0][1]) == len(criteria):
        raise ReplyError("the reply puts all entries into one idea")
    idea_of = {n: i for i, (_, entries) in enumerate(kept) for n in entries}
    pairs: dict[tuple[int, int], None] = {}
    wrong = 0
    part_of = value.get("part_of") if isinstance(value, dict) else None
    for pair in part_of if isinstance(part_of, list) else []:
        if isinstance(pair, dict):
            pair = [pair.get("part"), pair.get("whole", pair.get("of"))]
        ends = [number(entry) for entry in pair] if isinstance(pair, list) else []
        # entries that stand in no idea stand alone
        groups = {idea_of.get(n, -1 - n) for n in ends if n is not None}
        if len(ends) == len(groups) == 2:
            pairs[ends[0] or 0, ends[1] or 0] = None
        else:
            wrong += 1
    agreed = tuple(pair for pair in pairs if pair[::-1] not in pairs)
    left_out = {
        "named that do not exist": unknown,
        "put into two ideas at once, so into neither": sum(n > 1 for n in placed.values()),
        "not placed": len(criteria) - len(placed),
        "named as parts of themselves or of nothing": wrong + len(pairs) - len(agreed),
    }
    problems = tuple(f"{count} {what}" for what, count in left_out.items() if count)
    return Sorted(kept, agreed, problems)


def _listed(value: Any) -> Iterator[tuple[str, list[Any]]]:
    """(why, entries) of every idea in a value: under a key, or a bare list of lists or objects."""
    if isinstance(value, dict):
        value = next((value[key] for key in _IDEAS if isinstance(value.get(key), list)), [])
    for idea in value if isinstance(value, list) else []:
        entries, why = idea, ""
        if isinstance(idea, dict):
            entries = next((idea[key] for key in _ENTRIES if isinstance(idea.get(key), list)), None)
            why = next((idea[key] for key in _WHY if isinstance(idea.get(key), str)), "")
        if isinstance(entries, list) and entries:
            yield " ".join(why.split()), entries


@dataclass(frozen=True)
class Consolidation:
    """Groups of names after a chat model was asked; `labels` as in `Names.partition`.

    `before` are the groups by embedding alone. `why` gives, by place of a name, the question that
    the model found in its idea. `part_of` holds (part, whole) as places of names that are not in
    one group. `requests` were made; `problems` says in a line each what of them was not used, and
    why.
    """

    labels: list[int]
    before: list[int]
    why: dict[int, str]
    part_of: tuple[tuple[int, int], ...]
    requests: int
    problems: tuple[str, ...]
    usage: Usage
    model: str
    prompt_sha256: str

    def to_json(self) -> dict[str, Any]:
        """How the model was asked and what came of it; what it joined stands in the aliases."""
        return {
            "requests": self.requests,
            "groups": len(set(self.labels)),
            "groups_by_embedding": len(set(self.before)),
            "problems": list(self.problems),
            "model": self.model,
            "prompt_sha256": self.prompt_sha256,
            "usage": self.usage.model_dump(),
        }

    def provenance(self, representative: int, member: int) -> dict[str, Any]:
        """What an alias says of the model that joined these two names; empty when the embedding
        had joined them, or they are equal."""
        if self.before[representative] == self.before[member]:
            return {}
        return {
            "by": "consolidation",
            "model": self.model,
            "prompt_sha256": self.prompt_sha256,
            "why": self.why.get(member, ""),
        }


def most_questions(names: int) -> int:
    """Questions that `Consolidator.consolidate` asks of so many names at most: there are at most
    as many pieces as any two of them exceed ENTRIES, and one more question for their groups."""
    return 1 if names <= ENTRIES else 2 * names // ENTRIES + 2


class Consolidator:
    """Asks a chat model which criteria are the same idea.

    `temperature` None leaves it to the endpoint.
    """

    def __init__(self, client: Client, task: Task, *, temperature: float | None = 0.0) -> None:
        self.client = client
        self.task = task
        self.temperature = temperature
        self._system = load_prompt(_PACKAGE, "consolidate_system")
        self._user = load_prompt(_PACKAGE, "consolidate_user")
        self._repair = load_prompt(_PACKAGE, "consolidate_repair")

    @property
    def prompt_sha256(self) -> str:
        """Hash (hex) over the templates used."""
        return content_hash([self._system.sha256, self._user.sha256, self._repair.sha256])

    def request(self, criteria: Sequence[Criterion]) -> Request:
        """The request for a list of entries.

        The numbers in a reply mean something for this very list alone, so it names no run, and a
        recorded reply is found where it is about the same names in the same order. Which of several
        descriptions of one name is shown depends on the embedder, and does not matter.
        """
        values: dict[str, Any] = {
            "nonce": NONCE,
            "task_name": self.task.name,
            "task_description": self.task.description,
            "criteria": criteria,
        }
        return Request(
            messages=(
                {"role": "system", "content": self._system.render(**values)},
                {"role": "user", "content": self._user.render(**values)},
            ),
            schema=_SCHEMA,
            parameters=sampling(0, self.temperature),
            role="consolidate",
            about={"list": content_hash([fold_name(c.name) for c in criteria])},
        )

    async def consolidate(self, names: Names, before: Sequence[int]) -> Consolidation:
        """The groups of names, starting from those by embedding (`before`).

        One request shows all names when they are at most ENTRIES; else each piece of like names is
        shown, and then one name of each group. Entries that a reply placed are grouped as it says,
        against the embedding as well; the others stay with those of their group that were not
        placed either. A request that fails, or whose reply cannot be read after one repair,
        changes nothing. Raises StoreError: what is paid must be kept.
        """
        labels, why = list(before), dict[int, str]()
        parts: list[tuple[int, int]] = []
        problems: list[str] = []
        usage, requests = Usage(), 0

        async def ask_about(
            pieces: Sequence[Sequence[int]], stands_for: dict[int, list[int]]
        ) -> None:
            """Group the names that these entries stand for as the replies say."""
            nonlocal usage, requests
            asked = [piece for piece in pieces if len(piece) > 1]
            replies = await asyncio.gather(*(self._ask(names, piece) for piece in asked))
            for piece, (reply, took, times) in zip(asked, replies, strict=True):
                usage, requests = usage + took, requests + times
                if isinstance(reply, str):
                    problems.append(reply)
                    continue
                problems.extend(reply.problems)
                parts.extend((piece[part], piece[whole]) for part, whole in reply.part_of)
                for question, entries in reply.ideas:
                    idea = max(labels) + 1
                    for n in (n for entry in entries for n in stands_for[piece[entry]]):
                        labels[n], why[n] = idea, question

        pieces = names.pieces(ENTRIES)
        await ask_about(pieces, {n: [n] for n in range(len(labels))})
        if len(pieces) > 1:  # one name of each group, for those of other pieces
            groups: dict[int, list[int]] = {}
            for n, label in enumerate(labels):
                groups.setdefault(label, []).append(n)
            if len(groups) > ENTRIES:
                problems.append(f"{len(groups)} groups are too many for one more request")
            else:
                stands_for = {members[0]: members for members in groups.values()}
                await ask_about([list(stands_for)], stands_for)
        rank = {label: n for n, label in enumerate(dict.fromkeys(labels))}
        labels = [rank[label] for label in labels]
        return Consolidation(
            labels=labels,
            before=list(before),
            why=why,
            part_of=tuple(p for p in dict.fromkeys(parts) if labels[p[0]] != labels[p[1]]),
            requests=requests,
            problems=tuple(problems),
            usage=usage,
            model=self.client.model,
            prompt_sha256=self.prompt_sha256,
        )

    async def _ask(self, names: Names, piece: Sequence[int]) -> tuple[Sorted | str, Usage, int]:
        """What the reply says, or why there is none; what it took, and in how many requests."""
        criteria = [names.representatives[n] for n in piece]
        try:
            asked = await asking.ask(
                self.client,
                self.request(criteria),
                lambda text: read_ideas(text, criteria),
                lambda problem: self._repair.render(problem=problem),
            )
        except (ReplyError, ModelError, BudgetExceeded) as error:
            times = 2 if isinstance(error, ReplyError) else 1
            reason = f"{len(criteria)} names merged by embedding alone: {error}"
            return reason, error.spent or Usage(), times
        return asked.value, asked.usage, 1 + asked.repaired


_NUMBERS = {"type": "array", "items": {"type": "integer"}}
_IDEA = strict_object({"question": {"type": "string"}, "entries": _NUMBERS})
_SCHEMA = strict_object(
    {
        "ideas": {"type": "array", "items": _IDEA},
        "part_of": {"type": "array", "items": _NUMBERS},
    }
)
