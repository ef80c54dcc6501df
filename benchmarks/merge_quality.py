"""Does merging join what real critics mean to be the same, and only that?

    python -m benchmarks.merge_quality [FOLDER] [--gold FILE] [--embedder NAME_OR_PATH ...]
                                       [--replies FOLDER] [--write]

Folded names are compared: a pair of names in a reader's partition is right when it is joined
exactly if the reader puts both into one idea. Precision is the share of joined pairs that are of
one idea, recall the share of pairs of one idea that are joined. Pairs of all draws are summed.

Data: five sets that a capable language model wrote, partitioned by two readers (in `capable/`), and
the sets in FOLDER (recorded critics, JSONL with `mode`, `seed`, `criteria`) with a partition of
their names (--gold, by default FOLDER/names_gold.json): all of them, and 20 draws of 5 and of 20
sets of each mode. Beside them the phrasings of the criteria bank, several of each concept:
they are more alike than the words of different critics.

The rule for tau: the lowest of .50, .55, ... .90 at which precision is at least .85 both with 5 and
with 20 seeds. It is fitted on all modes but one and reported on that one, for each in turn; --write
fits it on all modes and puts it into agenteval/models/embedders.json.

Consolidation by a chat model is measured on its replies: --replies names a folder, into which the
request for each list of names is written as NAME.request.json, and where the reply is looked for as
NAME.reply.txt. Without --replies that of `capable/` is scored.

Targets: with consolidation a precision of .85 and a recall of .60, on the capable sets 10 to 16
ideas; by embedding alone a precision of .85 on modes that tau was not fitted on.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agenteval.errors import InputError, ReplyError
from agenteval.models.embeddings import Embedder, make_embedder
from agenteval.readers.tasks import find_task
from agenteval.records import Criterion, Provenance
from agenteval.utility.bank import load_bank
from agenteval.utility.consolidate import Consolidator, read_ideas
from agenteval.utility.critic_reply import read_criteria
from agenteval.utility.merge import CriterionClusters, fold_name
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish

if TYPE_CHECKING:
    from agenteval.models.embeddings import Vectors

TAUS = tuple(round(0.05 * i, 2) for i in range(10, 19))
SIZES = (5, 20)  # seeds of a draw
DRAWS = 20
PRECISION, RECALL = 0.85, 0.60  # targets with consolidation
BY_EMBEDDING = 0.85  # precision
IDEAS = (10, 16)  # of the capable sets
CAPABLE = ROOT / "benchmarks" / "capable" / "critics"
TAU_FILE = ROOT / "agenteval" / "models" / "embedders.json"
Ideas = dict[str, str]  # a reader's partition: idea by folded name


# -- data ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RecordedSet:
    """What one critic proposed; `mode` is how it was asked."""

    mode: str
    criteria: tuple[Criterion, ...]


def load_sets(folder: Path) -> list[RecordedSet]:
    """Read the *.jsonl files: lines with `mode`, `seed`, and `criteria` or `text` (a reply)."""
    sets = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in map(json.loads, path.read_text("utf-8").splitlines()):
            seed = Provenance(origin="critic", seeds=(int(line["seed"]),))
            criteria = read_criteria(line.get("criteria", line.get("text"))).criteria
            signed = (c.model_copy(update={"provenance": seed}) for c in criteria)
            sets.append(RecordedSet(str(line.get("mode", "")), tuple(signed)))
    if not sets:
        raise InputError("no recorded sets of criteria (*.jsonl) here", str(folder))
    return sets


def load_ideas(path: Path, sets: Sequence[RecordedSet]) -> Ideas:
    """Read {"name": "idea"}, or {"seed:index": "idea"} over `sets`. Other names do not count."""
    places = {
        f"{s.criteria[0].provenance.seeds[0]}:{at}": c.name
        for s in sets
        for at, c in enumerate(s.criteria)
    }
    ideas = json.loads(path.read_text("utf-8"))
    return {fold_name(places.get(key, key)): idea for key, idea in ideas.items()}


def by_mode(sets: Sequence[RecordedSet]) -> dict[str, list[RecordedSet]]:
    """The sets of each mode, modes sorted."""
    return {mode: [s for s in sets if s.mode == mode] for mode in sorted({s.mode for s in sets})}


class Remembering:
    """An embedder that embeds each text once."""

    def __init__(self, inner: Embedder) -> None:
        self.name, self.default_tau = inner.name, inner.default_tau
        self._inner = inner
        self._rows: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit rows (n, d)."""
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if new:
            self._rows.update(zip(new, self._inner.embed(new), strict=True))
        return np.stack([self._rows[text] for text in texts])


# -- pairs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """Pairs of names that are joined, that are of one idea, and that are both; they add up."""

    joined: int = 0
    same: int = 0
    both: int = 0

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(self.joined + other.joined, self.same + other.same, self.both + other.both)

    @property
    def precision(self) -> float:
        """1 when nothing is joined: nothing is joined wrongly."""
        return self.both / self.joined if self.joined else 1.0

    @property
    def recall(self) -> float:
        """1 when there is nothing to join."""
        return self.both / self.same if self.same else 1.0

    def __str__(self) -> str:
        return f"{self.precision:.2f} / {self.recall:.2f}"


Table = dict[float, Pairs]  # by tau


def count_pairs(names: Sequence[str], labels: Sequence[int], ideas: Ideas) -> Pairs:
    """Pairs of the folded names that have an idea."""
    labelled = [(ideas[n], label) for n, label in zip(names, labels, strict=True) if n in ideas]
    pairs = list(combinations(labelled, 2))
    return Pairs(
        sum(a[1] == b[1] for a, b in pairs),
        sum(a[0] == b[0] for a, b in pairs),
        sum(a == b for a, b in pairs),
    )


def clusters(sets: Iterable[RecordedSet], embedder: Embedder) -> CriterionClusters:
    """All criteria of the sets, by name."""
    return CriterionClusters([c for s in sets for c in s.criteria], embedder)


def by_tau(names: CriterionClusters, ideas: Ideas) -> Table:
    """Pairs at every tau."""
    folded = [fold_name(c.name) for c in names.representatives]
    return {tau: count_pairs(folded, names.partition(tau), ideas) for tau in TAUS}


def summed(tables: Iterable[Table]) -> Table:
    """The pairs of several tables together."""
    listed = list(tables)
    return {tau: sum((table[tau] for table in listed), Pairs()) for tau in TAUS}


def drawn(sets: Sequence[RecordedSet], seeds: int, ideas: Ideas, embedder: Embedder) -> Table:
    """Pairs at every tau, summed over draws of `seeds` of the sets without replacement."""
    rng = np.random.default_rng(0)
    tables = []
    for _ in range(DRAWS if len(sets) > seeds else 1):
        draw = [sets[i] for i in sorted(rng.permutation(len(sets))[:seeds])]
        tables.append(by_tau(clusters(draw, embedder), ideas))
    return summed(tables)


def fitted(tables: Iterable[Table]) -> float:
    """The lowest tau at which all tables have the target precision, or the highest."""
    listed = list(tables)
    enough = (tau for tau in TAUS if all(t[tau].precision >= BY_EMBEDDING for t in listed))
    return next(enough, TAUS[-1])


def show(what: str, table: Table) -> None:
    """One line: precision / recall at every tau."""
    print(f"  {what:<22}" + "  ".join(f"{pairs!s:>11}" for pairs in table.values()))


# -- what is measured ------------------------------------------------------------------------------


def recorded(
    sets: list[RecordedSet], ideas: Ideas, embedder: Embedder
) -> tuple[float, dict[int, Pairs]]:
    """The tau fitted on all modes, and the pairs on modes left out of the fit, per size of draw."""
    show(f"{len(sets)} sets together", by_tau(clusters(sets, embedder), ideas))
    tables = {
        mode: {seeds: drawn(some, seeds, ideas, embedder) for seeds in SIZES}
        for mode, some in by_mode(sets).items()
    }
    together = {seeds: summed(t[seeds] for t in tables.values()) for seeds in SIZES}
    for seeds in SIZES:
        show(f"{seeds} seeds", together[seeds])
    left_out = dict.fromkeys(SIZES, Pairs())
    taus = {}
    for mode in tables:
        taus[mode] = fitted(summed(tables[m][n] for m in tables if m != mode) for n in SIZES)
        left_out = {n: left_out[n] + tables[mode][n][taus[mode]] for n in SIZES}
    print(f"  tau fitted without a mode: {', '.join(f'{m} {tau:g}' for m, tau in taus.items())}")
    for seeds in SIZES:
        print(f"  on the mode left out, {seeds} seeds: {left_out[seeds]}")
    return fitted(together.values()), left_out


def lists(sets: Sequence[RecordedSet]) -> Iterator[tuple[str, list[RecordedSet]]]:
    """Lists of names that a model is asked about: two of 5 and one of 20 seeds of each mode."""
    rng = np.random.default_rng(0)
    for mode, some in by_mode(sets).items():
        order = rng.permutation(len(some))
        yield f"{mode}-5a", [some[i] for i in order[:5]]
        yield f"{mode}-5b", [some[i] for i in order[5:10]]
        yield f"{mode}-20", [some[i] for i in sorted(order[:20])]


def consolidated(
    name: str, names: CriterionClusters, ideas: Ideas, folder: Path, *, write: bool
) -> tuple[int, Pairs] | None:
    """Ideas and pairs of the reply to one list; None where there is none yet."""
    shown = names.representatives
    if write:
        consolidator = Consolidator(None, find_task(str(ROOT / "tasks" / "math")).task)  # type: ignore[arg-type]
        request = consolidator.request(shown).with_nonce(name, b"benchmark")
        text = json.dumps({"messages": request.messages}, ensure_ascii=False, indent=1)
        (folder / f"{name}.request.json").write_text(text + "\n", "utf-8")
    reply = folder / f"{name}.reply.txt"
    if not reply.exists():
        return None
    labels = list(range(len(shown)))
    try:
        for idea, (_, entries) in enumerate(read_ideas(reply.read_text("utf-8"), shown).ideas):
            for entry in entries:
                labels[entry] = len(shown) + idea
    except ReplyError as error:
        print(f"  {name}: {error}")
    folded = [fold_name(c.name) for c in shown]
    pairs = count_pairs(folded, labels, ideas)
    print(f"  {name:<22}{len(shown):>3} names, {len(set(labels)):>3} ideas  {pairs}")
    for (a, label_a), (b, label_b) in combinations(zip(folded, labels, strict=True), 2):
        if {a, b} <= ideas.keys() and (ideas[a] == ideas[b]) != (label_a == label_b):
            print(f"      {'missed' if ideas[a] == ideas[b] else 'wrong '}: {a} ~ {b}")
    return len(set(labels)), pairs


def consolidation_row(what: str, pairs: Pairs, ideas: int | None = None) -> Row:
    """The figures of replies with their target."""
    counted, target, met = "", "", True
    if ideas is not None:
        counted, target = f"{ideas} ideas, ", f"{IDEAS[0]} to {IDEAS[1]} ideas, "
        met = IDEAS[0] <= ideas <= IDEAS[1]
    return Row(
        f"with consolidation, {what}",
        f"{counted}precision {pairs.precision:.2f}, recall {pairs.recall:.2f}",
        f"{target}precision >= {PRECISION}, recall >= {RECALL}",
        met and pairs.precision >= PRECISION and pairs.recall >= RECALL,
    )


def by_consolidation(
    replies: Path | None,
    capable: list[RecordedSet],
    ideas: Ideas,
    sets: list[RecordedSet],
    gold: Ideas,
    embedder: Embedder,
) -> list[Row]:
    """Figures of the replies that are there; with `replies`, write the requests."""
    rows = []
    write, folder = replies is not None, replies or CAPABLE
    folder.mkdir(parents=True, exist_ok=True)
    print("\nconsolidation: precision / recall")
    reply = consolidated("capable", clusters(capable, embedder), ideas, folder, write=write)
    if reply is not None:
        rows.append(consolidation_row("capable sets", reply[1], reply[0]))
    by_size: dict[int, Pairs] = {}
    for name, some in lists(sets) if write else ():
        reply = consolidated(name, clusters(some, embedder), gold, folder, write=True)
        if reply is not None:
            by_size[len(some)] = by_size.get(len(some), Pairs()) + reply[1]
    for seeds, pairs in by_size.items():
        print(f"  {seeds} seeds: {pairs}")
        rows.append(consolidation_row(f"{seeds} seeds", pairs))
    return rows


def main() -> int:
    """Measure and print; the last line is JSON."""
    parser = argparse.ArgumentParser(description="Measure merging on criteria of real critics.")
    parser.add_argument("folder", nargs="?", type=Path, help="recorded sets of criteria")
    parser.add_argument("--gold", type=Path, help="partition; default: FOLDER/names_gold.json")
    parser.add_argument("--embedder", nargs="+", default=[None], metavar="NAME_OR_PATH")
    parser.add_argument("--replies", type=Path, help="folder of requests and replies")
    parser.add_argument("--write", action="store_true", help="keep tau in agenteval/models")
    options = parser.parse_args()
    capable = load_sets(CAPABLE)
    ideas, second = (load_ideas(CAPABLE / f"partition_{who}.json", capable) for who in "AB")
    number = {idea: n for n, idea in enumerate(ideas.values())}
    agreed = count_pairs(list(ideas), [number[i] for i in ideas.values()], second)
    print(
        f"capable sets: {len(ideas)} names; two readers count {len(number)} and "
        f"{len(set(second.values()))} ideas, joined pairs of one by the other: {agreed}"
    )
    sets, gold = list[RecordedSet](), Ideas()
    if options.folder is not None:
        sets = load_sets(options.folder)
        gold = load_ideas(options.gold or options.folder / "names_gold.json", sets)
    bank = [c.criterion(p) for c in load_bank() for p in range(len(c.phrasings))]
    concepts = {fold_name(c.name): str(c.provenance.concept) for c in bank}
    rows: list[Row] = []
    tau: dict[str, float] = {}
    embedders = [Remembering(make_embedder(spec)) for spec in options.embedder]
    for embedder in embedders:
        print(f"\n{embedder.name}: precision / recall of pairs of names, by tau")
        print(f"  {'':<22}" + "  ".join(f"{t:>11.2f}" for t in TAUS))
        names = clusters(capable, embedder)
        table = by_tau(names, ideas)
        show("capable sets", table)
        print(f"  {'  ideas':<22}" + "  ".join(f"{len(set(names.partition(t))):>11}" for t in TAUS))
        show("bank", by_tau(CriterionClusters(bank, embedder), concepts))
        if sets:
            fit, left_out = recorded(sets, gold, embedder)
            tau[Path(embedder.name).name.casefold()] = fit
            rows += [
                Row(
                    f"{embedder.name}, modes left out, {n} seeds",
                    f"precision {p.precision:.2f}, recall {p.recall:.2f}",
                    f"precision >= {BY_EMBEDDING}",
                    p.precision >= BY_EMBEDDING,
                )
                for n, p in left_out.items()
            ]
            print(f"  tau fitted on all modes: {fit:g} (in use: {embedder.default_tau:g})")
        at = min(TAUS, key=lambda t: abs(t - embedder.default_tau))
        groups, pairs = len(set(names.partition(at))), table[at]
        figures = f"{groups} groups, precision {pairs.precision:.2f}, recall {pairs.recall:.2f}"
        rows.append(Row(f"{embedder.name} at {at:g}, capable sets", figures))
    if options.write and tau:
        written = json.loads(TAU_FILE.read_text("utf-8"))
        written["tau"] |= tau
        TAU_FILE.write_text(json.dumps(written, indent=1) + "\n", "utf-8")

    rows += by_consolidation(options.replies, capable, ideas, sets, gold, embedders[0])
    return finish("merge_quality", rows, tau=tau)


if __name__ == "__main__":
    sys.exit(main())
