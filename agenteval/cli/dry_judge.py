"""What a chat judge of runs would be asked for the calls of a plan."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from agenteval.cli.dry_bill import REPAIR, SHOWN_BACK, Amount, Asked, of_requests, repaired
from agenteval.cli.dry_rehearsal import rehearsal

if TYPE_CHECKING:
    from agenteval.evaluators.base import Unit
    from agenteval.evaluators.utility.plan import Units
    from agenteval.evaluators.utility.quantifier import QuantifierOptions
    from agenteval.models.factory import ModelChoice
    from agenteval.records import Task
    from agenteval.store import Store

LOOKED_AT = 4000  # calls whose requests are made; of more an even sample: a millisecond for each
REPLY_TOKENS_PER_CRITERION = 60  # an explanation of one or two sentences and a label
WHY = (
    "one request for each call that is not stored; a reply that cannot be read is asked for "
    "once more"
)


@dataclass(frozen=True)
class Asker:
    """A chat judge as a command asks it, made to be planned with; `store` holds paid replies."""

    choice: ModelChoice
    task: Task
    options: QuantifierOptions
    store: Store

    def judge(self) -> Any:
        """The judge on a client that sends nothing."""
        return self._made()[0]

    def left(self, unit: Unit) -> list[Any]:
        """The requests that are certain for a call whose first reply is stored: none, or its
        repair."""
        judge, nobody = self._made(self.store)
        from agenteval.evaluators.base import judge as judged

        asyncio.run(judged(judge, unit))
        return list(nobody.asked)

    def _made(self, cache: Store | None = None) -> tuple[Any, Any]:
        from agenteval.evaluators.utility.quantifier import chat_judge
        from agenteval.models.factory import make_client
        from agenteval.models.limits import Limits

        client, nobody = rehearsal(make_client(self.choice, Limits(), None), cache)
        return chat_judge(client, self.task, self.options), nobody


@dataclass
class _Sum:
    """Calls by what is certain of them."""

    new: list[Unit] = field(default_factory=list)  # nobody has asked this before
    requests: list[Any] = field(default_factory=list)  # of these
    twins: int = 0  # the same question again: stored by then, or under way at the same time
    repairs: list[Any] = field(default_factory=list)  # of stored replies


def judged(
    asker: Asker, units: Units | Sequence[Unit], who: str = "judge", why: str = WHY
) -> Asked:
    """What the calls would ask; degenerate answers are scored by a rule, and ask nothing."""
    from agenteval.readers import degenerate

    share = max(1, -(-len(units) // LOOKED_AT))
    sample = list(islice(units, 0, None, share))
    judge = asker.judge()
    found, seen = _Sum(), set()
    name = judge.inner.client.transport.endpoint, judge.inner.client.model
    for unit in sample:
        if degenerate(unit.run) is not None:
            continue
        request = judge.inner.request(unit)[0]
        key = request.key(*name)
        if key in seen:
            found.twins += 1
        elif share == 1 and asker.store.get_reply(key) is not None:
            found.repairs += asker.left(unit)
        else:
            found.new.append(unit)
            found.requests.append(request)
        seen.add(key)
    return _priced(found, who, why, len(units) / len(sample) if sample else 1.0)


def at_most(asker: Asker, units: Sequence[Unit], times: int, who: str, why: str) -> Asked:
    """What the calls ask at most, each `times` over, whatever is stored; nothing is certain."""
    request = asker.judge().inner.request
    found = _Sum(list(units), [request(unit)[0] for unit in units])
    one = _priced(found, who, why, 1.0)
    return replace(one, least=Amount(), most=one.most * times)


def _priced(found: _Sum, who: str, why: str, share: float) -> Asked:
    first, largest = of_requests(found.requests)
    again, longest = of_requests(found.repairs)
    criteria = sum(len(unit.criteria) for unit in found.new)
    each = -(-criteria // len(found.new)) if found.new else 0
    said = criteria * REPLY_TOKENS_PER_CRITERION
    least = replace(first, reply=said) + again
    twin = Amount(1, first.prompt // len(found.new), first.reply // len(found.new)) if (
        found.new and first.prompt is not None and first.reply is not None
    ) else Amount(1)  # fmt: skip
    most = repaired(first, texts=each) + again + repaired(twin, texts=each) * found.twins
    room = 3 * (SHOWN_BACK + REPAIR + 60 * each)  # bytes that a repair has more
    return Asked(
        who, _scaled(least, share), _scaled(most, share), why,
        largest=max((largest[0] + room * bool(first.requests), largest[1]), longest),
        exact=share == 1,
    )  # fmt: skip


def _scaled(amount: Amount, share: float) -> Amount:
    prompt, reply = (None if n is None else round(n * share) for n in (amount.prompt, amount.reply))
    return Amount(round(amount.requests * share), prompt, reply)
