"""Pages of the viewer on what was run: the experiments of a store."""

from __future__ import annotations

import time
from dataclasses import dataclass

from starlette.requests import Request

from agenteval.records.table import column, table_of
from agenteval.reporting.page import Listing, Page, PageSection, Text
from agenteval.store.experiments import unfinished_of
from agenteval.view.server import PageFunction, Viewer


@dataclass(frozen=True)
class _SourceRow:
    name: str = column("judge, agent or finder")
    evaluator: str = column("evaluator")
    requests: int = column("requests", "count")
    cost: float | None = column("cost", "money")
    verdict: str = column("verdict")
    state: str = column("state")


def experiments_page(viewer: Viewer, request: Request) -> Page:
    """Who gave results, the latest first, and what is not finished."""
    store = viewer.store
    rows = []
    for key, source in reversed(store.sources(trials=True)):
        usage, verdict = store.usage(key), store.verdict_on(key)
        unfinished = unfinished_of(store, [key])
        rows.append(
            _SourceRow(
                name=f"{source.model} {key[:8]}",
                evaluator=source.evaluator,
                requests=usage.requests,
                cost=usage.cost,
                verdict=verdict.result.judge.verdict if verdict else "not verified",
                state=unfinished[0].line if unfinished else "finished",
            )
        )
    table = table_of(_SourceRow, "experiments", "Experiments", rows, drop_empty=["cost"])
    nothing = Text("The store is empty. Run `agenteval quantify`.")
    blocks = [Listing(table, titled=False)] if rows else [nothing]
    now = time.strftime("%Y-%m-%d %H:%M", time.localtime())
    return Page("view", "Experiments", f"as of {now}", [PageSection("experiments", "", blocks)])


PAGES: dict[str, PageFunction] = {"/": experiments_page}
