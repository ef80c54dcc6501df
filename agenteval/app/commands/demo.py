"""agenteval demo: evaluations with a good and a bad judge. Needs no key, network or local model."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli.console import clean, notify, out

if TYPE_CHECKING:
    from agenteval.records import Criterion, Run

TASK = "math"
_ABOUT = (
    "The critics' proposals and the capable judge's replies are recorded (written offline by a "
    "capable large language model). Merging, perturbed copies, every mean, interval and verdict, "
    "and the whole second judge are computed now."
)


def demo(
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Working folder. Default: a new temporary folder.")
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Run only the local critic (needs agenteval[local]).")
    ] = False,
) -> None:
    """Compare a capable, a weak and a bad judge (no API key needed).

    They rate 60 solutions of mathematics. The replies of the capable judge are recorded.
    """
    from agenteval.app import stored
    from agenteval.files import refused
    from agenteval.readers.tasks import find_task
    from agenteval.reporting import style
    from agenteval.utility import api as utility
    from agenteval.utility import verifying
    from agenteval.utility.criteria_file import criteria_named

    console = out()
    if local:
        _step(
            6,
            "A critic without a model selects criteria from a bank",
            "agenteval criteria --task support --model embedded",
        )
        utility.propose("support", model="embedded", notify=notify).print(console=console)
        return
    task = find_task(TASK).path.resolve()
    runs, reviewed = task / "runs.jsonl", criteria_named(f"{TASK}.reviewed.json")
    if reviewed is None or not runs.is_file():
        raise typer.BadParameter(f"the task {TASK} lacks its criteria or its recorded replies")
    reviewed = reviewed.resolve()
    target = folder or Path(tempfile.mkdtemp(prefix="agenteval-demo-"))
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(error, target) from error
    target = target.absolute()
    os.chdir(target)
    console.print(_ABOUT)
    runs_file = f"tasks/{TASK}/runs.jsonl"

    _step(
        1,
        "Criteria: five critics propose, and equivalent proposals are merged",
        f"agenteval criteria --task {TASK} --model recorded",
    )
    proposed = utility.propose(
        TASK, model="recorded", output=f"criteria/{TASK}.json", notify=notify
    )
    proposed.print(console=console)

    command = f"agenteval verify {runs_file} --model"
    _step(2, "A capable judge: can it be trusted?", f"{command} recorded")
    verified = verifying.verify(runs, reviewed, judge="recorded", task=TASK, notify=notify)
    verified.print(console=console)
    style.save(verified.plot.perturbations(), "copies.png")
    style.save(verified.plot.radar(), "radar.png")
    page = stored.page(Path("capable.html"))

    about = "The embedded judge, which only counts words, on the same runs"
    _step(3, about, f"{command} embedded")
    counted = verifying.verify(runs, reviewed, judge="embedded", task=TASK, notify=notify)
    counted.print(console=console)

    _step(
        4,
        "A bad judge: a function that gives long answers high marks on every criterion",
        "report = agenteval.verify(runs, judge=long_is_good)",
    )
    long = verifying.verify(runs, reviewed, judge=_long_is_good, task=TASK, store="long.db")
    console.print(f"the judge: {long.judge.verdict}: {'; '.join(long.judge.reasons)}")

    _compare_judges(task / "ratings.jsonl", reviewed)
    page.print(console=console)
    Path("eval.yaml").write_text(_evaluation(runs, reviewed), "utf-8")
    recorded = next(r for r in stored.sources()["sources"].rows if r["model"] == "recorded")
    for line in next_steps(target, runs, reviewed, str(recorded["key"])):
        console.print(clean(line), soft_wrap=True)


def _compare_judges(people: Path, reviewed: Path) -> None:
    from agenteval.app import agreement, comparison

    _step(
        5,
        "The capable judge compared with people and with the embedded judge",
        f"agenteval agree --labels tasks/{TASK}/ratings.jsonl --rater A",
    )
    agreed = agreement.agree(people, raters=["A"], judges="recorded", criteria=reviewed)
    agreed.print(console=out())
    both = ("recorded", "embedded (length)")
    comparison.compare(judges=both, only=["conciseness"]).print(console=out())


def _evaluation(runs: Path, criteria: Path) -> str:
    import yaml

    evaluation = {
        "task": TASK,
        "runs": str(runs),
        "criteria": {"file": str(criteria)},
        "judge": {"model": "recorded"},
        "verify": {},
        "compare": {"baseline": "stepwise", "margin": 0.05},
        "report": "report.html",
    }
    return yaml.safe_dump(evaluation, sort_keys=False)


def _long_is_good(run: Run, criterion: Criterion) -> float:
    return min(1.0, len(run.output) / 2000)


def next_steps(folder: Path, runs: Path, criteria: Path, judge: str) -> list[str]:
    """Return commands to try next, which work in any folder."""
    program = shutil.which("agenteval")
    script = Path(sys.executable).parent / "agenteval"  # of an environment that is not activated
    agenteval = "agenteval" if program or not script.is_file() else shlex.quote(str(script))
    texts = f"{shlex.quote(str(runs))} --task {TASK}"
    return [
        f"page: {folder / 'capable.html'}; charts in the same folder: radar.png, copies.png",
        "next:",
        f"  cd {shlex.quote(str(folder))}",
        f"  {agenteval} run eval.yaml",
        f"  {agenteval} show --run math-01-duo --source {judge}",
        f"  {agenteval} agree sample --n 30 --criteria {shlex.quote(str(criteria))} -o labels.csv",
        f"  {agenteval} verify {texts} --model openai:gpt-4o --dry-run",
        f"  {agenteval} view --label --rater NAME",
    ]


def _step(number: int, title: str, command: str) -> None:
    out().rule(f"[bold]{number}. {clean(title)}[/bold]", align="left")
    out().print(f"[dim]$ {clean(command)}[/dim]")
