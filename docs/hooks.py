"""Hooks of the docs site: pages generated from the package, and pages from outside `docs/`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "benchmarks/results.md": "benchmarks.md",
    "SECURITY.md": "security.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    pages = {page: (ROOT / path).read_text("utf-8") for path, page in OUTSIDE.items()}
    pages |= {"commands.md": commands_page(), "reference.md": reference_page()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Point links across the border of `docs/` to pages of the site; others become plain text."""

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match.groups()
        if target.startswith(("http:", "https:", "mailto:")) or not target:
            return match[0]
        target = target.removeprefix("../").removeprefix("docs/")
        target = OUTSIDE.get(target, target)
        inside = (ROOT / "docs" / target).exists() or target in OUTSIDE.values()
        return f"[{text}]({target}{anchor or ''})" if inside else text

    return re.sub(r"\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)", link, markdown)


def commands_page() -> str:
    """Return the reference of all commands and options."""
    from agenteval.app.main import COMMANDS, command_of

    parts = [
        "# Commands",
        "Every command has `--help`. Environment variables: `AGENTEVAL_MODEL`, "
        "`AGENTEVAL_BASE_URL`, `AGENTEVAL_API_KEY`, `AGENTEVAL_STORE`.",
    ]
    for name in COMMANDS:
        parts += _described(command_of(name), name)
    return "\n\n".join(parts)


def _described(command: Any, name: str) -> list[str]:
    lines = [f"## agenteval {name}", _plain(command.help)]
    context = typer.Context(command, info_name=name)
    rows = [
        f"| {_names(parameter)} | {_cell(parameter.help)}{_default(parameter)} |"
        for parameter in command.get_params(context)
        if parameter.name != "help"
    ]
    if rows:
        lines.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    for child in getattr(command, "commands", {}):
        lines += _described(command.get_command(context, child), f"{name} {child}")
    return lines


def _plain(text: str | None) -> str:
    """Return a help text as Markdown; what follows \\b keeps its lines."""
    blocks = []
    for block in (text or "").split("\n\n"):
        if block.startswith("\b"):
            blocks.append("```text\n" + block.removeprefix("\b\n") + "\n```")
        else:
            blocks.append(block)
    return "\n\n".join(blocks)


def _names(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    return names if parameter.param_type_name == "option" else f"`{parameter.name.upper()}`"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


def _default(parameter: Any) -> str:
    default = parameter.default
    shown = default is not None and default is not False and getattr(parameter, "show_default", 1)
    return f" Default: `{default}`." if shown and isinstance(default, str | int | float) else ""


def reference_page() -> str:
    """Return the reference of all public names, from their docstrings."""
    import agenteval

    functions = [n for n in agenteval.__all__ if n[0].islower()]
    twins = {n for n in functions if n[0] == "a" and n[1:] in functions}
    classes = [n for n in agenteval.__all__ if n[0].isupper()]
    parts = [
        "# Python API",
        "All names load on first use. Functions that ask a model or an agent have an async version "
        f"with the same parameters: {', '.join(f'`{n}`' for n in sorted(twins))}.",
        "## Functions",
        *(_entry(n) for n in functions if n not in twins),
        "## Classes",
        *(_entry(n) for n in classes),
    ]
    return "\n\n".join(parts)


def _entry(name: str) -> str:
    """Return the entry of a public name; a sync function has the docstring of its async source."""
    import agenteval

    value = getattr(agenteval, name)
    module = value.__module__
    qualified = getattr(getattr(value, "__wrapped__", value), "__qualname__", name)
    options = f"    options:\n      heading: agenteval.{name}\n      toc_label: {name}"
    return f"::: {module}.{qualified}\n{options}"
