"""The documentation builds as a website without broken links, with every command and function."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import agenteval
from agenteval.app.main import COMMANDS

ROOT = Path(__file__).parents[1]
BUILD = ("mkdocs", "build", "-q", "--strict", "-f", ".mkdocs.yml", "-d")


@pytest.mark.slow
def test_the_site_builds_and_documents_every_command_and_public_name(tmp_path: Path) -> None:
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([sys.executable, "-m", *BUILD, str(tmp_path)], cwd=ROOT, env=quiet, check=True)
    commands = (tmp_path / "commands" / "index.html").read_text("utf-8")
    assert all(f"agenteval {name}" in commands for name in COMMANDS)
    assert "--max-cost" in commands
    reference = (tmp_path / "reference" / "index.html").read_text("utf-8")
    assert all(name in reference for name in agenteval.__all__)
