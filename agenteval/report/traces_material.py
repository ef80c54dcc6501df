"""What the tables and the page of findings are made of: traces, and what each finder said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agenteval.evaluators.traces.outline import Outline
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.records import Finding, Findings
from agenteval.records.table import Table
from agenteval.trust.flagged import Flags


@dataclass(frozen=True)
class Finder:
    """One finder and its findings by trace id; `gold` for the people it is measured against."""

    name: str
    findings: Mapping[str, Findings]
    gold: bool = False

    def known(self) -> Iterator[Findings]:
        """Findings of the traces that it could examine."""
        return (f for f in self.findings.values() if f.status is None)


@dataclass(frozen=True)
class Material:
    """Outlines by trace id (a trace may have none), finders, and the taxonomy for the order.

    `scores` are further tables, such as the scores against the gold. `flags` are
    the traces whose text seems to talk to the judge.
    """

    outlines: Mapping[str, Outline]
    finders: Sequence[Finder]
    taxonomy: Taxonomy
    scores: Sequence[Table] = field(default=())
    flags: Flags = Flags()  # noqa: RUF009  frozen

    @property
    def traces(self) -> list[str]:
        """Ids of all traces, those with an outline first."""
        ids = dict.fromkeys(self.outlines)
        for finder in self.finders:
            ids.update(dict.fromkeys(finder.findings))
        return list(ids)

    def of(self, trace: str) -> list[tuple[Finder, Finding]]:
        """All findings of a trace, by finder."""
        return [
            (finder, one)
            for finder in self.finders
            if trace in finder.findings
            for one in finder.findings[trace].findings
        ]

    def category(self, name: str) -> str:
        """The leaf of a spelling; the spelling itself where the taxonomy does not know it."""
        leaf = self.taxonomy.find(name)
        return leaf.name if leaf else name

    def categories(self) -> list[str]:
        """All categories that somebody named, in the taxonomy's order, then the unknown ones."""
        used = {
            self.category(one.category)
            for finder in self.finders
            for said in finder.known()
            for one in said.findings
        }
        ordered = [leaf.name for leaf in self.taxonomy.leaves if leaf.name in used]
        return [*ordered, *sorted(used - set(ordered))]
