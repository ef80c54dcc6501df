"""What `quantify`, `verify` and `propose` would ask, rehearsed: nobody is asked.

The units are those of the real run.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agenteval.api.judging import Judging
from agenteval.api.probing import OTHER_WAYS, Asking, attack_plan
from agenteval.api.running import planned
from agenteval.evaluators import base
from agenteval.evaluators.utility.bank import load_bank, ranking_cost
from agenteval.evaluators.utility.consolidate import ENTRIES, Consolidator, most_questions
from agenteval.evaluators.utility.critic import Critic, sampling
from agenteval.evaluators.utility.critic_reply import DESCRIPTION, MOST, NAME
from agenteval.evaluators.utility.plan import CellPlan, make_plan
from agenteval.evaluators.utility.probes.result import ProbeOptions
from agenteval.evaluators.utility.probes.targets import (
    choose_targets,
    longest_copies,
    most_targets,
    probing,
)
from agenteval.evaluators.utility.proposals import CriticOptions
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.client import Client
from agenteval.models.embeddings import BATCH
from agenteval.models.factory import ModelChoice, make_client
from agenteval.models.limits import Budget, Limits
from agenteval.models.rehearsal import Amount, Bill, Part, Rehearsal
from agenteval.records import Task
from agenteval.store import Store, default_path, is_there
from agenteval.text import plural
from agenteval.trust.verification import Material, plan_verification

LOCAL = "all of it is computed on this machine: no requests, no cost"
_UNCOUNTED = "what the judge spends itself is not counted here"
UNREADABLE = "one more for a reply that cannot be read"
_FROM_BANK = 12  # entries that a critic is shown
_REPLY_TO_CRITERION = 60  # tokens: an explanation of one or two sentences and a label

StorePath = str | Path | Store | None


def notes_on(choice: ModelChoice | None) -> tuple[str, ...]:
    """What is to be said of where the replies come from."""
    if choice is None or choice.provider not in ("replay", "recorded"):
        return ()
    return ("the replies come from a recording: no endpoint is asked, nothing is paid",)


def asked_in_turn(
    command: str, about: str, choice: ModelChoice, questions: int,
    work: Callable[[Client], Coroutine[object, object, object]],
) -> Bill:  # fmt: skip
    """The bill of what asks so many questions one after another, each about the replies before."""
    part = Part("model", f"{plural(questions, 'question')}, one after another; {UNREADABLE}")
    with planned() as store, Rehearsal() as rehearsal:
        for draft in rehearsal.first(work(make_client(choice, Limits(), store))):
            begun = sum(not one.role.endswith(":repair") for one in rehearsal.answered)
            left = questions - begun + draft.repairs
            part.ask([draft], certain=left, times=left)
    return Bill(command, (about,), (part,), Budget(), notes_on(choice))


def quantify_bill(judging: Judging, store: StorePath, *, with_reference: bool) -> Bill:
    """What `quantify` would ask. Raises InputError for a cap without a price."""
    runs, criteria, budget = len(judging.items), judging.criteria, judging.limits.budget()
    cells = runs * len(criteria) * judging.repeats
    about = [
        f"runs: {runs} of task {judging.task.name}",
        f"reference answers: {'shown to the judge' if with_reference else 'withheld'}",
        f"criteria: {len(criteria)} ({', '.join(c.name for c in criteria)})",
        f"cells: {plural(runs, 'run')} × {plural(len(criteria), 'criterion')} × "
        f"{plural(judging.repeats, 'repeat')} = {cells:,}",
    ]
    if judging.asks_nobody:
        spent = LOCAL if judging.choice else _UNCOUNTED
        answered = runs - sum(map(len, judging.no_answer.values()))
        about.append(f"calls: {answered * judging.repeats} at most; {spent}")
        return Bill("quantify", about, (), budget)
    with planned(store) as kept:
        judge, _ = judging.evaluator(kept)
        plan = make_plan(
            judge, judging.items, criteria, kept,
            repeats=judging.repeats, retry_failed=judging.retry_failed,
        )  # fmt: skip
        part = _judged([plan])
        budget = judging.limits.budget(kept.usage(judge.source.sha256))
    return Bill("quantify", (*about, _stored(plan)), (part,), budget, notes_on(judging.choice))


def _judged(plans: Sequence[CellPlan], who: str = "judge", why: str = "") -> Part:
    part = Part(who, why or (
        "one request for each call that is not stored; a reply that cannot be read is asked for "
        "once more"
    ))  # fmt: skip
    part.rehearse(
        plans,
        lambda unit, drafts: part.ask(drafts, reply=_REPLY_TO_CRITERION * len(unit.criteria)),
    )
    if part.most.requests == part.least.requests:
        part.why = part.why.rpartition("; ")[0]
    return part


def _stored(plan: CellPlan) -> str:
    return f"stored already: {plan.done} scored, {plan.failed} failed; calls: {plan.calls}"


# -- verify ----------------------------------------------------------------------------------------


def verify_bill(
    judging: Judging,
    material: Material,
    store: StorePath,
    options: ProbeOptions | None,
) -> Bill:
    """What `verify` would ask; without `options` nothing is probed. Raises InputError for a cap
    without a price."""
    texts, originals, repeats = material.texts, len(material.items), material.repeats
    about = [
        f"texts: {originals} originals and {texts - originals} perturbed copies",
        f"cells: {plural(texts, 'text')} × {plural(len(material.criteria), 'criterion')} × "
        f"{plural(repeats, 'repeat')} = {texts * len(material.criteria) * repeats:,}",
    ]
    attacked = most_targets([run for run, _ in material.items], options) if options else 0
    if judging.asks_nobody:
        spent = LOCAL if judging.choice else _UNCOUNTED
        about.append(f"calls: {texts * repeats} at most; {spent}")
        if options is not None:
            added = 2 * attacked * repeats
            about += [
                f"probes: {added} calls more at most, on this machine",
                "  scale order and wording do not apply to this judge",
                f"  {added} with text added: {_added(attacked, repeats)}",
            ]
        return Bill("verify", about, (), judging.limits.budget())
    notes = notes_on(judging.choice)
    with planned(store) as kept:
        judge, _ = judging.evaluator(kept)
        plan = plan_verification(judge, material, kept, retry_failed=judging.retry_failed)
        parts = [_judged([plan])]
        if options is not None:
            asking = Asking(judging, kept, judge, material)
            if asking.listed:
                ways = [judging.evaluator(kept, **how)[0] for how in OTHER_WAYS.values()]
                parts.append(_judged(
                    [asking.way_plan(one) for one in ways],
                    "probes, other ways",
                    f"{plural(originals, 'original')} × {plural(repeats, 'repeat')} × {len(ways)} "
                    f"ways, less what is stored; {UNREADABLE}",
                ))  # fmt: skip
            parts.append(
                _attacks_at_most(judging, material, options)
                if len(plan.units)
                else _attacks(asking, options)
            )
        budget = judging.limits.budget(kept.usage(judge.source.sha256))
    return Bill("verify", (*about, _stored(plan)), parts, budget, notes)


def _added(runs: int, repeats: int) -> str:
    return f"an attack and a control in {plural(runs, 'run')} × {plural(repeats, 'repeat')}"


def _attacks(asking: Asking, options: ProbeOptions) -> Part:
    """Calls with an attack or a control, in the runs that the stored ratings choose."""
    material, judge = asking.material, asking.plain
    table = asking.table(judge.source.sha256)
    targets = choose_targets(material.items, material.criteria, table, options)
    why = f"{_added(len(targets), material.repeats)}, less what is stored; {UNREADABLE}"
    who = "probes, text added"
    if not targets:
        return Part(who, why)
    return _judged([attack_plan(asking, probing(judge), targets, options)[0]], who, why)


def _attacks_at_most(judging: Judging, material: Material, options: ProbeOptions) -> Part:
    """The same while some ratings that choose are missing: the longest that could be chosen count,
    and nothing is certain. A run that is rated already may be chosen too: no reply is looked for.
    """
    copies = list(longest_copies(material.items, material.criteria, options))
    part = Part(
        "probes, text added",
        f"{_added(len(copies), material.repeats)} at most: the ratings of the originals choose "
        f"the runs; {UNREADABLE}",
    )
    fresh, _ = judging.evaluator(None)
    with Rehearsal() as rehearsal:
        for run, view in copies:
            for batch in fresh.batches(material.criteria):
                drafts = rehearsal.first(base.judge(fresh, base.Unit(run, view, batch)))
                part.ask(drafts, certain=0, times=2 * material.repeats)
    return part


# -- criteria --------------------------------------------------------------------------------------


def criteria_bill(
    choice: ModelChoice, wanted: CriticOptions, task: Task, limits: Limits, path: StorePath
) -> Bill:
    """What `propose` would ask. Raises InputError for a cap without a price."""
    mode = "solution-based" if wanted.use_examples else "task-based"
    about = f"task: {task.name}, {mode}; seeds: {len(wanted.seeds)}"
    if choice.kind == "embedded":
        how = f"the embedded critic retrieves from the bank; {LOCAL}"
        return Bill("criteria", (about, how), (), limits.budget())
    with planned(path) as store:
        parts, stored = _critics(choice, wanted, task, None if wanted.bank else store)
    if wanted.bank and (isinstance(path, Store) or is_there(path or default_path())):
        parts = [replace(part, least=Amount()) for part in parts]
        parts[
            0
        ].why += (
            "; none where all are stored: what is shown of the bank is known only when it is ranked"
        )
    if stored:
        about += f"; replies of {stored} critics are stored already"
    notes = notes_on(choice)
    if wanted.asks_the_same:
        parts.append(_consolidation(choice, wanted, task, limits))
    if (wanted.embedder or "").startswith("endpoint:"):
        parts += _embeddings(wanted, task)
        notes += (
            "embeddings are asked beside the budget: no cap holds for them, and no price is known",
        )
    return Bill("criteria", (about,), parts, limits.budget(), notes)


def _critics(
    choice: ModelChoice, wanted: CriticOptions, task: Task, store: Store | None
) -> tuple[list[Part], int]:
    """What critics and sub-critics are asked, and how many critics' replies are stored.

    The list of criteria that a sub-critic is shown counts as long as a critic's reply may be; of
    the bank its longest entries count.
    """
    client = make_client(choice, Limits(), store)
    entries = (concept.criterion(0) for concept in load_bank())
    longest = sorted(entries, key=lambda c: -len(c.model_dump_json()))[:_FROM_BANK]
    critic = Critic(
        client, task, use_examples=wanted.use_examples, temperature=wanted.temperature,
        bank=longest if wanted.bank else (), sub_criteria=wanted.sub_criteria,
        retry_failed=wanted.retry_failed,
    )  # fmt: skip
    critics = Part(
        "critics", "one request for each seed; a reply that cannot be read is asked for once more"
    )
    divided = Part(
        "sub-critics",
        "one for each seed whose criteria could be read, and one more if it cannot be read",
    )
    orders = Part(
        "orders of levels", "one for each seed whose criteria leave open which level is the best"
    )
    stored = 0
    with Rehearsal() as rehearsal:
        for seed in wanted.seeds:
            drafts = rehearsal.first(critic.propose(seed))
            role = drafts[0].request.role.removesuffix(":repair") if drafts else ""
            stored += not drafts or drafts[0].request.role != "critic"
            listed = client.draft(critic.request(seed)).reply
            {"critic": critics, "subcritic": divided}.get(role, orders).ask(
                drafts, most=1 if role == "critic:order" else MOST_REQUESTS
            )
            if role == "critic" and critic.subcritic is not None:
                # the shortest list is one criterion: the prompt without any counts
                divide = client.draft(critic.subcritic.request((), seed))
                divided.ask([divide], longer=listed)
            if role in ("critic", "subcritic"):
                order = client.draft(critic.order_request((), seed))
                orders.ask([order], certain=0, most=1, longer=listed)
    return [critics, *([divided] if wanted.sub_criteria else []), orders], stored


def _consolidation(choice: ModelChoice, wanted: CriticOptions, task: Task, limits: Limits) -> Part:
    """The requests that ask which names are the same, of which none is certain: there may be one
    name only, or a stored reply. All that is shown is no longer than the critics' replies."""
    client = make_client(choice, limits, None)
    draft = client.draft(Consolidator(client, task, temperature=wanted.temperature).request(()))
    part = Part(
        "consolidation",
        f"one request for up to {ENTRIES} names, which says which are the same; none for a single "
        "name or a stored reply; one more if it cannot be read",
    )
    shown = len(wanted.seeds) * int(sampling(0, None)["max_tokens"])
    questions = most_questions(len(wanted.seeds) * MOST)
    part.ask([draft], certain=0, times=questions, longer=shown)
    return part


def _embeddings(wanted: CriticOptions, task: Task) -> Iterator[Part]:
    """Requests for embeddings: of the names and descriptions, and to rank the bank."""
    if wanted.tau == 1 and not wanted.bank:
        return
    proposed = 0 if wanted.tau == 1 else len(wanted.seeds) * MOST
    requests, least, most = ranking_cost(task, wanted.kinds) if wanted.bank else (0, 0, 0)
    yield Part(
        "embeddings",
        f"names and descriptions of the criteria, up to {BATCH} in a request"
        + ("; and the bank, to be ranked" if requests else ""),
        Amount(requests + bool(proposed), least),
        Amount(requests + -(-2 * proposed // BATCH), most + proposed * (NAME + DESCRIPTION)),
        budget=None,
        priced=False,
    )
