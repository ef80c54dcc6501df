"""Task: the job of an application, as described in a folder `tasks/<name>`."""

from __future__ import annotations

from pydantic import Field

from agenteval.records.base import Record


class Example(Record):
    """One solved input for the critic."""

    input: str = ""
    output: str = Field(min_length=1)


class Examples(Record):
    """Examples of success and of failure; both may be empty (task-based mode)."""

    success: tuple[Example, ...] = ()
    failed: tuple[Example, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.success or self.failed)


class Task(Record):
    """Name, description and examples of the job to evaluate. `map` assigns columns of its runs to
    fields if their names differ."""

    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    examples: Examples = Examples()
    map: dict[str, str] = Field(default_factory=dict)
