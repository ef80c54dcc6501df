"""A self-contained page to mail to a rater, and the file of labels that it returns."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from agenteval.analysis.human_labels import LabelledQueue
from agenteval.errors import InputError
from agenteval.reporting.page import asset, environment, markup, policy
from agenteval.stats.scores import CodedColumn
from agenteval.store import Store
from agenteval.view.labelling import label_criteria, label_items


def label_page(store: Store, labelled: LabelledQueue) -> str:
    """Return one HTML page with all runs of a queue and a form for each.

    It loads nothing and sends nothing: the rater downloads a file of ratings, which
    `agenteval agree --labels` reads. Raises InputError for a queue without levels to choose from.
    """
    queue, sample = labelled.queue, labelled.sample
    items = label_items(store, queue, queue.items)
    criteria = label_criteria(store, queue)
    entries = {entry.run: entry for entry in labelled.ratings.entries()}
    if unrated := [item.key for item in items if labelled.names.get(item.key) not in entries]:
        raise InputError(f"the judge has no results on a run: {unrated[0][:12]}", queue.name)
    runs = {item.key: labelled.names[item.key] for item in items}
    about = {
        "sample": sample and sample.name,
        "criteria": [{"key": key, "id": c.id} for key, c in criteria.items()],
        "items": {
            key: {
                "run": run,
                "case": entries[run].case,
                "system": entries[run].system or "",
                "weight": sample and round(sample.weights[run], 6),
            }
            for key, run in runs.items()
        },
    }
    folder = files("agenteval.view")
    style = asset("page.css") + folder.joinpath("label.css").read_text("utf-8")
    script = folder.joinpath("label.js").read_text("utf-8")
    template = environment("agenteval.view").get_template("offline.html")
    page: str = template.render(
        queue=queue,
        entries=items,
        criteria=criteria,
        policy=policy(style, script),
        style=markup(style),
        script=markup(script),
        # "<" is the only character that could end the element
        about=markup(json.dumps(about).replace("<", "\\u003c")),
    )
    return page


def label_rows(labelled: LabelledQueue) -> list[dict[str, Any]]:
    """Return a row for each rater, item and criterion, as `agree --labels` reads them.

    Of a draw there is a row for every run: one without label and rater where a rater has not
    labelled it.
    """
    sample = labelled.sample
    rows: list[dict[str, Any]] = []
    entries = {entry.run: entry for entry in labelled.ratings.entries()}
    for rater, table in labelled.people.items():
        columns = (table.run, table.criterion, table.label, table.status)
        levels = {
            (run, criterion): (label, status)
            for run, criterion, label, status in zip(*map(_texts, columns), strict=True)
        }
        for run in sample.weights if sample else dict.fromkeys(str(run) for run, _ in levels):
            for criterion in labelled.criteria:
                label, status = levels.get((run, criterion.id), (None, None))
                if status is None and sample is None:
                    continue
                fields: dict[str, Any] = {
                    "run": run,
                    "case": entries[run].case,
                    "system": entries[run].system or "",
                    "criterion": criterion.id,
                    "label": label,
                    "rater": status and rater,
                }
                if status is not None and label is None:
                    fields["status"] = status
                if sample is not None:
                    fields |= {"weight": round(sample.weights[run], 6), "sample": sample.name}
                rows.append(fields)
    return rows


def _texts(column: CodedColumn) -> list[str | None]:
    return [None if code < 0 else column.names[code] for code in column.codes]
