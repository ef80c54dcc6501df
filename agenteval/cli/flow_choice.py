"""Which roles, cases and formats the flow commands are about."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.cases import Choice, OpenRole
    from agenteval.evaluators.workflows.scenario import Format


def read_roles(names: Sequence[str] | None, *, backend: bool) -> list[OpenRole]:
    """The roles named, or all that are found. Raises InputError."""
    from agenteval.evaluators.workflows.cases import open_role
    from agenteval.evaluators.workflows.folder import find_role, role_folders

    try:
        folders = [find_role(name) for name in names] if names else list(role_folders().values())
    except InputError as unknown:  # here it is an argument, not the option it is elsewhere
        raise InputError(str(unknown).removeprefix("--role: "), "ROLE") from unknown
    if not folders:
        raise InputError("no role is found; a role is a folder with a role.yaml", "ROLE")
    # A role is called as its folder, which "." does not say.
    whole = dict.fromkeys(Path(os.path.abspath(folder)) for folder in folders)
    return [open_role(folder, backend=backend) for folder in whole]


def make_choice(
    kind: str, scenarios: Sequence[str] | None, profiles: Sequence[str] | None
) -> Choice:
    """Which cases are meant. Raises InputError for an unknown kind."""
    from agenteval.evaluators.workflows.cases import Choice

    if kind not in ("all", "single", "cross"):
        raise InputError(f"{kind!r} is not one of all, single, cross", "--kind")
    return Choice(
        kind,  # type: ignore[arg-type]
        tuple(scenarios) if scenarios else None,
        tuple(profiles) if profiles else None,
    )


def make_formats(names: Sequence[str] | None) -> tuple[Format, ...]:
    """Formats by name, each once. Raises InputError for an unknown one."""
    from agenteval.evaluators.workflows.scenario import FORMATS

    for name in names or ():
        if name not in FORMATS:
            raise InputError(f"{name!r} is not one of {', '.join(FORMATS)}", "--format")
    known: dict[str, Format] = {f: f for f in FORMATS}
    return tuple(dict.fromkeys(known[name] for name in names or ("flowchart",)))
