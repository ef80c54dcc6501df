"""The attributes of one span while its fields are taken out of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from agenteval.readers.tracing.flat import insert, with_lists

_TREES = (
    "llm.input_messages", "llm.output_messages", "llm.tools", "gen_ai.input.messages",
    "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions",
    "gen_ai.prompt", "gen_ai.completion",
)  # fmt: skip
TREE = re.compile(rf"({'|'.join(map(re.escape, _TREES))})(?:\.|$)")
FINISH = ("llm.finish_reason", "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason")


@dataclass
class Attributes:
    """The attributes of a span: what stands alone, and what belongs to lists of messages."""

    rest: dict[str, Any] = field(default_factory=dict)
    trees: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, flat: dict[str, Any]) -> Attributes:
        """Sort flat attributes; those under a name of _TREES are put together again."""
        made = cls()
        nested: dict[str, Any] = {}
        for key, value in flat.items():
            match = TREE.match(key) if key.startswith(("llm.", "gen_ai.")) else None
            if match is None:
                made.rest[key] = value
            else:
                inside = key[match.end() :]
                path = [match[1], *inside.split(".")] if inside else [match[1]]
                insert(nested, path, value)
        made.trees = {key: with_lists(value, 1) for key, value in nested.items()}
        return made

    def take(self, *names: str) -> Any:
        """The first of these attributes that is there; it is taken away."""
        for name in names:
            if name in self.rest and self.rest[name] not in (None, ""):
                return self.rest.pop(name)
        return None

    def peek(self, *names: str) -> Any:
        """The first of these attributes that is there."""
        for name in names:
            if name in self.rest and self.rest[name] not in (None, ""):
                return self.rest[name]
        return None

    def left(self) -> dict[str, Any]:
        """What no field has taken."""
        return self.rest | {key: value for key, value in self.trees.items() if value is not None}
