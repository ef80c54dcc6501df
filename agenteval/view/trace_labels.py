"""Pages on which people mark errors in traces: category, span, evidence, impact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from agenteval.errors import InputError
from agenteval.readers.problems import first_problem
from agenteval.records import Finding
from agenteval.store import Store
from agenteval.store.labels import HumanLabel, Labels
from agenteval.traces.annotations import IMPACTS
from agenteval.traces.evaluator import load_outlines
from agenteval.traces.outline import Outline, OutlineSpan, outline
from agenteval.traces.taxonomy import built_in
from agenteval.view.labelling import trace_findings
from agenteval.view.labels import rater_in
from agenteval.view.server import FormFunction, PageFunction, Viewer, page_path, respond

_MOST_TEXT = 20_000  # characters of an input or output
_LONGEST = 10_000  # characters of a field of the form


@dataclass(frozen=True)
class TraceCard:
    """A trace with how many errors each rater marked in it."""

    key: str
    trace: str
    spans: int
    raters: Mapping[str, int]


def traces_page(viewer: Viewer, request: Request) -> Response:
    """The traces of the store, with the raters who examined each."""
    labels = trace_findings(viewer.store)
    outlines = load_outlines(viewer.store)
    cards = [
        TraceCard(
            key,
            shown.trace,
            shown.total,
            {rater: len(label.findings) for rater, label in labels.get(key, {}).items()},
        )
        for key, shown in outlines.items()
    ]
    rater = request.query_params.get("rater", viewer.rater or "")
    return respond(request, "trace_list.html", cards=cards, rater=rater)


def trace_page(viewer: Viewer, request: Request) -> Response:
    """A trace with all its spans, the rater's findings, and a form for another one."""
    return _page(viewer, request, request.query_params)


def _page(
    viewer: Viewer, request: Request, values: Mapping[str, str], problem: str = ""
) -> Response:
    key, rater = values.get("trace", ""), rater_in(values)
    shown, complete = _outline(viewer, key)
    mine = trace_findings(viewer.store).get(key, {}).get(rater)
    by_span: dict[str, list[Mapping[str, object]]] = {}
    for finding in mine.findings if mine else ():
        by_span.setdefault(str(finding["span"]), []).append(finding)
    keys = list(load_outlines(viewer.store))
    following = keys[(keys.index(key) + 1) % len(keys)]
    return respond(
        request,
        "trace_label.html",
        422 if problem else 200,
        outline=shown,
        complete=complete,
        depth=_depths(shown.spans),
        key=key,
        rater=rater,
        examined=mine is not None,
        findings=list(enumerate(mine.findings)) if mine else [],
        by_span=by_span,
        areas=_areas(),
        impacts=list(IMPACTS),
        form=values if problem else {},
        problem=problem,
        following=page_path("/label/trace", trace=following, rater=rater),
    )


def add_finding(viewer: Viewer, request: Request, form: Mapping[str, str]) -> Response:
    """Save another finding of the rater, or with `done` that there are no more."""
    key, rater = form.get("trace", ""), rater_in(form)
    shown, complete = _outline(viewer, key)
    if not form.get("done"):
        try:
            finding = _finding(form, shown, check=complete)
        except InputError as error:
            return _page(viewer, request, form, str(error))
        _save(viewer.store, key, rater, [*_mine(viewer.store, key, rater), finding])
    else:
        _save(viewer.store, key, rater, _mine(viewer.store, key, rater))
    return RedirectResponse(page_path("/label/trace", trace=key, rater=rater), 303)


def remove_finding(viewer: Viewer, request: Request, form: Mapping[str, str]) -> Response:
    """Remove one finding of the rater; the history keeps it."""
    key, rater = form.get("trace", ""), rater_in(form)
    findings = _mine(viewer.store, key, rater)
    number = form.get("number", "")
    if not number.isdigit() or int(number) >= len(findings):
        raise InputError(f"there is no finding {number!r}", "number")
    del findings[int(number)]
    _save(viewer.store, key, rater, findings)
    return RedirectResponse(page_path("/label/trace", trace=key, rater=rater), 303)


def _outline(viewer: Viewer, key: str) -> tuple[Outline, bool]:
    """The trace with its texts, and whether they are complete, not the excerpts of the store."""
    stored = load_outlines(viewer.store, [key]).get(key)
    if stored is None:
        raise InputError("the store has no such trace", key[:12])
    load = viewer.traces.get(key)
    if load is None:
        return stored, False
    return outline(load(), excerpt=_MOST_TEXT), True


def _mine(store: Store, key: str, rater: str) -> list[dict[str, object]]:
    label = trace_findings(store).get(key, {}).get(rater)
    return [dict(finding) for finding in label.findings] if label else []


def _save(store: Store, key: str, rater: str, findings: Sequence[Mapping[str, object]]) -> None:
    label = HumanLabel.model_validate(
        {"rater": rater, "item_key": key, "findings": [dict(f) for f in findings]}
    )
    Labels(store).add([label])


def _finding(form: Mapping[str, str], shown: Outline, *, check: bool) -> dict[str, object]:
    """The finding of a form. With `check` the evidence must be in the texts of the span."""
    leaf = built_in().find(form.get("category", "") or "?")
    if leaf is None:
        raise InputError("choose a category", "category")
    span = next((s for s in shown.spans if s.id == form.get("span")), None)
    if span is None:
        raise InputError("choose a span of the trace", "span")
    evidence = form.get("evidence", "").replace("\r\n", "\n").strip()[:_LONGEST]
    texts = " ".join((span.input, span.output, span.note)).split()
    if check and " ".join(evidence.split()) not in " ".join(texts):
        raise InputError("these words are not in the span; select them in its text", "evidence")
    try:
        finding = Finding.model_validate(
            {
                "span": span.id,
                "category": leaf.name,
                "evidence": evidence,
                "description": form.get("description", "").strip()[:_LONGEST],
                "impact": form.get("impact") or None,
            }
        )
    except ValidationError as error:
        raise InputError(first_problem(error), "finding") from error
    return finding.model_dump(mode="json", exclude={"confidence", "source"})


def _areas() -> dict[str, list[str]]:
    taxonomy = built_in()
    return {a: [leaf.name for leaf in taxonomy.assigned if leaf.area == a] for a in taxonomy.areas}


def _depths(spans: Sequence[OutlineSpan]) -> dict[str, int]:
    """Return the depth of every span; a parent comes before its children."""
    depths: dict[str, int] = {}
    for span in spans:
        depths[span.id] = depths.get(span.parent_id or "", -1) + 1
    return depths


PAGES: dict[str, PageFunction] = {"/label/traces": traces_page, "/label/trace": trace_page}
FORMS: dict[str, FormFunction] = {
    "/label/finding": add_finding,
    "/label/finding/remove": remove_finding,
}
