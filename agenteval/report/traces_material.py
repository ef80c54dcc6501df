"""What the tables and the page of findings are made of: traces, and what each finder said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agenteval.evaluators.traces.outline import Outline
from agenteval.evaluators.traces.tables import Finder, categories_of, category_of
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.records import Finding
from agenteval.records.table import Table
from agenteval.trust.flagged import Flags


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
        return category_of(name, self.taxonomy)

    def categories(self) -> list[str]:
        """All categories that somebody named, in the taxonomy's order, then the unknown ones."""
        return categories_of(self.finders, self.taxonomy)
