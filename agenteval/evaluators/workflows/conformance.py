"""What conformance says: does a sequence of calls follow the procedure, and if not, where not."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from agenteval.records import Record

# The four causes of failure of arXiv 2406.14884, table 7, here computed and not asked of a model.
Cause = Literal["missing_step", "wrong_order", "wrong_transition", "tool_use"]
CAUSES: tuple[Cause, ...] = ("missing_step", "wrong_order", "wrong_transition", "tool_use")


class Call(Record):
    """A call as conformance sees it. `carried_out` is False when the tool refused it; `returned`
    is the result as JSON, None when it is none."""

    tool: str
    arguments: JsonValue = None
    carried_out: bool = True
    problem: str = ""  # why it was refused
    returned: JsonValue = None


class Deviation(Record):
    """One way in which calls depart from a procedure.

    `at` is the index of the call it is about; for a missing step the index before which it should
    have come. `node` or `edge` (source, target) of the chart where there is one.
    """

    cause: Cause
    at: int = Field(ge=0)
    tool: str = ""
    node: str | None = None
    edge: tuple[str, str] | None = None
    detail: str = ""


class Conformance(Record):
    """The best reading of the calls as a walk through the chart.

    `fitness` is 1 − cost / cost of the worst reading (every call extra, every step of the shortest
    walk missing), 1 when nothing deviates, None when there was nothing to do and nothing was done.
    `nodes` and `edges` are those walked, in order; `unchecked` counts the transitions walked whose
    condition is the user's will or no value that was returned.
    """

    deviations: tuple[Deviation, ...] = ()
    fitness: float | None = Field(default=None, ge=0, le=1)
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    unchecked: int = Field(default=0, ge=0)

    @property
    def conforms(self) -> bool:
        """True without a single deviation."""
        return not self.deviations

    @property
    def cause(self) -> Cause | None:
        """The cause of the first deviation, None when it conforms."""
        return self.deviations[0].cause if self.deviations else None
