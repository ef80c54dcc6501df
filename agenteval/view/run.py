"""Page 3 of the viewer: one run with its conversation, ratings, copies and calls."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from starlette.requests import Request

from agenteval.analysis.rubrics import items_of
from agenteval.errors import InputError
from agenteval.readers.injection import texts_signs
from agenteval.readers.view import ViewTurn, split_trajectory
from agenteval.records import RUBRIC, Criterion, Failure, Result, Run, Score, Source, View
from agenteval.records.table import Cell, Column, Table, column, table_of
from agenteval.reporting.page import (
    Block,
    Card,
    Cards,
    Facts,
    Foldout,
    Fragment,
    Items,
    Listing,
    Page,
    PageSection,
    Text,
    Words,
    badge,
)
from agenteval.reporting.text import cut, variant_label
from agenteval.store import Store
from agenteval.store.browse import (
    JudgeCall,
    OriginalRun,
    calls_on,
    criteria_by_key,
    original_runs,
    others_of_run,
)
from agenteval.text import plural
from agenteval.utility.page_runs import copy_diff
from agenteval.utility.quantifier import written_again
from agenteval.view.experiments import judge_name
from agenteval.view.server import Viewer, page_path

MOST_TEXT = 100_000  # characters of one text
_MOST_TURNS = 400
_ORIGINAL = "original"
_OUTCOMES = {True: ("success", "keep"), False: ("failed", "drop")}


@dataclass(frozen=True)
class JudgedBy:
    """A judge with its results on the versions of one run, and on copies by variant."""

    key: str
    source: Source
    results: tuple[Result, ...]
    copies: Mapping[str, tuple[str, tuple[Result, ...]]]  # variant → item key and results

    @property
    def name(self) -> str:
        """The model with the start of its hash."""
        return judge_name(self.key, self.source)


@dataclass(frozen=True)
class RunOnPage:
    """Everything about a run: its text and the ratings of every judge."""

    store: Store
    run: OriginalRun
    body: Mapping[str, Any]
    judges: tuple[JudgedBy, ...]

    @cached_property
    def criteria(self) -> dict[str, Criterion]:
        """Criteria on which there is a result, by content hash."""
        keys = dict.fromkeys(
            r.key.criterion
            for judge in self.judges
            for results in (judge.results, *(c for _, c in judge.copies.values()))
            for r in results
        )
        return criteria_by_key(self.store, keys)


def run_page(viewer: Viewer, request: Request) -> Page:
    """One run. `judge` in the address comes first among the judges, and its calls are shown."""
    shown = run_of(viewer.store, request.query_params.get("item", ""))
    first = request.query_params.get("judge")
    judges = sorted(shown.judges, key=lambda j: not (first and j.key.startswith(first)))
    lead = f"{shown.run.system or 'no system'} · task {shown.run.task or 'unnamed'}"
    sections = [
        PageSection("summary", "", list(_summary(shown, judges))),
        PageSection("conversation", "Conversation", list(_conversation(shown))),
        PageSection("judges", "Judges", _judges(shown, judges)),
    ]
    if judges:
        calls = [Items(list(_calls(shown, judges[0])))]
        lead_of_calls = "Requests and replies, call by call."
        sections += [
            PageSection("copies", "Perturbed copies", _copies(shown, judges[0])),
            PageSection("calls", f"Calls of {judges[0].name}", calls, lead_of_calls),
        ]
    return Page("view", shown.run.id, lead, sections)


def run_of(store: Store, key: str) -> RunOnPage:
    """Return a run by its key. Raises InputError for one that is not (or no longer) stored."""
    runs = list(original_runs(store, [key]))
    if not runs:
        raise InputError("this run is not in the store, or was removed", key[:16] or "item")
    (_, body), *_ = store.bodies([key])
    versions_and_copies = others_of_run(store, runs[0])
    versions = [key, *(other.key for other in versions_and_copies if other.origin is None)]
    copies = [other.key for other in versions_and_copies if other.origin is not None]
    judges = []
    for source_key, source in reversed(store.sources()):
        results: list[Result] = []
        for version in versions:
            results = list(store.results(source_key, variant=_ORIGINAL, item=version))
            if results:
                break
        by_variant: dict[str, list[Result]] = defaultdict(list)
        for copy in copies:
            for result in store.results(source_key, item=copy):
                by_variant[result.key.variant].append(result)
        if results or by_variant:
            of_copies = {v: (rs[-1].key.run, tuple(rs)) for v, rs in sorted(by_variant.items())}
            judges.append(JudgedBy(source_key, source, tuple(results), of_copies))
    return RunOnPage(store, runs[0], body, tuple(judges))


def _summary(shown: RunOnPage, judges: Sequence[JudgedBy]) -> Iterator[Block]:
    run = shown.run
    signs = texts_signs((str(shown.body["problem"]), str(shown.body["trajectory"])))
    if signs:
        names: list[str | Fragment] = ["This text seems to address the judge: "]
        yield Text(names + [Fragment(s.name + " ", "badge drop") for s in signs], "warning")
    outcome: Words = "unknown"
    if run.success is not None:
        word, kind = _OUTCOMES[run.success]
        outcome = [Fragment(word, f"badge {kind}")]
    judged: list[str | Fragment] = []
    for j in judges:
        link = page_path("/run", item=run.key, judge=j.key[:16])
        judged += [", " if judged else "", Fragment(j.name, link=link)]
    yield Facts(
        [
            ("success", outcome),
            ("length", f"{run.length:,} characters"),
            ("judged by", judged or "nobody"),
            ("key", run.key[:16]),
        ]
    )


# ---- the conversation ----------------------------------------------------------------------------


def _conversation(found: RunOnPage) -> Iterator[Block]:
    problem, trajectory = str(found.body["problem"]), str(found.body["trajectory"])
    yield Text(cut(problem, MOST_TEXT) or "(empty)", "pre", "Request")
    if found.body.get("reference_shown"):
        yield Text("The judge was shown the reference answer as well.", "quiet")
    turns = split_trajectory(cut(trajectory, MOST_TEXT))
    if len(turns) < 2:
        yield Text(turns[0].text if turns else "(empty)", "pre", "Work of the system")
        return
    shown = turns[:_MOST_TURNS]
    steps: list[str | Fragment] = []
    for i, turn in enumerate(shown, 1):
        steps += [" → "] * (i > 1) + [Fragment(turn.heading or "text", link=f"turn-{i}")]
    yield Text(steps, "quiet", f"Timeline: {plural(len(turns), 'step')}")
    yield Cards([_turn(i, turn) for i, turn in enumerate(shown, 1)], "Work of the system", "chat")
    if len(turns) > len(shown):
        yield Text(f"… and {len(turns) - len(shown):,} more steps", "note")


def _turn(number: int, turn: ViewTurn) -> Card:
    """Return a turn as a card; the results of tools are folded."""
    role = turn.heading.removeprefix("span ").partition(":")[0].strip()
    text: Block = Text(turn.text or "(empty)", "say")
    if role in ("tool", "tool call"):
        lines = f"{turn.heading or role}, {len(turn.text):,} characters"
        return Card("", [Items([Foldout("", lines, [text])])], "call", f"turn-{number}")
    kind = {"user": "user", "system": "thought"}.get(role, "agent")
    return Card(turn.heading or "text", [text], kind, f"turn-{number}")


# ---- ratings of the judges -----------------------------------------------------------------------


def _judges(shown: RunOnPage, judges: Sequence[JudgedBy]) -> list[Block]:
    """Return a table of levels (criteria by judges), and the explanations."""
    columns = (Column("criterion", "criterion"), *(Column(j.key, j.name) for j in judges))
    rows, cards = [], []
    by_id: dict[str, str] = {c.id: c.name for c in shown.criteria.values()}
    for criterion, name in by_id.items():
        row: dict[str, Cell] = {"criterion": name}
        blocks: list[Block] = []
        for judge in judges:
            results = [r for r in judge.results if r.criterion_id == criterion]
            row[judge.key] = levels_in_words(results) if results else None
            blocks += _answers(judge, results, shown.criteria, several=len(judges) > 1)
        rows.append(row)
        if blocks:
            cards.append(Card([Fragment(name, "strong")], blocks))
    if not rows:
        return [Text("No judge has judged this run.")]
    table = Table("levels", "Levels by judge", columns, tuple(rows))
    return [Listing(table, titled=False), Cards(cards, "Explanations and evidence")]


def levels_in_words(results: Sequence[Result]) -> str:
    """Return the levels of repeats, as in "good ×2, poor"."""
    counts = Counter(_word(result) for result in results)
    return ", ".join(f"{w} ×{n}" if n > 1 else w for w, n in counts.most_common())


def _word(result: Result) -> str:
    if isinstance(result, Failure):
        return f"no result: {result.status.partition(':')[2].replace('_', ' ')}"
    value = "" if result.value is None else f"{result.value:.2f}"
    return result.label or value or result.status.replace("_", " ")


def _answers(
    judge: JudgedBy,
    results: Sequence[Result],
    criteria: Mapping[str, Criterion],
    *,
    several: bool,
) -> Iterator[Block]:
    for result in results:
        who = f"{judge.name}, " if several else ""
        repeat = Fragment(f"{who}repeat {result.key.repeat + 1} ", "quiet")
        if isinstance(result, Failure):
            yield Text([repeat, badge(_word(result), "drop")])
            if result.message:
                yield Text(cut(result.message, MOST_TEXT))
            continue
        yield Text([repeat, Fragment(_word(result), "strong")])
        criterion = criteria.get(result.key.criterion)
        if criterion is not None and criterion.is_rubric:
            yield Listing(_items(criterion, result), titled=False)
        yield from _words_of(result)


@dataclass(frozen=True)
class _ItemRow:
    item: str = column("item")
    statement: str = column("statement")
    weight: float | None = column("weight", "number")
    answer: str = column("answer")


def _items(rubric: Criterion, score: Score) -> Table:
    """Return the items of a rubric with the answers of one rating."""
    rows = [
        _ItemRow(rated.item.id, rated.item.description, rated.item.weight, rated.label or "")
        for rated in items_of(rubric, score.status, score.value, score.evidence)
    ]
    return table_of(_ItemRow, "items", "Items", rows)


def _words_of(score: Score) -> Iterator[Block]:
    if score.explanation:
        yield Text(cut(score.explanation, MOST_TEXT))
    evidence: dict[str, Any] = dict(score.evidence)
    if score.criterion_id == RUBRIC:
        evidence.pop("parts", None)  # shown as a table
    if score.probabilities:
        evidence = {"probabilities": score.probabilities, **evidence}
    for name, value in evidence.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield Text(cut(f"{name}: {text}", MOST_TEXT), "quote")


# ---- perturbed copies ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _EffectOfCopyRow:
    criterion: str = column("criterion")
    original: float | None = column("original", "number")
    copy: float | None = column("copy", "number")
    change: float | None = column("original minus copy", "signed")


def _copies(shown: RunOnPage, judge: JudgedBy) -> list[Block]:
    """Return the copies that a judge judged, with their changes and effects on scores."""
    bodies = dict(shown.store.bodies(key for key, _ in judge.copies.values()))
    by_id = {c.id: c.name for c in reversed(shown.criteria.values())}
    items = []
    for variant, (key, results) in judge.copies.items():
        rows = []
        for criterion in dict.fromkeys(r.criterion_id for r in results):
            before = _mean(r for r in judge.results if r.criterion_id == criterion)
            after = _mean(r for r in results if r.criterion_id == criterion)
            change = None if before is None or after is None else before - after
            name = by_id.get(criterion, criterion)
            rows.append(_EffectOfCopyRow(name, before, after, change))
        diff = copy_diff(str(shown.body["trajectory"]), str(bodies[key]["trajectory"]))
        blocks: list[Block] = [
            table_of(_EffectOfCopyRow, "effects", "", rows),
            Text(diff, "pre", "The copy and its changes"),
        ]
        items.append(Foldout("", variant_label(variant, judge.copies), blocks))
    return [Items(items)] if items else []


def _mean(results: Iterator[Result]) -> float | None:
    values = [r.value for r in results if isinstance(r, Score) and r.value is not None]
    return sum(values) / len(values) if values else None


# ---- calls ---------------------------------------------------------------------------------------


def _calls(shown: RunOnPage, judge: JudgedBy) -> Iterator[Foldout]:
    """Yield request and reply of every call of a judge on the run."""
    for key in dict.fromkeys(r.key.run for r in judge.results):
        for call in calls_on(shown.store, judge.key, key):
            blocks, about = list(_call(shown, judge, key, call)), _about_call(call.record)
            yield Foldout("", f"repeat {call.repeat + 1}", blocks, about=about)


def _about_call(record: Mapping[str, Any]) -> str:
    latency, usage = record.get("latency"), record.get("usage") or {}
    parts = [
        plural(int(record.get("attempts") or 0), "request"),
        "from the cache" if record.get("cache_hit") else "",
        f"{latency:.1f} s" if isinstance(latency, float | int) else "",
        f"{usage.get('prompt_tokens') or 0:,} tokens read" if usage.get("prompt_tokens") else "",
        str(record.get("model") or ""),
    ]
    return " · ".join(part for part in parts if part)


def _call(shown: RunOnPage, judge: JudgedBy, key: str, call: JudgeCall) -> Iterator[Block]:
    if call.record.get("repaired"):
        yield Text("The first reply was unreadable, so a second request was sent.", "quiet")
    replies = [shown.store.get_reply(reply) for reply in call.record.get("replies") or ()]
    yield from _prompt(shown, judge, key, call, replies[0] if replies else None)
    texts = [str(reply.get("text") or "") for reply in replies if reply]
    for i, text in enumerate(texts or [str(call.record.get("raw") or "")], 1):
        title = f"Reply {i} of {len(texts)}, as it came" if len(texts) > 1 else "Reply, as it came"
        yield Text(cut(text, MOST_TEXT) or "(empty)", "pre", title)


def _prompt(
    found: RunOnPage, judge: JudgedBy, key: str, call: JudgeCall, reply: Mapping[str, Any] | None
) -> Iterator[Block]:
    """Yield the messages that were sent, or the reason why they are unknown."""
    request = (reply or {}).get("request")
    if not isinstance(request, dict):
        return
    run = found.run
    view = View(
        run_id=run.id,
        problem=str(found.body["problem"]),
        trajectory=str(found.body["trajectory"]),
        owner=(run.task, run.system),
    )
    if key not in (view.sha256, view.text_sha256):
        yield Text("The prompt shows a reference that is not stored.", "quiet", "Prompt")
        return
    if key == view.text_sha256:
        view = view.model_copy(update={"owner": None})
    rated = {r.key.criterion for r in judge.results if r.key.repeat == call.repeat}
    shown = {name.partition(".")[0] for name in call.record.get("shown") or ()}
    criteria = [c for k, c in found.criteria.items() if k in rated and c.id in shown]
    as_run = Run(id=run.id, task=run.task, system=run.system)
    prompt = written_again(judge.source, as_run, view, criteria, request)
    if prompt.reason:
        yield Text(f"The prompt is not shown: {prompt.reason}.", "quiet", "Prompt")
    for message in prompt.messages:
        yield Text(cut(message.text, MOST_TEXT), "pre", f"Prompt, {message.role}")
