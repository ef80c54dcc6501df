"""The public names: each says what it is, and sync and async forms agree."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys

import agenteval


def test_every_name_loads_and_says_what_it_is() -> None:
    for name in agenteval.__all__:
        assert inspect.getdoc(getattr(agenteval, name)), name
    assert dir(agenteval) == agenteval.__all__
    assert len(agenteval.__all__) <= 64


def test_sync_and_async_forms_have_the_same_parameters_and_words() -> None:
    twins = [name for name in agenteval.__all__ if f"a{name}" in agenteval.__all__]
    assert {"propose", "quantify", "verify"} <= {*twins}
    for name in twins:
        plain, other = getattr(agenteval, name), getattr(agenteval, f"a{name}")
        assert inspect.signature(plain) == inspect.signature(other), name
        assert plain.__doc__ == other.__doc__, name
        assert plain.__name__ == name
        assert asyncio.iscoroutinefunction(other)
        assert not asyncio.iscoroutinefunction(plain)


def test_importing_the_package_loads_none_of_it() -> None:
    code = "import sys, agenteval; print(*(m for m in sys.modules if m.startswith('agenteval')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["agenteval"]
