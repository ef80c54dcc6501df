"""Workers that Ray places: the same result, and no cluster that anybody could give orders to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.plugins.ray import RayPlaces
from agenteval.testing import serve
from tests.cli.conftest import Cli, Result, cli, project
from tests.cli.test_workers import RUNS, bare, cells, graded, quantify, runs, same

__all__ = ["cli", "project", "runs"]  # fixtures


def test_without_ray_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"--ray: needs ray: pip install 'agenteval\[ray\]'"):
        RayPlaces("local", 2, 8)


@pytest.mark.parametrize("address", ["10.0.0.1:6379", "ray://head:10001", "auto", "[fe80::1]:6379"])
def test_a_cluster_without_a_token_is_refused(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    pytest.importorskip("ray")
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    with pytest.raises(InputError, match="RAY_AUTH_MODE=token"):
        RayPlaces(address, 2, 8)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(InputError, match="other machines cannot open a file"):
        RayPlaces(address, 2, 8).start("job", "agenteval.db")


@pytest.mark.slow
def test_ray_places_the_workers(cli: Cli, project: Path, runs: Path) -> None:
    pytest.importorskip("ray")
    with serve(graded) as server:
        asked = quantify(runs, server.base_url)
        alone = cli(*asked, "--store", "alone.db", "--json")
        done = subprocess.run(  # Ray changes the environment of its process
            [sys.executable, "-m", "agenteval", *asked, "--ray", "local", "--workers", "2",
             "--json"], cwd=project, env=bare(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, server.count) == (0, 2 * RUNS), done.stderr
    assert same(Result(0, done.stdout, done.stderr)) == same(alone)
    assert cells("agenteval.db") == cells("alone.db")
