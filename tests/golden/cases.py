"""The golden cases: each a few commands in a folder of its own, and what is kept of each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.golden import answers, extract
from tests.golden.files import DATA

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "tasks"
ROLES = TASKS / "flows"
# What a command line may name in braces; {url} is the address of the case's server.
PLACES = {"data": DATA, "tasks": TASKS, "roles": ROLES, "root": ROOT, "python": sys.executable}


@dataclass(frozen=True)
class Step:
    """One command and the extractor of its figures."""

    line: str
    figures: extract.Extractor = extract.nothing


@dataclass(frozen=True)
class Case:
    """Commands one after another. `make` writes files first, `answer` is the loopback server's;
    `local` says that it needs the extra `local`."""

    name: str
    steps: tuple[Step, ...]
    answer: answers.Answer | None = None
    make: Callable[[Path], None] | None = None
    local: bool = False


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def two_repeats(folder: Path) -> None:
    """The recorded ratings twice; in the second, each ninth is that of the run before."""
    rows = answers.lines(DATA / "ratings_math_120.jsonl")
    again = []
    for i, row in enumerate(rows):
        other = rows[i - 54] if i % 9 == 0 and i >= 54 else row
        again.append({**row, "repeat": 1, "label": other["label"], "value": other["value"]})
    _write(folder / "scores.jsonl", [*rows, *again])


def two_systems(folder: Path) -> None:
    """40 cases: x is right on 21, y on 27, 19 of them the same; x again under another name."""
    right = {"x": set(range(21)), "y": set(range(2, 29)), "same": set(range(21))}
    rows: list[dict[str, object]] = [
        {
            "run": f"{system}-{case}",
            "system": system,
            "case": f"c{case:02d}",
            "rater": "counted",
            "criterion": "right",
            "value": float(case in cases),
        }
        for system, cases in right.items()
        for case in range(40)
    ]
    _write(folder / "scores.jsonl", rows)


def failed_sums(folder: Path) -> None:
    """A task with two criteria, 24 runs that failed and one that did not."""
    (folder / "tasks/sums").mkdir(parents=True)
    (folder / "tasks/sums/task.yaml").write_text("name: sums\ndescription: Add the numbers.\n")
    (folder / "criteria").mkdir()
    levels = {
        "Clarity": ["unclear", "partly clear", "clear"],
        "Accuracy": ["incorrect", "partially correct", "correct"],
    }
    criteria = [
        {"name": name, "description": f"{name} of the work.", "accepted_values": values}
        for name, values in levels.items()
    ]
    (folder / "criteria/sums.json").write_text(json.dumps(criteria))
    _write(
        folder / "runs.jsonl",
        [
            {
                "id": f"r{i}",
                "task": "sums",
                "system": "alpha",
                "input": f"What is {i} + {i}?",
                "output": f"The sum of {i} and {i} is {3 * i + 1}, I think.",
                "success": i == 24,
            }
            for i in range(25)
        ],
    )


def flowbench_rows(folder: Path) -> None:
    """The published turns and sessions in the form that `flow score` reads."""
    published = json.loads((DATA.parent / "published/workflow_turn_cases.json").read_text("utf-8"))
    prompt = published["system_prompt_used"]
    turns = [
        {
            "id": f"{case['name']}_agent_turn-{i}",
            "gt_response": "",
            "predict": turn["predict"],
            "messages": [{"role": "system", "content": prompt}],
            "gt_thought": {"Action": turn["gt_action"], "Action Input": turn["gt_action_input"]}
            if turn["gt_action"]
            else {},
        }
        for case in published["cases"]
        if "exception" not in case["expected"]
        for i, turn in enumerate(case["turns"])
    ]
    (folder / "turns.json").write_text(json.dumps(turns), encoding="utf-8")
    published = json.loads(
        (DATA.parent / "published/workflow_session_cases.json").read_text("utf-8")
    )
    names = ("gt_actions_string", "gen_dialog_str")
    sessions = [{"id": c["name"]} | {n: c[n] for n in names} for c in published["cases"]]
    (folder / "sessions.json").write_text(json.dumps(sessions), encoding="utf-8")


def evaluation_file(folder: Path) -> None:
    """An evaluation of the recorded judge on 20 runs: verdict, comparison and page."""
    (folder / "eval.yaml").write_text(
        f"task: math\nruns: {DATA}/runs_math_20.jsonl\njudge: {{model: recorded, repeats: 2}}\n"
        "verify: {perturbations: [drop_sentences, whitespace]}\n"
        "report: page.html\nstore: s.db\n"
    )


def pair_judge(folder: Path) -> None:
    """A judge of pairs that prefers the longer response."""
    (folder / "pair_judge.py").write_text(
        "def longer(first, second, criterion):\n"
        "    a, b = len(first.output), len(second.output)\n"
        "    return 'tie' if a == b else 'first' if a > b else 'second'\n"
    )


JUDGE = "--task math --model m --base-url {url} --store s.db"
MATH = "{data}/runs_math_20.jsonl " + JUDGE
ALL = "--runs {tasks}/math/runs.jsonl"
LONGER = "--model python:pair_judge:longer --store s.db"
RATED = "--scores {data}/ratings_math_120.jsonl --task math"
PEOPLE = "{tasks}/math/ratings.jsonl"
PLANTED = "{tasks}/traces/traces"

CASES = (
    Case(
        "quantify",
        (
            Step(f"quantify {MATH} --dry-run --json", extract.dry),
            Step(f"quantify {MATH} --json", extract.asked),
            Step("export --replies replies.jsonl --store s.db"),
            Step(f"quantify {MATH} --json", extract.asked),
            Step(f"quantify {MATH} --dry-run --json", extract.dry),
            Step(
                "quantify {data}/runs_math_20.jsonl --task math --model replay:replies.jsonl "
                "--store replayed.db --json",
                extract.asked,
            ),
            Step("show --store s.db --json", extract.asked),
            Step("show --store s.db --levels --json", extract.scores),
            Step("show --store s.db --sources --json", extract.sources),
            Step("show --store s.db --run math-18-duo --json", extract.one_run),
            Step("export scores.csv --store s.db", extract.exported),
            Step("export scores.jsonl --store s.db", extract.exported),
            Step("export scores.parquet --store s.db", extract.exported),
            Step(
                f"agree --labels {PEOPLE} --rater A --store s.db --audit --confusion --json",
                extract.agreement,
            ),
            Step("report --store s.db -o page.html", extract.files),
            Step("compare duo coder --store s.db", extract.refused),
            Step("store copy s.db t.db"),
            Step("store info --store t.db --json", extract.rows_of_tables),
        ),
        answers.recorded_judge,
    ),
    Case(
        "prefer",
        (
            Step(f"prefer {ALL} {JUDGE} --dry-run --json", extract.dry),
            Step(f"prefer {ALL} {LONGER} --verify --json", extract.pairs),
            Step(f"prefer duo coder {ALL} {LONGER} --json", extract.pairs),
            Step("show --store s.db --json", extract.pairs),
        ),
        answers.recorded_judge,
        make=pair_judge,
    ),
    Case(
        "run",
        (
            Step("run eval.yaml --dry-run --json", extract.dry),
            Step("run eval.yaml --json", extract.evaluation),
            Step("run eval.yaml --only quantify --set judge.repeats=1 --json", extract.evaluation),
        ),
        make=evaluation_file,
    ),
    Case(
        "quantify_repeats",
        (
            Step(f"quantify {MATH} --repeats 2 --limit 6 --json", extract.asked),
            Step(f"quantify {MATH} --one-per-call --limit 2 --json", extract.asked),
            Step(f"quantify {MATH} --with-reference --limit 2 --json", extract.asked),
            Step(f"quantify {MATH} --seed 1 --limit 2 --max-calls 1 -j 1 --json", extract.asked),
            Step("show --store s.db --sources --json", extract.sources),
            Step("export scores.jsonl --store s.db", extract.exported),
        ),
        answers.recorded_judge,
    ),
    Case(
        "quantify_troubled",
        (
            Step(f"quantify {MATH} --json", extract.asked),
            Step(f"quantify {MATH} --json --max-unscored 1", extract.asked),
            Step(f"quantify {MATH} --json --retry-failed --max-unscored 1", extract.asked),
            Step("export scores.jsonl --store s.db", extract.exported),
            Step("report --store s.db -o page.html", extract.files),
        ),
        answers.troubled_judge,
    ),
    Case(
        "verify",
        (
            Step(f"verify {MATH} --repeats 2 --dry-run --json", extract.dry),
            Step(f"verify {MATH} --repeats 2 -o verified.json --json", extract.verified_file),
            Step(f"verify {MATH} --repeats 2 -o verified.json --gate"),
            Step("export scores.csv --store s.db", extract.exported),
            Step("report --store s.db -o page.html --criteria verified.json", extract.files),
        ),
        answers.recorded_judge,
    ),
    Case(
        "verify_scores",
        (
            Step(f"verify {RATED} --json", extract.verification),
            Step(f"verify {RATED} --json --min-cases 21", extract.verification),
            Step(f"verify {RATED} --gate"),
            Step("verify --scores scores.jsonl --task math --json", extract.verification),
            Step("verify --scores scores.jsonl --task math --gate"),
            Step("report --scores scores.jsonl --task math -o page.html", extract.files),
        ),
        make=two_repeats,
    ),
    Case(
        "verify_probes",
        (
            Step(
                "verify runs.jsonl --model m --base-url {url} --store s.db --repeats 1 "
                "--perturb whitespace --probes --json",
                extract.verification,
            ),
            Step(
                "verify runs.jsonl --model m --base-url {url} --store s.db --repeats 1 "
                "--perturb whitespace --probes --dry-run --json",
                extract.dry,
            ),
            Step("export scores.jsonl --store s.db --all-ways --with-copies", extract.exported),
            Step(
                "verify runs.jsonl --model m --base-url {url} --store r.db --repeats 1 "
                "--perturb drop_sentences -o verified.json --json",
                extract.verified_file,
            ),
        ),
        answers.worst,
        failed_sums,
    ),
    Case(
        "agree",
        (
            Step(
                f"agree --scores {PEOPLE} --source B --labels {PEOPLE} --rater A --task math "
                "--json",
                extract.agreement,
            ),
            Step(
                f"agree {RATED} --labels {PEOPLE} --runs {{tasks}}/math/runs.jsonl --json --audit",
                extract.agreement,
            ),
            Step(f"agree {RATED} --labels {PEOPLE} --rater A --gate"),
            Step(
                f"agree sample --n 30 --by value --scores {PEOPLE} --source A --seed 3 -o "
                "sheet.csv "
                "--task math --runs {tasks}/math/runs.jsonl",
                extract.files,
            ),
            Step(
                f"agree {RATED} --labels {PEOPLE} --rater A --sample sheet.csv --alt-test "
                "-o page.html --json",
                extract.agreement,
            ),
            Step(
                f"design --scores {PEOPLE} --source A --task math --price 0.01 --width 0.1 --json"
            ),
        ),
    ),
    Case(
        "compare",
        (
            Step(
                "compare x y --scores scores.jsonl --json --fail-on-regression --junit x.xml "
                "--fail-under right=0.5",
                extract.comparison,
            ),
            Step(
                "compare y x --scores scores.jsonl --json --fail-on-regression --junit x.xml",
                extract.comparison,
            ),
            Step(
                "compare x same --scores scores.jsonl --json --fail-on-regression --junit x.xml",
                extract.comparison,
            ),
            Step(
                "compare x y --scores scores.jsonl --json --fail-under right=0.9 --junit x.xml",
                extract.comparison,
            ),
            Step(
                f"compare --scores {PEOPLE} --source A --source B --task math --json",
                extract.comparison,
            ),
        ),
        make=two_systems,
    ),
    Case(
        "criteria",
        (
            Step(
                "criteria --task math --model m --base-url {url} --tau 1 --store s.db --dry-run "
                "--json",
                extract.dry,
            ),
            Step(
                "criteria --task math --model m --base-url {url} --tau 1 --store s.db -o made.json",
                extract.criteria_file,
            ),
            Step(
                "criteria --task math --model m --base-url {url} --tau 1 --store s.db --seeds 3 "
                "--min-seeds 2 -o fewer.json",
                extract.refused,
            ),
        ),
        answers.critic,
    ),
    Case(
        "criteria_merged",
        (
            Step(
                "criteria --task math --model m --base-url {url} --store s.db -o made.json",
                extract.criteria_file,
            ),
            Step(
                "criteria --task math --model m --base-url {url} --store s.db -o fewer.json "
                "--min-seeds 2",
                extract.criteria_file,
            ),
        ),
        answers.critic,
        local=True,
    ),
    Case("perturb", (Step("perturb {tasks}/math/runs.jsonl -o copies.jsonl", extract.copies),)),
    Case(
        "init",
        (
            Step("init shop", extract.files),
            Step("init shop", extract.refused),
            Step("flow init desk", extract.files),
        ),
    ),
    Case(
        "plan",
        (
            Step("plan synth --n 3-4 --count 12 --seed 1 -o made.jsonl", extract.suite),
            Step("plan synth --extended --n 3 --count 4 --seed 1 -o long.jsonl", extract.suite),
            Step(
                "plan test long.jsonl --agent scripted:perfect --store p.db --json",
                extract.outcomes,
            ),
            *(
                Step(
                    f"plan test {{data}}/suite.jsonl --agent scripted:{name} --store s.db --json "
                    "-q",
                    extract.trials,
                )
                for name in (
                    "perfect",
                    "random",
                    "chance=0.5 --trials 3",
                    "chance=0.5 --trials 2",
                    "chance=0",
                )
            ),
            Step(
                "plan test {data}/suite.jsonl --agent scripted:chance=0 --store s.db --gate 0.9 -q"
            ),
            Step(
                "plan test {data}/suite.jsonl --agent scripted:crash -j 1 --store s.db --json -q",
                extract.trials,
            ),
            Step(
                "plan dissect {data}/suite.jsonl --agent scripted:chance=0 --limit 3 --store s.db "
                "--json -q",
                extract.dissections,
            ),
            Step(
                "plan dissect {data}/suite.jsonl --agent scripted:random --full --limit 2 "
                "--store s.db --json -q",
                extract.dissections,
            ),
            Step(
                "plan dissect {data}/suite.jsonl --agent scripted:chance=0 --limit 1 "
                "--store s.db --json -q",
                extract.dissections,
            ),
            Step(
                "plan capability --agent scripted:perfect --n 2-3 --cases 3 --store p.db --json -q",
                extract.outcomes,
            ),
            Step("plan report {data}/suite.jsonl --store s.db --json", extract.trials),
            Step("plan report --store s.db -o page.html --json", extract.plan_tables),
            Step(
                "plan check {data}/pddl/results.json --domain {data}/pddl/domain.pddl "
                "--problem {data}/pddl --json",
                extract.plan_verdicts,
            ),
        ),
    ),
    Case(
        "plan_agents",
        (
            *(
                Step(
                    f"plan test {{data}}/suite.jsonl --agent {agent} --model m --base-url {{url}} "
                    "--limit 4 --store s.db --json -q",
                    extract.trials,
                )
                for agent in (
                    "openai",
                    "react",
                    "autogen",
                    "python:tests.golden.answers:text_order",
                    "'command:{python} -m tests.support.planner'",
                )
            ),
            Step(
                "plan test {data}/suite.jsonl --agent openai --model other --base-url {url} "
                "--dry-run --store s.db --json",
                extract.dry,
            ),
        ),
        answers.in_turn,
    ),
    Case(
        "trace",
        (
            Step(
                f"trace show {PLANTED}/194bbe082b1f14a60da4d72d8e57910f.jsonl --detect --json",
                extract.trace,
            ),
            Step(f"trace stats {PLANTED} --json", extract.trace_stats),
            Step(
                f"trace locate {PLANTED} --detectors-only -o found --store s.db --json",
                extract.found,
            ),
            Step(
                f"trace locate {PLANTED} --model m --base-url {{url}} --store s.db --dry-run "
                "--json",
                extract.dry,
            ),
            Step(
                f"trace locate {PLANTED} --model m --base-url {{url}} -o judged --store s.db "
                "--json",
                extract.found,
            ),
            Step(
                f"trace locate {PLANTED} --model m --base-url {{url}} -o areas --store a.db --json "
                "--mode areas --no-hints --limit 3",
                extract.found,
            ),
            *(
                Step(
                    f"trace score --gold {{tasks}}/traces/gold --pred {pred} --traces {PLANTED} "
                    f"--json {more}",
                    extract.trace_scores,
                )
                for pred in ("found", "judged")
                for more in ("", "--official")
            ),
            Step("trace score --gold {tasks}/traces/gold --pred found --gate 0.9"),
            Step(
                "trace report --gold {tasks}/traces/gold --store s.db --json", extract.trace_report
            ),
            Step("trace report --store s.db -o page.html", extract.files),
        ),
        answers.locator,
    ),
    Case(
        "flow",
        (
            Step("flow check meeting_rooms invoice_desk --json", extract.charts),
            *(
                Step(
                    f"flow session meeting_rooms --agent recorded:{name} --user scripted --store "
                    "s.db "
                    "--json -q",
                    extract.workflow_trials,
                )
                for name in ("perfect", "skips_step")
            ),
            Step(
                "flow session meeting_rooms --agent recorded:skips_step --user scripted --store "
                "s.db "
                "--gate 0.5 -q"
            ),
            Step(
                "flow session meeting_rooms --agent recorded:perfect --user scripted --store s.db "
                "--format text --format none --limit 3 --trials 2 --json -q",
                extract.workflow_trials,
            ),
            Step(
                "flow session meeting_rooms --agent openai --model m --base-url {url} "
                "--user scripted --judge m --judge-url {url} --limit 4 --store s.db --json -q",
                extract.workflow_trials,
            ),
            Step(
                "flow turn meeting_rooms --agent openai --model m --base-url {url} --store s.db "
                "--limit 12 --json -q",
                extract.workflow_trials,
            ),
            Step(
                "flow turn meeting_rooms --agent openai --model m --base-url {url} --store s.db "
                "--dry-run --json",
                extract.dry,
            ),
            Step("flow report --store s.db -o page.html", extract.workflow_tables),
            Step(
                "flow import {root}/docs/tool_shed {root}/docs/tool_shed/trajectories.jsonl "
                "--agent clerk --store i.db --json -q",
                extract.workflow_trials,
            ),
        ),
        answers.assistant,
    ),
    Case(
        "flow_score",
        (
            Step("flow score turns.json --json --max-unscored 1", extract.workflow_scores),
            Step(
                "flow score turns.json --reference --json --max-unscored 1", extract.workflow_scores
            ),
            Step("flow score sessions.json --json --max-unscored 1", extract.workflow_scores),
            Step(
                "flow score sessions.json --reference --json --max-unscored 1",
                extract.workflow_scores,
            ),
        ),
        make=flowbench_rows,
    ),
    Case(
        "refused",
        tuple(
            Step(line, extract.refused)
            for line in (
                "quantify none.jsonl --task math --model m --base-url http://127.0.0.1:9/v1",
                "quantify {data}/runs_math_20.jsonl --task none --model m --base-url "
                "http://127.0.0.1:9/v1",
                "quantify {data}/runs_math_20.jsonl --task math --criteria {root}/pyproject.toml "
                "--model m --base-url http://127.0.0.1:9/v1",
                "quantify {data}/runs_math_20.jsonl --repeats 0",
                "quantify {data}/runs_math_20.jsonl --task math --model replay:none.jsonl",
                "verify --scores none.csv",
                "verify {data}/runs_math_20.jsonl --task math --perturb none --model m "
                "--base-url http://127.0.0.1:9/v1",
                "criteria --task none --model m --base-url http://127.0.0.1:9/v1",
                "show --store none.db",
                "show --store {root}/README.md",
                "report --store none.db",
                "export scores.txt --store none.db",
                "export scores.csv --store none.db",
                "agree --labels none.csv --store none.db",
                "compare x y --store none.db",
                "init bad/name",
                "frobnicate",
                "plan synth --n 9-3 --count 2 -o made.jsonl",
                "plan test none.jsonl --agent scripted:perfect",
                "plan test {data}/suite.jsonl --agent scripted:none",
                "plan dissect {data}/suite.jsonl --agent scripted:perfect --store none.db",
                "plan report --store none.db",
                "trace show none.json",
                "trace show {root}/pyproject.toml",
                "trace locate none --detectors-only",
                "trace score --gold none --pred none",
                "trace annotate import none --traces none -o made",
                "flow check none",
                "flow session none --agent recorded:perfect --user scripted",
                "flow session meeting_rooms --agent recorded:none --user scripted",
                "flow session meeting_rooms --agent scripted:perfect --user scripted",
                "flow turn meeting_rooms --agent recorded:perfect",
                "flow report --store none.db",
                "flow score none.json",
                "doctor --model replay:none.jsonl --store none.db",
            )
        ),
    ),
)
