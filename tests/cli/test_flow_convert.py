"""agenteval flow convert: over a real endpoint on loopback that answers from a script."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from agenteval.cli import flow_roles
from agenteval.cli.console import err
from agenteval.errors import InputError
from agenteval.testing import serve
from tests.cli.conftest import ENVIRONMENT

DESK = Path(__file__).parents[1] / "evaluators/workflows/library_desk"
CODE = (DESK / "return_book/workflow.code").read_text()
CHART = (DESK / "return_book/workflow.mmd").read_text()
Convert = Callable[..., Result]


@pytest.fixture
def convert(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Convert:
    """The command in a small application, in an empty folder with nothing configured."""
    app = typer.Typer()
    app.command()(flow_roles.convert)
    monkeypatch.chdir(tmp_path)
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)

    def run(reply: str, *arguments: object) -> Result:
        err.cache_clear()
        with serve(answer=lambda *_: reply) as server:
            options = ["--model", "parrot", "--base-url", server.base_url]
            return CliRunner().invoke(app, [str(DESK), *map(str, arguments), *options])

    return run


def test_what_is_accepted_is_written(convert: Convert, tmp_path: Path) -> None:
    done = convert(f"```python\n{CODE}```", "return_book", "--to", "code", "-o", "new.code")
    assert done.exit_code == 0, (done.output, done.exception)
    assert (tmp_path / "new.code").read_text() == CODE


def test_what_is_rejected_is_not_written(convert: Convert, tmp_path: Path) -> None:
    wrong = CODE.replace("days_late > 0", "days_late > 0 and False").replace(
        "taken = return_book(title=title)\n", "return reply('No.')\n"
    )
    done = convert(wrong, "return_book", "--to", "code", "-o", "new.code", "--json")
    assert done.exit_code == 1
    assert not (tmp_path / "new.code").exists()
    told = json.loads(done.stdout)
    assert told["accepted"] is False
    assert told["reasons"] == ["the code does not name return_book, which the chart calls"]
    assert "nothing was written" in done.stderr
    assert "the code does not name return_book" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["return_book", "--to", "prose"], "'prose' is none of text, code, flowchart"),
        (["return_book", "--to", "code", "--from", "image"], "'image' is none of"),
        (["lend", "--to", "code"], "has no scenario 'lend'; it has lend_book, return_book"),
        (["return_book", "--to", "code", "--from", "code"], "into itself"),
    ],
)
def test_wrong_use(convert: Convert, arguments: list[str], told: str) -> None:
    done = convert(CODE, *arguments)
    assert isinstance(done.exception, InputError)
    assert told in str(done.exception)


def test_it_needs_a_chat_model(convert: Convert) -> None:
    app = typer.Typer()
    app.command()(flow_roles.convert)
    done = CliRunner().invoke(app, [str(DESK), "return_book", "--to", "code"])
    assert isinstance(done.exception, InputError)
    assert "needs a chat model" in str(done.exception)


@pytest.mark.parametrize(("target", "least"), [("code", 1), ("text", 2)])
def test_a_dry_run_asks_nothing(convert: Convert, tmp_path: Path, target: str, least: int) -> None:
    """A text is made into a flowchart again, so it takes two questions."""
    done = convert(CODE, "return_book", "--to", target, "--dry-run", "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    told = json.loads(done.stdout)
    assert told["requests"] == {"least": least, "most": 2 * least}
    assert told["prompt_tokens"]["least"] > 300
    assert not list(tmp_path.iterdir())
