"""Wrong use: exit code 2, one line with the words that help, and no file is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.app.removed import REMOVED
from tests.cli.conftest import Cli
from tests.cli.test_compare import fill
from tests.store.making import ScriptedJudge, items

# Command | words of the line. The folder has a task with runs and criteria, files of ratings, and
# the store c.db with the judge m.
REFUSALS = """
agree | --labels:
agree --labels none.jsonl --scores s.jsonl --task sums | none.jsonl: can
agree --labels l.jsonl | agenteval.db
agree --labels l.jsonl --scores l.jsonl | --source
agree --labels l.jsonl --scores s.jsonl | say which criteria these are
agree --labels l.jsonl --scores s.jsonl --task sums --rater Z | no rater
agree --labels l.jsonl --scores s.jsonl --task sums --source Z | no --scores file has a rater 'Z'
agree --labels l.jsonl --scores odd.jsonl --task sums | criterion 'charm'
agree --labels l.jsonl --scores far.jsonl --task sums | no run is rated by both
agree --labels l.jsonl --scores other.jsonl --task sums | no criterion is rated by both
agree --labels l.jsonl --scores s.jsonl --task sums --cut 7 | cut 7.0
agree --labels l.jsonl --scores s.jsonl --task sums --runs away.jsonl | none of the rated runs
agree --labels s.jsonl --scores s.jsonl --sample s.jsonl --task sums | s.jsonl: this file
agree --alt-test --audit | --alt-test
agree sample --n 3 --by disagreement --scores s.jsonl --task sums | every run was judged once
agree sample --scores s.jsonl --task sums -o s.jsonl | s.jsonl
design --cases many | 'many' is not a list
design --cases 0 | at least 1
design --width 2 | 2.0 is not a width between 0 and 1
quantify s.jsonl --until soon | 'soon' is neither a width
quantify runs.jsonl --model m --base-url http://127.0.0.1:9/v1 --max-tokens 0 | --max-tokens
quantify runs.jsonl --model m --base-url http://127.0.0.1:9/v1 --max-tokens many | --max-tokens
quantify runs.jsonl --model m --base-url http://127.0.0.1:9/v1 --param top_p | --param
quantify runs.jsonl --model m --base-url http://127.0.0.1:9/v1 --param =1 | --param
quantify --nonsense | --nonsense
quantfy | Did you mean 'quantify'
doctor --model m --base-url http://127.0.0.1:1/v1 --base-url=http://127.0.0.1:2/v1 | give one URL
compare --store c.db | two judges (--source twice)
compare style-0 --store c.db | two judges (--source twice)
compare style-0 style-0 --store c.db | 'style-0' is compared with itself
compare style-0 style-9 --store c.db | no system 'style-9'; available: style-0, style-1, style-2
compare --source m --source m --store c.db | both name the same judge
compare style-0 style-1 --source x --store c.db | no judge is called 'x'; available:
compare style-0 style-1 --source m --source m --store c.db | two systems and two judges
compare --source m --source m --source m --store c.db | at most two judges
compare --with c.db --store c.db | c.db is compared with itself
compare --with nowhere.db --store c.db | no store here yet
compare style-0 style-1 --criterion depth --store c.db | 'depth' is not rated
compare style-0 style-1 --fail-under quality-0 --store c.db | is not of the form
compare style-0 style-1 --fail-under quality-0=2 --store c.db | a value from 0 to 1
compare style-0 style-1 --fail-under quality-0=nan --store c.db | a value from 0 to 1
compare style-0 style-1 --fail-under depth=.5 --store c.db | 'depth' is not compared
compare style-0 style-1 --junit j.xml --store c.db | add --fail-if or --fail-under
compare style-0 style-1 --on-undecided pass --store c.db | add --fail-if or --fail-under
compare style-0 style-1 --task other --store c.db | no runs of 'other'; tasks: sums
compare --scores v.jsonl --with v.jsonl | v.jsonl is compared with itself
compare a b --scores v.jsonl --store c.db | not both
compare a b --scores v.jsonl | no system 'a'; available: none named
compare --scores v.jsonl --with t.jsonl | no case in common
compare a b --sequential 1 | --sequential
report --store none.db | no store
report --store c.db --source zzz | --source
report --store c.db --task other | --task
report --store c.db --rater A | --rater
report --scores v.jsonl --source a | --scores
report --store c.db --criteria none.json | none.json
report runs.jsonl --store c.db | RUNS
report --store c.db -o /dev/null/x.html | cannot write
export x.jsonl --model m | --model:
export x.jsonl --replies --otlp | --replies:
export http://127.0.0.1:1 --store c.db | write to a file ending in .jsonl, .csv or .parquet
export a.csv --traces traces | --traces, --no-explanations: needs --otlp
export a.csv --no-explanations | --traces, --no-explanations: needs --otlp
export --otlp runs.jsonl --traces runs.jsonl | another output file
export --otlp c.db --store c.db | c.db: this file is the store
export --otlp e.jsonl --traces criteria/sums.json --store c.db | criteria
export --otlp http://a:b@127.0.0.1:1 --store c.db | set keys in OTEL_EXPORTER_OTLP_HEADERS
export --otlp https:// --store c.db | set keys in OTEL_EXPORTER_OTLP_HEADERS
init shop mails.csv --map output=Antwort,input=Anfrage | --description:
init shop odd.csv --description D | odd.csv: which column has the answers of the system?
init shop mails.csv --map output=Reply --description D | there is no column 'Reply'
init sums mails.csv --description D | this folder exists already
init shop none.csv --description D | no such file
init shop two.csv --description D | bot_reply or agent_reply: which is the output?
init mails.csv --model openai:m --description D | openai needs a key in OPENAI_API_KEY
init kept mails.csv --description D | these criteria exist already
""".strip().splitlines()


def rated(*levels: str, run: str = "r", criterion: str = "clarity", **more: Any) -> str:
    rows = [
        {"run": f"{run}{i}", "criterion": criterion, "label": level, **more}
        for i, level in enumerate(levels)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("store") / "c.db"
    fill(path, ScriptedJudge(model="m"), items(6))
    return path.read_bytes()


@pytest.fixture
def folder(project: Path, store: bytes) -> Path:
    levels = "unclear", "partly clear", "clear"
    values = [{"run": f"r{i}", "case": f"c{i}", "criterion": "x", "value": 0.5} for i in range(3)]
    texts = {
        "l.jsonl": rated(*levels, rater="A"),
        "s.jsonl": rated(*levels),
        "odd.jsonl": rated("clear", criterion="charm"),
        "far.jsonl": rated("clear", run="elsewhere"),
        "other.jsonl": rated("correct", criterion="accuracy"),
        "away.jsonl": json.dumps({"id": "x", "input": "?", "output": "!"}),
        "v.jsonl": "".join(json.dumps(row) + "\n" for row in values),
        "t.jsonl": "".join(json.dumps(row | {"case": "d"}) + "\n" for row in values),
        "mails.csv": "Anfrage,Antwort\nWo?,Hier.\n",
        "odd.csv": "a,b\n1,2\n3,4\n",
        "two.csv": "bot_reply,agent_reply\na,b\nc,d\n",
        "criteria/kept.json": "",
    }
    for name, text in texts.items():
        (project / name).write_text(text)
    (project / "c.db").write_bytes(store)
    return project


@pytest.mark.parametrize("line", REFUSALS)
def test_wrong_use_is_one_line_and_writes_nothing(cli: Cli, folder: Path, line: str) -> None:
    command, _, words = line.partition(" | ")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = cli(command)
    assert done.code == 2, done
    assert not done.out or command.startswith("init shop mails.csv")  # it shows the columns
    assert words in done.err
    assert "Usage: " in done.err or done.err.count("agenteval: ") == 1
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(("command", "option"), REMOVED)
def test_what_was_removed_is_refused_with_its_replacement(
    cli: Cli, command: str, option: str
) -> None:
    done = cli(f"{command or 'quantify'} x {option}")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert f"removed: {REMOVED[command, option]}\n" in done.err
