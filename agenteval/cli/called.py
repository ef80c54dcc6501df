"""The command that is called, built alone.

typer reads the signature of every command it knows, twice, before it looks at what was called:
half of the time to the first line of `agenteval --help`. For a command that is not called its name
and help are enough.
"""

from __future__ import annotations

import copy
import inspect

import typer
from typer.models import CommandInfo, TyperInfo


def names(app: typer.Typer) -> frozenset[str]:
    """The names of all commands and groups, at any depth."""
    own = [info.name for info in app.registered_commands]
    own += [info.name for info in app.registered_groups]
    return frozenset(name for name in own if isinstance(name, str)).union(*map(names, _apps(app)))


def only(app: typer.Typer, called: frozenset[str]) -> typer.Typer:
    """A copy of `app` in which commands whose names are not among `called` have no options.

    Their names, help and order stay. They cannot be run: whoever may be called must be named.
    """
    some = copy.copy(app)
    some.registered_commands = [
        info if info.name is None or info.name in called else _outline(info)
        for info in app.registered_commands
    ]
    some.registered_groups = [_group(info, called) for info in app.registered_groups]
    return some


def _apps(app: typer.Typer) -> list[typer.Typer]:
    return [g.typer_instance for g in app.registered_groups if g.typer_instance is not None]


def _group(info: TyperInfo, called: frozenset[str]) -> TyperInfo:
    some = copy.copy(info)
    if info.typer_instance is not None:
        some.typer_instance = only(info.typer_instance, called)
    return some


def _outline(info: CommandInfo) -> CommandInfo:
    some = copy.copy(info)
    some.help = info.help if info.help is not None else inspect.getdoc(info.callback)
    some.callback = _not_called
    return some


def _not_called() -> None:
    raise AssertionError("a command was called that was not built")
