"""What a command says when it ends before its plan is done."""

from __future__ import annotations

from agenteval.cli.console import note, warn


def say_waiting() -> None:
    """At the first Ctrl-C, while requests are under way of which the replies are kept."""
    note("interrupted: waiting for the replies under way; once more ends it at once")


def say_finishing() -> None:
    """At the first Ctrl-C, where one run after the other is made."""
    note("interrupted: finishing the run under way; once more ends it at once")


def say_interrupted(kept: str = "what is done is stored") -> int:
    """At the end of a command that was interrupted: what is kept, and how to go on; returns the
    exit code, which `main` turns into that of the signal."""
    warn(f"interrupted: {kept}; the same command goes on from here")
    return 130


REPLIES = "the replies that came are stored"  # of commands that keep nothing else until their end
