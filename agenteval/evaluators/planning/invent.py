"""More professions, activities and wordings from a chat model, checked before they are kept.

One request asks for wordings, further ones for a few professions each; arXiv 2404.17833, section 5
had its professions and activities from a model as well. What is proposed must hold the rules of the
built-in lists; what does not is kept apart with its reason. A program cannot see that two
activities overlap or have a natural order, so the file says that nobody has read it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agenteval.errors import AgentevalError, Filtered, ReplyError, TooLong
from agenteval.evaluators.base import classify
from agenteval.evaluators.planning.dsl.lexicon import KINDS, Lexicon, built_in
from agenteval.evaluators.planning.invent_activities import (
    ACTIVITIES,
    MAX_COSINE,
    Refused,
    Sieve,
)
from agenteval.evaluators.planning.invent_ask import (
    PACKAGE,
    ask,
    professions_schema,
    read_professions,
    read_wordings,
    words_schema,
)
from agenteval.evaluators.planning.invent_words import Wording, add_wordings
from agenteval.evaluators.planning.synthesis.topics import Topic, action, built_in_topics
from agenteval.files import write_atomically
from agenteval.models.client import Client
from agenteval.models.embeddings import Embedder
from agenteval.models.prompts import load_prompt
from agenteval.models.wire import Request
from agenteval.records import content_hash

PER_REQUEST = 4  # professions
PER_KIND = 5  # wordings
_MAX_TOKENS = 4000
_TEMPERATURE = 1.0
_UNUSABLE = (ReplyError, Filtered, TooLong)  # of one request, not of the endpoint

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """A request that brought nothing: what it was for, its status and the reason."""

    request: str
    status: str
    message: str


@dataclass(frozen=True, slots=True)
class Invention:
    """What a model proposed: kept, refused, and requests that failed.

    `asked` is the number of professions asked for, `proposed` what came by kind (profession,
    activity, wording). `lexicon` is the built-in one with `wordings` added. `meaning` says how
    closeness in meaning was checked, or that it was not.
    """

    model: str
    asked: int
    proposed: dict[str, int]
    lexicon: Lexicon
    wordings: tuple[Wording, ...]
    topics: tuple[Topic, ...]
    refused: tuple[Refused, ...]
    failures: tuple[FailedRequest, ...]
    meaning: str

    @property
    def kept(self) -> dict[str, int]:
        """Number of what was kept, by the kinds of `proposed`."""
        return {
            "profession": len(self.topics),
            "activity": sum(len(topic.activities) for topic in self.topics),
            "wording": len(self.wordings),
        }

    def to_json(self) -> dict[str, Any]:
        """The file that `read_words` reads; further keys tell where its content comes from."""
        added: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for kind, singular, _ in self.wordings:
            added[kind].append(singular)
        return {
            "schema": 1,
            "note": (
                f"Invented by the model {self.model}. A program has checked form, ambiguity and "
                "direction; no person has reviewed the wordings, nor whether activities of a "
                "profession overlap or have a natural order."
            ),
            "model": self.model,
            "reviewed": False,
            "prompts_sha256": prompts_sha256(),
            "meaning": self.meaning,
            "proposed": self.proposed,
            "kept": self.kept,
            "words": self.lexicon.to_json() if self.wordings else None,
            "added_words": added,
            "topics": [topic.model_dump(mode="json") for topic in self.topics],
            "refused": [asdict(entry) for entry in self.refused],
            "failures": [asdict(entry) for entry in self.failures],
        }


def prompts_sha256() -> str:
    """Hash (hex) over the templates of the requests."""
    names = ("invent_words", "invent_professions", "invent_repair")
    return content_hash([load_prompt(PACKAGE, name).sha256 for name in names])


def requests_for(professions: int) -> int:
    """Number of requests without repairs; each can need one more."""
    return 1 + -(-professions // PER_REQUEST)


def save_invention(path: Path, found: Invention) -> None:
    """Write the file in one step. InputError when it cannot be written."""
    text = json.dumps(found.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(path, text + "\n")


class Inventor:
    """Asks a chat model. Without an embedder closeness in meaning is not checked, and said so."""

    def __init__(
        self, client: Client, embedder: Embedder | None, *, tell: Told = lambda _: None
    ) -> None:
        self.client = client
        self.embedder = embedder
        self.tell = tell

    async def invent(self, professions: int) -> Invention:
        """Wordings first, then the professions, one request after another.

        Each request names the professions that are there by then. The same model, asked again,
        is sent the same requests, so that a cache answers those that were answered before.
        A request whose reply cannot be used is kept as a failure; if that happens to every one,
        the last error is raised. Raises at once what would fail further requests alike: an
        endpoint that cannot be reached or refuses, a cap that is reached.
        """
        run = _Run(self.client, self.tell)
        wordings, refused = await run.wordings()
        lexicon, added, unfit = add_wordings(built_in(), wordings, built_in_topics())
        sieve = Sieve(
            lexicon,
            self.embedder,
            [topic.role for topic in built_in_topics()],
            {action(p).tool: t.role for t in built_in_topics() for p in t.activities},
            [*refused, *unfit],
        )
        topics: list[Topic] = []
        for start in range(0, professions, PER_REQUEST):
            count = min(PER_REQUEST, professions - start)
            topics += await run.professions(start // PER_REQUEST, count, sieve)
        if len(run.failures) == requests_for(professions) and run.last is not None:
            raise run.last
        run.proposed["wording"] = len(wordings) + _entries(refused)
        return Invention(
            model=self.client.model,
            asked=professions,
            proposed={kind: run.proposed[kind] for kind in ("profession", "activity", "wording")},
            lexicon=lexicon,
            wordings=tuple(added),
            topics=tuple(topics),
            refused=tuple(sieve.refused),
            failures=tuple(run.failures),
            meaning=self._meaning(),
        )

    def _meaning(self) -> str:
        if self.embedder is None:
            return "closeness in meaning was not checked: no embedder"
        return (
            f"cosine below {MAX_COSINE:.2f} for every pair of a profession ({self.embedder.name})"
        )


class _Run:
    """The requests of one `invent`."""

    def __init__(self, client: Client, tell: Told) -> None:
        self.client = client
        self.tell = tell
        self.proposed: Counter[str] = Counter()
        self.failures: list[FailedRequest] = []
        self.last: AgentevalError | None = None

    async def wordings(self) -> tuple[list[Wording], list[Refused]]:
        known = {kind: [p.singular for p in built_in().words[kind]] for kind in KINDS}
        text = load_prompt(PACKAGE, "invent_words").render(known=known, count=PER_KIND)
        request = _request(text, words_schema(), 0, "plan:invent:words")
        self.tell("wordings")
        try:
            return await ask(self.client, request, read_wordings)
        except _UNUSABLE as error:
            self._failed("wordings", error)
            return [], []

    async def professions(self, number: int, count: int, sieve: Sieve) -> list[Topic]:
        """Request `number` (from 0) for so many professions, put through the sieve."""
        text = load_prompt(PACKAGE, "invent_professions").render(
            count=count, activities=ACTIVITIES, known=sieve.roles
        )
        request = _request(text, professions_schema(), number, "plan:invent:professions")
        what = f"professions, request {number + 1}"
        self.tell(what)
        try:
            found, refused = await ask(self.client, request, read_professions)
        except _UNUSABLE as error:
            self._failed(what, error)
            return []
        sieve.refused += refused
        self.proposed["profession"] += len(found) + _entries(refused)
        topics: list[Topic] = []
        for one in found:
            self.proposed["activity"] += len(one.activities) + len(one.odd)
            if len(topics) == count:
                reason = f"is beyond the {count} asked for"
                sieve.refused.append(Refused("profession", one.role, one.role, reason))
            elif (topic := sieve.take(one)) is not None:
                topics.append(topic)
        return topics

    def _failed(self, what: str, error: AgentevalError) -> None:
        self.failures.append(FailedRequest(what, *classify(error)))
        self.last = error


def _entries(refused: Sequence[Refused]) -> int:
    """How many of them are proposals; the broken end of a reply is none."""
    return sum(entry.kind != "reply" for entry in refused)


def _request(text: str, schema: dict[str, Any], repeat: int, role: str) -> Request:
    return Request(
        messages=({"role": "user", "content": text},),
        schema=schema,
        parameters={"seed": repeat, "max_tokens": _MAX_TOKENS, "temperature": _TEMPERATURE},
        repeat=repeat,
        role=role,
    )


__all__ = ["FailedRequest", "Invention", "Inventor", "requests_for", "save_invention"]
