"""Consolidation: a chat model groups differently named criteria that express the same idea.

Embeddings do not separate paraphrases from related criteria well enough: on real critics no
threshold gives both precision and recall (`benchmarks/merge_quality`). So the chat critic gets a
numbered list with one representative wording per folded name and sorts it into ideas. Its answer
applies to the entries that it placed. If the request fails, the groups by embedding are kept. No
criterion is dropped.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.errors import AgentevalError, BudgetExceeded, ModelError, ReplyError
from agenteval.models.asking import ParsedReply
from agenteval.models.reply import parse_reply
from agenteval.models.wire import Request
from agenteval.records import Criterion, Usage, content_hash
from agenteval.utility.critic import ChatCritic, strict_object
from agenteval.utility.merge import CriterionClusters, fold_name

ENTRIES = 80  # criteria shown in one request
_IDEAS = ("ideas", "groups", "clusters", "same", "criteria")
_ENTRIES = ("entries", "numbers", "members", "criteria", "ids", "items", "group")
_WHY = ("question", "idea", "why", "reason", "name", "title")


@dataclass(frozen=True)
class ConsolidationReply:
    """The ideas in a reply about a numbered list (numbers from 0).

    `ideas` are disjoint; an entry in none of them was not assigned, or was assigned twice.
    `part_of` has (part, whole) pairs. `problems` has one line for each kind of ignored statement.
    """

    ideas: tuple[tuple[str, tuple[int, ...]], ...]
    part_of: tuple[tuple[int, int], ...]
    problems: tuple[str, ...]


def read_ideas(text: str, criteria: Sequence[Criterion]) -> ConsolidationReply:
    """Read the ideas in a reply about these entries.

    Entries may be numbers, numbers as text, or names. Unknown entries are ignored. An entry in two
    ideas is removed from both, because it would join them. Raises ReplyError if no entry is placed,
    or if all of more than three entries are in one idea.
    """
    value = parse_reply(text, lambda v: any(_listed(v))).value
    by_name = {fold_name(c.name): n for n, c in enumerate(criteria)}

    def index_of(entry: Any) -> int | None:
        """Return the index of the entry, or None if it does not exist."""
        if isinstance(entry, dict):
            entry = entry.get("number", entry.get("id", entry.get("name")))
        if isinstance(entry, str):
            if (index := by_name.get(fold_name(entry))) is not None:
                return index
            digits = re.match(r"\s*#?(\d{1,6})\b", entry)
            entry = int(digits[1]) if digits else None
        return entry - 1 if type(entry) is int and 1 <= entry <= len(criteria) else None

    listed = [(why, list(map(index_of, entries))) for why, entries in _listed(value)]
    unknown = sum(entries.count(None) for _, entries in listed)
    sets = [(why, sorted({n for n in entries if n is not None})) for why, entries in listed]
    placed = Counter(n for _, entries in sets for n in entries)
    disjoint = [(why, tuple(n for n in entries if placed[n] == 1)) for why, entries in sets]
    ideas = tuple(idea for idea in disjoint if idea[1])
    if not ideas:
        raise ReplyError("the reply places none of the entries in an idea")
    if len(criteria) > 3 and len(ideas[0][1]) == len(criteria):
        raise ReplyError("the reply puts all entries into one idea")
    idea_of = {n: i for i, (_, entries) in enumerate(ideas) for n in entries}
    pairs: dict[tuple[int, int], None] = {}
    wrong = 0
    part_of = value.get("part_of") if isinstance(value, dict) else None
    for pair in part_of if isinstance(part_of, list) else []:
        if isinstance(pair, dict):
            pair = [pair.get("part"), pair.get("whole", pair.get("of"))]
        ends = [index_of(entry) for entry in pair] if isinstance(pair, list) else []
        # an entry in no idea is an idea of its own
        groups = {idea_of.get(n, -1 - n) for n in ends if n is not None}
        if len(ends) == len(groups) == 2:
            pairs[ends[0] or 0, ends[1] or 0] = None
        else:
            wrong += 1
    agreed = tuple(pair for pair in pairs if pair[::-1] not in pairs)
    left_out = {
        "named but do not exist": unknown,
        "assigned to two ideas at once, so to neither": sum(n > 1 for n in placed.values()),
        "not placed": len(criteria) - len(placed),
        "named as parts of themselves or of unknown entries": wrong + len(pairs) - len(agreed),
    }
    problems = tuple(f"{count} {what}" for what, count in left_out.items() if count)
    return ConsolidationReply(ideas, agreed, problems)


def _listed(value: Any) -> Iterator[tuple[str, list[Any]]]:
    """Yield (why, entries) of every idea: under a key, or in a list of lists or objects."""
    if isinstance(value, dict):
        value = _first(value, _IDEAS, list) or []
    for idea in value if isinstance(value, list) else []:
        entries, why = idea, ""
        if isinstance(idea, dict):
            entries, why = _first(idea, _ENTRIES, list), _first(idea, _WHY, str) or ""
        if isinstance(entries, list) and entries:
            yield " ".join(why.split()), entries


def _first(value: dict[str, Any], keys: Sequence[str], kind: type) -> Any:
    return next((value[key] for key in keys if isinstance(value.get(key), kind)), None)


@dataclass(frozen=True)
class Consolidation:
    """Groups of names by a chat model; `labels` are as in `CriterionClusters.partition`.

    `before` are the groups by embedding alone. `why` maps the index of a name to the question that
    the model gave for its idea. `part_of` has (part, whole) pairs of indices of names in different
    groups. `requests` counts the requests; `problems` has one line for each unused reply.
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
        """Return the counts, problems and model; the aliases record which names were joined."""
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
        """Return alias fields for the model that joined these two names; empty if the names are
        equal or the embedding had already joined them."""
        if self.before[representative] == self.before[member]:
            return {}
        return {
            "by": "consolidation",
            "model": self.model,
            "prompt_sha256": self.prompt_sha256,
            "why": self.why.get(member, ""),
        }


def most_questions(names: int) -> int:
    """Return the maximum number of requests of `Consolidator.consolidate`: any two pieces together
    exceed ENTRIES, and there is one more request for their groups."""
    return 1 if names <= ENTRIES else 2 * names // ENTRIES + 2


class Consolidator(ChatCritic):
    """Asks a chat model which criteria express the same idea."""

    role = "consolidate"
    prompts = "consolidate_system", "consolidate_user", "consolidate_repair"

    def request(self, criteria: Sequence[Criterion]) -> Request:
        """Return the request for a list of entries.

        The numbers in a reply refer to this list, so a recorded reply is found by the same names in
        the same order. The descriptions depend on the embedder and are not compared.
        """
        numbers = {"type": "array", "items": {"type": "integer"}}
        idea = strict_object({"question": {"type": "string"}, "entries": numbers})
        schema = {
            "ideas": {"type": "array", "items": idea},
            "part_of": {"type": "array", "items": numbers},
        }
        return self._request(
            0,
            strict_object(schema),
            {"criteria": criteria},
            about={"list": content_hash([fold_name(c.name) for c in criteria])},
        )

    async def consolidate(
        self, clusters: CriterionClusters, before: Sequence[int]
    ) -> Consolidation:
        """Group the names, starting from the groups by embedding (`before`).

        Up to ENTRIES names are shown in one request. Otherwise each piece of similar names is
        shown, and then one name of each group. Placed entries are grouped as in the reply, even
        against the embedding; the others stay with the unplaced members of their group. A failed
        request, or a reply that is unreadable after one repair, changes nothing. Raises StoreError
        if a paid reply cannot be stored.
        """
        labels, why = list(before), dict[int, str]()
        part_of: dict[tuple[int, int], None] = {}
        problems: list[str] = []
        usage, requests = Usage(), 0

        async def ask_about(
            pieces: Sequence[Sequence[int]], members: Mapping[int, Sequence[int]]
        ) -> None:
            """Regroup the names of the pieces (each entry represents `members`) by the replies."""
            nonlocal usage, requests
            pieces = [piece for piece in pieces if len(piece) > 1]
            shown = [[clusters.representatives[n] for n in piece] for piece in pieces]
            replies = await asyncio.gather(*map(self._answer, shown))
            for piece, reply in zip(pieces, replies, strict=True):
                if isinstance(reply, AgentevalError):
                    usage += reply.spent or Usage()
                    requests += 2 if isinstance(reply, ReplyError) else 1
                    problems.append(f"{len(piece)} names merged by embedding alone: {reply}")
                    continue
                usage, requests = usage + reply.usage, requests + 1 + reply.repaired
                problems.extend(reply.value.problems)
                for part, container in reply.value.part_of:
                    part_of[piece[part], piece[container]] = None
                for question, entries in reply.value.ideas:
                    idea = max(labels) + 1
                    for n in (n for entry in entries for n in members[piece[entry]]):
                        labels[n], why[n] = idea, question

        pieces = clusters.pieces(ENTRIES)
        await ask_about(pieces, {n: [n] for n in range(len(labels))})
        if len(pieces) > 1:  # compare the groups of different pieces by one name each
            groups: dict[int, list[int]] = {}
            for n, label in enumerate(labels):
                groups.setdefault(label, []).append(n)
            if len(groups) > ENTRIES:
                problems.append(f"{len(groups)} groups are too many for one more request")
            else:
                members = {group[0]: group for group in groups.values()}
                await ask_about([list(members)], members)
        rank = {label: n for n, label in enumerate(dict.fromkeys(labels))}
        labels = [rank[label] for label in labels]
        return Consolidation(
            labels=labels,
            before=list(before),
            why=why,
            part_of=tuple(pair for pair in part_of if labels[pair[0]] != labels[pair[1]]),
            requests=requests,
            problems=tuple(problems),
            usage=usage,
            model=self.client.model,
            prompt_sha256=self.prompt_sha256,
        )

    async def _answer(
        self, shown: Sequence[Criterion]
    ) -> ParsedReply[ConsolidationReply] | ReplyError | ModelError | BudgetExceeded:
        try:
            return await self._ask(self.request(shown), lambda text: read_ideas(text, shown))
        except (ReplyError, ModelError, BudgetExceeded) as error:
            return error
