"""What `criteria --dry-run` says, and what the critics of further rounds take. Nobody is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.cli.dry import EMPTY, LOCAL, notes, planned_store
from agenteval.cli.dry_bill import Amount, Asked, Bill, of_requests, repaired
from agenteval.cli.dry_rehearsal import rehearsal
from agenteval.errors import AgentevalError, ReplyError

if TYPE_CHECKING:
    from agenteval.models.factory import ModelChoice
    from agenteval.models.limits import Limits
    from agenteval.proposals import CriticOptions
    from agenteval.records import Criterion, Task
    from agenteval.store import Store

_SHOWN = 12  # entries of the bank that a critic is shown
_WHY = "one request for each seed; a reply that cannot be read is asked for once more"
_UNSEEN = "what is shown of the bank is known only when it is ranked"
_WHY_ORDER = "one for each seed whose criteria leave open which level is the best"
_WHY_SUB = "one for each seed whose criteria could be read, and one more if it cannot be read"


def bill(
    choice: ModelChoice, wanted: CriticOptions, task: Task, limits: Limits, store: Path
) -> Bill:
    """What `criteria` would ask. Raises InputError for a cap without a price."""
    limits.budget()
    mode = "solution-based" if wanted.use_examples else "task-based"
    about = (f"task: {task.name}, {mode}; seeds: {len(wanted.seeds)}",)
    if choice.kind == "embedded":
        how = f"the embedded critic retrieves from the bank; {LOCAL}"
        return Bill("criteria", (*about, how), (), limits)
    with planned_store(store) as found:
        asked, stored = critics(choice, wanted, task, found)
    if stored:
        about = (f"{about[0]}; replies of {stored} critics are stored already",)
    asked += tuple(_consolidation(wanted, task))
    asked += tuple(_embeddings(wanted, task))
    more = () if not (wanted.embedder or "").startswith("endpoint:") else (
        "embeddings are asked beside the budget: no cap holds for them, and no price is known",
    )  # fmt: skip
    return Bill("criteria", about, asked, limits, notes=(*notes(choice), *more))


def critics(
    choice: ModelChoice,
    wanted: CriticOptions,
    task: Task,
    store: Store,
    budget: str = "command",
) -> tuple[tuple[Asked, ...], int]:
    """What critics and sub-critics are asked, and how many critics' replies are stored.

    What a seed still asks is found by having it read what is stored. A reply counts as long as it
    may be, and so does the list of criteria that a sub-critic is shown; of the bank its longest
    entries count.
    """
    from agenteval.models.factory import make_client
    from agenteval.models.limits import Limits

    known = make_client(choice, Limits(), None)
    # what is shown of the bank is chosen by an embedder, so those requests are not known here
    unseen = wanted.bank and store.path.name != EMPTY
    cache = None if wanted.bank else store
    whys = {"critic": ("critics", _WHY), "subcritic": ("sub-critics", _WHY_SUB),
            "critic:order": ("orders of levels", _WHY_ORDER)}  # fmt: skip
    sums = dict.fromkeys(whys, (Amount(), Amount()))
    largest = dict.fromkeys(whys, (0, 0))
    stored = 0
    for seed in wanted.seeds:
        client, nobody = rehearsal(known, cache)
        critic = _critic(client, wanted, task)
        try:
            asyncio.run(critic.propose(seed))
        except ReplyError:
            pass  # both replies are stored, and neither can be read: nothing is asked
        except AgentevalError:
            if not nobody.asked:  # a refusal that is stored
                raise
        role = nobody.asked[0].role if nobody.asked else ""
        stored += role != "critic"
        for who, least, most, most_bytes in _of_seed(critic, seed, nobody.asked, role):
            before = sums[who]
            sums[who] = before[0] + least, before[1] + most
            largest[who] = max(largest[who], most_bytes)
    if unseen:
        sums = {who: (Amount(), most) for who, (_, most) in sums.items()}
        whys["critic"] = ("critics", f"{_WHY}; none where all are stored: {_UNSEEN}")
    return tuple(
        Asked(name, *sums[who], why, largest=largest[who], budget=budget)
        for who, (name, why) in whys.items()
        if who != "subcritic" or wanted.sub_criteria
    ), stored


def _critic(client: Any, wanted: CriticOptions, task: Task) -> Any:
    from agenteval.evaluators.utility.critic import Critic

    return Critic(
        client, task, use_examples=wanted.use_examples, temperature=wanted.temperature,
        bank=_longest() if wanted.bank else (), sub_criteria=wanted.sub_criteria,
    )  # fmt: skip


def _of_seed(
    critic: Any, seed: int, asked: list[Any], role: str
) -> Iterator[tuple[str, Amount, Amount, tuple[int, int]]]:
    """(who, least, most, largest) of one seed, from the first request that it would send."""
    if not asked:
        return
    first, largest = of_requests(asked)
    once = replace(first, reply=None)
    who = role.removesuffix(":repair")
    if who == "critic:order":
        yield who, once, first, largest
        return
    most = first if role.endswith(":repair") else repaired(first)
    yield who, once, most, largest
    list_of = of_requests([critic.request(seed)])[0].reply or 0
    own, (size, longest) = of_requests([critic.order_request((), seed)])
    shown = replace(own, prompt=(own.prompt or 0) + list_of)
    yield "critic:order", Amount(), shown, (size + 4 * list_of, longest)
    if who == "critic" and critic.subcritic is not None:
        own, (size, longest) = of_requests([critic.subcritic.request((), seed)])
        shown = replace(own, prompt=(own.prompt or 0) + list_of)
        # the shortest list is one criterion: the prompt without any is told
        yield (
            "subcritic", replace(own, reply=None), repaired(shown),
            (size + 4 * list_of, longest),
        )  # fmt: skip


def _consolidation(wanted: CriticOptions, task: Task) -> Iterator[Asked]:
    """The requests that ask which names are the same, of which at least none is certain: there may
    be one name only, or a stored reply.

    A request shows up to ENTRIES names. Of so many names as critics can propose there are at most
    as many pieces as any two of them exceed that, and one more request for their groups; each name
    is shown at most twice, and all that is shown is no longer than the critics' replies.
    """
    if not wanted.asks_the_same:
        return
    from agenteval.evaluators.utility.consolidate import ENTRIES, Consolidator
    from agenteval.evaluators.utility.critic import sampling
    from agenteval.evaluators.utility.proposed import MOST

    names = len(wanted.seeds) * MOST
    requests = 1 if names <= ENTRIES else 2 * names // ENTRIES + 2
    times = 1 if names <= ENTRIES else 2
    consolidator = Consolidator(None, task, temperature=wanted.temperature)  # type: ignore[arg-type]
    one, (size, longest) = of_requests([consolidator.request(())])
    shown = len(wanted.seeds) * int(sampling(0, None)["max_tokens"])
    most = replace(one * requests, prompt=(one.prompt or 0) * requests + times * shown)
    yield Asked(
        "consolidation",
        Amount(),
        repaired(most),
        f"one request for up to {ENTRIES} names, which says which are the same; none for a single "
        "name or a stored reply; one more if it cannot be read",
        largest=(size + 4 * shown, longest),
    )


def _embeddings(wanted: CriticOptions, task: Task) -> Iterator[Asked]:
    """Requests for embeddings: of the names and descriptions, and to rank the bank."""
    if not (wanted.embedder or "").startswith("endpoint:"):
        return
    from agenteval.evaluators.utility.proposed import DESCRIPTION, MOST, NAME
    from agenteval.models.embeddings import BATCH

    if wanted.tau == 1 and not wanted.bank:
        return
    texts = 0 if wanted.tau == 1 else len(wanted.seeds) * MOST
    bank = _bank_texts(task) if wanted.bank else []
    ranked = -(-len(set(bank)) // BATCH)
    size = sum(len(text.encode()) for text in set(bank)) // 3
    yield Asked(
        "embeddings",
        Amount(ranked + bool(texts), size, 0),
        Amount(ranked + -(-2 * texts // BATCH), size + texts * (NAME + DESCRIPTION), 0),
        f"names and descriptions of the criteria, up to {BATCH} in a request"
        + ("; and the bank, to be ranked" if ranked else ""),
        budget=None,
        priced=False,
    )


def _bank_texts(task: Task) -> list[str]:
    from agenteval.evaluators.utility.bank import load_bank

    texts = [f"{name}: {text}" for c in load_bank() for name, text in c.phrasings]
    return [f"{task.name}: {task.description}", *texts]


def _longest() -> tuple[Criterion, ...]:
    """As many entries of the bank as a critic is shown, the longest."""
    from agenteval.evaluators.utility.bank import load_bank

    entries = [concept.criterion(0) for concept in load_bank()]
    return tuple(sorted(entries, key=lambda c: -len(c.model_dump_json()))[:_SHOWN])
