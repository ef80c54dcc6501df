"""The example in the README runs unchanged, without a key."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_example_runs_in_a_fresh_folder_without_a_key(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    code = readme.partition("## Five lines")[2].partition("```python\n")[2].partition("```")[0]
    lines = [line for line in code.splitlines() if line]
    assert len(lines) <= 5
    assert sum(line.startswith(("import ", "from ")) for line in lines) == 1
    (tmp_path / "tasks").symlink_to(ROOT / "tasks")
    (tmp_path / "example.py").write_text(code)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTEVAL", "OPENAI"))}
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "not trustworthy" in done.stdout
    assert "swap_numbers" in done.stdout
