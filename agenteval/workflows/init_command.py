"""agenteval flow init: a small role that runs, to be changed into one's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli.console import clean, out
from agenteval.errors import InputError

_POLICY = """\
You serve customers of a shop who want to give something back.

- Look the order up before you take anything back.
- An order is taken back within 30 days; later you say so, and change nothing.
- Tell the customer the label of the parcel.
"""

_BACKEND = '''\
class Backend:
    """Every public method is a tool; what it changes is the state. ValueError refuses a call."""

    def __init__(self) -> None:
        self.state = {
            "orders": {
                "A1": {"days": 3, "returned": False},
                "B2": {"days": 45, "returned": False},
            }
        }

    def find_order(self, number: str) -> dict:
        """Look an order up: how many days old it is, and whether it was given back."""
        if number not in self.state["orders"]:
            raise ValueError(f"There is no order {number}.")
        return self.state["orders"][number]

    def take_back(self, number: str) -> dict:
        """Take an order back; returns the label of the parcel."""
        self.state["orders"][number]["returned"] = True
        return {"label": f"RET-{number}"}
'''

_PROFILES = """\
# Users, and the calls that bring about what each of them is due. `actions: []`: nothing may change.
- id: in_time
  persona: Friendly, in a hurry.
  opening: Hello, I want to give an order back.
  facts: {number: A1}
  goals:
    - text: Give order A1 back.
      actions:
        - {tool: find_order, arguments: {number: A1}}
        - {tool: take_back, arguments: {number: A1}}
- id: too_late
  persona: Polite, and insisting.
  opening: I would like to return my order, please.
  facts: {number: B2}
  goals:
    - text: Give order B2 back, which is too old.
      actions: [{tool: find_order, arguments: {number: B2}}]
"""


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the new role.")],
) -> None:
    """Make a small role that runs: policy, tools, two users."""
    from agenteval.files import write_atomically

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", folder.name):
        raise InputError("use letters, digits, hyphens and underscores, at most 64", str(folder))
    if folder.exists():
        raise InputError("this exists already; nothing was changed", str(folder))
    files = {"policy.md": _POLICY, "backend.py": _BACKEND, "profiles.yaml": _PROFILES}
    for name, text in (files | {"role.yaml": "success: state+reads\n"}).items():
        write_atomically(folder / name, text)
    out().print(
        f"{clean(folder)}: the agent's instructions (policy.md), its tools (backend.py), two users "
        f"(profiles.yaml)\n  agenteval flow check {clean(folder)}\n"
        f"  agenteval flow session {clean(folder)} --agent openai --model openai:gpt-4o "
        "--simulator openai:gpt-4o --dry-run",
        soft_wrap=True,
    )
