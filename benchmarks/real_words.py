"""What recorded critics and judges said, and what is made of it.

    python -m benchmarks.real_words [FOLDER] [--criteria FILE] [--gold names.json]

Reads every `.jsonl` below FOLDER (without one: replies of a capable model, `capable/`). A row is

* a critic's reply: text under `raw`, `text` or `reply`, said by a critic (`speaker`, `role`) or
  readable as one; or a set of criteria that somebody parsed already, under `criteria`;
* a judge's reply: text with the criteria that it was asked for under `criteria`, or said by a
  quantifier; the criteria are then those of `--criteria`, or of the file below FOLDER
  (`*criteria*.json`) whose names the reply uses most;
* anything else: counted, with its file.

Told of critics: criteria proposed, read and lost, replies by rung, each scale that was turned round
and each whose order is unclear, with the reason. Told of judges: replies read whole, in part and
not at all, by rung; ratings by status; and each level that is not letter by letter what `json` or
`ast` make of the same text. Told of merging: distinct criteria by threshold and number of sets, and
with `--gold` (an object of names and ideas) precision and recall over the pairs of its names. With
`--model` a chat model consolidates the names as `agenteval criteria` has it do, which costs a
request or two for each line. No target: what is right is for a reader of the lists to say. Exit
code 2 for a row that cannot be read, and where no row is a reply.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval.errors import AgentevalError, InputError, ReplyError
from agenteval.evaluators.utility.answers import Answer, leaves_of
from agenteval.evaluators.utility.consolidate import Consolidator
from agenteval.evaluators.utility.criteria_file import load_criteria
from agenteval.evaluators.utility.critic_reply import read_criteria
from agenteval.evaluators.utility.labels import fold
from agenteval.evaluators.utility.merge import Names
from agenteval.evaluators.utility.names import fold_name
from agenteval.evaluators.utility.reading import read_text
from agenteval.models.embeddings import make_embedder
from agenteval.models.factory import choose_model, make_client
from agenteval.models.limits import Limits
from agenteval.readers.strict_json import read_json
from agenteval.records import Criterion, Task, slug
from benchmarks.folders import ROOT
from benchmarks.merge_quality.__main__ import count_pairs
from benchmarks.outcome import Row, finish

CAPABLE = Path(__file__).parent / "capable"
TAUS = (0.5, 0.6, 0.7, 1.0)
_TEXTS = ("raw", "text", "reply", "response", "completion")
_SHOWN = 40  # lines of a list without --all


@dataclass(frozen=True)
class Recorded:
    """One row: who said it, the text or the value already parsed, and the criteria asked for."""

    place: str
    group: str  # the critic's mode, or the file: sets of one group are merged together
    role: str  # critic, judge, or empty where the row does not say
    text: str | None
    value: Any = None
    asked: Any = None
    finish: str = "stop"


@dataclass
class CriticTally:
    """Counts over critics' replies; `sets` holds the criteria read, by group."""

    replies: Counter[str] = field(default_factory=Counter)  # by rung, "unread" for none
    proposed: int = 0
    sets: dict[str, list[list[Criterion]]] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    turned: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)


@dataclass
class JudgeTally:
    """Counts over judges' replies and their ratings."""

    replies: Counter[str] = field(default_factory=Counter)  # read, partly read, unread
    rungs: Counter[str] = field(default_factory=Counter)
    ratings: Counter[str] = field(default_factory=Counter)  # by status
    reasons: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    differing: Counter[str] = field(default_factory=Counter)


def rows_below(folder: Path) -> Iterator[Recorded]:
    """Every row of every `.jsonl` below the folder. Raises ValueError naming a bad line."""
    for path in sorted(folder.rglob("*.jsonl")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if not line.strip():
                continue
            place = f"{path.relative_to(folder)}:{number}"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{place}: no JSON ({error})") from None
            if isinstance(row, dict):
                yield _recorded(row, place, path.stem)


def _recorded(row: dict[str, Any], place: str, stem: str) -> Recorded:
    reply = row.get("reply")
    inside = reply if isinstance(reply, dict) else {}
    text = next((r[k] for r in (row, inside) for k in _TEXTS if isinstance(r.get(k), str)), None)
    who = str(row.get("speaker") or row.get("role") or "").lower()
    asked = row.get("criteria") if text is not None else None
    role = "critic" if "critic" in who or (text is None and "criteria" in row) else ""
    if asked is not None or "quantifier" in who or "judge" in who or "values" in row:
        role = role or "judge"
    return Recorded(
        place=place,
        group=str(row.get("mode") or stem),
        role=role,
        text=text,
        value=None if text is not None else row.get("criteria"),
        asked=asked,
        finish=str(inside.get("finish") or row.get("finish") or "stop"),
    )


def read_critic(recorded: Recorded, tally: CriticTally) -> bool:
    """Take a critic's reply into the tally; False when it cannot be read as one."""
    source = recorded.text if recorded.text is not None else recorded.value
    try:
        reading = read_criteria(source)
    except ReplyError as error:
        if recorded.role == "critic":
            tally.replies["unread"] += 1
            tally.lost.append(f"{recorded.place}: {error}")
        return False
    tally.replies[reading.rung or "parsed already"] += 1
    tally.sets.setdefault(recorded.group, []).append(reading.criteria)
    lost = [problem for problem in reading.problems if "left out" in problem]
    tally.lost += [f"{recorded.place}: {problem}" for problem in lost]
    tally.proposed += len(reading.criteria) + len(lost)
    for problem in reading.problems:
        if "turned round" in problem or "put in order" in problem:
            tally.turned.append(f"{recorded.place}: {problem}")
    for criterion in reading.criteria:
        if criterion.scale != "nominal" and not criterion.ordered:
            levels = " | ".join(criterion.accepted_values)
            tally.unclear.append(f"{recorded.place}: {criterion.name}: {levels}")
    return True


def read_judge(recorded: Recorded, known: Sequence[Sequence[Criterion]], tally: JudgeTally) -> bool:
    """Take a judge's reply into the tally; False when nobody knows what it was asked."""
    text = recorded.text or ""
    if recorded.asked is not None:
        try:
            known = [read_criteria(recorded.asked).criteria]
        except ReplyError:
            return False
    readings = [(read_text(text, criteria, recorded.finish), criteria) for criteria in known]
    if not readings:
        return False
    (answers, rung), criteria = max(
        readings, key=lambda r: sum(_spoken_of(a) for a in r[0][0].by_path.values())
    )
    read = [a for a in answers.by_path.values() if isinstance(a, Answer)]
    whole = len(read) == len(answers.by_path)
    tally.replies["read" if whole else "partly read" if read else "unread"] += 1
    tally.rungs[rung or "none"] += 1
    for path, answer in answers.by_path.items():
        if isinstance(answer, Answer):
            tally.ratings["not applicable" if answer.not_applicable else "scored"] += 1
        else:
            tally.ratings[answer.status] += 1
            tally.reasons[f"{path}: {answer.message}"] += 1
    _compare(text, criteria, answers.by_path, tally)
    return True


def _spoken_of(answer: Any) -> bool:
    return isinstance(answer, Answer) or answer.status == "unscored:off_scale"


def _compare(
    text: str, criteria: Sequence[Criterion], by_path: dict[str, Any], tally: JudgeTally
) -> None:
    """Levels beside what a literal evaluation of the whole text gives for the same name."""
    literal = _literal(text)
    if not isinstance(literal, dict):
        return
    stated = {slug(str(name)): value for name, value in literal.items()}
    for path, leaf in leaves_of(criteria):
        answer = by_path[path]
        value = stated.get(slug(path), stated.get(slug(leaf.name)))
        if isinstance(value, dict):
            value = value.get("label")
        if not isinstance(answer, Answer) or answer.label is None or value is None:
            continue
        tally.compared += 1
        if fold(str(value)) != fold(answer.label):
            tally.differing[f"{leaf.name}: {value!r} read as {answer.label!r}"] += 1


def _literal(text: str) -> Any:
    for evaluate in (json.loads, ast.literal_eval):
        try:
            return evaluate(text.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    return None


def known_criteria(folder: Path, named: Path | None) -> list[Sequence[Criterion]]:
    """The criteria that judges may have been asked for: of the file named, or of all below."""
    paths = [named] if named is not None else sorted(folder.rglob("*criteria*.json"))
    known: list[Sequence[Criterion]] = []
    for path in paths:
        try:
            known.append(load_criteria(path).criteria.criteria)
        except AgentevalError as error:
            if named is not None:
                raise
            print(f"{path.name}: passed over: {error}", file=sys.stderr)
    return known


def listed(title: str, lines: Sequence[str], *, whole: bool) -> None:
    """A headed list, its first lines unless `whole`."""
    if not lines:
        return
    print(f"\n{title} ({len(lines)})")
    for line in lines if whole else lines[:_SHOWN]:
        print(f"  {line}")
    if not whole and len(lines) > _SHOWN:
        print(f"  … and {len(lines) - _SHOWN} more (--all)")


def counted(counts: Counter[str]) -> str:
    """The counts, largest first, as one line."""
    return ", ".join(f"{name} {n}" for name, n in counts.most_common()) or "none"


@dataclass(frozen=True)
class Chat:
    """The chat model that is asked which names are the same idea; None asks nobody."""

    model: str | None
    base_url: str | None
    task: Task


async def merging_rows(
    sets: dict[str, list[list[Criterion]]], gold: dict[str, str] | None, chat: Chat
) -> list[Row]:
    """Distinct criteria of 5, 20 and all sets of a group, and the pairs against the partition."""
    embedder = make_embedder(None)
    taus = sorted({embedder.default_tau, *TAUS})
    everything = [criteria for group in sets.values() for criteria in group]
    groups = {**sets, "all": everything} if len(sets) > 1 else sets
    rows = []
    for group, members in groups.items():
        if len(members) < 2:
            continue
        sizes = {len(members)} if members is everything else {5, 20, len(members)}
        for size in sorted(n for n in sizes if n <= len(members)):
            names = Names((c for criteria in members[:size] for c in criteria), embedder)
            partitions = {f"τ {tau:g}": names.partition(tau) for tau in taus}
            if chat.model is not None:
                partitions["consolidated"] = await _consolidated(
                    names, names.partition(embedder.default_tau), chat
                )
            texts = [
                f"{how} {len(set(labels))}{_quality(names, labels, gold)}"
                for how, labels in partitions.items()
            ]
            what = f"{group}, {size} sets, {len(names.representatives)} names: distinct"
            rows.append(Row(what, "; ".join(texts)))
    return rows


async def _consolidated(names: Names, labels: list[int], chat: Chat) -> list[int]:
    client = make_client(choose_model(chat.model, chat.base_url), Limits(timeout=9000), None)
    try:
        consolidation = await Consolidator(client, chat.task).consolidate(names, labels)
    finally:
        await client.close()
    for problem in consolidation.problems:
        print(f"consolidation: {problem}", file=sys.stderr)
    return consolidation.labels


def _quality(names: Names, labels: Sequence[int], gold: dict[str, str] | None) -> str:
    """Precision and recall over the pairs of names that the partition holds; empty without one."""
    if gold is None:
        return ""
    folded = [fold_name(criterion.name) for criterion in names.representatives]
    pairs = count_pairs(folded, labels, gold)
    return f" (precision {pairs.precision:.2f} recall {pairs.recall:.2f})"


def main() -> int:
    """Read, print the lists and the table, end with the line of figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--criteria", type=Path, help="what judges were asked for")
    parser.add_argument("--gold", type=Path, help="names and ideas, as a JSON object")
    parser.add_argument("--all", action="store_true", help="whole lists")
    parser.add_argument("--quick", action="store_true", help="without merging")
    parser.add_argument("--model", help="a chat model that consolidates names, as elsewhere")
    parser.add_argument("--base-url", help="where it is asked")
    parser.add_argument("--task", default="Solve the problem.", help="what was to be done")
    given = parser.parse_args()
    if given.folder is None:
        given.folder = CAPABLE
        given.criteria = given.criteria or ROOT / "criteria" / "math.reviewed.json"
    critics, judges, other = CriticTally(), JudgeTally(), Counter[str]()
    try:
        known = known_criteria(given.folder, given.criteria)
        for recorded in rows_below(given.folder):
            if recorded.role != "judge" and read_critic(recorded, critics):
                continue
            if recorded.role == "critic" or (
                recorded.text is not None and read_judge(recorded, known, judges)
            ):
                continue
            other[recorded.place.rpartition(":")[0]] += 1
    except (ValueError, AgentevalError) as error:
        print(f"real_words: {error}", file=sys.stderr)
        return 2
    if not critics.replies and not judges.replies:
        print(f"real_words: {given.folder}: no row is a critic's or a judge's", file=sys.stderr)
        return 2
    rows = [*critic_rows(critics), *judge_rows(judges)]
    listed("turned round", critics.turned, whole=given.all)
    listed("order unclear", critics.unclear, whole=given.all)
    listed("lost", critics.lost, whole=given.all)
    reasons = [f"{n} × {reason}" for reason, n in judges.reasons.most_common()]
    listed("ratings not read", reasons, whole=given.all)
    differing = [f"{n} × {text}" for text, n in judges.differing.most_common()]
    listed("levels that the text does not hold letter by letter", differing, whole=given.all)
    listed("rows that are neither", [f"{path}: {n}" for path, n in other.items()], whole=given.all)
    if critics.sets and not given.quick:
        gold = None if given.gold is None else partition_of(given.gold)
        chat = Chat(given.model, given.base_url, Task(name="recorded", description=given.task))
        rows += asyncio.run(merging_rows(critics.sets, gold, chat))
    print()
    for row in rows:
        print(f"{row.what}: {row.measured}")
    return finish("real_words", rows)


def partition_of(path: Path) -> dict[str, str]:
    """Folded name and idea. Raises InputError where the file is no object of texts."""
    ideas = read_json(path)
    if not isinstance(ideas, dict) or not all(isinstance(i, str) for i in ideas.values()):
        raise InputError("a partition is an object of names and ideas", str(path))
    return {fold_name(name): idea for name, idea in ideas.items()}


def critic_rows(tally: CriticTally) -> list[Row]:
    """Figures over critics' replies."""
    if not tally.replies:
        return []
    criteria = [c for group in tally.sets.values() for members in group for c in members]
    graded = sum(c.scale != "nominal" for c in criteria)
    share = f"{len(tally.unclear)} of {graded}"
    if graded:
        share += f" ({len(tally.unclear) / graded:.1%})"
    return [
        Row("critics' replies by rung", counted(tally.replies)),
        Row("criteria read", f"{len(criteria)} of {tally.proposed} proposed"),
        Row("scales turned round", str(len(tally.turned))),
        Row("scales of unclear order", share),
        Row("kinds, never averaged", str(len(criteria) - graded)),
    ]


def judge_rows(tally: JudgeTally) -> list[Row]:
    """Figures over judges' replies."""
    if not tally.replies:
        return []
    made = tally.ratings["scored"] + tally.ratings["not applicable"]
    return [
        Row("judges' replies", counted(tally.replies)),
        Row("judges' replies by rung", counted(tally.rungs)),
        Row("ratings read", f"{made} of {tally.ratings.total()}: {counted(tally.ratings)}"),
        Row(
            "levels beside a literal evaluation",
            f"{tally.compared} compared, {tally.differing.total()} not equal letter by letter",
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
