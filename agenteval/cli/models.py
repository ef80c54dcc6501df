"""agenteval models: the weights on this machine."""

from __future__ import annotations

import time

import typer

from agenteval.cli import options
from agenteval.cli.console import clean, note, out, print_json

app = typer.Typer(
    help="The local model: fetch it, list it, serve it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("pull")
def pull() -> None:
    """Fetch the embedded model (98 MB, Apache-2.0), check its sha256 and keep it in the cache."""
    from agenteval.models import weights

    path = weights.pull(echo=note)
    out().print(clean(path))


@app.command("list")
def list_models(as_json: options.AsJson = False) -> None:
    """What is in the cache, with licence and checksum."""
    from agenteval.models import weights

    rows = weights.status()
    if as_json:
        print_json([row | {"path": row["path"] and str(row["path"])} for row in rows])
        return
    for row in rows:
        for key, value in row.items():
            out().print(
                f"[bold]{clean(key):>8}[/bold]  {clean('not here' if value is None else value)}"
            )


@app.command("serve")
def serve(
    model: str = typer.Option("embedded", help="embedded, or embedded:PATH of a GGUF file."),
) -> None:
    """Serve the local model as an OpenAI-compatible endpoint on loopback, until Ctrl-C."""
    from agenteval.errors import InputError, ModelUnavailable
    from agenteval.models import weights
    from agenteval.models.factory import choose_model, no_model

    choice = choose_model(model)
    if choice.kind != "embedded":
        raise InputError("only a local model can be served: embedded or embedded:PATH", "--model")
    try:
        from agenteval.models.embedded.generate import LocalServer

        server = LocalServer(choice.path or weights.require())
    except (ImportError, ModelUnavailable) as error:
        raise no_model(error) from error
    with server:
        out().print(clean(server.base_url))
        note("serving until Ctrl-C; use it with --base-url URL --model smollm2-135m-instruct")
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            note("stopped")
