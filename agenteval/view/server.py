"""Building blocks of the viewer's pages: templates, snapshots, forms.

A page is a function of a request that returns a `Page` of blocks, as report pages are made of, or a
response of its own. To add one, write the function, add its path to `application`, and if it needs
figures from the store that nothing computes yet, a query to `agenteval.store`.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from agenteval.errors import AgentevalError
from agenteval.records import Run
from agenteval.reporting.page import Page, environment
from agenteval.store import Store
from agenteval.view.judge_index import JudgeIndexes
from agenteval.view.security import Access


@dataclass(frozen=True)
class Viewer:
    """Context of every page: the store, write permission, and the secrets of the server.

    Without `labelling` nothing can be changed. `rater` is the name that was given at the start,
    `criteria_file` the file that can be edited, `traces` read a whole trace by its key. A page
    waits `patience` seconds for a large judge to be read, then says that it is being read.
    """

    store: Store
    access: Access
    labelling: bool = False
    rater: str | None = None
    criteria_file: Path | None = None
    traces: Mapping[str, Callable[[], Run]] = field(default_factory=dict)
    patience: float = 0.4

    @functools.cached_property
    def indexes(self) -> JudgeIndexes:
        """In-memory indexes of the judges."""
        return JudgeIndexes(self.store, self.patience)


PageFunction = Callable[[Viewer, Request], Page | Response]


def viewer_of(request: Request) -> Viewer:
    """Return the viewer that a request is sent to."""
    viewer: Viewer = request.app.state.viewer
    return viewer


def respond(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a template of the viewer as a page, with its head and navigation."""
    viewer = viewer_of(request)
    text = environment("agenteval.view").get_template(template)
    page = text.render(viewer=viewer, path=request.url.path, NAVIGATION=NAVIGATION, **values)
    return HTMLResponse(page, status)


def shown(page: PageFunction) -> Callable[[Request], Awaitable[Response]]:
    """Return the route of a page. The store is read in one state, in a thread of its own."""

    def read(request: Request) -> Response:
        viewer = viewer_of(request)
        with viewer.store.snapshot():
            answer = page(viewer, request)
        if isinstance(answer, Response):
            return answer
        return respond(request, "view.html", page=answer)

    @functools.wraps(page)
    async def answer(request: Request) -> Response:
        return await run_in_threadpool(read, request)

    return answer


FormFunction = Callable[[Viewer, Request, Mapping[str, str]], Response]


def written(change: FormFunction) -> Callable[[Request], Awaitable[Response]]:
    """Return the route of a form. Raises InputError for one without the token of this server, or if
    the viewer is read-only."""

    @functools.wraps(change)
    async def answer(request: Request) -> Response:
        viewer = viewer_of(request)
        if not viewer.labelling:
            raise FormRefused("this viewer is read-only; start it with --label")
        form = {name: str(value) for name, value in (await request.form()).items()}
        if form.pop("form_token", "") != viewer.access.form_token:
            raise FormRefused("this form is of an earlier start of the viewer; reload the page")
        return await run_in_threadpool(change, viewer, request, form)

    return answer


class FormRefused(AgentevalError):
    """A form that is not accepted."""


def page_path(path: str, **parameters: object) -> str:
    """Return the path of a page with these parameters; None leaves one out."""
    query = urlencode({k: str(v) for k, v in parameters.items() if v is not None})
    return f"{path}?{query}" if query else path


def page_url(request: Request, **changes: str | None) -> str:
    """Return the path of a page with its query, changed; None removes a parameter."""
    url = request.url.remove_query_params([k for k, v in changes.items() if v is None])
    url = url.include_query_params(**{k: v for k, v in changes.items() if v is not None})
    return url.path + (f"?{url.query}" if url.query else "")


NAVIGATION = (
    ("/", "Experiments"),
    ("/grid", "Grid"),
    ("/compare", "Compare"),
    ("/trust", "Trust"),
    ("/trials", "Trials"),
    ("/label", "Label"),
    ("/criteria", "Criteria"),
)
