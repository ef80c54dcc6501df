"""The page of the criteria: use, origin, and the cost of changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agenteval.analysis.rating_sources import resolve_source
from agenteval.errors import InputError
from agenteval.readers.problems import first_problem
from agenteval.records import CriteriaSet, Criterion
from agenteval.reporting.page import Fragment, Words
from agenteval.reporting.text import edits
from agenteval.store import Store
from agenteval.store.browse import calls_of, criteria_by_key, judged_cells
from agenteval.text import plural
from agenteval.utility.criteria_file import load_criteria, save_criteria
from agenteval.view.server import FormFunction, PageFunction, Viewer, respond

_LONGEST = 20_000  # characters of a field


@dataclass(frozen=True)
class CriterionCard:
    """A criterion of the file, or of the store where there is no file.

    `judged` counts the stored results on exactly this wording; `origin` names its proposer,
    `merged` the criteria merged into it.
    """

    criterion: Criterion
    judged: int
    origin: str
    merged: tuple[str, ...]

    @property
    def levels(self) -> str:
        """One level a line, from worst to best."""
        return "\n".join(self.criterion.accepted_values)

    @property
    def editable(self) -> bool:
        """A criterion with parts, or a numeric one, is edited in its file."""
        return not self.criterion.sub_criteria and bool(self.criterion.accepted_values)


def criteria_page(viewer: Viewer, request: Request) -> Response:
    """Return the criteria of the file, else those of the latest judge."""
    key, source = resolve_source(viewer.store, request.query_params.get("source"))
    cells = _counted(viewer.store, key, calls_of(viewer.store, key))
    path = viewer.criteria_file
    from_file = load_criteria(path).criteria.criteria if path else ()
    newest = {c.id: c for c in criteria_by_key(viewer.store, cells).values()}
    criteria = from_file or tuple(newest.values())
    cards = [_card(criterion, cells.get(criterion.sha256, 0)) for criterion in criteria]
    return respond(
        request,
        "criteria.html",
        cards=cards,
        judge=f"{source.model} {key[:8]}",
        file=path,
    )


def preview(viewer: Viewer, request: Request, form: Mapping[str, str]) -> Response:
    """Show what an edit changes and how many results it makes obsolete, or write it.

    With `confirm` the file is replaced in one step. Raises InputError for a criterion that is not
    in the file, that has changed since, or whose levels are not a valid scale.
    """
    path = _file(viewer)
    loaded = load_criteria(path).criteria
    before = next((c for c in loaded.criteria if c.id == form.get("id")), None)
    if before is None:
        raise InputError(f"has no criterion {form.get('id', '')!r}", str(path))
    if before.sha256 != form.get("sha256"):
        raise InputError(f"{before.name!r} has changed since; reload the page", str(path))
    after = _edited(before, form)
    if form.get("confirm"):
        criteria = tuple(after if c.id == before.id else c for c in loaded.criteria)
        save_criteria(path, CriteriaSet(task=loaded.task, criteria=criteria))
        return RedirectResponse(f"/criteria#{after.id}", 303)
    key, source = resolve_source(viewer.store, None)
    cells = _counted(viewer.store, key, calls_of(viewer.store, key)).get(before.sha256, 0)
    same = after.sha256 == before.sha256
    return respond(
        request,
        "criteria_preview.html",
        before=before,
        form=form,
        file=path,
        changes=[
            ("Name", _diff(before.name, after.name)),
            ("Description", _diff(before.description, after.description)),
            ("Levels", _diff("\n".join(before.accepted_values), "\n".join(after.accepted_values))),
        ],
        cost="The judge's prompt does not change: nothing is judged again."
        if same
        else f"This changes the judge's prompt: {plural(cells, 'result')} of {source.model} "
        f"{'is' if cells == 1 else 'are'} judged again.",
    )


@lru_cache(maxsize=8)
def _counted(store: Store, source_key: str, calls: int) -> dict[str, int]:
    """Count the results of a judge by criterion, again when there are more `calls`."""
    return judged_cells(store, source_key)


def _file(viewer: Viewer) -> Path:
    if viewer.criteria_file is None:
        raise InputError("start the viewer with --criteria FILE to edit criteria", "criteria")
    return viewer.criteria_file


def _card(criterion: Criterion, judged: int) -> CriterionCard:
    provenance = criterion.provenance
    seeds = f", seeds {', '.join(map(str, provenance.seeds))}" if provenance.seeds else ""
    by = f" ({provenance.model})" if provenance.model else ""
    merged = [
        f"{alias.get('name')}" + (f": {alias['description']}" if alias.get("description") else "")
        for alias in provenance.aliases
    ]
    parts = [f"part of the whole: {name}" for name in provenance.part_of]
    return CriterionCard(criterion, judged, f"{provenance.origin}{by}{seeds}", (*merged, *parts))


def _edited(criterion: Criterion, form: Mapping[str, str]) -> Criterion:
    name, description, levels = (
        form.get(field, "").replace("\r\n", "\n")[:_LONGEST]
        for field in ("name", "description", "levels")
    )
    values = tuple(line.strip() for line in levels.splitlines() if line.strip())
    changed = {
        **criterion.model_dump(),
        "name": name.strip(),
        "description": description.strip(),
        "accepted_values": values,
        "verification": None,
    }
    if values != criterion.accepted_values:
        changed |= {"order_confirmed": True, "order_reason": "edited by a person"}
    try:
        return Criterion.model_validate(changed)
    except ValidationError as error:
        raise InputError(first_problem(error), criterion.name) from error


def _diff(before: str, after: str) -> Words:
    if before == after:
        return [Fragment("unchanged", "quiet")]
    return [Fragment(text, kind) for kind, text in edits(before, after)]


PAGES: dict[str, PageFunction] = {"/criteria": criteria_page}
FORMS: dict[str, FormFunction] = {"/criteria/edit": preview}
