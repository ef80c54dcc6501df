"""Scorers of other frameworks under `agenteval verify`, and what the docs say of these frameworks:
`make test-interop`, with real packages.

An environment is made for each framework in build/interop, with the version named here. One scorer
counts characters and must not be trusted; one knows the right answer and must be kept, and without
the reference must fail on every run. openevals has no classes to write them with: two evaluators of
its own compare texts, and neither may be kept.

Where there is a `page_FRAMEWORK.py`, it is run beside the files that the docs show.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RUNS = str(ROOT / "tasks" / "math" / "runs.jsonl")
SCORERS = {
    "autoevals": "autoevals==0.4.1",
    "deepeval": "deepeval==4.3.1",
    "inspect_ai": "inspect_ai==0.3.285",
    "mlflow": "mlflow==3.17.2",
    "openevals": "openevals==0.2.2",
    "pydantic_evals": "pydantic-evals==2.62.0",
}
PACKAGES = SCORERS | {
    "agent_framework": "agent-framework-core==1.23.0 agent-framework-openai==1.17.0",
    "langgraph": "langgraph==1.2.22 langchain==1.4.7 langchain-openai==1.7.3",
    "openai_agents": "openai-agents==0.24.0",
}
PAGES = ("agents.md", "logs.md", "recipes.md")
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join((str(HERE), str(ROOT))),
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DO_NOT_TRACK": "1",
    "LANGSMITH_TRACING": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


def python_of(framework: str) -> Path:
    """The interpreter of an environment, which is made where it is not there yet."""
    python = ROOT / "build" / "interop" / framework / "bin" / "python"
    if not (python.parent.parent / "done").exists():
        print(f"installing {PACKAGES[framework]} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run(
            [*pip, "--prefer-binary", "-e", ROOT, *PACKAGES[framework].split()], check=True
        )
        (python.parent.parent / "done").touch()
    return python


def report(python: Path, folder: Path, *arguments: str) -> tuple[int, dict]:
    """Exit code and JSON of a command."""
    command = [python, "-m", "agenteval", *arguments, "--json", "--quiet"]
    ended = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    if not ended.stdout.strip():
        raise SystemExit(f"{' '.join(map(str, command))}\n{ended.stderr}")
    return ended.returncode, json.loads(ended.stdout)


def verdicts(python: Path, folder: Path, judge: str, *more: str) -> list[str]:
    """That on the judge, then those on the criteria."""
    _, shown = report(python, folder, "verify", RUNS, "--judge", f"python:{judge}", *more)
    return [one["verdict"] for one in (shown["judge"], *shown["criteria"])]


def scorers_good(framework: str, python: Path, folder: Path) -> bool:
    """Whether the verdicts on its two scorers are those that they should be."""
    (folder / "agenteval.db").unlink(missing_ok=True)
    judge = f"with_{framework}"
    gold = ("--criteria", str(HERE / "criterion.json"), "--with-reference")
    own = framework != "openevals"
    counts = verdicts(python, folder, f"{judge}:counts", *(() if own else gold))
    solves = verdicts(python, folder, f"{judge}:solves", *gold)
    code, blind = report(
        python, folder, "quantify", RUNS, "--judge", f"python:{judge}:solves", *gold[:2]
    )
    scored = blind["ratings"] - blind["failures"].get("error:judge", 0)
    good = (
        (not own or counts[0] == "not trustworthy")
        and ("keep" in solves) == own
        and "keep" not in counts[1:]
        and (code, scored) == (3, 0)
    )
    print(
        f"{PACKAGES[framework]:24} counts characters: {counts[0]:16} "
        f"knows the answer: {', '.join(solves):20} without reference: {scored} scored"
        f"{'' if good else '   WRONG'}",
        flush=True,
    )
    return good


def page_good(framework: str, python: Path, folder: Path) -> bool:
    """Whether its script, which uses the files of the docs, ends with 0."""
    script = HERE / f"page_{framework}.py"
    if not script.exists():
        return True
    with TemporaryDirectory(dir=folder) as work:
        for page in PAGES:
            text = (ROOT / "docs" / page).read_text(encoding="utf-8")
            for name, code in re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", text, re.M | re.S):
                (Path(work) / name).write_text(code, encoding="utf-8")
        ended = subprocess.run(
            [python, script],
            cwd=work,
            env={**ENVIRONMENT, "PYTHONPATH": os.pathsep.join((work, ENVIRONMENT["PYTHONPATH"]))},
            capture_output=True,
            text=True,
        )
    good = ended.returncode == 0
    said = ended.stdout.strip().rpartition("\n")[2] if good else f"WRONG\n{ended.stderr}"
    print(f"{PACKAGES[framework].partition(' ')[0]:24} as documented: {said}", flush=True)
    return good


def main(wanted: list[str]) -> int:
    """Print a table; the exit code is 1 where a verdict is another one than it should be."""
    wrong = 0
    for framework in wanted or PACKAGES:
        python = python_of(framework)
        folder = python.parent.parent / "work"
        folder.mkdir(exist_ok=True)
        wrong += framework in SCORERS and not scorers_good(framework, python, folder)
        wrong += not page_good(framework, python, folder)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
