"""The criteria bank: concepts written by the maintainers, three phrasings each."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from agenteval.records import Criterion, Provenance


@dataclass(frozen=True, slots=True)
class Concept:
    """One concept of the bank. `phrasings` are (name, description) pairs."""

    id: str
    group: str
    phrasings: tuple[tuple[str, str], ...]
    record: dict[str, Any]

    def criterion(self, phrasing: int, *, seed: int | None = None) -> Criterion:
        """The concept as a criterion in one of its phrasings."""
        name, description = self.phrasings[phrasing]
        return Criterion(
            name=name,
            description=description,
            accepted_values=tuple(self.record["accepted_values"]),
            scale=self.record["scale"],
            allow_na=self.record.get("allow_na", False),
            hint=self.record["hint"],
            expect={op: e["direction"] for op, e in self.record["expect"].items()},
            provenance=Provenance(
                origin="bank", concept=self.id, seeds=() if seed is None else (seed,)
            ),
        )


@functools.cache
def load_bank() -> tuple[Concept, ...]:
    """All concepts, in the order of the file."""
    text = files("agenteval.data").joinpath("bank.json").read_text("utf-8")
    return tuple(
        Concept(
            id=entry["id"],
            group=entry["group"],
            phrasings=tuple((p["name"], p["description"]) for p in entry["phrasings"]),
            record=entry,
        )
        for entry in json.loads(text)["concepts"]
    )
