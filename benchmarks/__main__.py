"""Run all benchmarks in order: `python -m benchmarks [--quick]`.

Each runs as a process of its own and its output passes through. One that fails does not stop the
others; at the end the exit code is 1 and the failed ones are named.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
# name: (arguments in full, arguments with --quick)
BENCHMARKS: dict[str, tuple[list[str], list[str]]] = {
    "quantify": ([], ["--runs", "400", "--rounds", "1"]),
    "startup": ([], ["--n", "5"]),
    "merge": ([], ["--n", "2000"]),
    "merge_quality": ([], ["--quick"]),
    "readers": ([], ["10000"]),
    "embedded": ([], []),
    "coverage": ([], ["--experiments", "400"]),
    "auc_coverage": ([], ["--experiments", "400"]),
    "reference_stats": ([], []),
    "judges": ([], ["--simulations", "20", "--pool", "120"]),
    "statistics_scale": ([], ["--scores", "100000"]),
    "planning": ([], ["--seconds", "1"]),
    "dissect": ([], ["--cases", "5", "--extended", "3", "--sample", "200"]),
    "flow_golden": ([], []),
    "flows": ([], ["--sessions", "40"]),
    "traces": ([], ["--tokens", "200000", "800000", "--rounds", "1"]),
}


def main() -> int:
    """Run them; 0 when all ended well."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, less certain figures")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS))
    options = parser.parse_args()
    failed = []
    for name, (full, quick) in BENCHMARKS.items():
        if name not in options.only:
            continue
        print(f"\n== {name} ==", flush=True)
        arguments = quick if options.quick else full
        command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
        code = subprocess.run(command, check=False).returncode
        if code:
            failed.append(f"{name} (exit code {code})")
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
