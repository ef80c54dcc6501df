"""Many plants and negatives, written in the layout in which annotated traces are exchanged."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval.evaluators.traces.annotation_files import write_folder
from agenteval.evaluators.traces.plant.changes import categories
from agenteval.evaluators.traces.plant.host import Host
from agenteval.evaluators.traces.plant.make import Planted, plant
from agenteval.evaluators.traces.plant.record import PlantError
from agenteval.evaluators.traces.plant.system import TracedSystem
from agenteval.files import write_atomically


@dataclass
class Harvest:
    """What was made: `planted` with errors, `negatives` without, and what could not be made."""

    planted: list[Planted] = field(default_factory=list)
    negatives: list[Planted] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def plant_many(
    chosen: Iterable[TracedSystem],
    out_dir: str | Path,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    negatives: Sequence[int] = (0, 1, 2, 3, 4),
    only: Sequence[str] | None = None,
) -> Harvest:
    """Plants of every category of every system for every seed, and negatives of every scene.

    `only` names the categories to plant. Written are `traces/ID.jsonl` (OTLP/JSON lines),
    `gold/ID.json` (the official layout) and `index.jsonl`, a line for each run with its system,
    adapter, change, scene and, for each error, the spans that count as its place. A plant that
    cannot be made stands in `failed` with its reason. Not to be called from a running event loop.
    """
    out, harvest = Path(out_dir), Harvest()
    with Host() as host:
        for system in chosen:
            wanted = [c for c in categories(system) if only is None or c in only]
            for category in wanted:
                for seed in seeds:
                    try:
                        harvest.planted.append(plant(system, category, seed, out, host=host))
                    except PlantError as error:
                        harvest.failed.append(str(error))
            for scene in system.scenes:
                for seed in negatives:
                    made = plant(system, None, seed, out, scene=scene, host=host)
                    harvest.negatives.append(made)
    write(harvest, out)
    return harvest


def write(harvest: Harvest, out: Path) -> None:
    """Write the gold and the index; the traces are there already."""
    made = (*harvest.planted, *harvest.negatives)
    (out / "gold").mkdir(parents=True, exist_ok=True)
    write_folder(out / "gold", [one.gold for one in made])
    lines = [json.dumps(_line(one), ensure_ascii=False) + "\n" for one in made]
    write_atomically(out / "index.jsonl", "".join(lines))


def _line(made: Planted) -> dict[str, Any]:
    return {
        "trace_id": made.run.id,
        "system": made.system,
        "adapter": made.adapter,
        "change": made.change,
        "scene": made.scene,
        "errors": [
            {"category": error.finding.category, "places": list(error.places)}
            for error in made.errors
        ],
    }
