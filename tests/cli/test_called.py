"""The command that is called is built as if all were; the others keep their names and help."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer

from agenteval.cli.called import names, only
from agenteval.cli.main import app
from tests.cli.conftest import Cli


@pytest.fixture(scope="module")
def whole() -> Any:
    return typer.main.get_command(app)


def paths(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield before
    for name, command in getattr(group, "commands", {}).items():
        yield from paths(command, (*before, name))


def said(command: Any, path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    command.main([*path, "--help"], prog_name="agenteval", standalone_mode=False)
    return capsys.readouterr().out


def test_the_help_of_every_command_is_the_same(
    whole: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    found = list(paths(whole))
    assert len(found) > 30
    for path in found:
        alone = typer.main.get_command(only(app, frozenset(path)))
        assert said(alone, path, capsys) == said(whole, path, capsys), path


def test_only_what_is_called_has_its_options() -> None:
    built: Any = typer.main.get_command(only(app, frozenset({"flow", "turn"})))
    assert len(built.commands["flow"].commands["turn"].params) > 5
    assert built.commands["flow"].commands["check"].params == []
    assert built.commands["quantify"].params == []
    assert list(built.commands) == list(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_names_are_those_of_commands_and_groups_at_any_depth(whole: Any) -> None:
    assert names(app) == {name for path in paths(whole) for name in path}


def test_a_command_that_was_not_built_cannot_run() -> None:
    built = typer.main.get_command(only(app, frozenset()))
    with pytest.raises(AssertionError, match="not built"):
        built.main(["doctor"], standalone_mode=False)


def test_the_app_itself_stays_whole(cli: Cli) -> None:
    assert cli("--version").code == 0
    quantify = next(c for c in app.registered_commands if c.name == "quantify")
    assert quantify.callback is not None
    assert quantify.callback.__name__ == "quantify"


def test_a_near_name_is_proposed_and_a_file_may_have_the_name_of_a_command(cli: Cli) -> None:
    assert "Did you mean 'quantify'" in cli("quantfy").err
    told = cli("quantify", "report", "--dry-run", "--criteria", "show")
    assert told.code == 2
    assert "No such command" not in told.err
