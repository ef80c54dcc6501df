"""Runs whose text seems to talk to the judge: where the commands find them, and how they say it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from agenteval.cli.console import clean, out
from agenteval.trust.flagged import Examined, Flag, Flags, flags_among

if TYPE_CHECKING:
    from agenteval.records import Run, View
    from agenteval.store import Store

__all__ = [
    "Flag", "Flags", "flags_of", "printed", "say", "stored_flags",
]  # fmt: skip

_CHUNK = 200  # texts read from the store at a time


def flags_of(items: Iterable[tuple[Run, View]]) -> Flags:
    """The flags of runs and what the judge sees of them."""
    from agenteval.readers.injection import view_signs

    return flags_among(
        Examined(
            run.id, run.system, view.problem, view.trajectory,
            tuple(sign.name for sign in view_signs(view)),
        )
        for run, view in items
    )  # fmt: skip


def stored_flags(store: Store, run_ids: Collection[str], source_key: str) -> Flags:
    """The flags of original runs by their ids, from the texts that the source judged last."""
    from agenteval.readers.injection import texts_signs

    judged, known = store.judged(source_key, variant="original"), store.runs()
    newest = {row["run_id"]: key for key, row in known.items() if key in judged}
    keys = {key: run for run, key in sorted(newest.items()) if run in run_ids}

    def examined() -> Iterator[Examined]:
        for key, body in store.bodies(keys):
            problem, trajectory = body["problem"], body["trajectory"]
            signs = tuple(s.name for s in texts_signs((problem, trajectory)))
            yield Examined(keys[key], known[key]["system"], problem, trajectory, signs)

    flags = flags_among(examined())
    return Flags(tuple(sorted(flags.found, key=lambda flag: flag.run)), flags.examined)


def printed(flags: Flags) -> str:
    """The line for a terminal, with its markup; "" when there is none."""
    return f"[yellow]{clean(flags.line)}[/yellow]" if flags.found else ""


def say(flags: Flags) -> None:
    """Print the line, if there is one."""
    if flags.found:
        out().print(printed(flags))
