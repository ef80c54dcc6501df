"""Print what comes of each behaviour of `endpoints.py`: statuses, requests sent, tokens paid.

`python -m tests.support.endpoint_table [NAME ...] [--python PATH --root FOLDER]` judges six runs,
two of which hold what moderated endpoints refuse, by one criterion. `--python` and `--root` name
the interpreter and checkout of another version.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.endpoints import FILTERED, PLAYS, behaving

JUDGE = """
import collections, json, logging, sys, warnings
import agenteval
from agenteval.models.limits import Limits
from agenteval.records import Criterion, Run, Task
warnings.simplefilter("ignore")
url, *names = sys.argv[1:]
runs = [Run(id=f"r{i}", task="t", system="s", input=f"Question {i}?",
            output=f"This is answer {i}, long enough to be judged." + " FILTERME" * (i % 3 == 1))
        for i in range(6)]
levels = ("bad", "ok", "good")
criteria = [Criterion(name="clear", description="Is it clear?", accepted_values=levels)]
said = []
class Handler(logging.Handler):
    def emit(self, record): said.append(record.getMessage())
logging.getLogger("agenteval").addHandler(Handler())
logging.getLogger("agenteval").propagate = False
for name in names:
    said.clear()
    try:
        report = agenteval.quantify(runs, criteria, judge=name, base_url=url, store="s.db",
            task=Task(name="t", description="Answer questions."), limits=Limits(timeout=20.0))
        found = collections.Counter(f"{r.status}" + (f" {r.value:g}" if r.value is not None else "")
                                    for r in report.ratings)
        why = next((u for u in report.unfinished), "")
        print(json.dumps([name, dict(found), why, said, report.exit_code]), flush=True)
    except Exception as error:
        code = getattr(error, "exit_code", 70)
        found = {type(error).__name__: 1}
        print(json.dumps([name, found, str(error), said, code]), flush=True)
"""


def main() -> None:
    """Run the behaviours named, or all, and print a line of a Markdown table for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--root", default=".")
    given = parser.parse_args()
    print("| behaviour | results | exit | requests | tokens | said |\n|---|---|--:|--:|--:|---|")
    with behaving() as served, tempfile.TemporaryDirectory() as folder:
        command = [given.python, "-c", JUDGE, f"{served.url}/v1", *(given.names or PLAYS)]
        environment = {"PYTHONPATH": str(Path(given.root).resolve())}
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
        ) as judging:
            for line in judging.stdout or ():
                name, found, why, said, code = json.loads(line)
                results = ", ".join(
                    f"{count} × {status}" for status, count in sorted(found.items())
                )
                words = " / ".join([*dict.fromkeys(said), why]).strip(" /").replace("|", "¦")
                words = words.replace(served.url, "URL").replace("\n", " ")[:220]
                counts = f"{len(served.asked[name])} | {served.paid[name]:,}"
                print(f"| {name} | {results} | {code} | {counts} | {words} |", flush=True)


assert FILTERED in JUDGE
if __name__ == "__main__":
    main()
