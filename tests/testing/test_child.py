"""The server as a process: start, options, script, end."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from agenteval.testing import KINDS, RETRY_AFTER_FORMS, spawn
from agenteval.testing.server import _parser, main

COMMAND = [sys.executable, "-m", "agenteval.testing.server"]
QUESTION = {"model": "m", "messages": [{"role": "user", "content": "about run-7 nonce"}]}


def ask(url: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    reply = http().post(f"{url}/chat/completions", json=body or QUESTION)
    return reply.status_code, reply.json()


@functools.cache
def http() -> httpx2.Client:
    """One for all: each would read the certificates of the machine again."""
    return httpx2.Client(trust_env=False)


def gone(pid: int, within: float = 10.0) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_it_starts_serves_counts_and_stops() -> None:
    with spawn("--latency", "0.05", "--seed", "4") as child:
        assert child.pid == child.process.pid
        status, first = ask(child.base_url)
        assert status == 200
        assert ask(child.base_url)[1] == first
        stats = child.stats()
        assert list(stats["per_request"].values()) == [[2, 2]]
        assert stats["in_flight_seconds"] >= 0.1
        child.reset()
        assert child.stats(keys=False)["requests"] == 0
    assert child.process.returncode == 0
    with spawn("--seed", "4") as again:
        assert ask(again.base_url)[1] == first
    with spawn("--seed", "5") as other:
        assert ask(other.base_url)[1] != first


@pytest.mark.slow
@pytest.mark.parametrize("pipe", ["stdin", "stdout"])
def test_it_dies_with_its_killed_parent(pipe: str) -> None:
    # The dying parent alone holds one pipe; with "stdin" the server's output goes to our own pipe.
    pipes = {
        "stdin": "stdin=subprocess.PIPE, stdout=None",
        "stdout": "stdin=subprocess.DEVNULL, stdout=subprocess.PIPE",
    }
    code = (
        "import subprocess, time\n"
        f"p = subprocess.Popen({COMMAND!r}, {pipes[pipe]})\n"
        "print('pid', p.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert parent.stdout is not None
    try:
        line = parent.stdout.readline()
        while not line.startswith(b"pid"):
            line = parent.stdout.readline()
        pid = int(line.split()[1])
        time.sleep(1.0)  # let it come up
        assert not gone(pid, 0.1)
        parent.kill()
        parent.wait(10)
        assert gone(pid)
    finally:
        parent.kill()
        parent.wait(10)
        parent.stdout.close()


def test_a_script_decides_faults_and_answers(tmp_path: Path) -> None:
    function = {"name": "f", "arguments": "{}"}
    call = {"tool_calls": [{"id": "1", "type": "function", "function": function}]}
    script = {
        "rules": [{"fault": {"kind": "status", "status": 503}, "first": 1, "match": r"run-\d"}],
        "answers": [{"match": "run-7", "replies": ["unused", "second", call]}],
        "seed": 9,
    }
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script))
    with spawn("--script", str(path)) as child:
        assert ask(child.base_url)[0] == 503
        said = [ask(child.base_url)[1]["choices"][0] for _ in range(3)]
        plain = {"model": "m", "messages": [{"role": "user", "content": "else"}]}
        other = ask(child.base_url, plain)[1]["choices"][0]
    assert said[0]["message"]["content"] == "second"
    assert [s["finish_reason"] for s in said] == ["stop", "tool_calls", "tool_calls"]
    assert other["message"]["content"].startswith("This is reply")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--latency", "soon"],
        ["--script", "/nowhere/x.json"],
        ["--key-regex", "("],
        ["--ceiling", "0"],
        ["--fault-rate", "2"],
        ["--port", "1"] if os.getuid() else ["--latency", "1e9"],
    ],
)
def test_bad_options_end_with_2_and_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1


# ---- The commands, the script and the code of docs/test-server.md work as they stand there -------


DOCS = Path(__file__).resolve().parents[2] / "docs" / "test-server.md"
TEXT = DOCS.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.M | re.S)
    return [text for name, text in fenced if name == language]


def table(head: str) -> list[list[str]]:
    """Rows of the table below a heading, cells without their back-ticks in the first column."""
    below = TEXT.split(f"## {head}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in below.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_start_and_the_client(capsys: pytest.CaptureFixture[str]) -> None:
    command = shlex.split(blocks("sh")[0])
    assert command[:3] == ["python", "-m", "agenteval.testing.server"]
    arguments = command[3:]
    arguments[arguments.index("--port") + 1] = "0"  # 8099 may be taken here
    with spawn(*arguments) as child:
        exec(blocks("python")[0], {"base_url": child.base_url})
        stats = child.stats(keys=False)
    assert capsys.readouterr().out.startswith("This is reply ")
    assert stats["outcomes"]["ok"] == 1
    assert set(stats["outcomes"]) <= {"ok", "status"}


def test_the_script(tmp_path: Path) -> None:
    (text,) = blocks("json")
    path = tmp_path / "script.json"
    path.write_text(text, encoding="utf-8")
    # the chance of a reset is left to the server's own tests
    settings = json.loads(text)
    del settings["rules"][3]
    path.write_text(json.dumps(settings), encoding="utf-8")
    with spawn("--script", str(path)) as child:
        sdk = openai.OpenAI(base_url=child.base_url, api_key="none", max_retries=0)

        def ask(said: str) -> Any:
            messages: Any = [{"role": "user", "content": said}]
            return sdk.chat.completions.create(model="m", messages=messages).choices[0].message

        for _ in range(2):
            with pytest.raises(openai.InternalServerError):
                ask("case 1")
        assert ask("case 1").content == '{"label": "good"}'
        with pytest.raises(openai.RateLimitError) as caught:
            ask("case 2")
        assert caught.value.response.headers["retry-after"].endswith(" GMT")
        assert ask("case 2").content == '{"label": "good"}'
        assert ask("case 3").refusal == "I would rather not."
        letter = sdk.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "which letter?"}],
            logprobs=True,
            top_logprobs=5,
        ).choices[0]
        (token,) = letter.logprobs.content
        masses = {top.token: round(math.exp(top.logprob), 6) for top in token.top_logprobs}
        assert (letter.message.content, masses) == ("B", {"A": 0.3, "B": 0.7})
        question = {"name": "spam", "type": "predicate", "instructions": "is it spam"}
        (answer,) = sdk.decisions.create(model="m", input="x", questions=[question]).answers
        assert (answer.name, answer.probability) == ("spam", 0.9)
        call = ask("the weather?").tool_calls[0]
        assert json.loads(call.function.arguments) == {"place": "Rome"}
        assert ask("the weather?").content == "It will rain."
        stats = child.stats()
        sdk.close()
    assert stats["statuses"] == {"200": 7, "429": 1, "503": 2}
    told = {name for row in table("Statistics: /stats") for name in re.findall(r"`(\w+)`", row[0])}
    assert told == set(stats)


def test_all_faults_and_forms_are_told_as_the_program_tells_them() -> None:
    told = {row[0].strip("`"): row[1].replace("`", "") for row in table("Faults")}
    assert set(told) == set(KINDS)
    for kind, row in KINDS.items():
        # the table names the further fields of `status` as fields
        wanted = row.about.replace("`", "").replace("; body (raw", "; fields status, body (raw")
        assert told[kind] == wanted
    forms = re.findall(r"`([\w-]+)`", TEXT.split("`429=FORM`:")[1].split("\n## ")[0])
    assert forms == [name.replace(" ", "-") for name in RETRY_AFTER_FORMS]


def test_all_options_are_told_and_the_help_is_whole() -> None:
    told = set(re.findall(r"`(--[\w-]+)", "".join(row[0] for row in table("Options"))))
    known = {name for action in _parser()._actions for name in action.option_strings}
    assert told == {name for name in known if name.startswith("--")} - {"--help"}
    text = _parser().format_help()
    assert all(f"\n  {kind} " in text for kind in KINDS)
    assert all(name.replace(" ", "-") in text for name in RETRY_AFTER_FORMS)


def test_faults_of_the_command_line_add_to_those_of_the_script(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"rules": [{"fault": {"kind": "length"}, "match": "long"}]}')
    with spawn("--script", str(path), "--fault", "refusal=No.") as child:
        sdk = openai.OpenAI(base_url=child.base_url, api_key="none", max_retries=0)
        for said, finish, refusal in (("long", "length", None), ("short", "stop", "No.")):
            messages: Any = [{"role": "user", "content": said}]
            choice = sdk.chat.completions.create(model="m", messages=messages).choices[0]
            assert (choice.finish_reason, choice.message.refusal) == (finish, refusal)
        sdk.close()
