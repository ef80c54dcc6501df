"""Tests of executors call commands, too."""

from tests.cli.conftest import cli

__all__ = ["cli"]
