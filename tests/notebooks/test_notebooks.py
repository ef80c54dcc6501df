"""The notebooks are stored with their outputs, and run offline from top to bottom with all figures.

Each is executed in a temporary copy of its folder by a kernel that can reach this machine only.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
FIGURES = {
    "01_quickstart": 1,
    "02_radar": 3,
    "03_box_plots_robustness": 2,
    "04_verification": 2,
    "05_criteria_curves": 1,
}
LOCAL = {"05_criteria_curves"}
MOST_LINES = 12
TIMEOUT = 300  # seconds for one cell, on a busy machine
PNG = "image/png"
LARGEST = 400_000  # bytes of a notebook with its outputs
OFFLINE = """\
import socket

_connect = socket.socket.connect


def _local_only(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6):
        if address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"a notebook reached for {address[0]}")
    return _connect(self, address)


socket.socket.connect = _local_only
"""

INSTALLED = all(find_spec(name) for name in ("nbclient", "nbformat", "ipykernel"))
MISSING = "THE NOTEBOOKS ARE NOT TESTED: pip install 'agenteval[dev]' brings nbclient"
if not INSTALLED:
    warnings.warn(MISSING, stacklevel=1)
# As Any: these packages carry no types.
nbclient: Any = import_module("nbclient") if INSTALLED else None
nbformat: Any = import_module("nbformat") if INSTALLED else None
needs_client = pytest.mark.skipif(not INSTALLED, reason=MISSING)


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def execute(notebook: Any, folder: Path) -> Any:
    """The notebook with its outputs, after the cell that cuts it off from the network."""
    from jupyter_client.manager import KernelManager

    notebook.cells.insert(0, nbformat.v4.new_code_cell(OFFLINE))
    # Sockets in the file system (their paths must be short): no port, and no warning about one.
    with tempfile.TemporaryDirectory(prefix="nb-") as sockets:
        kernel = KernelManager(kernel_name="python3", transport="ipc", ip=f"{sockets}/s")
        client = nbclient.NotebookClient(
            notebook, km=kernel, timeout=TIMEOUT, resources={"metadata": {"path": str(folder)}}
        )
        try:
            client.execute()
        finally:
            kernel.shutdown_kernel(now=True)
    return notebook


def complaints(notebook: Any) -> list[str]:
    """What a reader should not see: errors, warnings, and figures that are missing."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        outputs = cell.get("outputs", [])
        found += [f"error: {o.evalue}" for o in outputs if o.output_type == "error"]
        found += [f"stderr: {o.text}" for o in outputs if o.get("name") == "stderr"]
        drawn = [o.data[PNG] for o in outputs if PNG in o.get("data", {})]
        if re.search(r"\.plot\.\w+\(\)", cell.source) and len(drawn) != 1:
            found.append(f"no figure: {cell.source}")
    return found


def figures(notebook: Any) -> int:
    return sum(PNG in o.get("data", {}) for c in notebook.cells for o in c.get("outputs", []))


def printed(notebook: Any) -> list[str]:
    """What cells print, one text for each that prints."""
    texts = (
        "".join(o.text for o in cell.get("outputs", []) if o.get("name") == "stdout")
        for cell in notebook.cells
    )
    return [text for text in texts if text]


def test_every_notebook_is_tested() -> None:
    assert {p.stem for p in FOLDER.glob("*.ipynb")} == set(FIGURES)


@needs_client
@pytest.mark.parametrize("name", FIGURES)
def test_it_is_stored_with_its_outputs_and_in_short_cells(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    notebook = read(path)
    nbformat.validate(notebook)
    code = [c for c in notebook.cells if c.cell_type == "code"]
    assert [c.execution_count for c in code] == list(range(1, len(code) + 1))
    assert complaints(notebook) == []
    assert figures(notebook) == FIGURES[name]
    assert path.stat().st_size < LARGEST
    imported = {
        line
        for c in code
        for line in c.source.splitlines()
        if "agenteval" in line and re.match(r"\s*(import|from) ", line)
    }
    assert imported == {"import agenteval"}  # the public names alone
    assert [c.source for c in code if len(c.source.splitlines()) > MOST_LINES] == []
    assert notebook.cells[0].cell_type == "markdown"
    assert re.match(rf"# {int(name[:2])}\. ", notebook.cells[0].source)
    assert sum(c.cell_type == "markdown" for c in notebook.cells) >= len(code) / 3


@needs_client
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.local] if n in LOCAL else []) for n in FIGURES]
)
def test_it_runs_offline_with_all_figures(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "notebooks"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for beside in ("tasks", "criteria"):
        (tmp_path / beside).symlink_to(FOLDER.parent / beside)
    start = time.perf_counter()
    done = execute(read(folder / f"{name}.ipynb"), folder)
    print(f"{name}: {time.perf_counter() - start:.0f} s")
    assert complaints(done) == []
    assert figures(done) == FIGURES[name]
    assert printed(done) == printed(read(FOLDER / f"{name}.ipynb"))  # what is stored is today's
