"""Start-up: `agenteval --help` and `import agenteval` beside a Python that does nothing.

    python -m benchmarks.startup [--n 15]

The three commands take turns; the figures are medians of wall time and their ratios to the bare
interpreter. Then `python -X importtime` says which packages were loaded. It ends with 1 when a
heavy one (HEAVY) is among them; times are shown beside the target and never decide.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.outcome import Row, finish

HEAVY = frozenset(
    {"autogen", "autogen_agentchat", "autogen_core", "autogen_ext", "datasets", "matplotlib"}
    | {"numpy", "openai", "pandas", "scipy", "sentence_transformers", "sklearn", "sqlalchemy"}
    | {"torch", "transformers"}
)
TARGET = 0.35  # seconds, `agenteval --help` on the machine of reference
SCRIPT = Path(sys.executable).parent / "agenteval"
HELP = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "agenteval"]
COMMANDS = {
    "pass": [sys.executable, "-c", "pass"],
    "import": [sys.executable, "-c", "import agenteval"],
    "help": [*HELP, "--help"],
}
TRACED = {"import": ["-c", "import agenteval"], "help": ["-m", "agenteval", "--help"]}


def seconds(command: list[str]) -> float:
    """Wall time of one run, start of the process included."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def imported(arguments: list[str]) -> dict[str, float]:
    """Milliseconds of their own that each top-level package's modules took to import."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    own: dict[str, float] = {}
    for line in done.stderr.splitlines():
        fields = line.removeprefix("import time:").split("|")
        if len(fields) == 3 and fields[0].strip().isdigit():
            package = fields[2].strip().split(".")[0]
            own[package] = own.get(package, 0.0) + int(fields[0]) / 1000
    return own


def main() -> int:
    """Measure and print; the exit code is 1 when a heavy package was imported."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=15, help="runs of each command")
    n = parser.parse_args().n
    rounds = [{name: seconds(command) for name, command in COMMANDS.items()} for _ in range(n)]
    median = {name: statistics.median(r[name] for r in rounds) for name in COMMANDS}
    ratio = {name: statistics.median(r[name] / r["pass"] for r in rounds) for name in COMMANDS}
    packages = {name: imported(arguments) for name, arguments in TRACED.items()}
    heavy = {name: sorted(HEAVY & own.keys()) for name, own in packages.items()}
    slowest = sorted(packages["help"].items(), key=lambda item: -item[1])[:5]
    table = Table(title=f"start-up, median of {n}")
    for head in ("command", "ms", "ratio to pass", "heavy imports"):
        table.add_column(head, justify="left" if head == "command" else "right")
    labels = {"pass": "python -c pass", "import": "import agenteval", "help": "agenteval --help"}
    for name, label in labels.items():
        found = (", ".join(heavy[name]) or "none") if name in heavy else "-"
        table.add_row(label, f"{1000 * median[name]:.0f}", f"{ratio[name]:.1f}", found)
    console = Console(width=110)
    console.print(table)
    console.print("slowest imports of --help: " + ", ".join(f"{k} {v:.0f} ms" for k, v in slowest))
    met = "met" if median["help"] <= TARGET else "missed"
    console.print(f"target: --help within {TARGET} s: {met}; no heavy import")
    rows = [
        Row("agenteval --help, median", f"{1000 * median['help']:.0f} ms",
            f"{1000 * TARGET:.0f} ms (shown, not judged)"),
        Row("import agenteval, over a bare interpreter", f"{ratio['import']:.1f} times"),
        Row("heavy packages loaded", ", ".join(sorted(set().union(*heavy.values()))) or "none",
            "none", not any(heavy.values())),
    ]  # fmt: skip
    result: dict[str, Any] = {
        "n": n,
        "median_s": {k: round(v, 4) for k, v in median.items()},
        "ratio": {k: round(v, 2) for k, v in ratio.items()},
        "target_s": TARGET,
        "heavy": heavy,
        "slowest_ms": {k: round(v, 1) for k, v in slowest},
    }
    return finish("startup", rows, **result)


if __name__ == "__main__":
    sys.exit(main())
