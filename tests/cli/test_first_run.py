"""docs/first-run.md, line by line, in an empty folder; the endpoint is a server on loopback."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agenteval.testing import serve
from tests.cli.conftest import Cli

PAGE = (Path(__file__).parents[2] / "docs/first-run.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)
HEAD = "ticket_id,customer_message,bot_reply,resolved\n"


def table(reply: str) -> str:
    return HEAD + "".join(
        f'T-{n},"Where is lamp {n}?\nI wait.","{reply} It comes on day {n}.",{"yn"[n % 2]}\n'
        for n in range(40)
    )


def answer(body: dict, number: int) -> str:
    if "criteria" in body["response_format"]["json_schema"]["schema"]["properties"]:
        return (
            '{"criteria": [{"name": "Politeness", "description": "Is it polite?", "scale": '
            '"ordinal", "accepted_values": ["rude", "curt", "polite"], "order": '
            '"worst_to_best", "allow_na": false, "expect": {"drop_sentences": "lower"}}]}'
        )
    return '{"politeness": {"explanation": "Dear", "label": "polite"}}'


@pytest.mark.slow
def test_every_line_of_the_page(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mails.csv").write_text(table("Dear customer, sorry!"))
    Path("mails-v2.csv").write_text(table("Dear customer, thank you!"))
    own = [text for language, text in BLOCKS if language == "python"]
    assert sum(len([x for x in text.splitlines() if x.strip()]) for text in own) <= 40
    with serve(answer) as server:
        for language, text in BLOCKS:
            if language == "json":
                Path("criteria/own.json").write_text(text)
                continue
            if language == "python":
                name = text.partition("# ")[2].partition("\n")[0]
                Path(name).write_text(text)
                if "agenteval" in text:
                    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
                    done = subprocess.run(
                        [sys.executable, name],
                        env=environment,
                        check=True,
                        capture_output=True,
                        text=True,
                    )
                    assert "Politeness" in done.stdout
                continue
            for line in text.splitlines():
                line = line.replace("https://llm.example.org/v1", server.base_url)
                words = shlex.split(line, comments=True)
                if words[0] == "export":
                    monkeypatch.setenv(*words[1].split("=", 1))
                    continue
                done = cli(*words[1:])
                # a stand-in that carries tools out in any order fails some plans
                assert done.code == 0 or words[1:3] == ["plan", "test"], (line, done.err)
        assert all(request.headers["x-team"] == "lamps" for request in server.requests)
    for made in ("report.html", "gate.xml", "criteria/shop.json", "tasks/shop/task.yaml"):
        assert Path(made).is_file(), made


def test_a_new_role_is_sound(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("flow", "init", "returns").code == 0
    Path("mute.py").write_text("def serve(messages, tools):\n    return 'I never look.'\n")
    checked = cli("flow", "check", "returns", "--json")
    assert checked.code == 0, checked.err
    shown = cli(
        "flow session returns --agent python:mute:serve --user scripted --show 1",
    )
    assert "  user      Hello, I want to give an order back." in shown.out, shown.err
    assert "I never look." in shown.out
    again = cli("flow", "init", "returns")
    assert (again.code, "nothing was changed" in again.err) == (2, True)
    assert cli("flow", "init", "a b").code == 2
