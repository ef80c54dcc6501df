"""Start-up, help, version, init."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agenteval.app.commands.doctor import DoctorCheck, _store
from agenteval.app.main import COMMANDS
from tests.cli.conftest import Cli

HEAVY = (
    "autogen_core",
    "autogen_agentchat",
    "autogen_ext",
    "openai",
    "sentence_transformers",
    "torch",
    "transformers",
    "sklearn",
    "matplotlib",
    "scipy",
    "sqlalchemy",
    "numpy",
    "pydantic",
)


def test_help_and_import_load_nothing_heavy() -> None:
    code = (
        "import sys, contextlib, io\n"
        "import agenteval\n"
        "from agenteval.app.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(['--help'])\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version_and_help(cli: Cli) -> None:
    assert cli("--version").out.strip() == "0.2.0"
    for command in ("demo", "init", "criteria", "quantify", "show", "export", "doctor"):
        assert command in cli("--help").out
        assert cli(command, "--help").code == 0
    assert cli("flow", "session", "-h").out == cli("flow", "session", "--help").out


def test_control_characters_in_a_message_are_shown_and_not_obeyed(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text(
        '{"run": "a", "criterion": "x", "value": "\\u001b[31mred\\u0007"}\n'
    )
    result = cli("verify", "--scores", "s.jsonl")
    assert result.code == 2
    assert "\x1b" not in result.err
    assert "\x07" not in result.err
    assert "red" in result.err


@pytest.mark.parametrize("group", ["", "plan", "trace", "flow", "store", "agree", "anchor"])
def test_no_line_of_a_list_of_commands_is_cut_at_80_columns(
    cli: Cli, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = cli(*group.split(), "--help").out
    assert "Commands:" in listed
    assert "..." not in listed.partition("Commands:")[2]


def test_the_list_of_commands_says_what_their_own_help_says(cli: Cli) -> None:
    for name, text in COMMANDS.items():
        own = " ".join(cli(name, "--help").out.split())
        assert text.removesuffix(".") in own, name
    assert "Did you mean 'quantify'" in cli("quantfy").err
    told = cli("quantify", "report", "--dry-run", "--criteria", "show")
    assert (told.code, "No such command" in told.err) == (2, False)


def test_an_unexpected_exception_has_its_own_code(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(_name: str) -> str:
        raise LookupError("two\nlines, api_key=sk-1234567890abcdefghijkl \x1b[31m")

    monkeypatch.setattr("importlib.metadata.version", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = cli("--version")
    assert result.code == 70
    assert result.err.startswith("agenteval: unexpected LookupError: two lines, ")
    assert result.err.count("\n") == 1
    (saved,) = tmp_path.glob("agenteval-crash-*.txt")
    assert str(saved) in result.err
    trace = saved.read_text("utf-8")
    assert "in broken" in trace
    for text in (trace, result.err):
        assert "sk-1234567890" not in text
        assert "\x1b" not in text


@pytest.mark.parametrize("there", [None, b""])
def test_a_store_not_made_yet_is_no_fault(tmp_path: Path, there: bytes | None) -> None:
    path = tmp_path / "s.db"
    if there is not None:  # another process is about to make it
        path.write_bytes(there)
    assert _store(path) == DoctorCheck("store", None, f"{path} (created by the first quantify)")
    assert path.exists() == (there is not None)


def test_a_damaged_store_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(500))
    check = _store(path)
    assert (check.check, check.fine) == ("store", False)
    assert str(path) in check.found
