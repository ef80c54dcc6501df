"""agenteval flow convert: a procedure in another format, if it then tells the same."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note, print_json, warn
from agenteval.cli.ending import REPLIES, say_interrupted, say_waiting
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError
from agenteval.text import visible

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.convert import Converted, Told
    from agenteval.evaluators.workflows.scenario import Scenario
    from agenteval.models.factory import ModelChoice


def convert(
    role: Annotated[str, typer.Argument(help="Name of a role, or its folder.")],
    scenario: Annotated[str, typer.Argument(help="Id of one of its scenarios.")],
    to: Annotated[str, typer.Option("--to", help="text, code or flowchart.")],
    source: Annotated[
        str | None,
        typer.Option("--from", help="Default: flowchart; for --to flowchart: code."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="File to write. Default: the terminal.")
    ] = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    timeout: options.Timeout = 600.0,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Convert a procedure with a model; exit code 1 and no file if it then tells another one."""
    from agenteval.evaluators.workflows.folder import find_role, read_role
    from agenteval.files import write_atomically

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(output)
    target = told(to, "--to")
    begin = told(source or ("code" if target == "flowchart" else "flowchart"), "--from")
    found = read_role(find_role(role))
    if scenario not in {s.id for s in found.scenarios}:
        known = ", ".join(s.id for s in found.scenarios)
        raise InputError(f"the role {found.id} has no scenario {scenario!r}; it has {known}")
    choice = _choice(model, base_url, need_key=not dry_run)
    if dry_run:
        from agenteval.cli import dry
        from agenteval.evaluators.workflows.convert import convert as converted
        from agenteval.evaluators.workflows.convert import questions

        procedure = found.scenario(scenario)
        bill = dry.asked_in_turn(
            "flow convert", f"{scenario}: {begin} to {target}", choice,
            questions(procedure, begin, target),
            lambda client: converted(procedure, begin, target, client),
        )  # fmt: skip
        dry.show(bill, as_json=as_json)
        return
    made = _convert(choice, timeout, found.scenario(scenario), begin, target)
    if as_json:
        print_json(made.model_dump(mode="json"))
    if made.accepted:
        if output is not None:
            write_atomically(output, made.text)
            note(f"written to {output}")
        elif not as_json:
            # a model wrote it: shown as text to a person, unchanged to a file
            sys.stdout.write(visible(made.text) if sys.stdout.isatty() else made.text)
        return
    warn(f"the {target} that {choice.name} wrote was rejected; nothing was written:")
    for reason in made.reasons:
        warn(f"  {reason}")
    raise typer.Exit(1)


def told(name: str, option: str) -> Told:
    """One of the three formats. InputError for anything else."""
    from agenteval.evaluators.workflows.convert import Told

    for known in get_args(Told):
        if known == name:
            return known  # type: ignore[no-any-return]
    raise InputError(f"{name!r} is none of {', '.join(get_args(Told))}", option)


def _choice(model: str | None, base_url: str | None, *, need_key: bool) -> ModelChoice:
    from agenteval.models.factory import choose_model

    choice = choose_model(model, base_url, need_key=need_key)
    if choice.kind == "embedded":
        raise InputError(
            "converting needs a chat model: PROVIDER:MODEL, or --base-url (`agenteval models "
            "serve` serves the embedded one, which is small for this)",
            "--model",
        )
    return choice


def _convert(
    choice: ModelChoice, timeout: float, scenario: Scenario, source: Told, target: Told
) -> Converted:
    import asyncio

    from agenteval.evaluators.workflows.convert import convert as converted
    from agenteval.experiment import answered
    from agenteval.models.factory import make_client
    from agenteval.models.limits import Limits
    from agenteval.store import Store, default_path

    with closing(Store(default_path())) as store:
        client = make_client(choice, Limits(timeout=timeout), store)

        async def work() -> Converted:
            try:
                asking = converted(scenario, source, target, client)
                return await answered(asking, client, say_waiting)
            finally:
                await client.close()

        try:
            return asyncio.run(work())
        except KeyboardInterrupt:
            raise typer.Exit(say_interrupted(REPLIES)) from None
