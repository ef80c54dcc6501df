"""Options of `locate`, on the command line and in Python."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agenteval.cli.options import (
    CommonOptions,
    EndpointKeywords,
    EndpointOptions,
    ExecutorKeywords,
    ExecutorOptions,
    RunKeywords,
    RunOptions,
    option,
    with_default,
)

if TYPE_CHECKING:
    from agenteval.models.factory import Model
    from agenteval.traces.input import TaxonomyLike
    from agenteval.traces.locator_prompt import FinderMode
    from agenteval.traces.locator_reply import QuoteCheck


@dataclass(frozen=True)
class LocateOptions(RunOptions, EndpointOptions, ExecutorOptions):
    """Options for finding errors in traces, and the model."""

    model: Model = option(
        None,
        type=str | None,
        help="PROVIDER:MODEL, replay:FILE or autogen:FILE. Default: AGENTEVAL_MODEL.",
        show_default=False,
    )
    detectors_only: bool = option(
        False, "--detectors-only", help="Use only detectors, without a model."
    )
    taxonomy: TaxonomyLike = option(
        None, "--taxonomy", type=Path | None, help="Custom taxonomy of errors (JSON or YAML)."
    )
    mode: FinderMode = option(
        "broad",
        type=Literal["areas", "broad", "whole"],
        help="Ask one question per area of errors, or one for all; or send the whole trace in one "
        "request.",
        rich_help_panel="Model",
    )
    context: int | None = option(
        None,
        help="Context window of the model in tokens, prompt and reply together. Default: the "
        "window of a well-known model, else 8192.",
        min=512,
        rich_help_panel="Model",
    )
    reply_tokens: int = option(
        1536,
        help="Tokens reserved for a reply.",
        min=64,
        rich_help_panel="Model",
    )
    repeats: int = option(1, help="Number of times each part is judged.", min=1)
    budget: int = option(
        100_000,
        help="Maximum tokens of a condensed trace; long texts are cut.",
        min=256,
        rich_help_panel="Model",
    )
    quotes: QuoteCheck = option(
        "step",
        type=Literal["span", "step", "off"],
        help="Where quoted words must occur: in the span, in its step, or anywhere.",
        rich_help_panel="Model",
    )
    hints: bool = option(
        True,
        "--hints/--no-hints",
        help="Show the judge the findings of detectors.",
        rich_help_panel="Model",
    )
    with_reference: bool = option(
        False,
        "--with-reference",
        help="Show the judge gold answers that occur in spans.",
        rich_help_panel="Model",
    )
    seed: int = with_default(CommonOptions, "seed", 0)
    limit: int | None = option(None, help="Read only the first N traces.", min=1)
    output: str | Path | None = option(
        None,
        "-o",
        "--output",
        type=Path | None,
        help="Output folder of findings in the official layout.",
    )
    max_unscored: float = option(
        0.1, help="Exit with 3 if a larger share could not be examined.", min=0, max=1
    )


class LocateKeywords(RunKeywords, EndpointKeywords, ExecutorKeywords, total=False):
    """Keywords for `LocateOptions`."""

    model: Model
    detectors_only: bool
    taxonomy: TaxonomyLike
    mode: FinderMode
    context: int | None
    reply_tokens: int
    repeats: int
    budget: int
    quotes: QuoteCheck
    hints: bool
    with_reference: bool
    seed: int
    limit: int | None
    output: str | Path | None
    max_unscored: float
