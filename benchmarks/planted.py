"""Detectors against planted errors and hard negatives.

Agents of the sample system are run in changed worlds (see agenteval.evaluators.traces.plant), so
what is wrong in each trace, and where, is known; other runs look wrong and are not. Printed are
the counts, the recall per category (of the place and kind, and of the kind anywhere in the trace),
and the precision over plants and negatives, with what was falsely found.

    python -m benchmarks.planted [--seeds 3] [--negatives 6] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

from agenteval.evaluators.traces.plant import (
    ORDERS,
    Harvest,
    Host,
    Planted,
    PlantError,
    categories,
    plant,
    write,
)
from agenteval.records.finding import Finding


def detector() -> Callable[[Any], Iterable[Finding]]:
    """The rules that need no model."""
    from agenteval.evaluators.traces.detectors import detect

    def found(run: Any) -> Iterable[Finding]:
        said = detect(run)
        return list(getattr(said, "findings", said))

    return found


def harvested(out: Path, seeds: Iterable[int], negatives: Iterable[int]) -> Harvest:
    """Plants of every category for each of `seeds`, negatives of every scene for the others."""
    harvest = Harvest()
    with Host() as host:
        for category, seed in product(categories(), seeds):
            try:
                harvest.planted.append(plant(category, seed, out, host=host))
            except PlantError as error:
                harvest.failed.append(str(error))
        harvest.negatives += [plant(None, seed, out, scene=scene, host=host)
                              for scene, seed in product(ORDERS.scenes, negatives)]  # fmt: skip
    write(harvest, out)
    return harvest


def judged(made: Planted, said: Iterable[Finding]) -> tuple[list[str], list[str], list[str]]:
    """(kinds found at their places, kinds found anywhere, kinds of false alarms)."""
    said = list(said)
    placed, anywhere, false = [], [], []
    for error in made.errors:
        kind = error.finding.category
        if any(f.category == kind for f in said):
            anywhere.append(kind)
        if any(f.category == kind and f.span in error.places for f in said):
            placed.append(kind)
    for finding in said:
        right = any(
            finding.category == e.finding.category and finding.span in e.places for e in made.errors
        )
        if not right:
            false.append(finding.category)
    return placed, anywhere, false


def count(harvest: Harvest, detect: Callable[[Any], Iterable[Finding]]) -> dict[str, Any]:
    """All figures of the benchmark."""
    planted: Counter[str] = Counter()
    placed: Counter[str] = Counter()
    anywhere: Counter[str] = Counter()
    true = 0
    alarms: dict[str, Counter[str]] = {"plants": Counter(), "negatives": Counter()}
    by_scene: dict[str, Counter[str]] = defaultdict(Counter)
    instead: dict[str, Counter[str]] = defaultdict(Counter)
    for made in harvest.planted:
        said = list(detect(made.run))
        at, any_, false = judged(made, said)
        planted.update(e.finding.category for e in made.errors)
        placed.update(at)
        anywhere.update(any_)
        alarms["plants"].update(false)
        true += len(said) - len(false)
        instead[made.errors[0].finding.category].update(false)
    touched = 0
    for made in harvest.negatives:
        _, _, false = judged(made, detect(made.run))
        alarms["negatives"].update(false)
        by_scene[made.scene].update(false)
        touched += bool(false)
    on_plants = sum(alarms["plants"].values())
    on_negatives = sum(alarms["negatives"].values())
    return {
        "planted": dict(planted), "placed": dict(placed), "anywhere": dict(anywhere),
        "true": true, "false_on_plants": on_plants, "false_on_negatives": on_negatives,
        "negatives": len(harvest.negatives), "negatives_with_alarms": touched,
        "instead": {k: dict(v) for k, v in instead.items() if v},
        "by_scene": {k: dict(v) for k, v in by_scene.items() if v},
    }  # fmt: skip


def ratio(part: int, whole: int) -> str:
    return f"{part / whole:6.3f}" if whole else "   n/a"


def show(figures: dict[str, Any]) -> None:
    """The table."""
    print(f"{'category':<36}{'planted':>8}{'at place':>10}{'in trace':>10}   falsely found beside")
    for kind, number in sorted(figures["planted"].items()):
        beside = ", ".join(f"{k} {n}" for k, n in figures["instead"].get(kind, {}).items())
        placed, anywhere = figures["placed"].get(kind, 0), figures["anywhere"].get(kind, 0)
        shares = f"{ratio(placed, number):>10}{ratio(anywhere, number):>10}"
        print(f"{kind:<36}{number:>8}{shares}   {beside}")
    total = sum(figures["planted"].values())
    placed = sum(figures["placed"].values())
    print(f"{'all':<36}{total:>8}{ratio(placed, total):>10}")
    true, plants = figures["true"], figures["false_on_plants"]
    negatives = figures["false_on_negatives"]
    share = ratio(true, true + plants)
    print(f"precision over plants                {share} ({true} of {true + plants})")
    print(f"precision over plants and negatives  {ratio(true, true + plants + negatives)}")
    print(f"negatives with a false alarm         {figures['negatives_with_alarms']} of "
          f"{figures['negatives']}")  # fmt: skip
    for scene, kinds in figures["by_scene"].items():
        print(f"  {scene}: {', '.join(f'{k} {n}' for k, n in kinds.items())}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3, help="plants of a category")
    parser.add_argument("--negatives", type=int, default=6, help="runs of a scene without errors")
    parser.add_argument("--first", type=int, default=1000, help="first seed")
    parser.add_argument("--keep", type=Path, help="folder for traces and gold")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    negatives = range(given.first, given.first + given.negatives)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        harvest = harvested(given.keep or Path(folder), seeds, negatives)
        spent = time.perf_counter() - begun
        runs = len(harvest.planted) + len(harvest.negatives)
        print(f"{len(harvest.planted)} plants, {len(harvest.negatives)} negatives, "
              f"{len(harvest.failed)} could not be made, "
              f"{spent / runs:.2f} s a run")  # fmt: skip
        for reason in harvest.failed:
            print(f"  {reason}")
        adapters = Counter(m.adapter for m in (*harvest.planted, *harvest.negatives))
        print("adapters: " + ", ".join(f"{name} {n}" for name, n in sorted(adapters.items())))
        begun = time.perf_counter()
        figures = count(harvest, detector())
        figures["detect_ms_a_run"] = round((time.perf_counter() - begun) / runs * 1e3, 2)
        show(figures)
        line = {"benchmark": "planted", "runs": runs, "seconds_a_run": round(spent / runs, 3)}
        print(json.dumps({**line, **figures, "failed": harvest.failed}, ensure_ascii=False))
    return 0 if not harvest.failed else 1


if __name__ == "__main__":
    sys.exit(main())
