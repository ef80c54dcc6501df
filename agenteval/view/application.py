"""The routes of the web application."""

from __future__ import annotations

import functools
from importlib.resources import files

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agenteval.errors import AgentevalError, InputError, StoreError
from agenteval.reporting.page import Answer, Page, PageSection
from agenteval.view import (
    compare,
    criteria,
    experiments,
    grid,
    labels,
    run,
    trace_labels,
    trials,
    trust,
)
from agenteval.view.security import Guard
from agenteval.view.server import FormRefused, PageFunction, Viewer, respond, shown, written

_STATIC = {
    **dict.fromkeys(("page.css", "page.js"), "agenteval.reporting"),
    **dict.fromkeys(
        ("view.css", "view.js", "label.css", "label.js", "trace_label.js"), "agenteval.view"
    ),
}


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        return PlainTextResponse("this file does not exist", 404)
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    return Response(_asset(_STATIC[name], name), media_type=kind)


@functools.cache
def _asset(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")


def _failed(request: Request, error: Exception) -> Response:
    """Return an error page with the whole message."""
    status = 404
    if isinstance(error, StoreError):
        status = 503
    elif isinstance(error, FormRefused):
        status = 403
    elif isinstance(error, InputError) and request.method == "POST":
        status = 422
    title = "Cannot be shown" if request.method == "GET" else "Not done"
    page = Page("viewer", title, "", [PageSection("why", "", [Answer("", str(error))])])
    return respond(request, "view.html", status, page=page)


def make_app(viewer: Viewer) -> Starlette:
    """Return the web application of a viewer."""
    pages: dict[str, PageFunction] = {
        "/": experiments.experiments_page,
        "/grid": grid.grid_page,
        "/run": run.run_page,
        "/compare": compare.compare_page,
        "/compare/case": compare.case_page,
        "/trust": trust.trust_page,
        "/trust/figure": trust.figure_page,
        "/trials": trials.trials_page,
        "/trial": trials.trial_page,
        **labels.PAGES,
        **criteria.PAGES,
        **trace_labels.PAGES,
    }
    forms = {**labels.FORMS, **criteria.FORMS, **trace_labels.FORMS}
    routes = [
        Route("/static/{name:str}", _static),
        Route("/progress", experiments.progress),
        *(Route(path, shown(page)) for path, page in pages.items()),
        *(Route(path, written(form), methods=["POST"]) for path, form in forms.items()),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, viewer.access)],
        exception_handlers={AgentevalError: _failed, 404: _missing},
    )
    app.state.viewer = viewer
    return app


async def _missing(request: Request, error: Exception) -> Response:
    return PlainTextResponse("this page does not exist", 404)
