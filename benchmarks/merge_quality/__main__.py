"""Does merging join what real critics mean to be the same, and only that?

    python -m benchmarks.merge_quality [FOLDER] [--gold FILE] [--embedder NAME_OR_PATH ...]
                                       [--replies FOLDER] [--write]

What is compared are folded names: every pair of names that a reader's partition knows is right
when it is joined exactly if the reader holds the two for one idea. Precision is the share of joined
pairs that are of one idea, recall the share of pairs of one idea that are joined. Pairs of all
draws are summed.

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

from agenteval.errors import ReplyError
from agenteval.models.embeddings import Embedder, make_embedder
from agenteval.readers.tasks import find_task
from agenteval.utility.bank import load_bank
from agenteval.utility.consolidate import Consolidator, read_ideas
from agenteval.utility.merge import CriterionClusters, fold_name
from benchmarks.folders import ROOT
from benchmarks.merge_quality.sets import CAPABLE, RecordedSet, draws, load_ideas, load_sets, modes
from benchmarks.outcome import Row, finish

if TYPE_CHECKING:
    from agenteval.models.embeddings import Vectors

TAUS = tuple(round(0.05 * i, 2) for i in range(10, 19))
SIZES = (5, 20)  # seeds of a draw
DRAWS = 20
PRECISION, RECALL = 0.85, 0.60  # targets with consolidation
BY_EMBEDDING = 0.85  # precision
IDEAS = (10, 16)  # of the capable sets
DATA = ROOT / "agenteval" / "data" / "embedders.json"


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


def count_pairs(names: Sequence[str], labels: Sequence[int], ideas: dict[str, str]) -> Pairs:
    """Pairs of the folded names that have an idea."""
    known = [(ideas[n], label) for n, label in zip(names, labels, strict=True) if n in ideas]
    counted = [(a[1] == b[1], a[0] == b[0]) for a, b in combinations(known, 2)]
    return Pairs(
        sum(j for j, _ in counted), sum(s for _, s in counted), sum(j and s for j, s in counted)
    )


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


def names_of(sets: Iterable[RecordedSet], embedder: Embedder) -> CriterionClusters:
    """All criteria of the sets, by name."""
    return CriterionClusters([c for s in sets for c in s.criteria], embedder)


def by_tau(names: CriterionClusters, ideas: dict[str, str]) -> dict[float, Pairs]:
    """Pairs at every tau."""
    folded = [fold_name(c.name) for c in names.representatives]
    return {tau: count_pairs(folded, names.partition(tau), ideas) for tau in TAUS}


def drawn(
    sets: Sequence[RecordedSet], seeds: int, ideas: dict[str, str], embedder: Embedder
) -> dict[float, Pairs]:
    """Pairs at every tau, summed over draws."""
    total = dict.fromkeys(TAUS, Pairs())
    for some in draws(sets, seeds, DRAWS):
        found = by_tau(names_of(some, embedder), ideas)
        total = {tau: total[tau] + found[tau] for tau in TAUS}
    return total


def fitted(tables: Sequence[dict[float, Pairs]]) -> float:
    """The lowest tau at which all tables have the precision that is wanted, or the highest."""
    enough = (tau for tau in TAUS if all(t[tau].precision >= BY_EMBEDDING for t in tables))
    return next(enough, TAUS[-1])


def show(what: str, table: dict[float, Pairs], more: str = "") -> None:
    """One line: precision / recall at every tau."""
    print(f"  {what:<22}" + "  ".join(f"{pairs!s:>11}" for pairs in table.values()) + more)


def head(embedder: Embedder) -> None:
    """The line above the tables."""
    print(f"\n{embedder.name}: precision / recall of pairs of names, by tau")
    print(f"  {'':<22}" + "  ".join(f"{tau:>11.2f}" for tau in TAUS))


def recorded(
    sets: list[RecordedSet], ideas: dict[str, str], embedder: Embedder
) -> tuple[float, dict[int, Pairs]]:
    """The tau fitted on all modes, and the pairs on modes left out of the fit, per size of draw."""
    show(f"{len(sets)} sets together", by_tau(names_of(sets, embedder), ideas))
    by_mode = {
        mode: {
            seeds: drawn([s for s in sets if s.mode == mode], seeds, ideas, embedder)
            for seeds in SIZES
        }
        for mode in modes(sets)
    }
    summed = {
        seeds: {tau: sum((by_mode[m][seeds][tau] for m in by_mode), Pairs()) for tau in TAUS}
        for seeds in SIZES
    }
    for seeds in SIZES:
        show(f"{seeds} seeds", summed[seeds])
    left_out = dict.fromkeys(SIZES, Pairs())
    chosen = []
    for mode in by_mode:
        others = [
            {tau: sum((by_mode[m][n][tau] for m in by_mode if m != mode), Pairs()) for tau in TAUS}
            for n in SIZES
        ]
        tau = fitted(others)
        chosen.append(f"{mode} {tau:g}")
        left_out = {n: left_out[n] + by_mode[mode][n][tau] for n in SIZES}
    print(f"  tau fitted without a mode: {', '.join(chosen)}")
    for seeds in SIZES:
        print(f"  on the mode left out, {seeds} seeds: {left_out[seeds]}")
    return fitted(list(summed.values())), left_out


def lists(sets: Sequence[RecordedSet]) -> Iterator[tuple[str, list[RecordedSet]]]:
    """Lists of names that a model is asked about: two of 5 and one of 20 seeds of each mode."""
    rng = np.random.default_rng(0)
    for mode in modes(sets):
        own = [s for s in sets if s.mode == mode]
        order = rng.permutation(len(own))
        yield f"{mode}-5a", [own[i] for i in order[:5]]
        yield f"{mode}-5b", [own[i] for i in order[5:10]]
        yield f"{mode}-20", [own[i] for i in sorted(order[:20])]


def consolidated(
    name: str, names: CriterionClusters, ideas: dict[str, str], folder: Path, *, write: bool
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
    for a, b in combinations(range(len(shown)), 2):
        same = ideas.get(folded[a], a) == ideas.get(folded[b], b)
        if {folded[a], folded[b]} <= ideas.keys() and same != (labels[a] == labels[b]):
            print(f"      {'missed' if same else 'wrong '}: {folded[a]} ~ {folded[b]}")
    return len(set(labels)), pairs


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure merging on criteria of real critics.")
    parser.add_argument("folder", nargs="?", type=Path, help="recorded sets of criteria")
    parser.add_argument("--gold", type=Path, help="partition; default: FOLDER/names_gold.json")
    parser.add_argument("--embedder", nargs="+", default=[None], metavar="NAME_OR_PATH")
    parser.add_argument("--replies", type=Path, help="folder of requests and replies")
    parser.add_argument("--write", action="store_true", help="keep tau in agenteval/models")
    return parser.parse_args()


def main() -> int:
    """Measure and print; the last line is JSON."""
    wanted = options()
    capable = load_sets(CAPABLE)
    readers = [load_ideas(CAPABLE / f"partition_{who}.json", capable) for who in "AB"]
    ideas = readers[0]
    number = {idea: n for n, idea in enumerate(ideas.values())}
    agreed = count_pairs(list(ideas), [number[i] for i in ideas.values()], readers[1])
    print(
        f"capable sets: {len(ideas)} names; two readers count {len(number)} and "
        f"{len(set(readers[1].values()))} ideas, joined pairs of one by the other: {agreed}"
    )
    sets = [] if wanted.folder is None else load_sets(wanted.folder)
    gold = {} if not sets else load_ideas(wanted.gold or wanted.folder / "names_gold.json", sets)
    bank = [c.criterion(p) for c in load_bank() for p in range(len(c.phrasings))]
    rows: list[Row] = []
    tau: dict[str, float] = {}
    for spec in wanted.embedder:
        embedder = Remembering(make_embedder(spec))
        head(embedder)
        names = names_of(capable, embedder)
        table = by_tau(names, ideas)
        show("capable sets", table)
        print(f"  {'  ideas':<22}" + "  ".join(f"{len(set(names.partition(t))):>11}" for t in TAUS))
        concepts = {fold_name(c.name): str(c.provenance.concept) for c in bank}
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
        rows.append(
            Row(
                f"{embedder.name} at {at:g}, capable sets",
                f"{len(set(names.partition(at)))} groups, precision {table[at].precision:.2f}, "
                f"recall {table[at].recall:.2f}",
            )
        )
    if wanted.write and tau:
        kept = json.loads(DATA.read_text("utf-8"))
        kept["tau"] |= tau
        DATA.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    rows += consolidation_rows(wanted, capable, ideas, sets, gold)
    return finish("merge_quality", rows, tau=tau)


def consolidation_rows(
    wanted: argparse.Namespace,
    capable: list[RecordedSet],
    ideas: dict[str, str],
    sets: list[RecordedSet],
    gold: dict[str, str],
) -> list[Row]:
    """Figures of the replies that are there."""
    embedder = Remembering(make_embedder(wanted.embedder[0]))
    folder = wanted.replies or CAPABLE
    folder.mkdir(parents=True, exist_ok=True)
    write = wanted.replies is not None
    print("\nconsolidation: precision / recall")
    rows = []
    one = consolidated("capable", names_of(capable, embedder), ideas, folder, write=write)
    if one is not None:
        rows.append(
            _row("capable sets", one[1], f"{one[0]} ideas, ", IDEAS[0] <= one[0] <= IDEAS[1])
        )
    by_size: dict[int, Pairs] = {}
    for name, some in lists(sets) if write else ():
        found = consolidated(name, names_of(some, embedder), gold, folder, write=True)
        if found is not None:
            by_size[len(some)] = by_size.get(len(some), Pairs()) + found[1]
    for seeds, pairs in by_size.items():
        print(f"  {seeds} seeds: {pairs}")
        rows.append(_row(f"{seeds} seeds", pairs))
    return rows


def _row(what: str, pairs: Pairs, ideas: str = "", met: bool = True) -> Row:
    return Row(
        f"with consolidation, {what}",
        f"{ideas}precision {pairs.precision:.2f}, recall {pairs.recall:.2f}",
        f"{'10 to 16 ideas, ' * bool(ideas)}precision >= {PRECISION}, recall >= {RECALL}",
        met and pairs.precision >= PRECISION and pairs.recall >= RECALL,
    )


if __name__ == "__main__":
    sys.exit(main())
