"""The viewer as a web application, and how it is served.

A page is a function of a request that returns a `Page` of blocks, as report pages are made of, or a
response of its own. To add one, write the function, add its route to `ROUTES`, and if it needs
figures from the store that nothing computes yet, a query to `agenteval.store`.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from agenteval.errors import AgentevalError, InputError, StoreError
from agenteval.records import Run
from agenteval.reporting.page import Answer, Page, PageSection, environment
from agenteval.store import Store
from agenteval.view.security import Access, Guard

_STATIC = {
    "page.css": ("agenteval.reporting", "text/css"),
    "page.js": ("agenteval.reporting", "text/javascript"),
    "view.css": ("agenteval.view", "text/css"),
    "label.css": ("agenteval.view", "text/css"),
    "label.js": ("agenteval.view", "text/javascript"),
    "trace_label.js": ("agenteval.view", "text/javascript"),
}


@dataclass(frozen=True)
class Viewer:
    """What every page knows: the store, who may write, and the secrets of the server.

    Without `labelling` nothing can be changed. `rater` is the name that was given at the start,
    `criteria_file` the file that can be edited, `traces` read a whole trace by its key.
    """

    store: Store
    access: Access
    labelling: bool = False
    rater: str | None = None
    criteria_file: Path | None = None
    traces: Mapping[str, Callable[[], Run]] = field(default_factory=dict)


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
            made = page(viewer, request)
        if isinstance(made, Response):
            return made
        return respond(request, "view.html", page=made)

    @functools.wraps(page)
    async def answer(request: Request) -> Response:
        return await run_in_threadpool(read, request)

    return answer


FormFunction = Callable[[Viewer, Request, Mapping[str, str]], Response]


def written(change: FormFunction) -> Callable[[Request], Awaitable[Response]]:
    """Return the route of a form. Raises InputError for one without the token of this server, and
    where the viewer only reads."""

    @functools.wraps(change)
    async def answer(request: Request) -> Response:
        viewer = viewer_of(request)
        if not viewer.labelling:
            raise Refused("this viewer only reads; start it with --label")
        form = {name: str(value) for name, value in (await request.form()).items()}
        if form.pop("form_token", "") != viewer.access.form_token:
            raise Refused("this form is of an earlier start of the viewer; reload the page")
        return await run_in_threadpool(change, viewer, request, form)

    return answer


class Refused(AgentevalError):
    """A form that is not accepted."""


def page_url(request: Request, **changes: str | None) -> str:
    """Return the path of a page with its query, changed; None removes a parameter."""
    url = request.url.remove_query_params([k for k, v in changes.items() if v is None])
    url = url.include_query_params(**{k: v for k, v in changes.items() if v is not None})
    return url.path + (f"?{url.query}" if url.query else "")


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        return PlainTextResponse("there is no such file", 404)
    package, kind = _STATIC[name]
    return Response(_asset(package, name), media_type=kind)


@functools.cache
def _asset(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")


def _failed(request: Request, error: Exception) -> Response:
    """A page for what cannot be shown: one sentence, and nothing of it is lost."""
    status = 503 if isinstance(error, StoreError) else 403 if isinstance(error, Refused) else 404
    if isinstance(error, InputError) and request.method == "POST":
        status = 422
    line = str(error)
    page = Page("viewer", "Cannot be shown", "", [PageSection("why", "", [Answer("", line)])])
    return respond(request, "view.html", status, page=page)


def make_app(viewer: Viewer) -> Starlette:
    """Return the web application of a viewer."""
    from agenteval.view import criteria, labels, runs, trace_labels

    routes = [
        Route("/static/{name:str}", _static),
        *(
            Route(path, shown(page))
            for path, page in {
                **runs.PAGES,
                **labels.PAGES,
                **criteria.PAGES,
                **trace_labels.PAGES,
            }.items()
        ),
        *(
            Route(path, written(change), methods=["POST"])
            for path, change in {**labels.FORMS, **criteria.FORMS, **trace_labels.FORMS}.items()
        ),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, viewer.access)],
        exception_handlers={AgentevalError: _failed, 404: _missing},
    )
    app.state.viewer = viewer
    return app


async def _missing(request: Request, error: Exception) -> Response:
    return PlainTextResponse("there is no such page", 404)


NAVIGATION = (("/", "Experiments"), ("/label", "Label"), ("/criteria", "Criteria"))
