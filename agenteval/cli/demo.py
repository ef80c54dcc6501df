"""agenteval demo: what a good judge's evaluation looks like, what a bad one's, and that the two are
told apart. Needs no key, no network and no local model."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from agenteval.cli.console import clean, notify, out

TASK = "math"
_ABOUT = (
    "Recorded: what critics propose and what the capable judge says (replies of a capable large "
    "language model, written offline). Computed now: merging, perturbed copies, every mean, "
    "interval and verdict, and all of the second judge."
)


def demo(
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Where to work; default: a new temporary folder.")
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Only the critic on this machine (extra `local`).")
    ] = False,
) -> None:
    """Judge 60 solutions by a capable judge (recorded) and by one that counts words; compare."""
    from agenteval.api import agreement, comparison, stored, utility, verifying

    if local:
        _step(5, "A critic on this machine picks criteria from the bank",
              "agenteval criteria --task support --model embedded")  # fmt: skip
        utility.propose("support", model="embedded", notify=notify).print(console=out())
        return
    from agenteval.evaluators.utility.criteria_file import criteria_named
    from agenteval.files import refused
    from agenteval.readers.tasks import find_task

    runs = (find_task(TASK).path / "runs.jsonl").resolve()
    reviewed = criteria_named(f"{TASK}.reviewed.json")
    if reviewed is None:
        raise typer.BadParameter(f"criteria/{TASK}.reviewed.json is missing here")
    reviewed = reviewed.resolve()
    target = folder or Path(tempfile.mkdtemp(prefix="agenteval-demo-"))
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(error, target) from error
    began = Path.cwd()
    os.chdir(target)
    console = out()
    console.print(_ABOUT)
    told = f"tasks/{TASK}/runs.jsonl"

    _step(1, "Criteria: five critics propose, what means the same is merged",
          f"agenteval criteria --task {TASK} --model recorded")  # fmt: skip
    utility.propose(TASK, model="recorded", output=f"criteria/{TASK}.json", notify=notify).print(
        console=console
    )

    _step(2, "A capable judge: can it be trusted?", f"agenteval verify {told} --model recorded")
    verified = verifying.verify(runs, reviewed, judge="recorded", task=TASK, notify=notify)
    verified.print(console=console)
    page = stored.page(Path("capable.html"), source="recorded")

    _step(3, "A judge that counts words, on the same runs",
          f"agenteval verify {told} --model embedded")  # fmt: skip
    verifying.verify(runs, reviewed, judge="embedded", task=TASK, notify=notify).print(
        console=console
    )

    _step(4, "The two beside each other, and the capable one beside people",
          f"agenteval agree --labels tasks/{TASK}/ratings.jsonl --rater A")  # fmt: skip
    comparison.compare(judges=("recorded", "embedded")).print(console=console)
    agreement.agree(
        runs.parent / "ratings.jsonl", raters=["A"], judges="recorded", criteria=reviewed
    ).print(console=console)
    page.print(console=console)
    for line in next_steps(target if target.is_absolute() else began / target):
        console.print(clean(line), soft_wrap=True)


def next_steps(folder: Path) -> list[str]:
    """What to try next, as lines of a shell that work from wherever they are pasted."""
    return [
        f"page: {folder / 'capable.html'}",
        "next:",
        f"  cd {shlex.quote(str(folder))}",
        "  agenteval show --run math-01-duo",
        "  agenteval verify --scores ratings.csv --criteria criteria/math.json  # your own judge",
        "  OPENAI_API_KEY=... agenteval verify runs.jsonl --model openai:gpt-4o --dry-run",
    ]


def _step(number: int, title: str, command: str) -> None:
    out().rule(f"[bold]{number}. {clean(title)}[/bold]", align="left")
    out().print(f"[dim]$ {clean(command)}[/dim]")
