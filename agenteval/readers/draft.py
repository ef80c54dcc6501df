"""Draft: the fields of a run as a format read them, before its id is settled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agenteval.readers.limits import Notes
from agenteval.records import Message


@dataclass(frozen=True)
class Context:
    """Where a value stands (for messages of errors) and where warnings go."""

    place: str
    notes: Notes


@dataclass
class Draft:
    """Fields of a Run. `weak_id` names the case and serves as id only where it is unique."""

    id: str | None = None
    weak_id: str | None = None
    task: str = ""
    system: str = "unnamed"
    input: str = ""
    output: str = ""
    messages: list[Message] = field(default_factory=list)
    success: bool | None = None
    reference: str | None = None
    spans: list[Any] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    def keep(self, key: str, value: Any) -> None:
        """Put a value into the metadata; a key that is taken gets the next free number."""
        name, number = key, 2
        while name in self.metadata:
            name, number = f"{key} ({number})", number + 1
        self.metadata[name] = value
