"""Workers on a Ray cluster: Ray places them and tells when one is gone, no more (read: 2.60)."""

from __future__ import annotations

import ipaddress
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agenteval.errors import InputError
from agenteval.workers import Places

_LOCAL = "local"


class RayPlaces(Places):
    """So many workers, one for each CPU that Ray gives; `local` starts a cluster on this machine,
    which nobody else can reach.

    Raises InputError where ray is not installed, and for a cluster beyond this machine that anybody
    could give orders to: Ray asks for no token unless RAY_AUTH_MODE says so.
    """

    def __init__(self, address: str, count: int, concurrency: int) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if address == _LOCAL:  # Ray makes a token of its own then; read when it is imported
            os.environ.setdefault("RAY_AUTH_MODE", "token")
        try:
            import ray
        except ImportError as error:
            raise InputError("needs ray: pip install 'agenteval[ray]'", "--ray") from error
        if not _here(address) and os.environ.get("RAY_AUTH_MODE") != "token":
            raise InputError(
                "whoever reaches a Ray cluster can run code on it: start it with "
                "RAY_AUTH_MODE=token, and set that here as well",
                f"--ray {address}",
            )
        super().__init__(count, concurrency)
        self._ray: Any = ray
        self._address = address

    def start(self, job: str, store: str) -> None:
        """Connect, and start them all. Raises InputError where no cluster answers, or where it
        could not open the store."""
        how: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if self._address == _LOCAL:
            how |= {"num_cpus": self.count, "include_dashboard": False}
            how |= {"_node_ip_address": "127.0.0.1"}
        elif "://" not in store:
            raise InputError("other machines cannot open a file: --store postgresql://...", store)
        try:
            self._ray.init(address=self._address, **how)
        except (ConnectionError, ValueError, RuntimeError) as error:
            line = str(error).strip().splitlines()[0]
            raise InputError(f"no cluster answers ({line})", f"--ray {self._address}") from error
        super().start(job, store)

    def spawn(self, words: Sequence[str], store: str) -> Any:
        """Have one placed; returns what will hold its exit code."""
        place = self._ray.remote(num_cpus=1, max_retries=0)(_work)
        return place.remote([*words], os.getcwd(), {"AGENTEVAL_STORE": store})

    def ended(self, one: Any) -> Literal["", "ended", "killed"]:
        """Killed is whose process, or machine, is gone."""
        done, _ = self._ray.wait([one], timeout=0)
        if not done:
            return ""
        try:
            self._ray.get(one)
        except self._ray.exceptions.RayError:
            return "killed"
        return "ended"

    def kill(self, one: Any) -> None:
        """End it, whatever it does."""
        self._ray.cancel(one, force=True)

    def stop(self, *, kill: bool) -> None:
        """The same of all, and leave the cluster."""
        if self._ray.is_initialized():
            super().stop(kill=kill)
            self._ray.shutdown()


def _work(words: list[str], folder: str, environment: Mapping[str, str]) -> int:
    """A worker in a process of the cluster; returns its exit code."""
    os.environ.update(environment)
    if os.path.isdir(folder):  # as where the command was given, where that is here too
        os.chdir(folder)
        sys.path.insert(0, folder)
    sys.argv = ["agenteval", *words]
    try:
        runpy.run_module("agenteval", run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _here(address: str) -> bool:
    """Whether nobody but this machine can reach the cluster."""
    host = address.rpartition("://")[2].rpartition(":")[0].strip("[]")
    try:
        return address == _LOCAL or host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
