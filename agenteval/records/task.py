"""Task: the application's job, as a folder `tasks/<name>` describes it."""

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
    """Name, description and examples of the job to be evaluated. `map` assigns columns of its runs
    to fields where the names do not match."""

    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    examples: Examples = Examples()
    map: dict[str, str] = Field(default_factory=dict)
