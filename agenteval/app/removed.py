"""Refuses commands and options of earlier versions with a line that says what to use instead."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.errors import InputError

# (words of the command, option or "" for the whole command): what to use instead
REMOVED = {
    ("flow convert", ""): "write it with any chat model, then run `agenteval flow check`",
    ("flow score", "--published"): "its figures are not comparable with published ones; use "
    "--reference",
    ("trace plant", ""): "use the nine traces with gold in tasks/traces",
    ("trace annotate", ""): "write annotations in the official layout, see docs/traces.md",
    ("plan test", "--lexicon"): "remove it; a suite states its own tree",
    ("plan report", "--lexicon"): "remove it; a suite states its own tree",
    ("trace score", "--tolerance"): "hits are exact; remove it",
    ("quantify", "--findings"): "judge the runs without findings; remove it",
    ("quantify", "--datamark"): "remove it; use verify --probes to test whether the judge obeys "
    "injected text",
    ("work", ""): "use --workers N or --ray ADDRESS of the command itself",
    ("quantify", "--allow-code"): "run the code in a judge in Python, see docs/computed.md",
    ("verify", "--allow-code"): "run the code in a judge in Python, see docs/computed.md",
    ("quantify", "--escalate-price"): "remove it; --price-in and --price-out count for both judges",
    ("anchor check", "--allow-changes"): "create an anchor of the changed judge",
    ("verify", "--rounds"): "run `agenteval criteria` and `agenteval verify` again",
    ("", "--record"): "replies are in the store: agenteval export --replies FILE",
    ("init", "--yes"): "init asks no questions; remove it",
    ("trace", "--undecided"): "only the rule supported by annotated traces remains; remove it",
}


def refuse_removed(arguments: Sequence[str]) -> None:
    """Raise InputError when the arguments name a removed command or option, or several URLs."""
    words = [word for word in arguments if not word.startswith("-")]
    names = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    options = set(names)
    for (command, option), advice in REMOVED.items():
        called = " ".join(words[: len(command.split())]) == command
        if called and (not option or option in options):
            raise InputError(f"removed: {advice}", option or f"agenteval {command}")
    if names.count("--base-url") > 1:
        raise InputError("give one URL; for several endpoints use a router", "--base-url")
